//! A server in this process that says of runs what a test has it say.

use std::convert::Infallible;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::http::header::{AUTHORIZATION, CONTENT_TYPE};
use axum::response::{IntoResponse as _, Response};
use futures::StreamExt as _;
use futures::stream;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::runtime::Runtime;

/// The token it wants. No error may hold it.
pub(crate) const TOKEN: &str = "capo_0123456789abcdef";

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Asked {
    /// Such as `GET /api/runs?project=desk`.
    pub(crate) line: String,
    pub(crate) body: Bytes,
}

impl Asked {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap()
    }
}

type Answers = dyn Fn(&Asked, usize) -> Option<Response> + Send + Sync;

#[derive(Clone)]
struct Shared {
    answers: Arc<Answers>,
    asked: Arc<Mutex<Vec<Asked>>>,
}

/// The server; it ends when dropped.
pub(crate) struct Stub {
    pub(crate) url: String,
    asked: Arc<Mutex<Vec<Asked>>>,
    _runtime: Runtime,
}

impl Stub {
    /// Answers each request, by how often the same was asked before; what it has no answer to is not there.
    pub(crate) fn start(answers: impl Fn(&Asked, usize) -> Option<Response> + Send + Sync + 'static) -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .unwrap();
        let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let shared = Shared {
            answers: Arc::new(answers),
            asked: Arc::default(),
        };
        let asked = Arc::clone(&shared.asked);
        let router = Router::new().fallback(answer).with_state(shared);
        runtime.spawn(async move { axum::serve(listener, router).await });
        Self {
            url,
            asked,
            _runtime: runtime,
        }
    }

    pub(crate) fn asked(&self) -> MutexGuard<'_, Vec<Asked>> {
        self.asked.lock().unwrap()
    }

    /// The lines of what was asked.
    pub(crate) fn lines(&self) -> Vec<String> {
        self.asked().iter().map(|asked| asked.line.clone()).collect()
    }
}

async fn answer(State(shared): State<Shared>, request: Request) -> Response {
    let bearer = request
        .headers()
        .get(AUTHORIZATION)
        .map(|value| value.as_bytes().to_vec());
    if bearer != Some(format!("Bearer {TOKEN}").into_bytes()) {
        return problem(401, "Sign in, or send a token.");
    }
    let line = format!("{} {}", request.method(), request.uri());
    let body = axum::body::to_bytes(request.into_body(), usize::MAX)
        .await
        .unwrap();
    let asked = Asked { line, body };
    let path = |asked: &Asked| asked.line.split('?').next().unwrap().to_owned();
    let before = {
        let mut all = shared.asked.lock().unwrap();
        let before = all.iter().filter(|other| path(other) == path(&asked)).count();
        all.push(asked.clone());
        before
    };
    (shared.answers)(&asked, before).unwrap_or_else(|| problem(404, "There is nothing here."))
}

pub(crate) fn document(status: u16, document: &impl serde::Serialize) -> Response {
    let status = StatusCode::from_u16(status).unwrap();
    let body = serde_json::to_string(document).unwrap();
    (status, [(CONTENT_TYPE, "application/json")], body).into_response()
}

pub(crate) fn problem(status: u16, detail: &str) -> Response {
    let problem = json!({ "type": "/problems/test", "title": "Test", "status": status, "detail": detail });
    document(status, &problem)
}

/// A part of what is said of a run.
#[derive(Debug, Clone)]
pub(crate) enum Say {
    Run(Value),
    Lines(u64, Vec<String>),
    Study(String),
    Waits(Value),
    Comment,
    /// The connection breaks in the middle of an event.
    Break,
    /// Nothing more is said, for as long as anybody listens.
    Silence,
}

/// What is said of a run, in pieces that fit no event.
pub(crate) fn events(says: &[Say]) -> Response {
    let mut texts = Vec::new();
    let mut is_whole = false;
    for say in says {
        match say {
            Say::Run(run) => texts.push(format!("event: run\ndata: {run}\n\n")),
            Say::Lines(from, lines) => {
                for (number, line) in (*from..).zip(lines) {
                    texts.push(format!("id: {number}\nevent: line\ndata: {line}\n\n"));
                }
            }
            Say::Study(line) => texts.push(format!("event: study\ndata: {line}\n\n")),
            Say::Waits(wait) => texts.push(format!("event: waits\ndata: {wait}\n\n")),
            Say::Comment => texts.push(":\n\n".into()),
            Say::Break => texts.push("event: line\ndata: {\"event\":\"cand".into()),
            Say::Silence => is_whole = true,
        }
    }
    let text = texts.concat();
    let pieces: Vec<Bytes> = text.as_bytes().chunks(1021).map(Bytes::copy_from_slice).collect();
    let said = stream::iter(pieces.into_iter().map(Ok));
    let body = if is_whole {
        Body::from_stream(said.chain(stream::pending::<Result<Bytes, Infallible>>()))
    } else {
        let said = said.map(|piece: Result<Bytes, Infallible>| piece.map_err(std::io::Error::other));
        let broken = stream::once(async {
            // What was said before has left by then.
            tokio::time::sleep(Duration::from_millis(50)).await;
            Err(std::io::Error::other("broken"))
        });
        Body::from_stream(said.chain(broken))
    };
    ([(CONTENT_TYPE, "text/event-stream")], body).into_response()
}
