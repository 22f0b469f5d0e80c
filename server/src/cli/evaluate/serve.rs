//! `capo evaluate --serve`: prompts measured as a program asks for them.

use std::collections::VecDeque;
use std::io::{self, Write as _};
use std::net::{IpAddr, Ipv4Addr, TcpListener};
use std::sync::Arc;
use std::time::Duration;

use axum::extract::rejection::JsonRejection;
use axum::extract::{DefaultBodyLimit, State};
use axum::http::uri::Authority;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use capo_core::arena::{Batch, Halt};
use capo_core::control::Control;
use capo_core::evaluate::{Evaluator, Measured};
use capo_core::evidence::Case;
use capo_core::journal::{RolloutEvent, StoreError};
use capo_core::metric::Measurements;
use capo_core::score::{Limit, Limits};
use capo_core::study::{FailedExample, suggest};
use capo_core::summary::Spend;
use capo_core::workload::Split;
use indexmap::IndexMap;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::sync::{mpsc, oneshot};

use super::{CommandLine, Failure};
use crate::session::SessionError;
use crate::simulate::{Refusal, SimulateError, bind, check_key, refusing_others, required_key};

/// The port where none is named.
const PORT: u16 = 8323;

/// The largest request body read, in bytes.
const BODY_LIMIT: usize = 8 << 20;

/// Characters of a trace, where a request does not say how many.
const TRACE_CHARACTERS: usize = 2000;

/// How long answers may take to leave once the server is to stop.
const GRACE: Duration = Duration::from_millis(300);

/// Where programs ask.
#[derive(Debug, Clone, clap::Args)]
pub(super) struct ServeArgs {
    /// Measure prompts over HTTP as a program asks for them, instead of one prompt: docs/simulate.md.
    #[arg(long, conflicts_with_all = ["prompt", "split", "json"])]
    pub(super) serve: bool,
    /// Port to listen on; 0 takes any free one [default: 8323].
    #[arg(long, requires = "serve", conflicts_with = "prompt")]
    port: Option<u16>,
    /// Address to listen on [default: 127.0.0.1].
    #[arg(long, requires = "serve", conflicts_with = "prompt")]
    host: Option<IpAddr>,
    /// Demand the key held by this environment variable; without, any key or none will do.
    #[arg(long, value_name = "VARIABLE", requires = "serve", conflicts_with = "prompt")]
    require_key: Option<String>,
}

impl ServeArgs {
    /// The same, as it was typed.
    pub(super) fn typed(&self, line: CommandLine) -> CommandLine {
        line.flag("serve", self.serve)
            .option("port", self.port)
            .option("host", self.host)
            .option("require-key", self.require_key.as_ref())
    }

    /// Takes the port before anything is paid for.
    ///
    /// # Errors
    /// The port is taken, the key unset, or others than this machine could have prompts measured without one.
    pub(super) fn listen(&self) -> Result<Listening, Failure> {
        let failed = |error: SimulateError| Failure::new(error.to_string());
        let key = required_key(self.require_key.clone()).map_err(failed)?;
        let host = self.host.unwrap_or(IpAddr::V4(Ipv4Addr::LOCALHOST));
        if key.is_none() && !host.is_loopback() {
            return Err(Failure::usage(format!(
                "whoever reaches {host} could spend what the study's models cost; demand a key with --require-key VARIABLE"
            )));
        }
        let listener = bind(host, self.port.unwrap_or(PORT)).map_err(failed)?;
        Ok(Listening { listener, key })
    }
}

/// A port that is taken, and the key that is demanded there.
pub(super) struct Listening {
    listener: TcpListener,
    key: Option<String>,
}

/// What a program is told of the study.
#[derive(Serialize)]
struct StudyDescription {
    name: String,
    /// Of the workloads, in words.
    description: String,
    /// The seed prompt.
    prompt: String,
    /// The objective's metric.
    objective: String,
    constraints: IndexMap<String, Constraint>,
    examples: Examples,
    repeats: u32,
}

#[derive(Serialize)]
struct Constraint {
    threshold: f64,
    scale: f64,
}

#[derive(Serialize)]
struct Examples {
    optimize: Vec<String>,
    evaluate: Vec<String>,
}

/// A request to measure a prompt.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Request {
    prompt: String,
    /// The optimisation split unless stated.
    split: Option<Split>,
    /// All of the split unless stated.
    examples: Option<Vec<String>>,
    /// Most characters of each trace; none with 0.
    trace_characters: Option<usize>,
}

/// The answer to a [`Request`].
#[derive(Serialize)]
struct Answer {
    /// The prompt's id in the journal.
    candidate: String,
    /// By example in the order of the split, then by repeat.
    rollouts: Vec<Rollout>,
    /// Means over the examples by metric.
    means: IndexMap<String, f64>,
    /// Whether these satisfy every constraint; null where one is measured on none of the examples.
    feasible: Option<bool>,
    /// Names of the examples that could not be measured and count for nobody.
    left_out: Vec<String>,
    /// Of everything in the journal.
    usage: Spend,
}

#[derive(Serialize)]
struct Rollout {
    example: String,
    repeat: u32,
    measurements: Measurements,
    /// What happened; absent of held-out examples, which nobody is to learn from.
    #[serde(skip_serializing_if = "Option::is_none")]
    trace: Option<String>,
    /// Why it could not be made, where it counts as the worst value all the same; absent as a trace is.
    #[serde(skip_serializing_if = "Option::is_none")]
    failed: Option<String>,
}

type Reply = oneshot::Sender<Result<Answer, Refusal>>;

/// A request whose examples are known.
struct Pending {
    prompt: String,
    split: Split,
    batch: Batch,
    trace_characters: usize,
    reply: Reply,
}

/// What the routes share.
struct Shared {
    requests: mpsc::UnboundedSender<(Request, Reply)>,
    description: Value,
    key: Option<String>,
    /// Whether this machine alone can ask.
    is_local: bool,
}

/// Measures what is asked for until the run is interrupted, and closes the journal. The first line on standard output is
/// `listening on http://HOST:PORT`, once thresholds relative to the seed prompt are known; what stopped their measurement
/// is returned.
///
/// # Errors
/// When the journal cannot be written, or the port not be listened on.
pub(super) async fn serve(
    evaluator: Evaluator,
    listening: Listening,
    control: &Control,
) -> Result<Option<Halt>, SessionError> {
    let limits = match evaluator.limits().await {
        Ok(limits) => limits,
        Err(Halt::Store(error)) => return Err(SessionError::Store(error)),
        Err(halt) => {
            evaluator.close().await.map_err(SessionError::Store)?;
            return Ok(Some(halt));
        }
    };
    let Listening { listener, key } = listening;
    let address = listener.local_addr().map_err(SessionError::Listen)?;
    let listener = tokio::net::TcpListener::from_std(listener).map_err(SessionError::Listen)?;
    let (requests, inbox) = mpsc::unbounded_channel();
    let app = router(Shared {
        requests,
        description: json!(description(&evaluator, &limits)),
        key,
        is_local: address.ip().is_loopback(),
    });
    let (stop, stopped) = oneshot::channel::<()>();
    let served = axum::serve(listener, app).with_graceful_shutdown(async move {
        let _ = stopped.await;
    });
    let serving = tokio::spawn(served.into_future());
    {
        let mut stdout = io::stdout().lock();
        // Whoever has closed it may know the port.
        let _ = writeln!(stdout, "listening on http://{address}").and_then(|()| stdout.flush());
    }
    let measured = measure_all(&evaluator, inbox, control).await;
    drop(stop);
    // Answers leave; a client that stalls keeps nobody.
    let _ = tokio::time::timeout(GRACE, serving).await;
    evaluator.close().await.map_err(SessionError::Store)?;
    measured.map(|()| None).map_err(SessionError::Store)
}

fn description(evaluator: &Evaluator, limits: &Limits) -> StudyDescription {
    let constraint = |(metric, limit): (&String, &Limit)| {
        let Limit { threshold, scale } = *limit;
        (metric.clone(), Constraint { threshold, scale })
    };
    let study = evaluator.study();
    StudyDescription {
        name: study.study.name,
        description: evaluator.description(),
        prompt: evaluator.seed_prompt().to_string(),
        objective: study.objective.metric,
        constraints: limits.iter().map(constraint).collect(),
        examples: Examples {
            optimize: evaluator.examples(Split::Optimize),
            evaluate: evaluator.examples(Split::Evaluate),
        },
        repeats: study.study.repeats,
    }
}

/// Answers requests until the run is interrupted. Those that wait for the same prompt are measured together, unless
/// failing examples are left out: which ones depends on what is measured together.
async fn measure_all(
    evaluator: &Evaluator,
    mut inbox: mpsc::UnboundedReceiver<(Request, Reply)>,
    control: &Control,
) -> Result<(), StoreError> {
    let joins = evaluator.study().failures.example != FailedExample::LeaveOut;
    let mut waiting = VecDeque::new();
    loop {
        if control.is_interrupted() {
            return Ok(());
        }
        if waiting.is_empty() {
            tokio::select! {
                biased;
                () = control.interrupted() => return Ok(()),
                request = inbox.recv() => match request {
                    Some((request, reply)) => waiting.extend(known(evaluator, request, reply)),
                    None => return Ok(()),
                },
            }
        }
        while let Ok((request, reply)) = inbox.try_recv() {
            waiting.extend(known(evaluator, request, reply));
        }
        // Nobody pays for a client that has gone away.
        waiting.retain(|pending: &Pending| !pending.reply.is_closed());
        let Some(first) = waiting.pop_front() else {
            continue;
        };
        let is_alike = |other: &Pending| joins && other.prompt == first.prompt && other.split == first.split;
        let (alike, others): (VecDeque<_>, VecDeque<_>) = waiting.into_iter().partition(is_alike);
        waiting = others;
        let mut all = first.batch.clone();
        for pending in &alike {
            all.join(&pending.batch);
        }
        // What is in the journal is answered whatever stopped the others, and what failed may be another's examples.
        let is_joined = !alike.is_empty();
        let may_be_measured = |halt: &Halt, pending: &Pending| {
            let is_of_others = is_joined && matches!(halt, Halt::Failed { .. });
            is_of_others || evaluator.is_measured(&pending.prompt, &pending.batch)
        };
        let mut stopped = evaluator.measure(&first.prompt, &all).await.err();
        for pending in std::iter::once(first).chain(alike) {
            let answer = match &stopped {
                Some(halt) if !may_be_measured(halt, &pending) => Err(halt.clone()),
                _ => evaluator.measure(&pending.prompt, &pending.batch).await,
            };
            if let Err(halt) = &answer {
                stopped.get_or_insert_with(|| halt.clone());
            }
            let answer = answer.map(|measured| answered(evaluator, measured, &pending));
            let _ = pending.reply.send(answer.map_err(|halt| refused(&halt)));
        }
        if let Some(Halt::Store(error)) = stopped {
            return Err(error);
        }
        // While models in this process answer at once, nothing else gets its turn.
        tokio::task::yield_now().await;
    }
}

/// The request with its examples, unless it cannot be fulfilled, which the client is told.
fn known(evaluator: &Evaluator, request: Request, reply: Reply) -> Option<Pending> {
    let split = request.split.unwrap_or(Split::Optimize);
    let batch = if request.prompt.trim().is_empty() {
        Err(Refusal::field("prompt", "The prompt is empty."))
    } else {
        let batch = evaluator.batch(split, request.examples.as_deref());
        batch.map_err(|error| Refusal::field("examples", unknown(evaluator, split, &error.0)))
    };
    let batch = batch.and_then(|batch| {
        if batch.is_empty() {
            return Err(Refusal::field(
                "examples",
                "There is no example to measure it on.",
            ));
        }
        Ok(batch)
    });
    match batch {
        Ok(batch) => Some(Pending {
            prompt: request.prompt,
            split,
            batch,
            trace_characters: request.trace_characters.unwrap_or(TRACE_CHARACTERS),
            reply,
        }),
        Err(refusal) => {
            let _ = reply.send(Err(refusal));
            None
        }
    }
}

/// What is said of a name that is no example of a split.
fn unknown(evaluator: &Evaluator, split: Split, name: &str) -> String {
    let (this, other, other_split) = match split {
        Split::Optimize => ("optimize", "evaluate", Split::Evaluate),
        Split::Evaluate => ("evaluate", "optimize", Split::Optimize),
    };
    let hint = if evaluator.examples(other_split).iter().any(|known| known == name) {
        format!("it is one of the split \"{other}\"")
    } else {
        "GET /study lists them".to_owned()
    };
    format!("There is no example {name:?} in the split \"{this}\"; {hint}.")
}

fn answered(evaluator: &Evaluator, measured: Measured, pending: &Pending) -> Answer {
    let shows = pending.split == Split::Optimize && pending.trace_characters > 0;
    let feasible = measured.is_feasible();
    let rollout = |event: RolloutEvent| {
        let trace = || {
            let case = Case::new(
                &event.example,
                &event.measurements,
                &event.trace,
                pending.trace_characters,
            );
            case.text
        };
        Rollout {
            trace: shows.then(trace),
            example: evaluator.name(&event.workload, &event.example),
            repeat: event.repeat,
            measurements: event.measurements,
            failed: event.failed.filter(|_| pending.split == Split::Optimize),
        }
    };
    let means = measured.estimates.into_iter();
    Answer {
        candidate: measured.candidate.to_string(),
        rollouts: measured.rollouts.into_iter().map(rollout).collect(),
        means: means.map(|(metric, estimate)| (metric, estimate.mean)).collect(),
        feasible,
        left_out: measured.left_out,
        usage: evaluator.state(|state| {
            let ledger = state.ledger();
            Spend::new(ledger.rollouts(), ledger.usage())
        }),
    }
}

/// What a client is told of what stopped a measurement; what was answered by then is in the journal.
fn refused(halt: &Halt) -> Refusal {
    match halt {
        Halt::Budget(_) => Refusal::new(
            StatusCode::PAYMENT_REQUIRED,
            "insufficient_quota",
            format!("{halt}; raise it under [budget] of the study, and serve it again."),
        ),
        Halt::Interrupted => Refusal::stopping(),
        Halt::Failed { .. } => Refusal::new(StatusCode::BAD_GATEWAY, "server_error", halt.to_string()),
        Halt::Store(_) | Halt::Replay(_) => Refusal::internal(halt.to_string()),
    }
}

impl Shared {
    /// Lets programs in, and no page: none of another origin, nor one whose name is made to lead here.
    fn authorize(&self, headers: &HeaderMap) -> Result<(), Refusal> {
        let host = headers.get(header::HOST).and_then(|host| host.to_str().ok());
        let host = host.and_then(|host| host.parse::<Authority>().ok());
        let is_own = host.is_some_and(|host| {
            let name = host.host().trim_matches(['[', ']']);
            name == "localhost" || name.parse().is_ok_and(|address: IpAddr| address.is_loopback())
        });
        if headers.contains_key(header::ORIGIN) || (self.is_local && !is_own) {
            return Err(Refusal::unreadable(
                StatusCode::FORBIDDEN,
                "Programs may ask here, and no page of a browser.",
            ));
        }
        check_key(self.key.as_deref(), headers)
    }
}

fn router(shared: Shared) -> Router {
    let routes = Router::new()
        .route("/study", get(study))
        .route("/measure", post(measure))
        .route("/health", get(async || Json(json!({"status": "ok"}))));
    refusing_others(routes, "GET /study, POST /measure or GET /health")
        .layer(DefaultBodyLimit::max(BODY_LIMIT))
        .with_state(Arc::new(shared))
}

async fn study(State(shared): State<Arc<Shared>>, headers: HeaderMap) -> Result<Response, Refusal> {
    shared.authorize(&headers)?;
    Ok(Json(&shared.description).into_response())
}

async fn measure(
    State(shared): State<Arc<Shared>>,
    headers: HeaderMap,
    request: Result<Json<Request>, JsonRejection>,
) -> Result<Response, Refusal> {
    shared.authorize(&headers)?;
    let Json(request) =
        request.map_err(|error| Refusal::unreadable(error.status(), suggest(&error.body_text())))?;
    let (reply, answer) = oneshot::channel();
    let sent = shared.requests.send((request, reply));
    sent.map_err(|_| Refusal::stopping())?;
    let answer = answer.await.map_err(|_| Refusal::stopping())?;
    Ok(Json(answer?).into_response())
}
