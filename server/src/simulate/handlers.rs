//! The routes: what a request meets on its way to a model and back.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use axum::body::{Body, Bytes};
use axum::extract::rejection::BytesRejection;
use axum::extract::{DefaultBodyLimit, Path, State};
use axum::http::{HeaderMap, HeaderValue, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Extension, Json, Router};
use capo_core::ids::sha256_hex;
use capo_core::llm::AssistantMessage;
use capo_core::random::Streams;
use capo_team::spans;
use capo_team::trainings::Offered;
use serde_json::{Value, json};
use tokio::sync::watch;
use tower_http::cors::{AllowHeaders, Any, CorsLayer};

use super::fault::Fault;
use super::log::{Log, Record};
use super::model_thread::{ModelThread, Question, unopened};
use super::refusal::{Refusal, check_key, refusing_others};
use super::wire::{self, Completion, Heading};
use super::{Fetch, ServeOptions};

/// The largest request body read, in bytes: ample for a million tokens.
const BODY_LIMIT: usize = 32 << 20;

/// Everything the routes share.
pub(super) struct Endpoint {
    options: ServeOptions,
    models: ModelThread,
    /// Where rewriters answer that are offered to some callers, and what they need before.
    trained: Option<(ModelThread, Fetch)>,
    log: Arc<Log>,
    seen: Mutex<Counts>,
    stopped: watch::Receiver<bool>,
    created: u64,
}

/// How often something has been sent and answered.
#[derive(Clone, Copy, Default)]
pub(super) struct Seen {
    attempts: u64,
    answers: u64,
}

/// What requests are counted by.
pub(super) enum Counts {
    /// By body, of which the hash is kept: what is drawn for one depends on no other.
    Bodies(HashMap<String, Seen>),
    /// All together: nothing is kept, however long a server lives.
    All(Seen),
}

impl Endpoint {
    pub(super) fn new(
        options: ServeOptions,
        models: ModelThread,
        trained: Option<(ModelThread, Fetch)>,
        log: Arc<Log>,
        seen: Counts,
        stopped: watch::Receiver<bool>,
    ) -> Self {
        Self {
            options,
            models,
            trained,
            log,
            seen: Mutex::new(seen),
            stopped,
            created: now(),
        }
    }

    pub(super) fn router(self) -> Router {
        // Any page may ask. `Authorization` is not covered by a wildcard, hence the mirror.
        let cors = CorsLayer::new()
            .allow_origin(Any)
            .allow_methods(Any)
            .allow_headers(AllowHeaders::mirror_request())
            .expose_headers(Any)
            .allow_private_network(true)
            .max_age(Duration::from_hours(1));
        let health = get(async || Json(json!({"status": "ok"})));
        let routes = self.routes().route("/health", health);
        refusing_others(routes, "POST /v1/chat/completions, GET /v1/models or GET /health").layer(cors)
    }

    /// What concerns models.
    pub(super) fn routes(self) -> Router {
        Router::new()
            .route("/v1/chat/completions", post(complete))
            .route("/v1/models", get(list_models))
            .route("/v1/models/{*id}", get(show_model))
            .layer(DefaultBodyLimit::max(BODY_LIMIT))
            .with_state(Arc::new(self))
    }

    fn check_key(&self, headers: &HeaderMap) -> Result<(), Refusal> {
        check_key(self.options.key.as_deref(), headers)
    }

    /// Looks up and changes what was counted of a body.
    fn count(&self, body: &str, change: impl FnOnce(&mut Seen) -> u64) -> u64 {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        change(match &mut *seen {
            Counts::Bodies(bodies) => bodies.entry(body.to_owned()).or_default(),
            Counts::All(seen) => seen,
        })
    }

    /// Counts one more attempt at this body and returns how many came before.
    fn attempt(&self, body: &str) -> u64 {
        self.count(body, |seen| {
            seen.attempts += 1;
            seen.attempts - 1
        })
    }

    /// The seed of an answer: the client's, else one of ours. As with a real provider, asking
    /// again without a seed draws again, unless the temperature is 0.
    fn answer_seed(&self, completion: &Completion, body: &str) -> u64 {
        completion.seed.unwrap_or_else(|| {
            let answers = self.count(body, |seen| {
                seen.answers += 1;
                seen.answers - 1
            });
            let is_certain = completion.wishes.temperature == Some(0.0);
            let index = if is_certain { 0 } else { answers };
            Streams::new(self.options.seed).number(&format!("answer {body}"), 0, index)
        })
    }

    /// The thread on which a model answers, its version and what it needs before, for a caller to whom these are offered.
    fn find(&self, model: &str, offered: &Offered) -> Result<(&ModelThread, i64, Option<&Fetch>), Refusal> {
        if self.options.models.iter().any(|name| name == model) {
            return Ok((&self.models, 0, None));
        }
        let found = offered.0.iter().find(|one| one.name == model);
        match (&self.trained, found) {
            (Some((trained, fetch)), Some(found)) => Ok((trained, found.ended_at, Some(fetch))),
            _ => Err(Refusal::unknown_model(model, &self.names(offered))),
        }
    }

    /// The names of all models that such a caller may ask.
    fn names(&self, offered: &Offered) -> Vec<String> {
        let offered = offered.0.iter().map(|one| &one.name);
        self.options.models.iter().chain(offered).cloned().collect()
    }

    /// A model as clients list it.
    fn described(&self, id: &str) -> Value {
        json!({"id": id, "object": "model", "created": self.created, "owned_by": "capo"})
    }

    /// Waits; ends early when the server stops.
    async fn wait(&self, duration: Duration) {
        if !duration.is_zero() {
            let mut stopped = self.stopped.clone();
            let _ = tokio::time::timeout(duration, stopped.wait_for(|&stop| stop)).await;
        }
    }

    async fn answer(
        &self,
        headers: &HeaderMap,
        offered: &Offered,
        body: Result<Bytes, BytesRejection>,
        record: &mut Record,
        hash: &str,
    ) -> Result<Response, Refusal> {
        self.check_key(headers)?;
        let body = body.map_err(|error| Refusal::unreadable(error.status(), error.body_text()))?;
        let completion = wire::read(&body)?;
        record.entry.model = Some(completion.model.clone());
        record.entry.seed = completion.seed;
        let (thread, version, fetch) = self.find(&completion.model, offered)?;
        record.span = spans::call_here(&completion.model);

        let attempt = self.attempt(hash);
        record.entry.attempt = attempt;
        let fault = self.options.faults.draw(self.options.fault_seed, hash, attempt);
        match fault {
            Some(Fault::Status(status)) => {
                record.entry.outcome = Fault::Status(status).to_string();
                return Err(Refusal::injected(status, self.options.retry_after));
            }
            Some(Fault::Timeout) => {
                record.entry.outcome = Fault::Timeout.to_string();
                self.wait(self.options.hang).await;
                return Err(Refusal::hung());
            }
            Some(Fault::Malformed | Fault::Empty) | None => {}
        }

        if let Some(fetch) = fetch {
            let fetched = fetch(&completion.model).await;
            fetched.map_err(|reason| unopened(&completion.model, &reason))?;
        }
        let question = Question {
            model: completion.model.clone(),
            version,
            seed: Some(self.answer_seed(&completion, hash)),
            messages: completion.messages,
            tools: completion.tools,
            wishes: completion.wishes,
        };
        let answer = thread.ask(question).await;
        let answer = answer.ok_or_else(|| {
            Refusal::internal(format!(
                "The model {} broke down on this request.",
                completion.model
            ))
        })?;
        let mut answer = answer?;
        if fault == Some(Fault::Empty) {
            answer.message = AssistantMessage::default();
            answer.usage.output_tokens = 0;
        } else {
            wire::shape(&mut answer, &completion.form)?;
        }
        let seconds = answer.usage.seconds;
        self.wait(Duration::try_from_secs_f64(seconds * self.options.latency).unwrap_or(Duration::MAX))
            .await;

        record.entry.outcome = fault.map_or_else(|| "ok".into(), |fault| fault.to_string());
        record.entry.input_tokens = answer.usage.input_tokens;
        record.entry.output_tokens = answer.usage.output_tokens;
        let id = format!("chatcmpl-{}-{attempt}", &record.entry.body[..24]);
        let heading = Heading {
            id: &id,
            created: now(),
            model: &completion.model,
        };
        let (mut body, content_type) = match completion.stream {
            None => (wire::whole(heading, &answer), "application/json"),
            Some(tells_usage) => (
                wire::chunks(heading, &answer, tells_usage),
                "text/event-stream; charset=utf-8",
            ),
        };
        if fault == Some(Fault::Malformed) {
            // Every character before the cut is ASCII structure or part of the answer; cutting at
            // a character boundary keeps the body valid UTF-8 and invalid JSON.
            body.truncate(body.floor_char_boundary(body.len() / 2));
        }
        let mut response = Response::new(Body::from(body));
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type));
        headers.insert(
            "openai-processing-ms",
            HeaderValue::from((seconds * 1000.0).round() as u64),
        );
        Ok(response)
    }
}

async fn complete(
    State(endpoint): State<Arc<Endpoint>>,
    offered: Option<Extension<Offered>>,
    headers: HeaderMap,
    body: Result<Bytes, BytesRejection>,
) -> Response {
    let offered = of_request(offered);
    let hash = sha256_hex(body.as_deref().unwrap_or_default());
    let mut record = endpoint.log.begin(hash.clone());
    let response = match endpoint
        .answer(&headers, &offered, body, &mut record, &hash)
        .await
    {
        Ok(response) => response,
        Err(refusal) => {
            if record.entry.outcome == "abandoned" {
                record.entry.outcome = "refused".into();
            }
            refusal.into_response()
        }
    };
    let (status, entry) = (response.status(), &mut record.entry);
    entry.status = Some(status.as_u16());
    let tokens = [entry.input_tokens, entry.output_tokens];
    spans::ended(&record.span, Some(status), tokens);
    response
}

/// What is offered to a caller; nothing to those of `capo simulate`.
fn of_request(offered: Option<Extension<Offered>>) -> Offered {
    offered.map(|Extension(offered)| offered).unwrap_or_default()
}

async fn list_models(
    State(endpoint): State<Arc<Endpoint>>,
    offered: Option<Extension<Offered>>,
    headers: HeaderMap,
) -> Result<Response, Refusal> {
    endpoint.check_key(&headers)?;
    let models = endpoint.names(&of_request(offered));
    let data: Vec<_> = models.iter().map(|id| endpoint.described(id)).collect();
    Ok(Json(json!({"object": "list", "data": data})).into_response())
}

async fn show_model(
    State(endpoint): State<Arc<Endpoint>>,
    Path(id): Path<String>,
    offered: Option<Extension<Offered>>,
    headers: HeaderMap,
) -> Result<Response, Refusal> {
    endpoint.check_key(&headers)?;
    endpoint.find(&id, &of_request(offered))?;
    Ok(Json(endpoint.described(&id)).into_response())
}

/// Seconds since the Unix epoch.
fn now() -> u64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |elapsed| elapsed.as_secs())
}
