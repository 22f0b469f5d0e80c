//! A server that plays an OpenAI-compatible provider by script, and keeps a log of requests.
//!
//! It shares no code with `capo simulate`: an error in one of them cannot hide in the other.

use std::collections::{BTreeSet, HashMap};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::extract::{Path, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::middleware::map_response;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::{oneshot, watch};

/// What tells one request from another.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Question {
    /// The system message, empty when there is none.
    pub system: String,
    /// The last user message.
    pub user: String,
    /// What a tool answered, where that is the last message; else empty.
    pub tool: String,
    /// The seed asked for.
    pub seed: Option<u64>,
}

impl Question {
    /// What tells requests apart that have to do with no tool.
    pub(crate) fn without_tools(&self) -> (&str, &str, Option<u64>) {
        (&self.system, &self.user, self.seed)
    }

    /// Whether a rewriter is asked for a prompt. By the heading of the page it is given.
    pub fn is_rewrite(&self) -> bool {
        self.user.contains("You improve the system prompt of an AI agent")
    }

    /// Whether a critic is asked.
    pub fn is_critique(&self) -> bool {
        self.user.contains("You review the system prompt of an AI agent")
    }

    /// Whether an agent is asked to do its work.
    pub fn is_rollout(&self) -> bool {
        !self.is_rewrite() && !self.is_critique()
    }
}

/// What the server answers.
#[derive(Debug, Clone, PartialEq)]
pub enum Answer {
    /// A completion of this text; 10 tokens read for every message, one written per 4 characters.
    Text(String),
    /// A completion that calls a tool with these arguments, and says nothing.
    Call(&'static str, Value),
    /// An error with this status, and seconds of `Retry-After` if any.
    Error(u16, Option<u64>),
    /// Status 400 as OpenAI words it when a conversation does not fit.
    ContextLength,
    /// Status 200 and half a JSON object.
    Malformed,
    /// Status 200 and a completion without text.
    Empty,
    /// Nothing, for as long as the client waits.
    Silence,
}

/// Chooses the answer to a question that has been asked so many times before.
type Script = dyn Fn(&Question, u64) -> Answer + Send + Sync;

/// How often a question was asked and answered.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Count {
    /// Requests that arrived, whatever became of them.
    pub asked: u64,
    /// Requests whose [`Answer::Text`] or [`Answer::Call`] was sent.
    pub answered: u64,
}

/// What a [`Stub`] was asked and answered.
#[derive(Debug, Clone, Default)]
pub struct RequestLog {
    /// By question.
    pub counts: HashMap<Question, Count>,
    /// Requests that arrived, wrong keys included.
    pub requests: u64,
    /// Requests being worked on.
    pub open: usize,
    /// The most requests that were ever worked on at once.
    pub most_open: usize,
    /// The `Authorization` header of every request, in order of arrival.
    pub authorizations: Vec<Option<String>>,
    /// The descriptions of all tools that were offered.
    pub described: BTreeSet<String>,
    /// How many calls each batch has that was handed in.
    pub batches: Vec<usize>,
}

impl RequestLog {
    /// Requests with a question of this kind.
    pub fn asked(&self, kind: impl Fn(&Question) -> bool) -> u64 {
        self.counts
            .iter()
            .filter(|(question, _)| kind(question))
            .map(|(_, count)| count.asked)
            .sum()
    }

    /// Answers sent to questions of this kind.
    pub fn answered(&self, kind: impl Fn(&Question) -> bool) -> u64 {
        let answered = self.counts.iter().filter(|(question, _)| kind(question));
        answered.map(|(_, count)| count.answered).sum()
    }

    /// Answers beyond the first, summed over the questions of this kind.
    pub fn repeats(&self, kind: impl Fn(&Question) -> bool) -> u64 {
        let asked = self.counts.iter().filter(|(question, _)| kind(question));
        asked.map(|(_, count)| count.answered.saturating_sub(1)).sum()
    }
}

struct Shared {
    script: Box<Script>,
    latency: Duration,
    key: Option<String>,
    request_log: Mutex<RequestLog>,
    batches: Mutex<Batches>,
    /// How many of the requests that arrive are worked on; the others wait.
    let_through: watch::Sender<u64>,
}

/// Calls that are handed in together, as `OpenAI` takes them.
#[derive(Default)]
struct Batches {
    /// The lines of the last file that came, and its number.
    uploaded: Vec<Value>,
    files: usize,
    /// The file that each batch was made of.
    made_of: Vec<String>,
    /// What each batch was answered, a line for each call.
    answers: Vec<String>,
    /// How long it takes to be answered that a batch was taken.
    taking: Duration,
}

impl Shared {
    fn request_log(&self) -> MutexGuard<'_, RequestLog> {
        self.request_log.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn batches(&self) -> MutexGuard<'_, Batches> {
        self.batches.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The line that answers a call of a batch.
    fn line(&self, call: &Value) -> String {
        let question = question(&call["body"]);
        let messages = call["body"]["messages"].as_array().map_or(0, Vec::len);
        let response = match (self.script)(&question, 0) {
            Answer::Text(text) => {
                let message = json!({"role": "assistant", "content": text});
                json!({"status_code": 200, "body": completion(messages, &message).0})
            }
            _ => json!({"status_code": 500, "body": {}}),
        };
        json!({"custom_id": call["custom_id"], "response": response, "error": null}).to_string()
    }
}

/// A running stub, stopped when dropped.
pub struct Stub {
    /// Ends in `/v1`.
    pub base_url: String,
    address: SocketAddr,
    shared: Arc<Shared>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Stub {
    /// Serves answers by script, at once.
    pub fn start(script: impl Fn(&Question, u64) -> Answer + Send + Sync + 'static) -> Self {
        Self::start_with(Duration::ZERO, None, script)
    }

    /// Serves answers by script, each after a latency, demanding a key if one is given.
    ///
    /// # Panics
    /// When this machine has no free port.
    pub fn start_with(
        latency: Duration,
        key: Option<&str>,
        script: impl Fn(&Question, u64) -> Answer + Send + Sync + 'static,
    ) -> Self {
        let shared = Arc::new(Shared {
            script: Box::new(script),
            latency,
            key: key.map(str::to_owned),
            request_log: Mutex::default(),
            batches: Mutex::default(),
            let_through: watch::Sender::new(u64::MAX),
        });
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port on loopback");
        let address = listener.local_addr().expect("a bound address");
        let mut stub = Self {
            base_url: format!("http://{address}/v1"),
            address,
            shared,
            stop: None,
            thread: None,
        };
        stub.serve(listener);
        stub
    }

    fn serve(&mut self, listener: std::net::TcpListener) {
        listener
            .set_nonblocking(true)
            .expect("a listener can be made asynchronous");
        let (stop, stopped) = oneshot::channel::<()>();
        let app = Router::new()
            .route(
                "/v1/chat/completions",
                post(complete).options(async || StatusCode::NO_CONTENT),
            )
            .route("/v1/files", post(upload))
            .route("/v1/batches", post(hand_in).get(list))
            .route("/v1/batches/{id}", get(batch))
            .route("/v1/files/{id}/content", get(answers))
            .layer(map_response(open_to_pages))
            .with_state(Arc::clone(&self.shared));
        let thread = thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            runtime.expect("a runtime on this thread").block_on(async {
                let listener = TcpListener::from_std(listener).expect("a listener on this runtime");
                tokio::select! {
                    served = axum::serve(listener, app) => served.expect("serving does not end"),
                    _ = stopped => {}
                }
            });
        });
        (self.stop, self.thread) = (Some(stop), Some(thread));
    }

    /// Leaves: connections end, and nobody is at its address.
    pub fn leave(&mut self) {
        if let (Some(stop), Some(thread)) = (self.stop.take(), self.thread.take()) {
            let _ = stop.send(());
            // A panic in the server has failed the test's requests already.
            let _ = thread.join();
        }
    }

    /// Is at its address again after it left.
    ///
    /// # Panics
    /// When somebody else took the address.
    pub fn come_back(&mut self) {
        let listener = std::net::TcpListener::bind(self.address).expect("its address is free");
        self.serve(listener);
    }

    /// The log as it stands.
    pub fn request_log(&self) -> RequestLog {
        self.shared.request_log().clone()
    }

    /// Requests that have arrived.
    pub fn requests(&self) -> u64 {
        self.shared.request_log().requests
    }

    /// Requests being worked on, or waiting to be.
    pub fn open(&self) -> usize {
        self.shared.request_log().open
    }

    /// From now on it takes so long to be answered that a batch was taken.
    pub fn take_batches_in(&self, taking: Duration) {
        self.shared.batches().taking = taking;
    }

    /// Works on so many more requests, and lets all that arrive after them wait. Whoever asks can
    /// then be met in the midst of its work for certain, however slow the machine.
    pub fn let_through(&self, more: u64) {
        let let_through = self.requests().saturating_add(more);
        self.shared.let_through.send_replace(let_through);
    }

    /// Whether more requests have arrived than are worked on, and the others are done with.
    pub fn is_held(&self) -> bool {
        let request_log = self.shared.request_log();
        let waiting = request_log
            .requests
            .saturating_sub(*self.shared.let_through.borrow());
        waiting > 0 && request_log.open as u64 <= waiting
    }

    /// Works on every request again, those that wait included.
    pub fn let_all_through(&self) {
        self.shared.let_through.send_replace(u64::MAX);
    }
}

impl Drop for Stub {
    fn drop(&mut self) {
        self.leave();
    }
}

/// One request being worked on, also until its client goes away.
struct Open<'a>(&'a Shared);

impl<'a> Open<'a> {
    fn new(shared: &'a Shared) -> Self {
        let mut request_log = shared.request_log();
        request_log.open += 1;
        request_log.most_open = request_log.most_open.max(request_log.open);
        drop(request_log);
        Self(shared)
    }
}

impl Drop for Open<'_> {
    fn drop(&mut self) {
        self.0.request_log().open -= 1;
    }
}

/// Lets pages of every origin ask and read, as a server started for browsers does.
async fn open_to_pages(mut response: Response) -> Response {
    let headers = response.headers_mut();
    for (name, value) in [
        ("access-control-allow-origin", "*"),
        ("access-control-allow-headers", "*, authorization"),
        ("access-control-expose-headers", "retry-after"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    response
}

async fn complete(State(shared): State<Arc<Shared>>, headers: HeaderMap, body: Bytes) -> Response {
    let _open = Open::new(&shared);
    let authorization = headers
        .get("authorization")
        .map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned());
    let arrival = {
        let mut request_log = shared.request_log();
        request_log.requests += 1;
        request_log.authorizations.push(authorization.clone());
        request_log.requests
    };
    if let Some(key) = &shared.key
        && authorization != Some(format!("Bearer {key}"))
    {
        return error(401, Some("invalid_api_key"), "Incorrect API key provided.");
    }
    let Ok(body) = serde_json::from_slice::<Value>(&body) else {
        return error(400, None, "not JSON");
    };
    let question = question(&body);
    let before = {
        let mut request_log = shared.request_log();
        let tools = body["tools"].as_array().into_iter().flatten();
        let described = tools.filter_map(|tool| tool["function"]["description"].as_str());
        request_log.described.extend(described.map(str::to_owned));
        let count = request_log.counts.entry(question.clone()).or_default();
        count.asked += 1;
        count.asked - 1
    };
    // Its sender lives as long as what it is shared with.
    let _ = shared
        .let_through
        .subscribe()
        .wait_for(|let_through| arrival <= *let_through)
        .await;
    tokio::time::sleep(shared.latency).await;
    let messages = body["messages"].as_array().map_or(0, Vec::len);
    let said = |text: &str| json!({"role": "assistant", "content": text});
    let answer = |message: Value| {
        let response = completion(messages, &message).into_response();
        shared
            .request_log()
            .counts
            .entry(question.clone())
            .or_default()
            .answered += 1;
        response
    };
    match (shared.script)(&question, before) {
        Answer::Text(text) => answer(said(&text)),
        Answer::Call(name, arguments) => {
            let function = json!({"name": name, "arguments": arguments.to_string()});
            let id = format!("call-{messages}");
            answer(json!({
                "role": "assistant",
                "content": null,
                "tool_calls": [{"id": id, "type": "function", "function": function}],
            }))
        }
        Answer::Empty => completion(messages, &said("")).into_response(),
        Answer::Malformed => (
            [("content-type", "application/json")],
            Body::from(r#"{"id": "1", "choi"#),
        )
            .into_response(),
        Answer::ContextLength => {
            let message = "This model's maximum context length is 8192 tokens.";
            error(400, Some("context_length_exceeded"), message)
        }
        Answer::Error(status, retry_after) => {
            let mut response = error(status, None, "This failure is part of the script.");
            if let Some(seconds) = retry_after {
                response.headers_mut().insert("retry-after", seconds.into());
            }
            response
        }
        Answer::Silence => std::future::pending().await,
    }
}

async fn upload(State(shared): State<Arc<Shared>>, form: String) -> Json<Value> {
    let calls = form.lines().filter(|line| line.starts_with('{'));
    let mut batches = shared.batches();
    batches.uploaded = calls.filter_map(|line| serde_json::from_str(line).ok()).collect();
    batches.files += 1;
    Json(json!({"id": format!("file-{}", batches.files)}))
}

/// Works on a batch at once.
async fn hand_in(State(shared): State<Arc<Shared>>) -> Json<Value> {
    let (number, taking) = {
        let mut batches = shared.batches();
        let calls = std::mem::take(&mut batches.uploaded);
        let lines: Vec<String> = calls.iter().map(|call| shared.line(call)).collect();
        shared.request_log().batches.push(lines.len());
        batches.answers.push(lines.join("\n"));
        let file = format!("file-{}", batches.files);
        batches.made_of.push(file);
        (batches.answers.len() - 1, batches.taking)
    };
    tokio::time::sleep(taking).await;
    Json(json!({"id": number.to_string()}))
}

async fn list(State(shared): State<Arc<Shared>>) -> Json<Value> {
    let batches = shared.batches();
    let listed = batches.made_of.iter().enumerate();
    let listed = listed.map(|(number, file)| json!({"id": number.to_string(), "input_file_id": file}));
    Json(json!({"data": listed.collect::<Vec<_>>(), "has_more": false}))
}

async fn batch(Path(id): Path<String>) -> Json<Value> {
    Json(json!({"status": "completed", "output_file_id": id}))
}

async fn answers(State(shared): State<Arc<Shared>>, Path(number): Path<usize>) -> Result<String, StatusCode> {
    let answers = shared.batches().answers.get(number).cloned();
    answers.ok_or(StatusCode::NOT_FOUND)
}

fn question(body: &Value) -> Question {
    let empty = Vec::new();
    let messages = body["messages"].as_array().unwrap_or(&empty);
    let last = |roles: &[&str]| {
        let message = messages
            .iter()
            .rev()
            .find(|message| roles.contains(&message["role"].as_str().unwrap_or("")));
        message
            .map(|message| text(&message["content"]))
            .unwrap_or_default()
    };
    let answered = messages.last().filter(|message| message["role"] == "tool");
    Question {
        system: last(&["system", "developer"]),
        user: last(&["user"]),
        tool: answered
            .map(|message| text(&message["content"]))
            .unwrap_or_default(),
        seed: body["seed"].as_u64(),
    }
}

/// Content as a string, or as parts of text.
fn text(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(parts) => parts.iter().filter_map(|part| part["text"].as_str()).collect(),
        _ => String::new(),
    }
}

fn completion(messages: usize, message: &Value) -> Json<Value> {
    let text = message["content"].as_str().unwrap_or_default();
    let (read, written) = (10 * messages, text.len().div_ceil(4));
    Json(json!({
        "id": "chatcmpl-stub",
        "object": "chat.completion",
        "created": 0,
        "model": "stub",
        "choices": [{
            "index": 0,
            "message": message,
            "finish_reason": if message["tool_calls"].is_null() { "stop" } else { "tool_calls" },
        }],
        "usage": {"prompt_tokens": read, "completion_tokens": written, "total_tokens": read + written},
    }))
}

fn error(status: u16, code: Option<&str>, message: &str) -> Response {
    let status = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let error = json!({"message": message, "type": "stub", "param": null, "code": code});
    (status, Json(json!({"error": error}))).into_response()
}
