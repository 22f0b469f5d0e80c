//! `capo simulate`: models behind an OpenAI-compatible endpoint on this machine.
//!
//! Any tool that speaks the chat-completions format can be run against the simulated world this
//! way, and `capo` itself can be tested over real HTTP, with failures injected on purpose. A run
//! can be repeated: answers and faults depend on the seeds and on the requests, never on their
//! order of arrival.

mod command;
mod fault;
mod handlers;
mod log;
mod model_thread;
mod refusal;
mod wire;

use std::collections::HashMap;
use std::fmt::Display;
use std::fs::File;
use std::io::{self, Write as _};
use std::net::IpAddr;
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use capo_core::llm::Llm;
use capo_world::simulated::{Simulated, UnknownModel};
use futures::future::BoxFuture;
use tokio::net::TcpListener;
use tokio::sync::watch;

use crate::interrupt::Interrupts;
use crate::stderr::warn;

pub use self::command::{SimulateArgs, run};
pub use self::fault::{Fault, FaultError, FaultRates};
pub use self::log::Tally;

use self::handlers::{Counts, Endpoint, Seen};
use self::log::Log;
pub(crate) use self::model_thread::Served;
#[cfg(feature = "train")]
pub(crate) use self::model_thread::{Answer, Question};
use self::model_thread::{Cut, ModelThread};
pub(crate) use self::refusal::{Refusal, check_key, refusing_others};

/// How [`serve`] answers.
#[derive(Debug, Clone)]
pub struct ServeOptions {
    /// Names of the models on offer.
    pub models: Vec<String>,
    /// Seeds the answers to requests that bring no seed of their own.
    pub seed: u64,
    /// Real seconds per second the model says its answer took; 0 answers at once.
    pub latency: f64,
    /// Failures to inject.
    pub faults: FaultRates,
    /// Seed of the injected failures.
    pub fault_seed: u64,
    /// What an injected 429 asks the client to wait.
    pub retry_after: Duration,
    /// How long an injected timeout keeps the client waiting before it gets a 504.
    pub hang: Duration,
    /// The key a client must bring; `None` takes any or none.
    pub key: Option<String>,
    /// Where every request served is appended as one JSON line.
    pub log: Option<PathBuf>,
    /// How long connections may take to end once the server is to stop.
    pub grace: Duration,
}

impl Default for ServeOptions {
    /// No models, no latency, no failures, no key, no log, five seconds of grace.
    fn default() -> Self {
        Self {
            models: Vec::new(),
            seed: 0,
            latency: 0.0,
            faults: FaultRates::default(),
            fault_seed: 0,
            retry_after: Duration::from_secs(1),
            hang: Duration::from_mins(10),
            key: None,
            log: None,
            grace: Duration::from_secs(5),
        }
    }
}

/// Why the endpoint could not be served.
#[derive(Debug, thiserror::Error)]
pub enum SimulateError {
    /// The address is taken or not ours.
    #[error("cannot listen on {host}:{port}: {source}; choose another --port, or 0 for any free one")]
    Listen {
        /// The address.
        host: IpAddr,
        /// The port.
        port: u16,
        /// What the system said.
        source: io::Error,
    },
    /// The variable of `--require-key` holds nothing.
    #[error("--require-key: the environment variable {0} is not set; set it to the key to demand")]
    Key(String),
    /// A model cannot be opened.
    #[error("cannot serve the model {name:?}: {reason}")]
    Model {
        /// The name, as it was given.
        name: String,
        /// The reason in words, as it stands in the message.
        reason: String,
    },
    /// The thread of the models did not start.
    #[error("cannot start the thread of the models: {0}")]
    Thread(io::Error),
    /// The log cannot be written.
    #[error("cannot write the log {path}: {source}")]
    Log {
        /// Path of the file that could not be read or written.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// Accepting connections, or writing to standard output, failed.
    #[error("the server stopped: {0}")]
    Io(#[from] io::Error),
}

/// Serves models on a listener until `shutdown` ends, and returns the requests by outcome. What is
/// under way then may end within the grace of the options; a client that stalls keeps no server.
///
/// `open` makes the model of a name; it runs on a thread of its own, where the models stay, since
/// their futures are not `Send`.
///
/// # Errors
/// When a model cannot be opened, the log cannot be written, or the listener fails.
pub async fn serve<E: Display>(
    listener: TcpListener,
    options: ServeOptions,
    open: impl Fn(&str) -> Result<Rc<dyn Llm>, E> + Send + 'static,
    shutdown: impl Future<Output = ()> + Send + 'static,
) -> Result<Tally, SimulateError> {
    let open = move |name: &str| open(name).map(|model| Rc::new(Cut(model)) as Rc<dyn Served>);
    let at_once = std::future::pending();
    serve_announced(listener, options, open, || Ok(()), shutdown, at_once).await
}

/// Rewriters of trainings that stay open until others are asked, and questions that are answered at a time: each takes memory.
/// While another one is opened there is one more.
const OPEN: usize = 2;

/// Has a model of a name there to be opened, or says why it is not.
pub(crate) type Fetch = Box<dyn Fn(&str) -> BoxFuture<'static, Result<(), String>> + Send + Sync>;

/// The routes `/v1/chat/completions` and `/v1/models` of models, for a server that knows by itself who asks. `trained` opens
/// those that it offers to some callers, when they are asked: on a thread of their own, which they may keep busy, and once they
/// are there to be opened.
///
/// # Errors
/// When a model cannot be opened.
pub(crate) async fn routes<E: Display>(
    models: Vec<String>,
    open: impl Fn(&str) -> Result<Rc<dyn Served>, E> + Send + 'static,
    trained: Option<(Fetch, impl Fn(&str) -> Result<Rc<dyn Served>, E> + Send + 'static)>,
) -> Result<Router, SimulateError> {
    let thread = ModelThread::start(models.clone(), usize::MAX, open).await?;
    let trained = match trained {
        Some((fetch, open)) => Some((ModelThread::start(Vec::new(), OPEN, open).await?, fetch)),
        None => None,
    };
    let options = ServeOptions {
        models,
        ..ServeOptions::default()
    };
    // Nobody waits on purpose here, so that nobody needs to be told of the end.
    let (_, stopped) = watch::channel(false);
    let (log, seen) = (Arc::new(Log::default()), Counts::All(Seen::default()));
    Ok(Endpoint::new(options, thread, trained, log, seen, stopped).routes())
}

/// The simulated model of a name, in the world of a seed.
///
/// # Errors
/// When there is no such model.
pub(crate) fn simulated(name: &str, seed: u64) -> Result<Rc<dyn Served>, UnknownModel> {
    Simulated::new(name, seed).map(|model| Rc::new(Cut(Rc::new(model))) as Rc<dyn Served>)
}

/// Takes a port, for the runtime that will listen on it.
pub(crate) fn bind(host: IpAddr, port: u16) -> Result<std::net::TcpListener, SimulateError> {
    let listener = std::net::TcpListener::bind((host, port)).and_then(|listener| {
        listener.set_nonblocking(true)?;
        Ok(listener)
    });
    listener.map_err(|source| SimulateError::Listen { host, port, source })
}

/// The key held by the environment variable that `--require-key` names.
pub(crate) fn required_key(variable: Option<String>) -> Result<Option<String>, SimulateError> {
    let key = variable.map(|variable| {
        let key = std::env::var(&variable).ok().filter(|key| !key.is_empty());
        key.ok_or(SimulateError::Key(variable))
    });
    key.transpose()
}

/// Serves models until the command is interrupted: once to let requests under way end, for a few seconds; twice to
/// leave at once. The first line on standard output is `listening on http://HOST:PORT/v1`.
pub(crate) async fn serve_until_interrupted<E: Display>(
    (host, port): (IpAddr, u16),
    options: ServeOptions,
    open: impl Fn(&str) -> Result<Rc<dyn Served>, E> + Send + 'static,
) -> Result<Tally, SimulateError> {
    let listener = TcpListener::from_std(bind(host, port)?)?;
    let address = listener.local_addr()?;
    let announce = move || {
        let mut stdout = io::stdout().lock();
        writeln!(stdout, "listening on http://{address}/v1").and_then(|()| stdout.flush())
    };
    let interrupts = Interrupts::listen(|| {
        warn("interrupted: ending the requests under way; once more to leave at once");
    })?;
    let (asked, insisted) = (interrupts.clone(), interrupts.insisted());
    let shutdown = async move { asked.asked().await };
    serve_announced(listener, options, open, announce, shutdown, insisted).await
}

/// Serves models, with something to do once nothing can go wrong any more, and a way to stop without grace.
async fn serve_announced<E: Display>(
    listener: TcpListener,
    options: ServeOptions,
    open: impl Fn(&str) -> Result<Rc<dyn Served>, E> + Send + 'static,
    announce: impl FnOnce() -> io::Result<()>,
    shutdown: impl Future<Output = ()> + Send + 'static,
    at_once: impl Future<Output = ()>,
) -> Result<Tally, SimulateError> {
    let log_failed = |path: &PathBuf| {
        let path = path.clone();
        move |source| SimulateError::Log { path, source }
    };
    let file = match &options.log {
        Some(path) => Some(
            File::options()
                .create(true)
                .append(true)
                .open(path)
                .map_err(log_failed(path))?,
        ),
        None => None,
    };
    let log = Arc::new(Log::new(file));
    let models = ModelThread::start(options.models.clone(), usize::MAX, open).await?;
    announce()?;

    // Requests that hang on purpose, or wait for their latency, must not outlive the server.
    let (stop, stopped) = watch::channel(false);
    let (log_path, grace) = (options.log.clone(), options.grace);
    let mut overdue = stopped.clone();
    let seen = Counts::Bodies(HashMap::new());
    let app = Endpoint::new(options, models, None, Arc::clone(&log), seen, stopped).router();
    let graceful = axum::serve(listener, app).with_graceful_shutdown(async move {
        shutdown.await;
        let _ = stop.send(true);
    });
    tokio::select! {
        served = graceful => served?,
        () = at_once => {}
        // A client that sends half a request and no more would be waited for without end.
        () = async {
            let _ = overdue.wait_for(|&stop| stop).await;
            tokio::time::sleep(grace).await;
        } => {}
    }
    match (log.take_failure(), log_path) {
        (Some(source), Some(path)) => Err(SimulateError::Log { path, source }),
        _ => Ok(log.tally()),
    }
}
