use capo_models::prices::Price;
use http::header::HeaderValue;

use super::*;

const SSE: &str = "text/event-stream; charset=utf-8";
const JSON: &str = "application/json";

/// A counter of an answer for which 5000 tokens of input and 100 of output are reserved.
fn counter(operation: &str, status: u16, media_type: &'static str) -> Counter {
    let operation = match operation {
        "chat" => Operation::Chat,
        "responses" => Operation::Responses,
        "embeddings" => Operation::Embeddings,
        "messages" => Operation::Messages,
        "generate" => Operation::GenerateStream,
        _ => Operation::Models,
    };
    let price = r#"{"input":1,"output":10,"cached_input":0.1,"cache_write":2}"#;
    let (input, output, cost) = (5000, Some(100), None);
    let metering = Metering {
        operation,
        bound: Bound { input, output, cost },
        rates: Rates::new(&serde_json::from_str::<Price>(price).unwrap()),
        reports_cost: operation == Operation::Chat,
    };
    let headers = HeaderMap::from_iter([(header::CONTENT_TYPE, HeaderValue::from_static(media_type))]);
    Counter::new(metering, StatusCode::from_u16(status).unwrap(), &headers)
}

/// Input, output and nano-dollars of an answer; `estimate` before them where they are one.
fn count(operation: &str, status: u16, media_type: &'static str, body: &str) -> String {
    let mut counter = counter(operation, status, media_type);
    counter.feed(body.as_bytes());
    let Count {
        input,
        output,
        cost,
        is_estimate,
    } = counter.finish();
    let estimate = if is_estimate { "estimate " } else { "" };
    format!("{estimate}{input} {output} {}", cost.unwrap().get())
}

/// A stream of events, which are separated by ` | `.
fn stream(events: &str) -> String {
    let each = events.split(" | ").map(|event| format!("data: {event}\n\n"));
    each.collect::<Vec<_>>().concat()
}

#[test]
fn documents_are_counted_as_the_provider_reports() {
    for line in r#"chat; 1000 7 710000; {"usage":{"prompt_tokens":1000,"completion_tokens":7,"prompt_tokens_details":{"cached_tokens":400}}}
        chat; 1 1 500000000; {"usage":{"prompt_tokens":1,"completion_tokens":1,"cost":0.5}}
        responses; 10 7 80000; {"usage":{"input_tokens":10,"output_tokens":7,"cost":0.5}}
        embeddings; 10 0 10000; {"usage":{"prompt_tokens":10,"total_tokens":10}}
        messages; 130 7 130000; {"usage":{"input_tokens":10,"cache_read_input_tokens":100,"cache_creation_input_tokens":20,"output_tokens":7}}
        messages; 10 7 80000; {"content":[{"input":{"usage":{"output_tokens":0}}}],"usage":{"input_tokens":10,"output_tokens":7}}
        generate; 10 7 80000; {"usageMetadata":{"promptTokenCount":10,"candidatesTokenCount":3,"thoughtsTokenCount":4}}
        generate; 10 0 10000; {"usageMetadata":{"promptTokenCount":10}}
        models; 0 0 0; {"data":[]}"#
        .lines()
    {
        let [operation, expected, body] = [0, 1, 2].map(|i| line.trim().splitn(3, "; ").nth(i).unwrap());
        assert_eq!(count(operation, 200, JSON, body), expected, "{line}");
    }
}

#[test]
fn streams_are_counted_as_the_provider_reports_or_by_their_upper_bound() {
    // A whole answer has no more tokens than bytes; one that broke off may have all that was reserved.
    for line in r#"chat; 10 7 80000; {"choices":[{"delta":{"content":"a"}}],"usage":null} | {"choices":[],"usage":{"prompt_tokens":10,"completion_tokens":7}}
        chat; 10 7 80000; {"choices":[{"finish_reason":"stop"}],"usage":{"prompt_tokens":10,"completion_tokens":7}} | [DONE]
        responses; 10 7 80000; {"type":"response.completed","response":{"usage":{"input_tokens":10,"output_tokens":7}}}
        messages; 10 7 80000; {"message":{"usage":{"input_tokens":10,"output_tokens":1}}} | {"usage":{"output_tokens":7}} | {"usage":{}} | {"type":"message_stop"}
        generate; 10 7 80000; {"usageMetadata":{"promptTokenCount":10,"candidatesTokenCount":7}} | {"candidates":[{"finishReason":"STOP"}]}
        chat; estimate 5000 8 10080000; {"choices":[{"delta":{"content":"four"}}]} | {"choices":[{"delta":{"content":"more"}}]} | [DONE]
        chat; estimate 5000 100 11000000; {"choices":[{"delta":{"content":"four"}}]}
        chat; estimate 5000 100 11000000; {broken | [DONE]
        messages; estimate 10 100 1020000; {"message":{"usage":{"input_tokens":10,"output_tokens":1}}}
        generate; estimate 10 100 1020000; {"usageMetadata":{"promptTokenCount":10,"candidatesTokenCount":7}}"#
        .lines()
    {
        let [operation, expected, events] = [0, 1, 2].map(|i| line.trim().splitn(3, "; ").nth(i).unwrap());
        assert_eq!(count(operation, 200, SSE, &stream(events)), expected, "{line}");
    }
    assert_eq!(count("chat", 200, SSE, ""), "estimate 5000 100 11000000");
    assert_eq!(
        count("chat", 200, JSON, r#"{"choices":[]}"#),
        "estimate 5000 14 10140000"
    );
    assert_eq!(
        count("chat", 200, JSON, r#"{"choices":["#),
        "estimate 5000 100 11000000"
    );
}

#[test]
fn a_failed_request_costs_nothing_unless_it_reports_usage() {
    for (body, expected) in [
        (r#"{"error":{"message":"slow down"}}"#, "0 0 0"),
        ("<html>", "0 0 0"),
        (
            r#"{"usage":{"prompt_tokens":10,"completion_tokens":7}}"#,
            "10 7 80000",
        ),
    ] {
        assert_eq!(count("chat", 429, JSON, body), expected);
    }
}

#[test]
fn a_stream_longer_than_reserved_is_stopped_at_the_end_of_an_event() {
    let event = |bytes| {
        stream(&format!(
            r#"{{"choices":[{{"delta":{{"content":"{}"}}}}]}}"#,
            "a".repeat(bytes)
        ))
    };
    let mut long = counter("chat", 200, SSE);
    assert_eq!(long.feed(event(807).as_bytes()), Flow::Pass);
    let beyond = event(1);
    let chunk = format!("{beyond}{}", event(50));
    assert_eq!(long.feed(chunk.as_bytes()), Flow::Stop(beyond.len()));
    assert_eq!(long.feed(b"data: more"), Flow::Stop(0));
    assert_eq!(long.problem().members["limit"], 100);
    assert_eq!(long.finish().output, 101);

    let mut told = counter("generate", 200, SSE);
    let usage = stream(r#"{"usageMetadata":{"promptTokenCount":10,"thoughtsTokenCount":101}}"#);
    assert_eq!(told.feed(usage.as_bytes()), Flow::Stop(usage.len()));
    let last = usage.replace(
        "{\"usage",
        "{\"candidates\":[{\"finishReason\":\"STOP\"}],\"usage",
    );
    let mut ended = counter("generate", 200, SSE);
    assert_eq!(ended.feed(last.as_bytes()), Flow::Pass, "its end is not cut off");
}

#[cfg(not(target_arch = "wasm32"))]
proptest::proptest! {
    /// Count and bytes passed on are the same however the body is cut into chunks.
    #[test]
    fn chunks_do_not_matter(
        picked in proptest::collection::vec(0_usize..8, 0..12),
        cuts in proptest::collection::btree_set(0_usize..4000, 0..20),
        is_stream in proptest::bool::ANY,
    ) {
        let long = format!("data: {{\"choices\":[{{\"delta\":{{\"content\":\"{}\"}}}}]}}\r\n\r\n", "é".repeat(190));
        let pieces = [
            "data: {\"choices\":[{\"delta\":{\"content\":\"é\"}}]}\n\n", ": ping\n\n", "\r\n", "data: [DONE]\n\n",
            "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":9,\"completion_tokens\":3}}\r\r", "event: x\rdata: {\r\r",
            "{\"usage\":{\"prompt_tokens\":9,\"completion_tokens\":3}}", long.as_str(),
        ];
        let body: String = picked.iter().map(|&index| pieces[index]).collect();
        let run = |cuts: &mut dyn Iterator<Item = usize>| {
            let mut counter = counter("chat", 200, if is_stream { SSE } else { JSON });
            let (mut forwarded, mut start) = (0, 0);
            for end in cuts.map(|cut| cut.min(body.len())).chain([body.len()]) {
                forwarded += match counter.feed(&body.as_bytes()[start..end]) {
                    Flow::Pass => end - start,
                    Flow::Stop(forward) => forward,
                };
                start = end;
            }
            (forwarded, counter.finish())
        };
        let whole = run(&mut std::iter::empty());
        proptest::prop_assert_eq!(run(&mut cuts.into_iter()), whole);
        proptest::prop_assert_eq!(run(&mut (0..body.len())), whole);
    }
}
