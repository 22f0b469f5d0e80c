//! What each provider is sent, and how its answers are read.

use std::rc::Rc;

use capo_core::llm::{ChatRequest, Finish, Message, ToolSpec};
use serde_json::{Value, json};
use wiremock::{MockServer, ResponseTemplate};

use crate::server::{KEY, PLAIN, SUBJECTS, Subject, Wire, question, received};

fn with_tools(messages: impl Into<Rc<Vec<Message>>>) -> ChatRequest {
    let tools = [ToolSpec {
        name: "look_up".to_owned(),
        description: "Finds an order.".to_owned(),
        parameters: json!({
            "type": "object",
            "properties": { "order": { "type": "integer" } },
            "required": ["order"],
        }),
    }];
    ChatRequest {
        messages: messages.into(),
        tools: tools.into(),
        seed: Some(u64::MAX),
        ..ChatRequest::default()
    }
}

/// All text in a body, wherever the wire puts it.
fn texts(value: &Value) -> String {
    match value {
        Value::String(text) => format!("{text}\n"),
        Value::Array(items) => items.iter().map(texts).collect(),
        Value::Object(fields) => fields.values().map(texts).collect(),
        _ => String::new(),
    }
}

fn at<'a>(body: &'a Value, pointer: &str) -> &'a Value {
    body.pointer(pointer)
        .unwrap_or_else(|| panic!("no {pointer} in {body:#}"))
}

async fn a_question_and_its_answer(subject: Subject) {
    let server = MockServer::start().await;
    subject.serve(&server, vec![subject.says("Hello!")]).await;
    let more = json!({ "temperature": 0.5, "max_tokens": 300, "headers": { "X-Team": "search" } });
    let model = subject.model(&server, &more);
    assert_eq!(model.name(), format!("{}/test-model", subject.provider));
    let answer = model.chat(with_tools(question().messages)).await.unwrap();
    assert_eq!(answer.message.text(), "Hello!");
    assert_eq!(answer.finish, Finish::Stop);
    assert_eq!((answer.usage.input_tokens, answer.usage.output_tokens), (11, 7));
    assert!(answer.usage.seconds > 0.0);

    let requests = received(&server).await;
    let (request, body) = &requests[0];
    let header = |name: &str| request.headers.get(name).map(|value| value.to_str().unwrap());
    assert_eq!(header("x-team"), Some("search"));
    assert!(header("user-agent").unwrap().starts_with("capo/"));
    let seed = json!(0x7fff_ffff);
    match subject.wire {
        Wire::Chat => {
            assert_eq!(header("authorization"), Some(format!("Bearer {KEY}").as_str()));
            assert_eq!(at(body, "/model"), "test-model");
            assert_eq!(at(body, "/messages/0/role"), "system");
            assert_eq!(
                at(body, "/messages/1"),
                &json!({ "role": "user", "content": "Hello?" })
            );
            assert_eq!(at(body, "/tools/0/function/name"), "look_up");
            assert_eq!(at(body, "/tools/0/function/parameters/required/0"), "order");
            assert_eq!(at(body, "/temperature"), 0.5);
            assert_eq!(at(body, "/max_tokens"), 300);
            let name = if subject.provider == "mistral" {
                "/random_seed"
            } else {
                "/seed"
            };
            assert_eq!(at(body, name), &seed);
        }
        Wire::Anthropic => {
            assert_eq!(header("x-api-key"), Some(KEY));
            assert!(header("anthropic-dangerous-direct-browser-access").is_none());
            assert_eq!(at(body, "/model"), "test-model");
            assert_eq!(at(body, "/messages/0/role"), "user");
            assert_eq!(at(body, "/tools/0/name"), "look_up");
            // What is the same in every call is read from the cache.
            assert_eq!(at(body, "/tools/0/cache_control/type"), "ephemeral");
            assert_eq!(at(body, "/system/0/cache_control/type"), "ephemeral");
            assert!(!body["messages"].to_string().contains("cache_control"));
            assert_eq!(at(body, "/temperature"), 0.5);
            assert_eq!(at(body, "/max_tokens"), 300);
            assert!(body.get("seed").is_none(), "Anthropic has no seeds");
        }
        Wire::Gemini => {
            assert_eq!(request.url.query(), None);
            assert_eq!(header("x-goog-api-key"), Some(KEY));
            assert_eq!(at(body, "/tools/0/functionDeclarations/0/name"), "look_up");
            assert_eq!(at(body, "/generationConfig/temperature"), 0.5);
            assert_eq!(at(body, "/generationConfig/maxOutputTokens"), 300);
            assert_eq!(at(body, "/generationConfig/seed"), &seed);
        }
    }
    assert!(texts(body).contains("Be kind."));
}

async fn a_tool_call_and_what_follows(subject: Subject) {
    let server = MockServer::start().await;
    subject
        .serve(
            &server,
            vec![subject.calls_tool(), subject.says("It is on its way.")],
        )
        .await;
    let model = subject.model(&server, &json!({}));
    let mut messages = question().messages;
    let answer = model.chat(with_tools(messages.clone())).await.unwrap();
    assert_eq!(answer.finish, Finish::ToolCalls);
    let call = &answer.message.tool_calls[0];
    assert_eq!(call.name, "look_up");
    assert_eq!(call.arguments, json!({ "order": 7 }));

    let id = call.id.clone();
    Rc::make_mut(&mut messages).extend([
        Message::Assistant(answer.message),
        Message::tool(&id, "order 7: sent"),
    ]);
    let answer = model.chat(with_tools(messages)).await.unwrap();
    assert_eq!(answer.message.text(), "It is on its way.");

    let requests = received(&server).await;
    let body = &requests[1].1;
    match subject.wire {
        Wire::Chat => {
            let called = at(body, "/messages/2");
            assert_eq!(at(called, "/role"), "assistant");
            assert_eq!(at(called, "/tool_calls/0/id"), "call00001");
            assert_eq!(at(called, "/tool_calls/0/function/arguments"), r#"{"order":7}"#);
            let answered = at(body, "/messages/3");
            assert_eq!(at(answered, "/role"), "tool");
            assert_eq!(at(answered, "/tool_call_id"), "call00001");
            assert_eq!(at(answered, "/content"), "order 7: sent");
        }
        Wire::Anthropic => {
            assert_eq!(
                at(body, "/messages/1/content/0/signature"),
                "c2lnbmVk",
                "thinking goes back"
            );
            assert_eq!(at(body, "/messages/1/content/1/type"), "tool_use");
            assert_eq!(at(body, "/messages/2/content/0/type"), "tool_result");
            assert_eq!(at(body, "/messages/2/content/0/tool_use_id"), "call00001");
            assert!(texts(at(body, "/messages/2")).contains("order 7: sent"));
        }
        Wire::Gemini => {
            let called = at(body, "/contents/1/parts/0");
            assert_eq!(at(called, "/functionCall/args"), &json!({ "order": 7 }));
            assert_eq!(at(called, "/thoughtSignature"), "c2lnbmVk", "signatures go back");
            let answered = at(body, "/contents/2/parts/0/functionResponse");
            assert_eq!(at(answered, "/name"), "look_up");
            assert_eq!(at(answered, "/response"), &json!({ "result": "order 7: sent" }));
            assert!(called.pointer("/functionCall/id").is_none(), "there was none");
            assert!(answered.get("id").is_none());
        }
    }
}

/// What Gemini is sent after it made two calls, with these ids, that were answered so.
async fn answered_by_gemini(model: &str, ids: [Option<&str>; 2], answers: [&str; 2]) -> Value {
    let subject = Subject {
        path: match model {
            "gemini-2.5-flash" => "/v1beta/models/gemini-2.5-flash:generateContent",
            _ => "/v1beta/models/gemini-3-flash-preview:generateContent",
        },
        ..SUBJECTS[2]
    };
    let server = MockServer::start().await;
    let call = |order: usize| {
        let mut call = json!({ "name": "look_up", "args": { "order": order } });
        if let Some(id) = ids[order] {
            call["id"] = json!(id);
        }
        json!({ "functionCall": call })
    };
    let calls = json!({ "candidates": [{
        "content": { "role": "model", "parts": [call(0), call(1)] },
        "finishReason": "STOP",
    }] });
    let calls = ResponseTemplate::new(200).set_body_json(calls);
    subject
        .serve(&server, vec![calls, subject.says("Both are on their way.")])
        .await;
    let model = subject.model(&server, &json!({ "model": model }));
    let mut messages = question().messages;
    let answer = model.chat(with_tools(messages.clone())).await.unwrap();
    let called: Vec<String> = answer
        .message
        .tool_calls
        .iter()
        .map(|call| call.id.clone())
        .collect();
    let messages_now = Rc::make_mut(&mut messages);
    messages_now.push(Message::Assistant(answer.message));
    messages_now.extend(
        called
            .iter()
            .zip(answers)
            .map(|(id, said)| Message::tool(id, said)),
    );
    model.chat(with_tools(messages)).await.unwrap();
    received(&server).await.swap_remove(1).1
}

#[tokio::test]
async fn gemini_gets_the_ids_back_that_it_gave() {
    for model in ["gemini-2.5-flash", "gemini-3-flash-preview"] {
        let body = answered_by_gemini(model, [Some("a1"), Some("b2")], ["here", "there"]).await;
        for (place, id) in [(0, "a1"), (1, "b2")] {
            let called = at(&body, &format!("/contents/1/parts/{place}/functionCall")).clone();
            assert_eq!(at(&called, "/id"), id, "{model}");
            let answered = at(&body, &format!("/contents/2/parts/{place}/functionResponse")).clone();
            assert_eq!(at(&answered, "/id"), id, "{model}");
        }
    }
    let body = answered_by_gemini("gemini-2.5-flash", [None, Some("b2")], ["here", "there"]).await;
    assert!(
        at(&body, "/contents/2/parts/0/functionResponse")
            .get("id")
            .is_none()
    );
    assert_eq!(at(&body, "/contents/2/parts/1/functionResponse/id"), "b2");
}

#[tokio::test]
async fn what_a_tool_answers_as_an_object_is_one_for_gemini() {
    let answers = [r#"{"order": 7, "sent": true}"#, "[1, 2]"];
    let body = answered_by_gemini("gemini-2.5-flash", [None, None], answers).await;
    let response = |place: usize| {
        at(
            &body,
            &format!("/contents/2/parts/{place}/functionResponse/response"),
        )
        .clone()
    };
    assert_eq!(response(0), json!({ "order": 7, "sent": true }));
    assert_eq!(response(1), json!({ "result": "[1, 2]" }));
}

#[tokio::test]
async fn models_that_take_a_budget_are_asked_to_think_within_one() {
    let server = MockServer::start().await;
    let claude = SUBJECTS[1];
    claude.serve(&server, vec![claude.says("Hm.")]).await;
    let table = json!({ "model": "claude-sonnet-4-5", "reasoning_effort": "medium" });
    claude.model(&server, &table).chat(question()).await.unwrap();
    let body = received(&server).await.remove(0).1;
    assert_eq!(
        at(&body, "/thinking"),
        &json!({ "type": "enabled", "budget_tokens": 8192 })
    );
    assert!(at(&body, "/max_tokens").as_u64().unwrap() > 8192);
    assert!(body.get("temperature").is_none());

    let server = MockServer::start().await;
    let gemini = Subject {
        path: "/v1beta/models/gemini-2.5-pro:generateContent",
        ..SUBJECTS[2]
    };
    gemini.serve(&server, vec![gemini.says("Hm.")]).await;
    let table = json!({ "model": "gemini-2.5-pro", "reasoning_effort": "low" });
    gemini.model(&server, &table).chat(question()).await.unwrap();
    let body = received(&server).await.remove(0).1;
    assert_eq!(at(&body, "/generationConfig/thinkingConfig/thinkingBudget"), 1024);
}

#[tokio::test]
async fn what_is_read_from_a_cache_and_written_into_it_has_its_price() {
    let server = MockServer::start().await;
    let reply = json!({
        "id": "r1", "type": "message", "role": "assistant", "model": "claude-sonnet-4-5",
        "content": [{ "type": "text", "text": "Hi." }], "stop_reason": "end_turn",
        "usage": { "input_tokens": 100, "cache_creation_input_tokens": 2000,
            "cache_read_input_tokens": 10_000, "output_tokens": 10 },
    });
    let claude = SUBJECTS[1];
    claude
        .serve(&server, vec![ResponseTemplate::new(200).set_body_json(reply)])
        .await;
    let model = claude.model(&server, &json!({ "model": "claude-sonnet-4-5" }));
    let usage = model.chat(question()).await.unwrap().usage;
    assert_eq!(usage.input_tokens, 12_100);
    // 3, 3.75, 0.3 and 15 dollars per million.
    let dollars = (300.0 + 7_500.0 + 3_000.0 + 150.0) / 1e6;
    assert!((usage.usd.unwrap() - dollars).abs() < 1e-12, "{usage:?}");
}

#[tokio::test]
async fn every_provider_answers_a_question() {
    for subject in SUBJECTS {
        a_question_and_its_answer(subject).await;
    }
}

#[tokio::test]
async fn every_provider_goes_on_after_a_tool_call() {
    for subject in SUBJECTS {
        a_tool_call_and_what_follows(subject).await;
    }
}

#[tokio::test]
async fn several_answers_of_tools_go_back_together() {
    let subject = SUBJECTS[1];
    let server = MockServer::start().await;
    subject.serve(&server, vec![subject.says("Done.")]).await;
    let call = |id: &str| capo_core::llm::ToolCall {
        id: id.to_owned(),
        name: "look_up".to_owned(),
        arguments: json!({}),
    };
    let called = capo_core::llm::AssistantMessage {
        content: Some("Let me look.".to_owned()),
        tool_calls: vec![call("a1"), call("a2")],
    };
    let messages = vec![
        Message::user("Where are both?"),
        Message::Assistant(called),
        Message::tool("a1", "here"),
        Message::tool("a2", "there"),
        Message::user("And now?"),
    ];
    subject
        .model(&server, &json!({}))
        .chat(with_tools(messages))
        .await
        .unwrap();
    let requests = received(&server).await;
    let results = at(&requests[0].1, "/messages/2/content");
    assert_eq!(at(results, "/0/tool_use_id"), "a1");
    assert_eq!(at(results, "/1/tool_use_id"), "a2");
}

#[tokio::test]
async fn reasoning_effort_reaches_the_provider() {
    for (subject, field) in [(PLAIN, "/reasoning_effort"), (SUBJECTS[4], "/reasoning/effort")] {
        let server = MockServer::start().await;
        subject.serve(&server, vec![subject.says("Hm.")]).await;
        let model = subject.model(&server, &json!({ "reasoning_effort": "low" }));
        model.chat(question()).await.unwrap();
        assert_eq!(at(&received(&server).await[0].1, field), "low");
    }
}

#[tokio::test]
async fn a_plain_server_gets_the_system_prompt_as_one_string_and_no_key_it_did_not_ask_for() {
    let server = MockServer::start().await;
    PLAIN.serve(&server, vec![PLAIN.says("Hi.")]).await;
    let mut table = PLAIN.table(&server, &json!({}));
    table.as_object_mut().unwrap().remove("api_key_env");
    let models = crate::server::models([(capo_core::llm::Role::Agent, table)]);
    let model = models.get(capo_core::llm::Role::Critic).unwrap();
    model.chat(question()).await.unwrap();
    let requests = received(&server).await;
    let (request, body) = &requests[0];
    assert_eq!(at(body, "/messages/0/content"), "Be kind.");
    assert!(!request.headers.contains_key("authorization"));
    assert!(body.get("seed").is_none() && body.get("temperature").is_none());
}

#[tokio::test]
async fn arguments_that_are_no_object_arrive_as_the_model_wrote_them() {
    let server = MockServer::start().await;
    let reply = json!({
        "choices": [{ "index": 0, "finish_reason": "tool_calls", "message": {
            "role": "assistant",
            "tool_calls": [{ "id": "c", "type": "function",
                "function": { "name": "look_up", "arguments": "{\"order\": 7" } }],
        } }],
        "usage": { "prompt_tokens": 1, "completion_tokens": 1 },
    });
    PLAIN
        .serve(&server, vec![ResponseTemplate::new(200).set_body_json(reply)])
        .await;
    let answer = PLAIN
        .model(&server, &json!({}))
        .chat(with_tools(question().messages))
        .await;
    assert_eq!(
        answer.unwrap().message.tool_calls[0].arguments,
        json!("{\"order\": 7")
    );
}

#[tokio::test]
async fn a_cut_answer_and_a_filtered_one_say_so() {
    for (reason, finish) in [("length", Finish::Length), ("content_filter", Finish::Filter)] {
        let server = MockServer::start().await;
        let reply = json!({
            "choices": [{ "index": 0, "finish_reason": reason,
                "message": { "role": "assistant", "content": "I was about" } }],
            "usage": { "prompt_tokens": 1, "completion_tokens": 1 },
        });
        PLAIN
            .serve(&server, vec![ResponseTemplate::new(200).set_body_json(reply)])
            .await;
        let answer = PLAIN.model(&server, &json!({})).chat(question()).await.unwrap();
        assert_eq!(answer.finish, finish);
        assert_eq!(answer.message.text(), "I was about");
    }
}

#[tokio::test]
async fn what_the_provider_charged_counts_unless_the_study_states_a_price() {
    let reply = json!({
        "choices": [{ "index": 0, "finish_reason": "stop",
            "message": { "role": "assistant", "content": "Hi." } }],
        "usage": { "prompt_tokens": 1000, "completion_tokens": 100, "cost": 0.25 },
    });
    for (subject, more, usd) in [
        (SUBJECTS[4], json!({}), Some(0.25)),
        (
            SUBJECTS[4],
            json!({ "price": { "input": 1.0, "output": 10.0 } }),
            Some(0.002),
        ),
        (
            SUBJECTS[5],
            json!({ "price": { "input": 0, "output": 0 } }),
            Some(0.0),
        ),
    ] {
        let server = MockServer::start().await;
        let reply = ResponseTemplate::new(200).set_body_json(&reply);
        subject.serve(&server, vec![reply]).await;
        let answer = subject.model(&server, &more).chat(question()).await.unwrap();
        assert_eq!(answer.usage.usd, usd, "{}", subject.provider);
    }
    let server = MockServer::start().await;
    PLAIN.serve(&server, vec![PLAIN.says("Hi.")]).await;
    let answer = PLAIN.model(&server, &json!({})).chat(question()).await.unwrap();
    assert_eq!(answer.usage.usd, None, "nobody knows the price");
}
