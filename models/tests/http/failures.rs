//! What happens when a provider does not answer as it should.

use std::time::{Duration, Instant};

use capo_core::llm::{CallUsage, FailureKind, LlmError, Role};
use serde_json::{Value, json};
use wiremock::{MockServer, ResponseTemplate};

use crate::server::{KEY, PLAIN, SUBJECTS, Subject, models, question, received};

fn status(code: u16, message: &str) -> ResponseTemplate {
    ResponseTemplate::new(code).set_body_json(json!({ "error": { "message": message } }))
}

/// What a failed call says: its kind, message, whether to try again, usage. No key in it.
fn failed<T: std::fmt::Debug>(answer: Result<T, LlmError>) -> (FailureKind, String, bool, CallUsage) {
    match answer.unwrap_err() {
        LlmError::Failed {
            kind,
            message,
            retryable,
            usage,
        } => {
            assert!(!message.contains(KEY), "{message}");
            (kind, message, retryable, usage)
        }
        other => panic!("{other:?}"),
    }
}

async fn ask(
    subject: Subject,
    replies: Vec<ResponseTemplate>,
    more: Value,
) -> (Result<capo_core::llm::ChatResponse, LlmError>, usize) {
    let server = MockServer::start().await;
    subject.serve(&server, replies).await;
    let answer = subject.model(&server, &more).chat(question()).await;
    (answer, received(&server).await.len())
}

#[tokio::test]
async fn a_server_error_is_tried_again() {
    for subject in SUBJECTS {
        let replies = vec![status(500, "oops"), status(503, "busy"), subject.says("There.")];
        let (answer, requests) = ask(subject, replies, json!({})).await;
        let answer = answer.unwrap();
        assert_eq!(answer.message.text(), "There.", "{}", subject.provider);
        assert_eq!(
            (answer.usage.input_tokens, requests),
            (11, 3),
            "failed tries cost nothing"
        );
    }
}

#[tokio::test]
async fn zero_retries_are_honoured() {
    for subject in SUBJECTS {
        let replies = vec![status(500, "oops"), subject.says("never asked")];
        let (answer, requests) = ask(subject, replies, json!({ "retries": 0 })).await;
        let (kind, message, retryable, usage) = failed(answer);
        assert_eq!((kind, retryable, requests), (FailureKind::Provider, true, 1));
        assert_eq!(
            message,
            format!("{}/test-model: HTTP 500: oops", subject.provider)
        );
        assert_eq!(usage.usd, Some(0.0));
    }
}

#[tokio::test]
async fn retries_end() {
    let (answer, requests) = ask(PLAIN, vec![status(502, "bad gateway")], json!({ "retries": 2 })).await;
    let (_, message, ..) = failed(answer);
    assert_eq!(requests, 3);
    assert!(
        message.ends_with("HTTP 502: bad gateway (tried 3 times)"),
        "{message}"
    );
}

#[tokio::test]
async fn retry_after_is_waited() {
    for subject in [SUBJECTS[0], SUBJECTS[1], SUBJECTS[2]] {
        let slow = status(429, "slow down").insert_header("retry-after", "0.3");
        let started = Instant::now();
        let (answer, requests) = ask(subject, vec![slow, subject.says("Now.")], json!({})).await;
        assert_eq!(answer.unwrap().message.text(), "Now.");
        assert_eq!(requests, 2);
        assert!(
            started.elapsed() >= Duration::from_millis(300),
            "{}",
            subject.provider
        );
    }
}

#[tokio::test]
async fn nobody_waits_an_hour() {
    let slow = status(429, "slow down").insert_header("retry-after", "3600");
    let (answer, requests) = ask(PLAIN, vec![slow], json!({})).await;
    let (kind, message, ..) = failed(answer);
    assert_eq!((kind, requests), (FailureKind::RateLimit, 1));
    assert!(message.contains("it asks to wait 3600 s"), "{message}");
}

#[tokio::test]
async fn one_caller_told_to_wait_holds_the_others() {
    let server = MockServer::start().await;
    let slow = status(429, "slow down").insert_header("retry-after", "0.3");
    PLAIN.serve(&server, vec![slow, PLAIN.says("Now.")]).await;
    let model = PLAIN.model(&server, &json!({ "concurrency": 1 }));
    let started = Instant::now();
    let answers = futures::future::join(model.chat(question()), async {
        let answer = model.chat(question()).await;
        (answer, started.elapsed())
    });
    let (first, (second, elapsed)) = answers.await;
    first.unwrap();
    second.unwrap();
    assert!(
        elapsed >= Duration::from_millis(300),
        "the second call waited with the first"
    );
}

#[tokio::test]
async fn a_refused_key_is_named_and_ends_everything() {
    for subject in SUBJECTS {
        let server = MockServer::start().await;
        let refused = status(401, &format!("Incorrect API key provided: {KEY}"));
        subject.serve(&server, vec![refused]).await;
        let model = subject.model(&server, &json!({}));
        let (kind, message, retryable, _) = failed(model.chat(question()).await);
        assert_eq!((kind, retryable), (FailureKind::Authentication, false));
        assert!(message.contains("TEST_KEY"), "{message}");
        let (_, message, ..) = failed(model.chat(question()).await);
        assert!(message.contains("given up"), "{message}");
        assert_eq!(
            received(&server).await.len(),
            1,
            "a wrong key is wrong every time"
        );
    }
}

#[tokio::test]
async fn a_redirect_takes_no_key_elsewhere() {
    for subject in SUBJECTS {
        let elsewhere = MockServer::start().await;
        subject
            .serve(&elsewhere, vec![subject.says("Give me your key.")])
            .await;
        let moved = ResponseTemplate::new(307)
            .insert_header("location", format!("{}{}", elsewhere.uri(), subject.path));
        let (answer, requests) = ask(subject, vec![moved], json!({})).await;
        let (kind, message, retryable, _) = failed(answer);
        assert_eq!((kind, retryable, requests), (FailureKind::Provider, false, 1));
        assert!(
            message.contains("HTTP 307") && message.contains("`base_url`"),
            "{message}"
        );
        assert!(received(&elsewhere).await.is_empty(), "{}", subject.provider);
    }
}

#[tokio::test]
async fn a_refused_key_leaves_roles_with_another_key_alone() {
    let server = MockServer::start().await;
    PLAIN
        .serve(&server, vec![status(401, "no"), PLAIN.says("Welcome.")])
        .await;
    let own = PLAIN.table(&server, &json!({}));
    let other = PLAIN.table(&server, &json!({ "api_key_env": "OTHER_KEY" }));
    let models = models([(Role::Agent, own), (Role::Judge, other)]);
    let (kind, ..) = failed(models.get(Role::Agent).unwrap().chat(question()).await);
    assert_eq!(kind, FailureKind::Authentication);
    let answer = models.get(Role::Judge).unwrap().chat(question()).await;
    assert_eq!(answer.unwrap().message.text(), "Welcome.");
}

#[tokio::test]
async fn a_request_that_is_too_long_is_its_own_kind() {
    let long = ResponseTemplate::new(400).set_body_json(json!({ "error": {
        "code": "context_length_exceeded",
        "message": "This model's maximum context length is 4096 tokens.",
    } }));
    let (answer, requests) = ask(PLAIN, vec![long], json!({})).await;
    let (kind, _, retryable, _) = failed(answer);
    assert_eq!(
        (kind, retryable, requests),
        (FailureKind::ContextLength, false, 1)
    );
}

#[tokio::test]
async fn a_bad_request_is_not_repeated() {
    let (answer, requests) = ask(PLAIN, vec![status(400, "no such parameter")], json!({})).await;
    let (kind, message, retryable, _) = failed(answer);
    assert_eq!((kind, retryable, requests), (FailureKind::Provider, false, 1));
    assert!(message.contains("no such parameter"));
}

#[tokio::test]
async fn a_slow_answer_is_a_timeout() {
    let slow = PLAIN.says("too late").set_delay(Duration::from_secs(5));
    let more = json!({ "timeout_seconds": 0.1, "retries": 1 });
    let (answer, _) = ask(PLAIN, vec![slow], more).await;
    let (kind, message, ..) = failed(answer);
    assert_eq!(kind, FailureKind::Timeout);
    assert!(message.contains("no answer within 0.1 s"), "{message}");
}

#[tokio::test]
async fn what_a_server_gave_up_waiting_for_may_be_charged() {
    for code in [408, 504] {
        for (more, usd) in [
            (json!({ "retries": 0 }), None),
            (
                json!({ "retries": 0, "price": { "input": 1.0, "output": 1.0 } }),
                Some(3.0),
            ),
        ] {
            let (answer, _) = ask(PLAIN, vec![status(code, "no answer in time")], more).await;
            let (kind, _, retryable, usage) = failed(answer);
            assert_eq!((kind, retryable), (FailureKind::Timeout, true), "{code}");
            // "Be kind." and "Hello?" have 14 characters.
            let millionths = usage.usd.map(|usd| (usd * 1e6).round());
            assert_eq!((usage.input_tokens, millionths), (3, usd), "{code}");
        }
    }
}

#[tokio::test]
async fn broken_json_is_tried_again_and_paid_for() {
    for subject in SUBJECTS {
        let broken = ResponseTemplate::new(200).set_body_raw(
            r#"{"usage": {"prompt_tokens": 40, "completion_tokens": 9}, "choices": [{"mess"#,
            "application/json",
        );
        let more = json!({ "price": { "input": 1.0, "output": 1.0 } });
        let (answer, requests) = ask(subject, vec![broken, subject.says("Whole.")], more).await;
        let answer = answer.unwrap();
        assert_eq!(requests, 2);
        let of = |usage: CallUsage| {
            (
                usage.input_tokens,
                usage.output_tokens,
                (usage.usd.unwrap() * 1e6).round(),
            )
        };
        let provider = subject.provider;
        assert_eq!(
            of(answer.usage),
            (11, 7, 18.0),
            "{provider}: what the answer took"
        );
        assert_eq!(of(answer.failed_tries.unwrap()), (40, 9, 49.0), "{provider}");
    }
}

#[tokio::test]
async fn a_page_of_html_is_no_answer() {
    let page = ResponseTemplate::new(200).set_body_raw("<html>Welcome</html>", "text/html");
    let (answer, _) = ask(PLAIN, vec![page], json!({ "retries": 0 })).await;
    let (kind, message, ..) = failed(answer);
    assert_eq!(kind, FailureKind::Malformed);
    assert_eq!(
        message,
        "openai-compatible/test-model: HTTP 200, but not with JSON, as a model's server does; the answer begins: \
         <html>Welcome</html>"
    );
}

#[tokio::test]
async fn json_that_is_no_answer_is_shown_in_plain_words() {
    for subject in SUBJECTS {
        for body in [r#"{"choices": []}"#, "[1]", "null", r#""Welcome""#, "{}"] {
            let reply = ResponseTemplate::new(200).set_body_raw(body, "application/json");
            let (answer, _) = ask(subject, vec![reply], json!({ "retries": 0 })).await;
            let (kind, message, ..) = failed(answer);
            assert_eq!(kind, FailureKind::Malformed, "{message}");
            assert!(
                message.ends_with(body) && message.contains("HTTP 200, but "),
                "{message}"
            );
            for jargon in ["Error", "expected", "column", "variant"] {
                assert!(!message.contains(jargon), "{message}");
            }
        }
        let empty = ResponseTemplate::new(200);
        let (answer, _) = ask(subject, vec![empty], json!({ "retries": 0 })).await;
        let (_, message, ..) = failed(answer);
        assert!(
            message.ends_with("HTTP 200, but the answer is empty"),
            "{message}"
        );
    }
}

#[tokio::test]
async fn an_answer_beyond_all_measure_is_not_read() {
    let body = |bytes: usize| vec![b' '; bytes];
    for (code, kind) in [(200, FailureKind::Malformed), (500, FailureKind::Provider)] {
        let flood = ResponseTemplate::new(code).set_body_raw(body((16 << 20) + 1), "application/json");
        let (answer, _) = ask(PLAIN, vec![flood], json!({ "retries": 0 })).await;
        let (found, message, retryable, usage) = failed(answer);
        assert_eq!((found, retryable), (kind, true), "{message}");
        let is_answer = code == 200;
        assert_eq!(message.contains("larger than 16 MiB"), is_answer, "{message}");
        // What was read of it was generated.
        assert_eq!(usage.output_tokens > 3 << 20, is_answer, "{usage:?}");
    }
    let most = ResponseTemplate::new(200).set_body_raw(body(16 << 20), "application/json");
    let (answer, _) = ask(PLAIN, vec![most], json!({ "retries": 0 })).await;
    assert!(
        failed(answer).1.contains("the answer is empty"),
        "all of it was read"
    );
}

#[tokio::test]
async fn arguments_nested_without_end_cost_no_time() {
    let call = |arguments: String| {
        let call = json!({ "id": "c", "type": "function", "function": { "name": "look_up", "arguments": arguments } });
        let message = json!({ "role": "assistant", "tool_calls": [call] });
        ResponseTemplate::new(200).set_body_json(
            json!({ "choices": [{ "index": 0, "finish_reason": "tool_calls", "message": message }] }),
        )
    };
    let started = Instant::now();
    let whole = format!("{{\"a\": {}{}}}", "[".repeat(100_000), "]".repeat(100_000));
    for arguments in [
        "[".repeat(100_000),
        format!("{{\"a\": [{}", "1,".repeat(100_000)),
        whole,
    ] {
        let (answer, _) = ask(PLAIN, vec![call(arguments)], json!({ "retries": 0 })).await;
        let (kind, message, ..) = failed(answer);
        assert_eq!(kind, FailureKind::Malformed);
        assert!(
            message.contains("the arguments of a tool call are no JSON"),
            "{message}"
        );
    }
    let claude = json!({ "id": "m", "type": "message", "role": "assistant", "model": "claude", "stop_reason": "tool_use",
        "usage": { "input_tokens": 1, "output_tokens": 1 },
        "content": [{ "type": "tool_use", "id": "c", "name": "look_up", "input": "[".repeat(100_000) }] });
    // Each for itself is short enough.
    let half = json!({ "id": "c", "type": "function",
        "function": { "name": "look_up", "arguments": format!("{{\"a\": [{}", "1,".repeat(10_000)) } });
    let message = json!({ "role": "assistant", "tool_calls": vec![half; 200] });
    let many = json!({ "choices": [{ "index": 0, "finish_reason": "tool_calls", "message": message }] });
    for (wire, body) in [(SUBJECTS[1], claude), (PLAIN, many)] {
        let body = ResponseTemplate::new(200).set_body_json(body);
        let (answer, _) = ask(wire, vec![body], json!({ "retries": 0 })).await;
        let (kind, message, ..) = failed(answer);
        assert_eq!(kind, FailureKind::Malformed);
        assert!(
            message.contains("the arguments of a tool call are no JSON"),
            "{message}"
        );
    }
    assert!(
        started.elapsed() < Duration::from_secs(5),
        "{:?}",
        started.elapsed()
    );
    // Those that are JSON may be long.
    let long = format!("{{\"a\": [{}1]}}", "1,".repeat(100_000));
    let (answer, _) = ask(PLAIN, vec![call(long)], json!({})).await;
    assert_eq!(
        answer.unwrap().message.tool_calls[0].arguments["a"]
            .as_array()
            .unwrap()
            .len(),
        100_001
    );
}

#[tokio::test]
async fn tls_to_a_port_that_does_not_speak_it_is_said_plainly_and_not_tried_again() {
    let server = MockServer::start().await;
    let mut table = PLAIN.table(&server, &json!({}));
    let plain = format!("{}/v1", server.uri());
    table["base_url"] = json!(plain.replace("http://", "https://"));
    let model = models([(Role::Agent, table)]).get(Role::Agent).unwrap();
    let (kind, message, retryable, _) = failed(model.chat(question()).await);
    assert_eq!((kind, retryable), (FailureKind::Unreachable, false));
    let words = format!("this address does not speak TLS; did you mean `{plain}`?");
    assert!(message.ends_with(&words), "{message}");
}

#[tokio::test]
async fn an_answer_that_breaks_off_is_said_to() {
    use std::io::{Read, Write};
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let serving = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let _ = stream.read(&mut [0; 8192]).unwrap();
        let head = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 1000\r\n\r\n{\"cho";
        stream.write_all(head.as_bytes()).unwrap();
    });
    let table = json!({
        "provider": "openai-compatible", "model": "m", "base_url": format!("http://{address}/v1"), "retries": 0,
    });
    let model = models([(Role::Agent, table)]).get(Role::Agent).unwrap();
    let (kind, message, ..) = failed(model.chat(question()).await);
    serving.join().unwrap();
    assert_eq!(kind, FailureKind::Malformed);
    assert!(
        message.ends_with("HTTP 200, but the answer broke off before its end"),
        "{message}"
    );
}

#[tokio::test]
async fn an_empty_answer_is_tried_again_and_paid_for() {
    for subject in SUBJECTS {
        let replies = vec![subject.says(""), subject.says(" \n"), subject.says("Words.")];
        let (answer, requests) = ask(subject, replies, json!({})).await;
        let answer = answer.unwrap();
        assert_eq!(
            (answer.message.text(), requests),
            ("Words.", 3),
            "{}",
            subject.provider
        );
        assert_eq!((answer.usage.input_tokens, answer.usage.output_tokens), (11, 7));
        let failed = answer.failed_tries.unwrap();
        assert_eq!((failed.input_tokens, failed.output_tokens), (22, 14));
    }
    let (answer, _) = ask(PLAIN, vec![PLAIN.says("")], json!({ "retries": 1 })).await;
    let (kind, _, _, usage) = failed(answer);
    assert_eq!((kind, usage.output_tokens), (FailureKind::Malformed, 14));
}

#[tokio::test]
async fn nobody_there() {
    // Port 1 of loopback is never served.
    let dead = json!({
        "provider": "gemini", "model": "m", "base_url": "http://127.0.0.1:1",
        "api_key_env": "TEST_KEY", "retries": 0,
    });
    let model = models([(Role::Agent, dead)]).get(Role::Agent).unwrap();
    let (kind, message, retryable, _) = failed(model.chat(question()).await);
    assert_eq!((kind, retryable), (FailureKind::Unreachable, true));
    assert!(message.contains("cannot reach http://127.0.0.1:1"), "{message}");
    assert!(!message.contains("key="), "{message}");
}

#[tokio::test]
async fn many_failures_in_a_row_give_the_model_up() {
    let server = MockServer::start().await;
    PLAIN.serve(&server, vec![status(500, "down")]).await;
    let model = PLAIN.model(&server, &json!({ "retries": 1, "abort_after": 3 }));
    failed(model.chat(question()).await);
    let (_, message, retryable, _) = failed(model.chat(question()).await);
    assert!(message.contains("given up after 3 failed tries in a row, the last: HTTP 500: down"));
    assert!(retryable, "it may be up again later");
    failed(model.chat(question()).await);
    assert_eq!(received(&server).await.len(), 3);
}

#[tokio::test]
async fn roles_share_a_client_and_its_limit() {
    let server = MockServer::start().await;
    PLAIN
        .serve(
            &server,
            vec![PLAIN.says("x").set_delay(Duration::from_millis(60))],
        )
        .await;
    let table = PLAIN.table(&server, &json!({ "concurrency": 1 }));
    let warmer = PLAIN.table(&server, &json!({ "temperature": 1.0 }));
    let models = models([
        (Role::Agent, table.clone()),
        (Role::Judge, table),
        (Role::Rewriter, warmer),
    ]);
    let [agent, judge, critic] =
        [Role::Agent, Role::Judge, Role::Critic].map(|role| models.get(role).unwrap());
    assert!(std::rc::Rc::ptr_eq(&agent, &judge));
    assert!(!std::rc::Rc::ptr_eq(&agent, &critic));
    let started = Instant::now();
    let calls = [&agent, &judge, &critic].map(|model| model.chat(question()));
    for answer in futures::future::join_all(calls).await {
        answer.unwrap();
    }
    assert!(
        started.elapsed() >= Duration::from_millis(180),
        "one after the other"
    );
}
