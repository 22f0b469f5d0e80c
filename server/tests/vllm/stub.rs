//! A vLLM server by script: it knows adapters by name and place, and keeps a log of calls.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard};

use axum::extract::{Path as Place, State};
use axum::http::{HeaderMap, StatusCode};
use axum::routing::{get, post};
use axum::{Json, Router};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::runtime::Runtime;

/// The key it wants. No file and no error may hold it.
pub(crate) const KEY: &str = "sk-vllm-0123456789abcdef";

/// What it was asked.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Call {
    Load {
        name: String,
        path: String,
        weights: Vec<u8>,
    },
    Unload(String),
    Complete(Value),
}

/// How it behaves.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) enum Fault {
    #[default]
    None,
    /// It was started without runtime updating.
    NoLoading,
    /// It does not know `return_token_ids`.
    NoTokens,
    /// It answers so many completions and refuses the others.
    Completions(usize),
    /// It answers so many completions and is busy then.
    Busy(usize),
    /// It answers so many completions and says nothing to the others.
    Silent(usize),
    /// It has no room for requests with every third seed.
    NoRoom,
}

#[derive(Default)]
struct ServerState {
    loaded: BTreeMap<String, String>,
    calls: Vec<Call>,
    /// Completions that it was asked for and said nothing to.
    unanswered: usize,
    fault: Fault,
}

impl ServerState {
    fn answered(&self) -> usize {
        let is_completion = |call: &&Call| matches!(call, Call::Complete(_));
        self.calls.iter().filter(is_completion).count()
    }
}

type Shared = Arc<Mutex<ServerState>>;

/// A running server, which ends with this.
pub(crate) struct Stub {
    state: Shared,
    pub(crate) base_url: String,
    _runtime: Runtime,
}

impl Stub {
    pub(crate) fn start(fault: Fault) -> Self {
        let state: Shared = Arc::new(Mutex::new(ServerState {
            fault,
            ..ServerState::default()
        }));
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .unwrap();
        let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).unwrap();
        let base_url = format!("http://{}/v1", listener.local_addr().unwrap());
        let mut router = Router::new()
            .route("/v1/models", get(models))
            .route("/v1/completions", post(complete));
        if fault != Fault::NoLoading {
            router = router.route("/v1/{change}", post(change));
        }
        let router = router.with_state(state.clone());
        runtime.spawn(async move { axum::serve(listener, router).await });
        Self {
            state,
            base_url,
            _runtime: runtime,
        }
    }

    fn state(&self) -> MutexGuard<'_, ServerState> {
        self.state.lock().unwrap()
    }

    /// What it was asked so far.
    pub(crate) fn calls(&self) -> Vec<Call> {
        self.state().calls.clone()
    }

    /// Completions that it was asked for and said nothing to.
    pub(crate) fn unanswered(&self) -> usize {
        self.state().unanswered
    }

    /// Has an adapter already.
    pub(crate) fn has(&self, name: &str) {
        self.state().loaded.insert(name.to_owned(), String::new());
    }

    /// The adapters that are loaded.
    pub(crate) fn loaded(&self) -> Vec<String> {
        self.state().loaded.keys().cloned().collect()
    }
}

type Reply = (StatusCode, Json<Value>);

fn refused(status: u16, message: &str) -> Reply {
    let status = StatusCode::from_u16(status).unwrap();
    (
        status,
        Json(json!({ "error": { "message": message, "code": status.as_u16() } })),
    )
}

fn check_key(headers: &HeaderMap) -> Result<(), Reply> {
    match headers.get("authorization").and_then(|value| value.to_str().ok()) {
        Some(value) if value == format!("Bearer {KEY}") => Ok(()),
        found => Err(refused(401, &format!("Unauthorized: {found:?} is not {KEY}"))),
    }
}

async fn models(State(state): State<Shared>, headers: HeaderMap) -> Result<Json<Value>, Reply> {
    check_key(&headers)?;
    let state = state.lock().unwrap();
    let mut cards = vec![json!({ "id": "base", "root": "base" })];
    let adapters = state.loaded.iter();
    cards.extend(adapters.map(|(name, path)| json!({ "id": name, "root": path, "parent": "base" })));
    Ok(Json(json!({ "object": "list", "data": cards })))
}

async fn change(
    State(state): State<Shared>,
    Place(change): Place<String>,
    headers: HeaderMap,
    Json(body): Json<Value>,
) -> Result<String, Reply> {
    check_key(&headers)?;
    let mut state = state.lock().unwrap();
    let name = body["lora_name"].as_str().unwrap().to_owned();
    if change == "unload_lora_adapter" {
        state.calls.push(Call::Unload(name.clone()));
        return match state.loaded.remove(&name) {
            Some(_) => Ok("Success".to_owned()),
            None => Err(refused(
                404,
                &format!("The lora adapter '{name}' cannot be found."),
            )),
        };
    }
    assert_eq!(change, "load_lora_adapter");
    let path = body["lora_path"].as_str().unwrap().to_owned();
    let weights = std::fs::read(Path::new(&path).join("adapter_model.safetensors"));
    let Ok(weights) = weights else {
        return Err(refused(
            404,
            &format!("Loading lora {name} failed: No adapter found for {path}"),
        ));
    };
    if state.loaded.contains_key(&name) {
        return Err(refused(
            400,
            &format!("The lora adapter '{name}' has already been loaded."),
        ));
    }
    state.loaded.insert(name.clone(), path.clone());
    state.calls.push(Call::Load { name, path, weights });
    Ok("Success".to_owned())
}

/// A rewrite by seed: some letters and a stop token, or letters to the end.
async fn complete(
    State(state): State<Shared>,
    headers: HeaderMap,
    Json(body): Json<Value>,
) -> Result<Json<Value>, Reply> {
    check_key(&headers)?;
    let is_silent = {
        let mut state = state.lock().unwrap();
        let is_silent = matches!(state.fault, Fault::Silent(most) if state.answered() >= most);
        state.unanswered += usize::from(is_silent);
        is_silent
    };
    if is_silent {
        std::future::pending::<()>().await;
    }
    let mut state = state.lock().unwrap();
    let name = body["model"].as_str().unwrap();
    if !state.loaded.contains_key(name) {
        return Err(refused(404, &format!("The model `{name}` does not exist.")));
    }
    let answered = state.answered();
    if matches!(state.fault, Fault::Completions(most) if answered >= most) {
        return Err(refused(400, "the engine is dead"));
    }
    if matches!(state.fault, Fault::Busy(most) if answered >= most) {
        return Err(refused(503, "too many requests wait already"));
    }
    let seed = body["seed"].as_u64().unwrap() as usize;
    if state.fault == Fault::NoRoom && seed % 3 == 1 {
        let said = "This model's maximum context length is 8 tokens. However, you requested more.";
        return Err(refused(400, said));
    }
    let most = body["max_tokens"].as_u64().unwrap() as usize;
    let prompt = body["prompt"].as_array().unwrap();
    let length = if seed.is_multiple_of(3) {
        most
    } else {
        8 + seed % 20
    };
    let letter = |place: usize| prompt[(seed + place) % prompt.len()].clone();
    let mut tokens: Vec<Value> = (0..length).map(letter).collect();
    let stops = body["stop_token_ids"].as_array().unwrap();
    tokens.retain(|token| !stops.contains(token));
    tokens.resize(length, prompt[1].clone());
    let is_whole = length < most;
    if is_whole {
        tokens.push(stops[0].clone());
    }
    let mut choice = json!({
        "index": 0, "text": "…", "finish_reason": if is_whole { "stop" } else { "length" },
        "prompt_token_ids": prompt, "token_ids": tokens,
    });
    if state.fault == Fault::NoTokens {
        choice = json!({ "index": 0, "text": "…", "finish_reason": "stop" });
    }
    state.calls.push(Call::Complete(body.clone()));
    Ok(Json(
        json!({ "id": "c", "object": "text_completion", "choices": [choice] }),
    ))
}
