//! The gateway's table of cases at this proxy, and what only a proxy can get wrong.

mod changed;
mod resolved;

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use axum::body::Body;
use axum::http::{Request, StatusCode};
use axum::response::Response;
use axum::routing::any;
use capo_api::{Role, Scope as TokenScope};
use capo_gateway::cases::{KEY, MAX_BODY, cases, key_record};
use capo_gateway::{Limits, NanoUsd, Scope, SharedKey};
use futures::future::join_all;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tower::ServiceExt;

use super::*;
use crate::fixture::{self, NOW};
use crate::store::tests::on_each_database;
use crate::store::{Actor, Used};

/// A provider that answers everything alike, and counts.
struct Stub {
    address: SocketAddr,
    received: Arc<AtomicUsize>,
    /// Milliseconds before an answer begins.
    delay: Arc<AtomicUsize>,
}

impl Stub {
    async fn start(answer: Value) -> Self {
        let received = Arc::new(AtomicUsize::new(0));
        let counted = received.clone();
        let delay = Arc::new(AtomicUsize::new(0));
        let delayed = delay.clone();
        let answer = Arc::new(answer);
        let respond = move |request: Request<Body>| {
            let (counted, answer, delayed) = (counted.clone(), answer.clone(), delayed.clone());
            async move {
                counted.fetch_add(1, Relaxed);
                let delay = std::time::Duration::from_millis(delayed.load(Relaxed) as u64);
                tokio::time::sleep(delay).await;
                assert_eq!(request.headers()["authorization"], format!("Bearer {KEY}"));
                assert!(!request.headers().contains_key("cookie"));
                let chunks: Vec<String> = serde_json::from_value(answer["chunks"].clone()).unwrap();
                let repeated =
                    std::iter::repeat_n(chunks, answer["repeat"].as_u64().unwrap() as usize).flatten();
                let chunks = repeated.map(|chunk| Ok::<_, std::convert::Infallible>(chunk.into_bytes()));
                Response::builder()
                    .status(answer["status"].as_u64().unwrap() as u16)
                    .header("content-type", answer["content_type"].as_str().unwrap())
                    .header("set-cookie", "of=the-provider")
                    .header("location", "http://127.0.0.1:1/")
                    .body(Body::from_stream(futures::stream::iter(
                        chunks.collect::<Vec<_>>(),
                    )))
                    .unwrap()
            }
        };
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let router = Router::new().fallback(any(respond));
        tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
        Self {
            address,
            received,
            delay,
        }
    }
}

fn by(name: &str) -> Actor {
    fixture::by(name, NOW)
}

/// A server with the key of the cases, and a token for each caller.
struct Proxy {
    router: Router,
    server: Server,
    store: Store,
    editor: String,
    tokens: Vec<(&'static str, Secret)>,
    master: MasterKey,
}

impl Proxy {
    async fn new(store: Store, base_url: &str, limits: [Limits; 3]) -> Self {
        let root = store.set_up(&by("root"), "root", "kept").await.unwrap();
        let project = store
            .add_project(&by("root"), &root, "help-desk", "Help desk")
            .await
            .unwrap();
        let mut tokens = Vec::new();
        let mut editor = String::new();
        for (who, name, role) in [
            ("editor", "ed", Some(Role::Editor)),
            ("viewer", "vera", Some(Role::Viewer)),
            ("outsider", "sam", None),
        ] {
            let member = store.add_member(&by("root"), name, "kept", false).await.unwrap();
            if let Some(role) = role {
                store
                    .set_role(&by("root"), &project, name, Some(role))
                    .await
                    .unwrap();
            }
            if who == "editor" {
                editor = member.id.clone();
            }
            let secret = Secret::new("capo_");
            let until = NOW + 1_000_000;
            store
                .add_token(&by(name), &member, &secret, "ci", TokenScope::Write, until)
                .await
                .unwrap();
            tokens.push((who, secret));
        }
        let mut record = key_record(base_url);
        record["projects"] = json!([project.id]);
        let key: SharedKey = serde_json::from_value(record).unwrap();
        let master = MasterKey::new();
        assert!(store.is_master(&master).await.unwrap());
        store.add_key(&by("root"), &key, KEY, &master).await.unwrap();
        let id = &key.record().id;
        let scopes = [
            (Scope::Member, &editor),
            (Scope::Project, &project.id),
            (Scope::Key, id),
        ];
        for ((scope, subject), limits) in scopes.into_iter().zip(limits) {
            store
                .set_limits(&by("root"), (scope, subject), "x", limits)
                .await
                .unwrap();
        }
        let settings = Settings {
            public_url: Some("https://capo.example".into()),
            master: Some(master.clone()),
            max_body: Some(MAX_BODY),
            ..Settings::default()
        };
        let server = Server::new(store.clone(), || NOW, settings).unwrap();
        Self {
            router: router(server.clone(), None),
            server,
            store,
            editor,
            tokens,
            master,
        }
    }

    /// Without limits.
    async fn to(store: Store, stub: &Stub) -> Self {
        let base_url = format!("http://{}/v1", stub.address);
        Self::new(store, &base_url, [Limits::default(); 3]).await
    }

    fn request(&self, who: &str, method: &str, target: &str) -> axum::http::request::Builder {
        let request = Request::builder()
            .method(method)
            .uri(target)
            .header("host", "127.0.0.1:8787");
        match self.tokens.iter().find(|(of, _)| *of == who) {
            Some((_, token)) => request.header("authorization", format!("Bearer {}", token.reveal())),
            None => request,
        }
    }

    /// Asks a model.
    async fn chat(&self, request: axum::http::request::Builder) -> Response {
        let request = request.header("content-type", "application/json");
        let request = request.body(chat()).unwrap();
        self.router.clone().oneshot(request).await.unwrap()
    }

    async fn used(&self) -> Vec<Used> {
        self.store.used_since(0).await.unwrap()
    }

    /// What a scope has used and reserved, once nothing is under way.
    async fn settled(&self, scope: Scope) -> NanoUsd {
        for _ in 0..500 {
            let used = self.used().await;
            let Some(used) = used.iter().find(|used| used.scope == scope) else {
                return NanoUsd::ZERO;
            };
            if used.consumption.reserved == NanoUsd::ZERO {
                return used.consumption.used;
            }
            tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        }
        panic!("something stays reserved");
    }
}

async fn text(response: Response) -> (u16, String) {
    let status = response.status().as_u16();
    let bytes = axum::body::to_bytes(response.into_body(), 1 << 24).await.unwrap();
    (status, String::from_utf8(bytes.to_vec()).unwrap())
}

/// The last segment of the problem's type in a document, or in the last event of a stream.
fn problem_of(body: &str) -> Option<String> {
    let document = body.rsplit_once("data: ").map_or(body, |(_, last)| last.trim());
    let document: Value = serde_json::from_str(document).ok()?;
    let kind = document["type"]
        .as_str()
        .filter(|kind| kind.starts_with("/problems/"));
    let kind = kind.or_else(|| document["error"]["type"].as_str())?;
    Some(kind.strip_prefix("/problems/")?.to_owned())
}

on_each_database!(this_proxy_answers_as_the_gateways_table_says);
async fn this_proxy_answers_as_the_gateways_table_says(store: Store) {
    for case in cases() {
        let name = case["name"].as_str().unwrap();
        let limits = serde_json::from_value(case["limits"].clone()).unwrap();
        let expected = &case["expected"];
        let stub = Stub::start(case["answer"].clone()).await;
        store.empty().await;
        let proxy = Proxy::new(store.clone(), &format!("http://{}/v1", stub.address), limits).await;
        let asked = case["sent"].as_array().unwrap().iter().map(|sent| {
            let field = |name: &str| sent[name].as_str().unwrap();
            let mut request = proxy.request(field("who"), field("method"), field("target"));
            request = request.header("content-type", field("content_type"));
            if let Some(origin) = sent["origin"].as_str() {
                request = request.header("origin", origin);
            }
            let body = sent["body"]
                .as_str()
                .map_or_else(|| sent["body"].to_string(), str::to_owned);
            let request = request.body(Body::from(body)).unwrap();
            proxy.router.clone().oneshot(request)
        });
        let answered = join_all(asked).await;
        let mut answers = Vec::new();
        for response in answered {
            let response = response.unwrap();
            assert!(!response.headers().contains_key("set-cookie"), "{name}");
            assert!(!response.headers().contains_key("location"), "{name}");
            answers.push(text(response).await);
        }
        answers.sort();
        let statuses: Vec<u16> = answers.iter().map(|(status, _)| *status).collect();
        assert_eq!(json!(statuses), expected["statuses"], "{name}: {answers:?}");
        let problem = answers.iter().find_map(|(_, body)| problem_of(body));
        assert_eq!(
            problem.as_deref(),
            expected["problem"].as_str(),
            "{name}: {answers:?}"
        );
        let ends_with = expected["ends_with"].as_str().unwrap();
        let before_the_event = |body: &str| {
            body.split("event: error")
                .next()
                .unwrap_or_default()
                .trim_end()
                .to_owned()
        };
        let is_passed = answers
            .iter()
            .any(|(_, body)| before_the_event(body).ends_with(ends_with.trim_end()));
        assert!(is_passed, "{name}: {answers:?}");
        assert!(answers.iter().all(|(_, body)| !body.contains(KEY)), "{name}");
        assert_eq!(
            stub.received.load(Relaxed),
            expected["received"].as_u64().unwrap() as usize,
            "{name}"
        );
        let used = expected["used"].as_u64().unwrap();
        assert_eq!(proxy.settled(Scope::Member).await.get(), used, "{name}");
    }
}

fn one(content: &str) -> Value {
    json!({ "status": 200, "content_type": "application/json", "chunks": [content], "repeat": 1 })
}

fn chat() -> Body {
    let body =
        json!({ "model": "small-1", "messages": [{ "role": "user", "content": "Hi" }], "max_tokens": 50 });
    Body::from(body.to_string())
}

const CHAT: &str = "/api/proxy/team/v1/chat/completions";
const USAGE: &str = r#"{"choices":[],"usage":{"prompt_tokens":10,"completion_tokens":5}}"#;

on_each_database!(a_page_asks_with_its_cookie_and_a_program_with_its_token_in_any_providers_header);
async fn a_page_asks_with_its_cookie_and_a_program_with_its_token_in_any_providers_header(store: Store) {
    let stub = Stub::start(one(USAGE)).await;
    let proxy = Proxy::to(store, &stub).await;
    let editor = proxy.store.member("ed").await.unwrap();
    let session = Secret::new("");
    let ed = by("ed");
    let signed_in = proxy.store.sign_in(&ed, &editor, &session, "test");
    let id = signed_in.await.unwrap().id;
    let cookie = format!("__Host-{}={}", caller::COOKIE, session.reveal());
    let token = proxy.tokens[0].1.reveal().to_owned();
    let (reads, has_ended) = (Secret::new("capo_"), Secret::new("capo_"));
    for (secret, scope, until) in [
        (&reads, TokenScope::Read, NOW + 1_000),
        (&has_ended, TokenScope::Write, NOW),
    ] {
        let added = proxy.store.add_token(&ed, &editor, secret, "other", scope, until);
        added.await.unwrap();
    }
    let nobody = || proxy.request("nobody", "POST", CHAT);
    for (request, status) in [
        (
            nobody()
                .header("cookie", &cookie)
                .header("origin", "https://capo.example"),
            200,
        ),
        // What the page's own client sends in place of a key.
        (
            nobody()
                .header("cookie", &cookie)
                .header("origin", "https://capo.example")
                .header("authorization", "Bearer none"),
            200,
        ),
        (
            nobody()
                .header("cookie", &cookie)
                .header("origin", "https://evil.example"),
            403,
        ),
        (nobody().header("cookie", &cookie), 403),
        (
            nobody()
                .header("cookie", &cookie)
                .header("sec-fetch-site", "cross-site"),
            403,
        ),
        (nobody().header("x-api-key", &token), 200),
        (nobody().header("x-goog-api-key", &token), 200),
        (nobody().header("authorization", "Bearer capo_unknown"), 401),
        (nobody().header("x-api-key", reads.reveal()), 403),
        (nobody().header("x-api-key", has_ended.reveal()), 401),
        (
            nobody()
                .header("x-capo-project", "help-desk")
                .header("x-api-key", &token),
            200,
        ),
        (
            nobody()
                .header("x-capo-project", "other")
                .header("x-api-key", &token),
            404,
        ),
    ] {
        let (got, body) = text(proxy.chat(request).await).await;
        assert_eq!(got, status, "{body}");
    }
    assert_eq!(proxy.settled(Scope::Member).await, NanoUsd::from(5 * 60_000));
    assert_eq!(
        proxy.used().await.len(),
        3,
        "of the member, the project and the key"
    );
    proxy.store.end_session(&ed, &editor, &id).await.unwrap();
    let request = nobody().header("cookie", &cookie);
    let request = request.header("origin", "https://capo.example");
    assert_eq!(proxy.chat(request).await.status(), StatusCode::UNAUTHORIZED);
}

on_each_database!(a_caller_who_goes_away_pays_what_the_provider_counts);
async fn a_caller_who_goes_away_pays_what_the_provider_counts(store: Store) {
    let chunks = [
        "data: {\"choices\":[{\"delta\":{\"content\":\"Hello\"}}]}\n\n".to_owned(),
        format!("data: {USAGE}\n\n"),
        "data: [DONE]\n\n".to_owned(),
    ];
    let answer = json!({ "status": 200, "content_type": "text/event-stream", "chunks": chunks, "repeat": 1 });
    let stub = Stub::start(answer).await;
    let proxy = Proxy::to(store, &stub).await;
    let response = proxy.chat(proxy.request("editor", "POST", CHAT)).await;
    assert_eq!(response.status(), StatusCode::OK);
    drop(response);
    assert_eq!(proxy.settled(Scope::Member).await, NanoUsd::from(60_000));
}

on_each_database!(a_provider_that_is_not_there_costs_nothing);
async fn a_provider_that_is_not_there_costs_nothing(store: Store) {
    let proxy = Proxy::new(store, "http://127.0.0.1:1/v1", [Limits::default(); 3]).await;
    let response = proxy.chat(proxy.request("editor", "POST", CHAT)).await;
    let (status, body) = text(response).await;
    assert_eq!((status, problem_of(&body).as_deref()), (502, Some("unreached")));
    assert_eq!(proxy.settled(Scope::Member).await, NanoUsd::ZERO);
}

on_each_database!(who_goes_away_before_the_provider_answers_pays_what_it_counts);
async fn who_goes_away_before_the_provider_answers_pays_what_it_counts(store: Store) {
    let stub = Stub::start(one(USAGE)).await;
    stub.delay.store(300, Relaxed);
    let proxy = Proxy::to(store, &stub).await;
    let asked = proxy.chat(proxy.request("editor", "POST", CHAT));
    let gone = tokio::time::timeout(std::time::Duration::from_millis(100), asked).await;
    assert!(gone.is_err(), "it had not answered");
    assert_eq!(proxy.settled(Scope::Member).await, NanoUsd::from(60_000));
    proxy.server.finish().await;
}

on_each_database!(nothing_is_read_from_who_may_not_ask);
async fn nothing_is_read_from_who_may_not_ask(store: Store) {
    let proxy = Proxy::new(store, "http://127.0.0.1:1/v1", [Limits::default(); 3]).await;
    for (who, status) in [("nobody", 401), ("outsider", 404)] {
        // A body that never comes.
        let body = Body::from_stream(futures::stream::pending::<Result<Vec<u8>, std::io::Error>>());
        let request = proxy
            .request(who, "POST", CHAT)
            .header("content-type", "application/json");
        let response = proxy
            .router
            .clone()
            .oneshot(request.body(body).unwrap())
            .await
            .unwrap();
        assert_eq!(response.status().as_u16(), status);
    }
}

on_each_database!(what_a_killed_server_had_set_aside_is_paid_when_the_next_one_starts);
async fn what_a_killed_server_had_set_aside_is_paid_when_the_next_one_starts(store: Store) {
    let proxy = Proxy::new(store, "http://127.0.0.1:1/v1", [Limits::default(); 3]).await;
    let payers = crate::store::ChargedTo {
        key: "team".into(),
        project: "p".into(),
        member: proxy.editor.clone(),
    };
    let most = NanoUsd::from(70);
    let aside = proxy
        .store
        .reserve(payers, [Limits::default(); 3], most, NOW)
        .await
        .unwrap()
        .unwrap();
    assert_eq!(proxy.store.take_over(NOW + 1000, true).await.unwrap(), 1);
    assert_eq!(proxy.settled(Scope::Member).await, most);
    proxy.store.settle(&aside, NanoUsd::from(1)).await.unwrap();
    assert_eq!(proxy.settled(Scope::Member).await, most, "once only");
}

on_each_database!(without_the_master_key_nothing_is_sent_and_said_why);
async fn without_the_master_key_nothing_is_sent_and_said_why(store: Store) {
    let stub = Stub::start(one(USAGE)).await;
    let mut proxy = Proxy::to(store, &stub).await;
    for master in [None, Some(MasterKey::new())] {
        let settings = Settings {
            master,
            ..Settings::default()
        };
        let server = Server::new(proxy.store.clone(), || NOW, settings).unwrap();
        proxy.router = router(server, None);
        let (status, body) = text(proxy.chat(proxy.request("editor", "POST", CHAT)).await).await;
        assert_eq!(
            (status, problem_of(&body).as_deref()),
            (503, Some("master-key")),
            "{body}"
        );
    }
    assert_eq!(stub.received.load(Relaxed), 0);
}
