//! Vectors of texts, by every provider that makes them.

use std::collections::BTreeMap;
use std::time::Duration;

use capo_core::llm::{ChatRequest, FailureKind, LlmError, Message, Role};
use capo_models::{BuildError, Builder, Embedded, Embedder, Models};
use indexmap::IndexMap;
use serde_json::{Value, json};
use wiremock::matchers::{method, path};
use wiremock::{Mock, MockServer, ResponseTemplate};

use crate::server::{KEY, PLAIN, SUBJECTS, Subject, received};

/// Where vectors are asked for, and an answer with two of them.
fn wire(subject: &Subject) -> Option<(&'static str, Value)> {
    let listed = json!({
        "object": "list",
        "model": "test-model",
        "data": [
            { "object": "embedding", "index": 1, "embedding": [0.25, 2.0] },
            { "object": "embedding", "index": 0, "embedding": [0.5, -1.0] },
        ],
        "usage": { "prompt_tokens": 9, "total_tokens": 9 },
    });
    match subject.provider {
        "anthropic" => None,
        "gemini" => Some((
            "/v1beta/models/test-model:batchEmbedContents",
            json!({ "embeddings": [{ "values": [0.5, -1.0] }, { "values": [0.25, 2.0] }] }),
        )),
        "ollama" => Some((
            "/api/embed",
            json!({ "model": "test-model", "embeddings": [[0.5, -1.0], [0.25, 2.0]], "prompt_eval_count": 9 }),
        )),
        "openrouter" => Some(("/api/v1/embeddings", listed)),
        _ => Some(("/v1/embeddings", listed)),
    }
}

fn keys() -> BTreeMap<String, String> {
    BTreeMap::from([("TEST_KEY".to_owned(), KEY.to_owned())])
}

fn embedder(table: Value) -> Result<Embedder, BuildError> {
    Builder::new(&keys())
        .first_wait(Duration::from_millis(2))
        .embedder(&IndexMap::from([(Role::Embeddings, table)]))
}

async fn embed(subject: Subject, replies: Vec<ResponseTemplate>) -> (Result<Embedded, LlmError>, Vec<Value>) {
    let server = MockServer::start().await;
    let (place, _) = wire(&subject).unwrap();
    for (index, reply) in replies.into_iter().enumerate() {
        let mock = Mock::given(method("POST")).and(path(place)).respond_with(reply);
        let mock = mock.up_to_n_times(1).with_priority(index as u8 + 1);
        mock.mount(&server).await;
    }
    let price = json!({ "input": 1.0, "output": 0.0 });
    let embedder = embedder(subject.table(&server, &json!({ "price": price, "retries": 2 }))).unwrap();
    assert_eq!(embedder.name(), format!("{}/test-model", subject.provider));
    let texts = ["the bag", "the seat"].map(str::to_owned);
    let embedded = embedder.embed(&texts).await;
    let bodies = received(&server).await.into_iter().map(|(_, body)| body);
    (embedded, bodies.collect())
}

fn answer(body: &Value) -> ResponseTemplate {
    ResponseTemplate::new(200).set_body_json(body)
}

#[tokio::test]
async fn texts_go_out_and_vectors_come_back_in_their_order() {
    for subject in SUBJECTS {
        let Some((_, body)) = wire(&subject) else {
            continue;
        };
        let (embedded, bodies) = embed(subject, vec![answer(&body)]).await;
        let embedded = embedded.unwrap_or_else(|error| panic!("{}: {error}", subject.provider));
        assert_eq!(
            embedded.vectors,
            [[0.5, -1.0], [0.25, 2.0]],
            "{}",
            subject.provider
        );
        if subject.provider == "gemini" {
            assert_eq!(
                embedded.usage.usd, None,
                "it does not say how many tokens they were"
            );
        } else {
            assert_eq!(embedded.usage.input_tokens, 9, "{}", subject.provider);
            assert_eq!(embedded.usage.usd, Some(9e-6), "{}", subject.provider);
        }
        let sent = bodies[0].to_string();
        assert!(sent.find("the bag").unwrap() < sent.find("the seat").unwrap());
    }
}

#[tokio::test]
async fn a_server_of_ones_own_need_not_count_tokens() {
    let (_, mut body) = wire(&PLAIN).unwrap();
    body.as_object_mut().unwrap().remove("usage");
    let (embedded, _) = embed(PLAIN, vec![answer(&body)]).await;
    let embedded = embedded.unwrap();
    assert_eq!((embedded.vectors.len(), embedded.usage.usd), (2, None));
}

#[tokio::test]
async fn a_busy_provider_is_asked_again() {
    let (_, body) = wire(&PLAIN).unwrap();
    let busy = ResponseTemplate::new(429).set_body_json(json!({ "error": { "message": "slow down" } }));
    let (embedded, bodies) = embed(PLAIN, vec![busy, answer(&body)]).await;
    assert_eq!(embedded.unwrap().vectors.len(), 2);
    assert_eq!(bodies.len(), 2);
}

#[tokio::test]
async fn vectors_that_do_not_fit_are_no_answer() {
    for (pointer, value) in [
        ("/data/1/embedding", json!([0.25])),
        ("/data/0/embedding", json!([])),
        ("/data", json!([])),
    ] {
        let (_, mut body) = wire(&PLAIN).unwrap();
        *body.pointer_mut(pointer).unwrap() = value;
        let (embedded, bodies) = embed(PLAIN, vec![answer(&body); 3]).await;
        let LlmError::Failed {
            kind, message, usage, ..
        } = embedded.unwrap_err()
        else {
            panic!("{pointer}");
        };
        assert_eq!(kind, FailureKind::Malformed, "{message}");
        assert_eq!(bodies.len(), 3, "{message}");
        assert!(usage.input_tokens > 0, "they are paid for");
        assert!(!message.contains(KEY), "{message}");
    }
}

#[tokio::test]
async fn a_refused_key_is_said_without_it() {
    let refused = ResponseTemplate::new(401)
        .set_body_json(json!({ "error": { "message": format!("wrong key {KEY}") } }));
    let (embedded, bodies) = embed(PLAIN, vec![refused]).await;
    let message = embedded.unwrap_err().to_string();
    assert!(
        !message.contains(KEY) && message.contains("TEST_KEY"),
        "{message}"
    );
    assert_eq!(bodies.len(), 1);
}

#[test]
fn who_makes_no_vectors_is_told_from_who_does() {
    for provider in ["anthropic", "simulated"] {
        let message = embedder(json!({ "provider": provider, "model": "m" }))
            .err()
            .unwrap()
            .to_string();
        assert!(message.starts_with("models.embeddings: provider `"), "{message}");
        assert!(
            message.contains("openai, gemini, mistral, openrouter, ollama, openai-compatible have"),
            "{message}"
        );
    }
    for (more, problem) in [
        (json!({ "headers": { "Authorization": KEY } }), "carries a key"),
        (
            json!({ "base_url": format!("https://host/v1?key={KEY}") }),
            "no credentials",
        ),
        (
            json!({ "temperature": 0.5 }),
            "`temperature` is for models that write",
        ),
    ] {
        let mut table = json!({ "provider": "openai", "model": "m" });
        table
            .as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        let tables = IndexMap::from([(Role::Embeddings, table)]);
        let of_run = Builder::new(&keys()).build(&tables).err().unwrap().to_string();
        let made = Builder::new(&keys()).embedder(&tables).err().unwrap().to_string();
        assert!(of_run.contains(problem) && !of_run.contains(KEY), "{of_run}");
        assert_eq!(made, of_run);
    }
    let none = Builder::new(&keys())
        .embedder(&IndexMap::new())
        .err()
        .unwrap()
        .to_string();
    assert_eq!(
        none,
        "no model for the role `embeddings`: add a table [models.embeddings]"
    );
}

#[tokio::test]
async fn a_run_asks_for_vectors_as_for_any_answer() {
    for (subject, counted) in [(PLAIN, 9_u32), (SUBJECTS[2], 3)] {
        let (place, body) = wire(&subject).unwrap();
        let server = MockServer::start().await;
        let mock = Mock::given(method("POST"))
            .and(path(place))
            .respond_with(answer(&body));
        mock.mount(&server).await;
        let price = json!({ "input": 1.0, "output": 5.0 });
        let table = subject.table(&server, &json!({ "price": price }));
        let tables = IndexMap::from([(Role::Embeddings, table)]);
        let models: Models = Builder::new(&keys()).build(&tables).unwrap();
        let model = models.get(Role::Embeddings).unwrap();
        let request = ChatRequest::for_vectors(&["the bag", "the seat"]);
        let response = model.chat(request).await.unwrap();
        let vectors: Vec<Vec<f64>> = serde_json::from_str(response.message.text()).unwrap();
        assert_eq!(vectors, [[0.5, -1.0], [0.25, 2.0]]);
        // Gemini counts no tokens: four characters are one.
        assert_eq!(
            response.usage.input_tokens,
            u64::from(counted),
            "{}",
            subject.provider
        );
        let usd = response.usage.usd.unwrap();
        assert!((usd - f64::from(counted) * 1e-6).abs() < 1e-12, "{usd}");
        let error = model
            .chat(ChatRequest::new(vec![Message::user("Hello?")]))
            .await
            .unwrap_err();
        assert!(error.to_string().contains("makes vectors of texts"), "{error}");
    }
}

#[tokio::test]
async fn the_simulated_models_make_vectors_for_runs_and_write_nothing() {
    let tables = IndexMap::from([(Role::Embeddings, json!({ "provider": "simulated" }))]);
    let models = Builder::new(&keys()).build(&tables).unwrap();
    let request = ChatRequest::for_vectors(&["the bag", "the seat"]);
    let response = models.get(Role::Embeddings).unwrap().chat(request).await.unwrap();
    let vectors: Vec<Vec<f64>> = serde_json::from_str(response.message.text()).unwrap();
    assert_eq!(vectors.len(), 2);
    assert_eq!(response.usage.output_tokens, 0);
}
