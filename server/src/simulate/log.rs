//! The access log: requests served, counted and (optionally) written down line by line.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Write;
use std::sync::{Arc, Mutex, PoisonError};

use serde::Serialize;
use tracing::Span;

/// One line of the log: one request for a completion, in the order in which they ended.
#[derive(Debug, Clone, Default, Serialize)]
pub(super) struct Entry {
    /// Lower-case hex SHA-256 of the request body as it arrived.
    pub(super) body: String,
    /// The model asked for; absent when the body could not be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) model: Option<String>,
    /// The seed asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) seed: Option<u64>,
    /// How many requests with this very body came before, failed ones included.
    pub(super) attempt: u64,
    /// `ok`, the name of the injected fault, `refused` (the server's own error answer), or
    /// `abandoned` when the client left before the answer.
    pub(super) outcome: String,
    /// The HTTP status; absent when no answer was sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) status: Option<u16>,
    /// Tokens read, of answers that were paid for.
    pub(super) input_tokens: u64,
    /// Tokens written, of answers that were paid for.
    pub(super) output_tokens: u64,
}

/// Requests by outcome: `ok`, each injected fault by its name, `refused`, `abandoned`.
pub type Tally = BTreeMap<String, u64>;

/// Counts requests and writes them down.
#[derive(Debug, Default)]
pub(super) struct Log {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    tally: Tally,
    file: Option<File>,
    /// The first line that could not be written; later ones are not tried.
    failure: Option<std::io::Error>,
}

impl Log {
    /// Counts, and writes to `file` if there is one.
    pub(super) fn new(file: Option<File>) -> Self {
        Self {
            state: Mutex::new(State {
                file,
                ..State::default()
            }),
        }
    }

    /// Starts the record of one request.
    pub(super) fn begin(self: &Arc<Self>, body: String) -> Record {
        let entry = Entry {
            body,
            outcome: "abandoned".into(),
            ..Entry::default()
        };
        Record {
            log: Arc::clone(self),
            entry,
            span: Span::none(),
        }
    }

    /// The counts so far.
    pub(super) fn tally(&self) -> Tally {
        self.lock().tally.clone()
    }

    /// The error that ended the writing of the file, if one did.
    pub(super) fn take_failure(&self) -> Option<std::io::Error> {
        self.lock().failure.take()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        // Nothing that holds the lock leaves the state half changed.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self, entry: &Entry) {
        let line = serde_json::to_vec(entry).map(|mut line| {
            line.push(b'\n');
            line
        });
        let mut state = self.lock();
        *state.tally.entry(entry.outcome.clone()).or_default() += 1;
        // One write a line, so that a reader never sees half of one.
        let written = match (&mut state.file, line) {
            (None, _) => return,
            (Some(file), Ok(line)) => file.write_all(&line),
            (Some(_), Err(error)) => Err(error.into()),
        };
        if let Err(error) = written {
            state.file = None;
            state.failure = Some(error);
        }
    }
}

/// The record of one request, written when it is dropped: also when the client goes away and the
/// server stops working on its request half-way.
#[derive(Debug)]
pub(super) struct Record {
    log: Arc<Log>,
    pub(super) entry: Entry,
    /// The call to the model, for who collects traces.
    pub(super) span: Span,
}

impl Drop for Record {
    fn drop(&mut self) {
        self.log.write(&self.entry);
    }
}
