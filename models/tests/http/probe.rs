//! The test of a model before a run: what it says of every way not to answer.

use std::collections::BTreeMap;
use std::time::Duration;

use capo_core::llm::Role;
use capo_models::probe::{Answered, ProbeError, probe};
use serde_json::{Value, json};
use wiremock::matchers::{method, path};
use wiremock::{Mock, MockServer, ResponseTemplate};

use crate::server::{KEY, PLAIN, SUBJECTS, Subject, Wire, received};

async fn ask(table: &Value) -> Result<Answered, ProbeError> {
    let keys = BTreeMap::from([("TEST_KEY".to_owned(), KEY.to_owned())]);
    let answer = probe(Role::Agent, table, &keys).await;
    assert!(!format!("{answer:?}").contains(KEY));
    answer
}

/// How often a server was asked that replies so, and what that led to.
async fn replied(
    subject: Subject,
    reply: ResponseTemplate,
    more: Value,
) -> (usize, Result<Answered, ProbeError>) {
    let server = MockServer::start().await;
    subject.serve(&server, vec![reply]).await;
    let answer = ask(&subject.table(&server, &more)).await;
    (received(&server).await.len(), answer)
}

async fn failed(subject: Subject, reply: ResponseTemplate) -> ProbeError {
    let (asked, answer) = replied(subject, reply, json!({})).await;
    assert_eq!(asked, 1, "a test is not repeated");
    let error = answer.unwrap_err();
    assert!(!error.to_string().contains(KEY), "{error}");
    error
}

fn status(code: u16, message: &str) -> ResponseTemplate {
    ResponseTemplate::new(code).set_body_json(json!({ "error": { "message": message } }))
}

/// How a sentence about the subject begins.
fn name(subject: Subject) -> &'static str {
    match subject.provider {
        "openai" => "OpenAI",
        "anthropic" => "Anthropic",
        "gemini" => "Gemini",
        "mistral" => "Mistral",
        "openrouter" => "OpenRouter",
        "ollama" => "Ollama",
        _ => "The server at 127.0.0.1:",
    }
}

#[tokio::test]
async fn an_answer_is_an_answer_however_short() {
    for subject in SUBJECTS {
        for text in ["OK", ""] {
            let (asked, answer) = replied(subject, subject.says(text), json!({ "max_tokens": 4000 })).await;
            let answered = answer.unwrap();
            assert_eq!(answered.model, format!("{}/test-model", subject.provider));
            assert!(answered.seconds > 0.0 && asked == 1);
        }
    }
    let cut = "Could not finish the message because max_tokens or model output limit was reached.";
    assert!(replied(PLAIN, status(400, cut), json!({})).await.1.is_ok());
}

#[tokio::test]
async fn a_model_of_vectors_is_asked_for_one() {
    let server = MockServer::start().await;
    let data = json!([{ "object": "embedding", "index": 0, "embedding": [0.5] }]);
    let body = json!({ "object": "list", "model": "test-model", "data": data });
    let mock = Mock::given(method("POST")).and(path("/v1/embeddings"));
    let mock = mock.respond_with(ResponseTemplate::new(200).set_body_json(body));
    mock.mount(&server).await;
    let keys = BTreeMap::from([("TEST_KEY".to_owned(), KEY.to_owned())]);
    let ask = async |table: Value| probe(Role::Embeddings, &table, &keys).await;
    let answered = ask(PLAIN.table(&server, &json!({}))).await.unwrap();
    assert_eq!(answered.model, "openai-compatible/test-model");
    let table = json!({ "provider": "anthropic", "model": "m", "api_key_env": "TEST_KEY" });
    let error = ask(table).await.unwrap_err().to_string();
    assert!(error.contains("no models that make vectors"), "{error}");
}

#[tokio::test]
async fn few_tokens_are_asked_for() {
    let server = MockServer::start().await;
    PLAIN.serve(&server, vec![PLAIN.says("OK")]).await;
    ask(&PLAIN.table(&server, &json!({ "max_tokens": 4000 })))
        .await
        .unwrap();
    let body = &received(&server).await[0].1;
    assert_eq!(body["max_tokens"], 16, "{body}");
}

#[tokio::test]
async fn a_model_that_thinks_within_a_budget_is_asked_for_a_word_without() {
    let server = MockServer::start().await;
    let claude = SUBJECTS[1];
    claude.serve(&server, vec![claude.says("OK")]).await;
    let more = json!({ "model": "claude-sonnet-4-5", "reasoning_effort": "high" });
    ask(&claude.table(&server, &more)).await.unwrap();
    let body = received(&server).await.remove(0).1;
    assert_eq!(body["max_tokens"], 16);
    assert!(body.get("thinking").is_none(), "{body}");
}

#[tokio::test]
async fn a_simulated_model_answers_at_once() {
    let answer = ask(&json!({ "provider": "simulated", "latency": 1000.0 })).await;
    assert_eq!(answer.unwrap().model, "simulated/sim-medium");
}

#[tokio::test]
async fn a_wrong_table_is_told_before_anything_is_sent() {
    let error = ask(&json!({ "provider": "openai", "modle": "m" }))
        .await
        .unwrap_err();
    assert!(matches!(error, ProbeError::Table(_)));
    assert!(error.to_string().contains("did you mean `model`?"), "{error}");
    let error = ask(&json!({ "provider": "anthropic", "model": "m" }))
        .await
        .unwrap_err();
    assert!(matches!(error, ProbeError::Table(_)) && error.to_string().contains("ANTHROPIC_API_KEY"));
}

#[tokio::test]
async fn a_refused_key_is_told_with_the_host_it_was_sent_to() {
    for subject in SUBJECTS {
        let error = failed(
            subject,
            status(401, &format!("Incorrect API key provided: {KEY}")),
        )
        .await;
        let said = error.to_string();
        let end = " refused the key (401). Check that it was copied whole and is still active.";
        assert!(said.starts_with(name(subject)) && said.ends_with(end), "{said}");
        let ProbeError::KeyRefused { host, .. } = error else {
            panic!("{error:?}");
        };
        assert!(host.starts_with("127.0.0.1:"), "{host}");
    }
    let error = failed(
        SUBJECTS[0],
        status(403, "Country, region, or territory not supported"),
    )
    .await;
    assert_eq!(
        error.to_string(),
        "OpenAI refused the key (403). Check that it was copied whole and is still active. It says: \
         Country, region, or territory not supported"
    );
}

#[tokio::test]
async fn a_server_that_wants_a_key_and_got_none_says_so() {
    let server = MockServer::start().await;
    PLAIN.serve(&server, vec![status(401, "no")]).await;
    let base_url = format!("{}/v1", server.uri());
    let table = json!({ "provider": "openai-compatible", "model": "m", "base_url": base_url });
    let error = ask(&table).await.unwrap_err();
    assert!(matches!(error, ProbeError::KeyWanted { .. }), "{error:?}");
}

#[tokio::test]
async fn a_model_that_is_not_there_is_told_with_those_like_it() {
    for subject in SUBJECTS {
        let (listing, list) = listed(subject, ["test-models", "other", "tset-model-2"]);
        let server = MockServer::start().await;
        subject
            .serve(
                &server,
                vec![status(404, "The model `test-model` does not exist")],
            )
            .await;
        Mock::given(method("GET"))
            .and(path(listing))
            .respond_with(ResponseTemplate::new(200).set_body_json(list))
            .mount(&server)
            .await;
        let said = ask(&subject.table(&server, &json!({})))
            .await
            .unwrap_err()
            .to_string();
        let end = " has no model \"test-model\" for this key. Nearest: test-models, tset-model-2.";
        assert!(said.starts_with(name(subject)) && said.ends_with(end), "{said}");
    }
}

#[tokio::test]
async fn a_model_on_the_list_is_not_missing() {
    let (listing, list) = listed(PLAIN, ["test-model", "other", "more"]);
    let server = MockServer::start().await;
    let refusal = status(404, "model not found under your data policy");
    PLAIN.serve(&server, vec![refusal]).await;
    Mock::given(method("GET"))
        .and(path(listing))
        .respond_with(ResponseTemplate::new(200).set_body_json(list))
        .mount(&server)
        .await;
    let error = ask(&PLAIN.table(&server, &json!({}))).await.unwrap_err();
    assert!(
        error
            .to_string()
            .ends_with("(404): model not found under your data policy"),
        "{error}"
    );
}

/// Where the subject lists its models, and the list.
fn listed(subject: Subject, names: [&str; 3]) -> (&'static str, Value) {
    let data = json!({
        "object": "list",
        "has_more": false,
        "data": names.map(|name| json!({ "id": name, "type": "model", "display_name": name })),
    });
    match (subject.provider, subject.wire) {
        ("ollama", _) => (
            "/api/tags",
            json!({ "models": names.map(|name| json!({ "name": name, "model": name })) }),
        ),
        (_, Wire::Gemini) => (
            "/v1beta/models",
            json!({ "models": names.map(|name| json!({ "name": format!("models/{name}") })) }),
        ),
        ("openrouter", _) => ("/api/v1/models", data),
        _ => ("/v1/models", data),
    }
}

#[tokio::test]
async fn where_no_list_can_be_read_no_other_model_is_suggested() {
    for subject in SUBJECTS {
        let server = MockServer::start().await;
        subject
            .serve(&server, vec![status(404, "model `test-model` not found")])
            .await;
        let error = ask(&subject.table(&server, &json!({}))).await.unwrap_err();
        let ProbeError::NoSuchModel { model, nearest, .. } = error else {
            panic!("{error:?}");
        };
        assert_eq!((model.as_str(), nearest.len()), ("test-model", 0));
    }
}

#[tokio::test]
async fn an_address_where_nothing_is_is_no_missing_model() {
    let error = failed(
        PLAIN,
        ResponseTemplate::new(404).set_body_string("404 page not found"),
    )
    .await;
    assert!(
        error
            .to_string()
            .ends_with("answered with an error (404): 404 page not found"),
        "{error}"
    );
}

#[tokio::test]
async fn a_provider_that_asks_to_wait_is_not_waited_for() {
    let slow = status(429, "slow down").insert_header("retry-after", "3.2");
    assert_eq!(
        failed(SUBJECTS[0], slow).await.to_string(),
        "OpenAI asked to wait (429, Retry-After 4 s). Nothing was counted as a score."
    );
    assert_eq!(
        failed(SUBJECTS[1], status(529, "Overloaded")).await.to_string(),
        "Anthropic asked to wait (529). Nothing was counted as a score."
    );
}

#[tokio::test]
async fn any_other_error_is_told_in_the_providers_words() {
    for subject in SUBJECTS {
        let error = failed(subject, status(422, &format!("unknown parameter {KEY}"))).await;
        assert!(
            matches!(error, ProbeError::Refused { status: 422, .. }),
            "{error:?}"
        );
        let said = error.to_string();
        assert!(
            said.ends_with(" answered with an error (422): unknown parameter •••"),
            "{said}"
        );
    }
}

#[tokio::test]
async fn a_page_of_html_is_no_answer_of_a_model() {
    let page = ResponseTemplate::new(200).set_body_raw("<html>Welcome</html>", "text/html");
    let error = failed(PLAIN, page).await;
    assert!(
        matches!(error, ProbeError::Unreadable { status: 200, .. }),
        "{error:?}"
    );
}

#[tokio::test]
async fn silence_and_absence_are_told_apart() {
    let late = PLAIN.says("too late").set_delay(Duration::from_secs(5));
    let (_, answer) = replied(PLAIN, late, json!({ "timeout_seconds": 0.1 })).await;
    let error = answer.unwrap_err();
    assert!(matches!(error, ProbeError::TimedOut { .. }), "{error:?}");
    // Port 1 of loopback is never served.
    let dead = json!({
        "provider": "gemini", "model": "m", "base_url": "http://127.0.0.1:1", "api_key_env": "TEST_KEY",
    });
    let error = ask(&dead).await.unwrap_err();
    assert!(matches!(error, ProbeError::Unreachable { .. }), "{error:?}");
    let said = error.to_string();
    assert!(said.starts_with("No answer came from 127.0.0.1:1: "), "{said}");
}
