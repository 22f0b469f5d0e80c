//! The worker for Cloudflare's runtime, run on that runtime here: the gateway's table of cases, and what only the
//! edge can get wrong.

#![expect(
    clippy::unwrap_used,
    reason = "a panic is how a test fails, in its own parts too"
)]

#[expect(dead_code, reason = "other tests use other parts")]
mod edge_worker;

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::thread;

use axum::Router;
use axum::body::Body;
use axum::extract::Request;
use axum::response::Response;
use capo_gateway::cases::{KEY, cases};
use capo_gateway::{CALLS_OF_MEMBER, Limits};
use capo_tests::program::{Server, wait_until};
use edge_worker::{Came, Team, ask, run, text, token};
use futures::StreamExt as _;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::sync::Notify;

const CHAT: &str = r#"{"model":"small-1","messages":[{"role":"user","content":"Hi"}],"max_tokens":50}"#;

/// A provider that answers everything alike, and counts.
struct Stub {
    base_url: String,
    received: Arc<AtomicU64>,
    /// Lets an answer go on after its first chunk.
    go_on: Arc<Notify>,
}

impl Stub {
    /// One whose answers wait after their first chunk, if they are to.
    fn start(answer: Value, waits: bool) -> Self {
        let received = Arc::new(AtomicU64::new(0));
        let go_on = Arc::new(Notify::new());
        let (counted, gate) = (received.clone(), go_on.clone());
        let respond = move |request: Request| {
            let (counted, gate, answer) = (counted.clone(), gate.clone(), answer.clone());
            async move {
                counted.fetch_add(1, Relaxed);
                assert_eq!(request.headers()["authorization"], format!("Bearer {KEY}"));
                let chunks: Vec<String> = serde_json::from_value(answer["chunks"].clone()).unwrap();
                let repeated = std::iter::repeat_n(chunks, answer["repeat"].as_u64().unwrap() as usize);
                let pieces =
                    futures::stream::iter(repeated.flatten().enumerate()).then(move |(at, chunk)| {
                        let gate = gate.clone();
                        async move {
                            if waits && at == 1 {
                                gate.notified().await;
                            }
                            Ok::<_, Infallible>(chunk)
                        }
                    });
                Response::builder()
                    .status(answer["status"].as_u64().unwrap() as u16)
                    .header("content-type", answer["content_type"].as_str().unwrap())
                    .header("set-cookie", "of=the-provider")
                    .header("location", "http://127.0.0.1:1/")
                    .body(Body::from_stream(pieces))
                    .unwrap()
            }
        };
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let base_url = format!("http://{}/v1", listener.local_addr().unwrap());
        listener.set_nonblocking(true).unwrap();
        // It ends with the test.
        thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            runtime.unwrap().block_on(async {
                let listener = tokio::net::TcpListener::from_std(listener).unwrap();
                axum::serve(listener, Router::new().fallback(respond))
                    .await
                    .unwrap();
            });
        });
        Self {
            base_url,
            received,
            go_on,
        }
    }
}

/// Asks a model as a program of the member does.
fn chat(server: &Server, member: &str, key: &str) -> Came {
    let bearer = format!("Bearer {}", token(member));
    let headers = [
        ("authorization", bearer.as_str()),
        ("content-type", "application/json"),
    ];
    ask(
        server,
        "POST",
        &format!("/api/proxy/{key}/v1/chat/completions"),
        &headers,
        CHAT,
    )
}

/// What a member has used, in nano-dollars, once nothing is under way.
fn settled(server: &Server, member: &str) -> u64 {
    let bearer = format!("Bearer {}", token("root"));
    let mut used = 0;
    wait_until("nothing to be reserved", || {
        let (status, body) = text(ask(
            server,
            "GET",
            "/api/usage?days=1",
            &[("authorization", &bearer)],
            "",
        ));
        assert_eq!(status, 200, "{body}");
        let shown: Vec<Value> = serde_json::from_str(&body).unwrap();
        let found = shown
            .iter()
            .find(|used| used["scope"] == "member" && used["name"] == member);
        used = found.map_or(0, |found| (found["usd"].as_f64().unwrap() * 1e9).round() as u64);
        found.is_none_or(|found| found["reserved_usd"] == json!(0.0))
    });
    used
}

/// The last segment of the problem's type in a document, or in the last event of a stream.
fn problem_of(body: &str) -> Option<String> {
    let document = body.rsplit_once("data: ").map_or(body, |(_, last)| last.trim());
    let document: Value = serde_json::from_str(document).ok()?;
    let kinds = [&document["type"], &document["error"]["type"]];
    let mut kinds = kinds
        .into_iter()
        .filter_map(|kind| kind.as_str()?.strip_prefix("/problems/"));
    kinds.next().map(str::to_owned)
}

fn send(server: &Server, end: &str, sent: &Value) -> Came {
    let field = |name: &str| sent[name].as_str().unwrap();
    let bearer = format!("Bearer {}{end}", token(field("who")));
    let mut headers = vec![("content-type", field("content_type"))];
    headers.extend((field("who") != "nobody").then_some(("authorization", bearer.as_str())));
    headers.extend(sent["origin"].as_str().map(|origin| ("origin", origin)));
    let body = sent["body"]
        .as_str()
        .map_or_else(|| sent["body"].to_string(), str::to_owned);
    let target = field("target").replacen("/team/", &format!("/team{end}/"), 1);
    ask(server, field("method"), &target, &headers, &body)
}

#[test]
fn the_edge_answers_as_the_gateways_table_says() {
    let (cases, folder) = (cases(), TempDir::new().unwrap());
    let mut team = Team::default();
    let stubs: Vec<Stub> = cases
        .iter()
        .map(|case| Stub::start(case["answer"].clone(), false))
        .collect();
    // All cases at one worker: each has names of its own, and so nothing consumed.
    for (number, (case, stub)) in cases.iter().zip(&stubs).enumerate() {
        let limits = serde_json::from_value(case["limits"].clone()).unwrap();
        team.case(&format!("-{number}"), &stub.base_url, limits);
    }
    let server = team.start(folder.path());
    for (number, (case, stub)) in cases.iter().zip(&stubs).enumerate() {
        let (name, expected, end) = (
            case["name"].as_str().unwrap(),
            &case["expected"],
            format!("-{number}"),
        );
        let mut answers: Vec<(u16, String)> = thread::scope(|scope| {
            let asked: Vec<_> = case["sent"]
                .as_array()
                .unwrap()
                .iter()
                .map(|sent| {
                    scope.spawn(|| {
                        let came = send(&server, &end, sent);
                        for passed_on in ["set-cookie", "location"] {
                            assert!(!came.headers().contains_key(passed_on), "{name}");
                        }
                        text(came)
                    })
                })
                .collect();
            asked.into_iter().map(|asked| asked.join().unwrap()).collect()
        });
        answers.sort();
        let statuses: Vec<u16> = answers.iter().map(|(status, _)| *status).collect();
        assert_eq!(json!(statuses), expected["statuses"], "{name}: {answers:?}");
        let problem = answers.iter().find_map(|(_, body)| problem_of(body));
        assert_eq!(json!(problem), expected["problem"], "{name}: {answers:?}");
        let ends_with = expected["ends_with"].as_str().unwrap().trim_end();
        let before_the_event = |body: &str| body.split("event: error").next().unwrap().trim_end().to_owned();
        let is_passed = answers
            .iter()
            .any(|(_, body)| before_the_event(body).ends_with(ends_with));
        assert!(is_passed, "{name}: {answers:?}");
        assert!(answers.iter().all(|(_, body)| !body.contains(KEY)), "{name}");
        assert_eq!(json!(stub.received.load(Relaxed)), expected["received"], "{name}");
        assert_eq!(
            json!(settled(&server, &format!("editor{end}"))),
            expected["used"],
            "{name}"
        );
    }
}

fn streamed() -> Value {
    json!({
        "status": 200, "content_type": "text/event-stream", "repeat": 1,
        "chunks": [
            "data: {\"choices\":[{\"delta\":{\"content\":\"Hello\"}}]}\n\n",
            "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":10,\"completion_tokens\":5}}\n\ndata: [DONE]\n\n",
        ],
    })
}

#[test]
fn an_answer_streams_through_and_who_goes_away_pays_what_the_provider_counts() {
    use std::io::{BufRead as _, BufReader, Read as _};

    let (stub, folder) = (Stub::start(streamed(), true), TempDir::new().unwrap());
    let mut team = Team::default();
    team.case("", &stub.base_url, [Limits::default(); 3]);
    let server = team.start(folder.path());
    let mut came = BufReader::new(chat(&server, "editor", "team").into_body().into_reader());
    let mut line = String::new();
    came.read_line(&mut line).unwrap();
    assert!(
        line.contains("Hello"),
        "it came before the provider ended: {line}"
    );
    stub.go_on.notify_one();
    let mut rest = String::new();
    came.read_to_string(&mut rest).unwrap();
    assert!(rest.ends_with("data: [DONE]\n\n"), "{rest}");
    assert_eq!(settled(&server, "editor"), 60_000);
    drop(chat(&server, "editor", "team"));
    stub.go_on.notify_one();
    assert_eq!(settled(&server, "editor"), 120_000);
    // What was used outlives the worker.
    drop(server);
    let server = team.start(folder.path());
    assert_eq!(settled(&server, "editor"), 120_000);
}

#[test]
fn who_asks_too_often_is_told_when_to_come_back() {
    let (stub, folder) = (Stub::start(streamed(), false), TempDir::new().unwrap());
    let mut team = Team::default();
    team.case("", &stub.base_url, [Limits::default(); 3]);
    team.more.insert("RATE".to_owned(), "1".into());
    let server = team.start(folder.path());
    let from = |address: &str, token: &str| {
        let headers = [("x-api-key", token), ("cf-connecting-ip", address)];
        ask(&server, "GET", "/api/projects", &headers, "")
    };
    // All at once: from one network, of IPv6 half an address, 16 are answered and four a second.
    let all = |count: u32, each: &(dyn Fn(u32) -> Came + Sync)| -> Vec<Came> {
        thread::scope(|scope| {
            let asked: Vec<_> = (0..count)
                .map(|number| scope.spawn(move || each(number)))
                .collect();
            asked.into_iter().map(|asked| asked.join().unwrap()).collect()
        })
    };
    let guesses = all(200, &|number| {
        from(&format!("2001:db8::{number}"), &format!("capo_{number}"))
    });
    let (refused, unknown): (Vec<_>, Vec<_>) = guesses.into_iter().partition(|came| came.status() == 429);
    assert!(unknown.len() >= 16 && unknown.iter().all(|came| came.status() == 401));
    assert!(!refused.is_empty() && refused.iter().all(|came| came.headers()["retry-after"] == "1"));
    assert_eq!(from("2001:db8:1::1", &token("editor")).status(), 200);
    assert_eq!(from("192.0.2.1", &token("viewer")).status(), 200);
    // Calls to models are counted apart, whether they are let through or not.
    for (member, status) in [("editor", 200_u16), ("viewer", 403)] {
        let calls = all(400, &|_| chat(&server, member, "team"));
        let (refused, answered): (Vec<_>, Vec<_>) = calls.into_iter().partition(|came| came.status() == 429);
        assert!(answered.len() >= 64 && answered.iter().all(|came| came.status() == status));
        let refused = refused.into_iter().next().expect("more than an address may");
        assert_eq!(refused.headers()["retry-after"], "1");
        let problem = problem_of(&text(refused).1);
        assert_eq!(problem.as_deref(), Some("too-many-requests"));
    }
}

#[test]
fn a_member_has_so_many_calls_under_way_and_no_more() {
    let (stub, folder) = (Stub::start(streamed(), true), TempDir::new().unwrap());
    let mut team = Team::default();
    team.case("", &stub.base_url, [Limits::default(); 3]);
    let server = team.start(folder.path());
    let call = || chat(&server, "editor", "team");
    let held: Vec<Came> = std::iter::repeat_with(call).take(CALLS_OF_MEMBER).collect();
    assert!(held.iter().all(|came| came.status() == 200));
    let refused = call();
    assert_eq!(refused.headers()["retry-after"], "2");
    let (status, problem) = text(refused);
    assert_eq!((status, problem_of(&problem).as_deref()), (503, Some("busy")));
    stub.go_on.notify_one();
    wait_until("an end", || call().status() == 200);
}

#[test]
fn the_page_is_served_and_says_what_stands_behind_it() {
    let folder = TempDir::new().unwrap();
    let mut team = Team::default();
    team.case("", "http://127.0.0.1:1/v1", [Limits::default(); 3]);
    let server = team.start(folder.path());
    for path in ["/", "/run/x", "/boot.js", "/api", "/healthz", "/api/runs"] {
        let came = ask(&server, "GET", path, &[], "");
        let header = |name: &str| came.headers()[name].to_str().unwrap().to_owned();
        assert!(
            header("content-security-policy").ends_with("frame-ancestors 'none'"),
            "{path}"
        );
        assert_eq!(header("x-content-type-options"), "nosniff", "{path}");
        assert_eq!(header("strict-transport-security"), "max-age=63072000", "{path}");
        let (status, body) = text(came);
        assert_eq!(
            status,
            if path == "/api/runs" { 401 } else { 200 },
            "{path}: {body}"
        );
        let is_page = body.contains("http-equiv=\"Content-Security-Policy\"");
        assert_eq!(is_page, ["/", "/run/x"].contains(&path), "{path}");
    }
    let about = |token: &str| -> Value {
        let headers = [("x-api-key", token)];
        serde_json::from_str(&text(ask(&server, "GET", "/api", &headers, "")).1).unwrap()
    };
    assert_eq!(about("")["has_accounts"], false);
    assert_eq!(
        about(&token("root"))["member"],
        json!({ "name": "root", "is_admin": true, "has_password": false })
    );
    assert_eq!(about("capo_guessed")["member"], Value::Null);
    for (token, status) in [
        (token("editor"), 403),
        ("capo_guessed".into(), 401),
        (String::new(), 401),
    ] {
        assert_eq!(
            ask(&server, "GET", "/api/usage", &[("x-api-key", &token)], "").status(),
            status
        );
    }
    let came = chat(&server, "nobody-here", "team");
    assert_eq!(came.headers()["www-authenticate"], "Bearer");
    let (status, body) = text(came);
    assert_eq!(
        (status, problem_of(&body).as_deref()),
        (401, Some("unknown-token"))
    );
    // Whether anything was sent to a provider that does not answer, the runtime does not say.
    let (status, body) = text(chat(&server, "editor", "team"));
    assert_eq!(
        (status, problem_of(&body).as_deref()),
        (502, Some("unreached")),
        "{body}"
    );
    assert!(settled(&server, "editor") > 0);
}

#[test]
fn what_is_configured_wrongly_opens_nothing() {
    let folder = TempDir::new().unwrap();
    let member = json!({ "token_sha256": "0".repeat(64), "projects": { "mistyped": "editor" } });
    let vars = json!({ "MEMBERS": { "ada": member }, "PROJECTS": {}, "KEYS": {} });
    let server = run(&vars, folder.path());
    for path in ["/healthz", "/api", "/api/proxy/team/models"] {
        let (status, body) = text(ask(&server, "GET", path, &[], ""));
        assert_eq!(
            (status, problem_of(&body).as_deref()),
            (503, Some("configuration")),
            "{path}"
        );
    }
    assert_eq!(ask(&server, "GET", "/", &[], "").status(), 200);
}
