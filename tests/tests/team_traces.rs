//! A team server that sends traces to a collector.

#![expect(
    clippy::unwrap_used,
    reason = "a panic is how a test fails, in its own parts too"
)]

mod team_server;

#[path = "team_server/shared_key.rs"]
mod shared_key;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::body::Bytes;
use capo_tests::program::{Server, run};
use capo_tests::stub::{Answer, Stub};
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value::Value as Said;
use opentelemetry_proto::tonic::trace::v1::{Span, span::SpanKind};
use prost::Message as _;
use serde_json::{Value, json};
use shared_key::{SECRET, shared_key};
use team_server::{PASSWORD, ask, create_user, serving};
use tempfile::TempDir;

/// What a model is asked, and what it answers.
const QUESTION: &str = "What is 2 + 2?";
const ANSWER: &str = "Four, of course.";

/// What takes traces, and keeps what came.
struct Collector {
    address: String,
    came: Arc<Mutex<Vec<Bytes>>>,
}

impl Collector {
    fn start() -> Self {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let came = Arc::new(Mutex::new(Vec::new()));
        let keep = Arc::clone(&came);
        let take = axum::routing::post(async move |body: Bytes| keep.lock().unwrap().push(body));
        let router = axum::Router::new().route("/v1/traces", take);
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            runtime.unwrap().block_on(async move {
                let listener = tokio::net::TcpListener::from_std(listener).unwrap();
                axum::serve(listener, router).await.unwrap();
            });
        });
        Self { address, came }
    }

    fn spans(&self) -> Vec<Span> {
        let came = self.came.lock().unwrap();
        let decoded = came
            .iter()
            .map(|body| ExportTraceServiceRequest::decode(&body[..]).unwrap());
        let resources = decoded.flat_map(|request| request.resource_spans);
        let scopes = resources.flat_map(|resource| resource.scope_spans);
        scopes.flat_map(|scope| scope.spans).collect()
    }
}

/// What a span says, by name.
fn said(span: &Span) -> BTreeMap<&str, Value> {
    let said = span.attributes.iter().map(|attribute| {
        let value = match attribute.value.as_ref().unwrap().value.as_ref().unwrap() {
            Said::StringValue(text) => json!(text),
            Said::IntValue(number) => json!(number),
            other => panic!("{}: {other:?}", attribute.key),
        };
        (attribute.key.as_str(), value)
    });
    said.collect()
}

/// A server that asks a model once through a shared key, and one of its own, and ends; the token with which it was asked.
fn ask_a_model(collector: &str) -> String {
    let stub = Stub::start_with(Duration::ZERO, Some(SECRET), |_, _| Answer::Text(ANSWER.into()));
    let folder = TempDir::new().unwrap();
    create_user(folder.path(), &["ada", "--admin"], PASSWORD).expect_code(0);
    let mut serve = serving(folder.path(), "127.0.0.1:0");
    let server = Server::start(serve.args(["--otlp", collector]));
    let token = shared_key(&server, &stub.base_url);
    let bearer = format!("Bearer {token}");
    let question = json!({ "model": "stub", "messages": [{ "role": "user", "content": QUESTION }] });
    let path = "/api/proxy/stub/v1/chat/completions";
    let answer = ask(&server, "POST", path, &[("authorization", &bearer)], &question);
    assert_eq!(answer.status, 200, "{}", answer.body);
    let question = json!({ "model": "sim-small", "messages": question["messages"] });
    let path = "/api/models/v1/chat/completions";
    let answer = ask(&server, "POST", path, &[("authorization", &bearer)], &question);
    assert_eq!(answer.status, 200, "{}", answer.body);
    server.stop();
    token
}

#[test]
fn a_collector_gets_requests_and_calls_to_models_and_nothing_that_was_said() {
    let collector = Collector::start();
    let token = ask_a_model(&collector.address);
    let spans = collector.spans();
    let named = |name: &str| {
        let found = spans.iter().find(|span| span.name == name);
        found.unwrap_or_else(|| panic!("no {name} in {spans:?}"))
    };
    let request = named("POST /api/proxy/{key}/{*path}");
    assert_eq!(request.kind(), SpanKind::Server);
    let http = said(request);
    assert_eq!(
        (
            &http["http.request.method"],
            &http["http.route"],
            &http["http.response.status_code"]
        ),
        (&json!("POST"), &json!("/api/proxy/{key}/{*path}"), &json!(200))
    );
    let call = named("chat stub");
    assert_eq!(
        (call.kind(), &call.parent_span_id),
        (SpanKind::Client, &request.span_id)
    );
    let own = named("chat sim-small");
    let parent = spans.iter().find(|span| span.span_id == own.parent_span_id);
    let parent = said(parent.unwrap());
    let route = parent["http.route"].as_str().unwrap();
    assert!(route.starts_with("/api/models/"), "{route}");
    let of_own = said(own);
    assert_eq!(
        (own.kind(), &of_own["gen_ai.provider.name"]),
        (SpanKind::Internal, &json!("capo"))
    );
    assert_eq!(of_own["http.response.status_code"], 200);
    assert!(
        of_own["gen_ai.usage.output_tokens"].as_i64() > Some(0),
        "{of_own:?}"
    );
    let said = said(call);
    for (name, value) in [
        ("gen_ai.operation.name", json!("chat")),
        ("gen_ai.provider.name", json!("openai-compatible")),
        ("gen_ai.request.model", json!("stub")),
        ("gen_ai.usage.input_tokens", json!(10)),
        ("gen_ai.usage.output_tokens", json!(ANSWER.len() / 4)),
        ("http.response.status_code", json!(200)),
    ] {
        assert_eq!(said[name], value, "{name}");
    }
    for body in collector.came.lock().unwrap().iter() {
        let text = String::from_utf8_lossy(body);
        for word in [SECRET, QUESTION, ANSWER, "ada", "sums", token.as_str()] {
            assert!(!text.contains(word), "{word}");
        }
    }
}

#[test]
fn a_server_whose_collector_is_down_goes_on() {
    ask_a_model("http://127.0.0.1:1");
}

#[test]
fn what_is_no_collector_is_refused() {
    let folder = TempDir::new().unwrap();
    for (address, said) in [
        ("collector:4318", "such as http://127.0.0.1:4318"),
        ("http://ada:secret@127.0.0.1:4318", "OTEL_EXPORTER_OTLP_HEADERS"),
    ] {
        let ended = run(serving(folder.path(), "127.0.0.1:0").args(["--otlp", address]));
        assert!(!ended.stderr.contains("secret"), "{}", ended.stderr);
        ended.expect_code(64).expect_error(&[said]);
    }
}
