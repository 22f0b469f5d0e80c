//! Transport of a request, and what can go wrong on the way.

use std::collections::BTreeMap;
use std::env::VarError;
use std::fmt;
use std::time::Duration;

use capo_core::http_headers::quoted_forms;
use capo_core::llm::FailureKind;
use capo_core::workload::{RolloutError, Trace};
use serde_json::Value;

/// Most bytes of an answer that are read.
pub(super) const MOST_BYTES: usize = 16 << 20;

/// Characters of a failing program's output shown in an error: its end, where the reason stands.
const TAIL: usize = 600;

/// Most characters of what is told of an answer that cannot be used: it may name what stands in the answer.
pub(super) const MOST_TOLD: usize = 1_000;

/// What was answered, and what must not be shown of it.
pub(crate) struct Answer {
    pub(super) bytes: Vec<u8>,
    pub(crate) secrets: Secrets,
}

/// Why there is no answer.
pub(super) enum Unanswered {
    /// It had the request and failed: what it consumed by then is unknown.
    Failed(RolloutError),
    /// It never had the request, or refused it: nothing was consumed.
    Refused(RolloutError),
    /// It takes no request just now, nobody's, and perhaps says for how long: nothing was consumed.
    NotNow {
        asked: Option<Duration>,
        error: RolloutError,
    },
}

/// Fewest characters of a value that is taken out of traces, too. A shorter one is rather a setting,
/// such as a model's name, and the critic reads the trace.
const KEY: usize = 16;

/// Secret values that must not be shown, the longest first: one may be part of another.
#[derive(Clone, Default)]
pub(crate) struct Secrets(Vec<String>);

impl fmt::Debug for Secrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} secrets", self.0.len())
    }
}

impl Secrets {
    /// Remembers a value. One of three characters or fewer hides nothing and would garble the text.
    pub(super) fn add(&mut self, value: &str) {
        let value = value.trim();
        if value.chars().count() > 3 {
            for value in quoted_forms(value) {
                let place = self.0.partition_point(|other| other.len() >= value.len());
                self.0.insert(place, value);
            }
            self.0.dedup();
        }
    }

    /// A text without the secrets.
    pub(crate) fn redacted(&self, text: &str) -> String {
        self.0
            .iter()
            .fold(text.to_owned(), |text, secret| text.replace(secret, "[redacted]"))
    }

    /// A trace without the keys among the secrets: journals are shared.
    pub(crate) fn redacted_trace(&self, trace: Trace) -> Result<Trace, String> {
        let keys = Self(
            self.0
                .iter()
                .filter(|secret| secret.chars().count() >= KEY)
                .cloned()
                .collect(),
        );
        if keys.0.is_empty() {
            return Ok(trace);
        }
        // No name of a field or a role is as long as a key.
        serde_json::to_value(trace)
            .and_then(|trace| serde_json::from_value(keys.redacted_value(trace)))
            .map_err(|error| error.to_string())
    }

    fn redacted_value(&self, value: Value) -> Value {
        match value {
            Value::String(text) => Value::String(self.redacted(&text)),
            Value::Array(items) => items.into_iter().map(|item| self.redacted_value(item)).collect(),
            Value::Object(fields) => fields
                .into_iter()
                .map(|(name, value)| (self.redacted(&name), self.redacted_value(value)))
                .collect(),
            other => other,
        }
    }

    /// The end of an output, without the secrets.
    pub(super) fn tail(&self, output: &[u8]) -> String {
        let text = self.redacted(&String::from_utf8_lossy(output));
        let text = text.trim();
        if text.is_empty() {
            return "nothing".to_owned();
        }
        match text.char_indices().rev().nth(TAIL - 1) {
            Some((start, _)) if start > 0 => format!("…{}", &text[start..]),
            _ => text.to_owned(),
        }
    }
}

/// The beginning of a text, of at most so many characters, and where it was cut.
pub(crate) fn cut(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        Some((end, _)) => format!("{}… (cut after {most} characters)", &text[..end]),
        None => text.to_owned(),
    }
}

/// Variables that lie beside the study, by name.
pub(super) type Beside = BTreeMap<String, String>;

/// Reads a variable that a setting of the study names: that of the environment, or else the one beside the study. A blank
/// one is none.
///
/// # Errors
/// Why there is none, in words.
pub(super) fn variable(name: &str, setting: &str, beside: &Beside) -> Result<String, String> {
    let is_blank = |value: &str| value.trim().is_empty();
    let own = match std::env::var(name) {
        Ok(value) if is_blank(&value) => Err(VarError::NotPresent),
        own => own,
    };
    let found = match (own, beside.get(name)) {
        (Err(VarError::NotPresent), Some(value)) if !is_blank(value) => return Ok(value.clone()),
        (own, _) => own,
    };
    found.map_err(|error| {
        let why = match error {
            VarError::NotPresent if cfg!(target_arch = "wasm32") => "a browser has no environment variables",
            VarError::NotPresent => "it is not set",
            VarError::NotUnicode(_) => "it is not valid Unicode",
        };
        format!("{setting} names the environment variable {name}, but {why}")
    })
}

/// A failure of whoever is asked.
pub(super) fn failed(
    kind: FailureKind,
    retryable: bool,
    who: &str,
    problem: impl fmt::Display,
) -> RolloutError {
    RolloutError::failed(kind, retryable, format!("{who}: {problem}"))
}

/// The answer is larger than Capo reads.
pub(super) fn too_large(who: &str) -> RolloutError {
    failed(
        FailureKind::Malformed,
        false,
        who,
        format!("its answer is larger than {} MiB", MOST_BYTES >> 20),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_found_without_the_line_break_of_their_file_and_whole() {
        let mut secrets = Secrets::default();
        secrets.add("sk-12345");
        secrets.add("sk-12345-longer\n");
        assert_eq!(
            secrets.redacted("sk-12345-longer, sk-12345"),
            "[redacted], [redacted]"
        );
    }

    #[test]
    fn a_secret_that_json_writes_otherwise_is_found_there_too() {
        let mut secrets = Secrets::default();
        secrets.add("sk-\"12/345");
        assert_eq!(
            secrets.redacted(r#"{"error": "sk-\"12\/345"}"#),
            r#"{"error": "[redacted]"}"#
        );
    }

    #[test]
    fn the_tail_is_cut_and_redacted() {
        let mut secrets = Secrets::default();
        secrets.add("sk-12345");
        secrets.add("no");
        assert_eq!(
            secrets.tail(b"  key sk-12345 is not valid\n"),
            "key [redacted] is not valid"
        );
        let long = format!("{}end", "x".repeat(5000));
        let tail = secrets.tail(long.as_bytes());
        assert!(tail.starts_with('…') && tail.ends_with("end") && tail.chars().count() == TAIL + 1);
        assert_eq!(secrets.tail(b" \n"), "nothing");
    }
}
