//! What a person is told while a provider does not answer.

use std::cell::Cell;
use std::fmt;
use std::rc::Rc;
use std::time::Duration;

use capo_core::llm::FailureKind;
use serde::{Deserialize, Serialize};

use crate::failure::Failure;
use crate::time::Instant;

/// Who is told of waits for providers. It is called in the middle of calls and must not wait itself.
pub type Observer = Rc<dyn Fn(&Notice)>;

/// A word about a provider's calls.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Notice {
    /// A call begins to wait.
    Waiting(Wait),
    /// A call that began after the last wait was answered: what was said of waiting is over.
    Answered {
        /// Provider and model, as [`Wait::model`].
        model: String,
        /// Where it is, as [`Wait::host`].
        host: String,
    },
}

/// A wait before a call is tried again, or before any call of a model is made. Its `Display` is the
/// sentence for people, without a capital letter and a full stop.
///
/// ```
/// use capo_core::llm::FailureKind;
/// use capo_models::Wait;
///
/// let mut wait = Wait {
///     model: "openai-compatible/qwen".into(),
///     provider: "127.0.0.1:9".into(),
///     host: "127.0.0.1:9".into(),
///     kind: FailureKind::Unreachable,
///     message: "cannot reach http://127.0.0.1:9: connection refused".into(),
///     seconds: 3.2,
///     is_asked: false,
///     next_try: Some((3, 6)),
/// };
/// assert_eq!(wait.to_string(), "cannot reach 127.0.0.1:9: trying again in 4 s, 3 of 6");
/// wait = Wait { provider: "openai".into(), kind: FailureKind::RateLimit, seconds: 20.0, is_asked: true, ..wait };
/// assert_eq!(wait.to_string(), "openai asked to wait 20 s (rate limit), 3 of 6");
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Wait {
    /// Provider and model, such as `openai/gpt-5-mini`.
    pub model: String,
    /// What sentences call the provider: its name, or the host of a server that has none.
    pub provider: String,
    /// Host and port of the base URL, the port only where one is stated.
    pub host: String,
    /// What kind of failure it is that makes the call wait.
    pub kind: FailureKind,
    /// What went wrong, without keys; at most 600 characters.
    pub message: String,
    /// How long the wait takes from now.
    pub seconds: f64,
    /// Whether the provider asked for just this wait.
    pub is_asked: bool,
    /// Which try comes next, from 2, and how many the call has at most. `None` where the wait is for
    /// all calls that are still to be made.
    pub next_try: Option<(u32, u32)>,
}

/// The most characters of a provider's words in a sentence.
const LONGEST_WORDS: usize = 100;

impl fmt::Display for Wait {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { provider, host, .. } = self;
        // Nobody is told that something happens in 0 s.
        let seconds = self.seconds.ceil().max(1.0);
        let why = match self.kind {
            FailureKind::RateLimit => "rate limit",
            _ => &self.words(),
        };
        if self.is_asked {
            write!(f, "{provider} asked to wait {seconds} s ({why})")?;
        } else {
            match self.kind {
                FailureKind::Unreachable => write!(f, "cannot reach {host}")?,
                FailureKind::RateLimit => write!(f, "{provider} asked to slow down ({why})")?,
                FailureKind::Timeout => write!(f, "{provider} did not answer in time")?,
                FailureKind::Malformed => write!(f, "{provider} gave no usable answer ({why})")?,
                _ => write!(f, "{provider} failed ({why})")?,
            }
            write!(f, ": trying again in {seconds} s")?;
        }
        match self.next_try {
            Some((next, most)) => write!(f, ", {next} of {most}"),
            None => Ok(()),
        }
    }
}

impl Wait {
    /// The beginning of the message.
    fn words(&self) -> String {
        let line = self.message.lines().next().unwrap_or_default();
        match line.char_indices().nth(LONGEST_WORDS) {
            Some((end, _)) => format!("{}…", &line[..end]),
            None => line.to_owned(),
        }
    }
}

/// The waits of one client, and who is told of them.
#[derive(Clone)]
pub(crate) struct Notices {
    pub(crate) observer: Option<Observer>,
    pub(crate) model: String,
    pub(crate) provider: String,
    pub(crate) host: String,
}

/// When somebody was last told that calls of a model wait, until one is answered.
#[derive(Debug, Default)]
pub(crate) struct Trouble(Cell<Option<Instant>>);

impl Notices {
    /// A call waits before it is tried again.
    pub(crate) fn waiting(
        &self,
        trouble: &Trouble,
        failure: &Failure,
        message: &str,
        wait: Duration,
        next_try: (u32, u32),
    ) {
        self.tell(trouble, || Wait {
            kind: failure.kind,
            message: message.to_owned(),
            seconds: wait.as_secs_f64(),
            is_asked: failure.wait.is_some(),
            next_try: Some(next_try),
            ..self.wait()
        });
    }

    /// The provider answered, and asked that the next calls wait.
    pub(crate) fn held(&self, trouble: &Trouble, wait: Duration) {
        // Those that are over before they are read happen all the time.
        if wait >= Duration::from_secs(1) {
            self.tell(trouble, || Wait {
                seconds: wait.as_secs_f64(),
                is_asked: true,
                ..self.wait()
            });
        }
    }

    /// A try that started at `started` was answered.
    pub(crate) fn answered(&self, trouble: &Trouble, started: Instant) {
        if let Some(observer) = &self.observer
            && trouble.0.get().is_some_and(|since| since <= started)
        {
            trouble.0.set(None);
            observer(&Notice::Answered {
                model: self.model.clone(),
                host: self.host.clone(),
            });
        }
    }

    fn tell(&self, trouble: &Trouble, wait: impl FnOnce() -> Wait) {
        if let Some(observer) = &self.observer {
            trouble.0.set(Some(Instant::now()));
            observer(&Notice::Waiting(wait()));
        }
    }

    fn wait(&self) -> Wait {
        Wait {
            model: self.model.clone(),
            provider: self.provider.clone(),
            host: self.host.clone(),
            kind: FailureKind::RateLimit,
            message: "the allowance is used up".to_owned(),
            seconds: 0.0,
            is_asked: false,
            next_try: None,
        }
    }
}
