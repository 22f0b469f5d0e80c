//! Notices: what a person is told while a provider or an agent does not answer.

use std::fmt;
use std::rc::Rc;

use serde::{Deserialize, Serialize};

use crate::llm::FailureKind;

/// Who is told of waits for providers and agents. It is called in the middle of calls and must not wait itself.
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
    /// A provider works on a batch of calls.
    Batch(BatchUnderWay),
}

/// A batch of calls that a provider works on. Its `Display` is the sentence for people, without a capital letter and a
/// full stop.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct BatchUnderWay {
    /// Provider and model, as [`Wait::model`].
    pub model: String,
    /// The provider's name for it.
    pub id: String,
    /// How many calls it has.
    pub calls: usize,
}

impl fmt::Display for BatchUnderWay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { model, id, calls } = self;
        let noun = if *calls == 1 { "call" } else { "calls" };
        write!(
            f,
            "{model}: batch {id} ({calls} {noun}) is being worked on, for a day at most; after an interruption the same \
             command goes on waiting for it"
        )
    }
}

/// A wait before a call is tried again, or before any call of a model is made. Its `Display` is the
/// sentence for people, without a capital letter and a full stop.
///
/// ```
/// use capo_core::llm::FailureKind;
/// use capo_core::notice::Wait;
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
/// wait = Wait { kind: FailureKind::Provider, message: "HTTP 503".into(), is_asked: false, next_try: None, ..wait };
/// assert_eq!(wait.to_string(), "openai failed (HTTP 503)");
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
    /// all calls that are still to be made, or for the answer to one under way.
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
                // It is under way.
                FailureKind::Timeout if self.next_try.is_none() => {
                    write!(f, "no answer yet from {provider}")?;
                }
                FailureKind::Timeout => write!(f, "{provider} did not answer in time")?,
                FailureKind::Malformed => write!(f, "{provider} gave no usable answer ({why})")?,
                _ => write!(f, "{provider} failed ({why})")?,
            }
            let says_why = !matches!(
                self.kind,
                FailureKind::Unreachable | FailureKind::RateLimit | FailureKind::Timeout
            );
            if self.next_try.is_some() {
                write!(f, ": trying again in {seconds} s")?;
            } else if !says_why {
                write!(f, ": {}", self.words())?;
            }
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
