//! How a request reaches the agent, and what can go wrong on the way.

use capo_core::llm::FailureKind;
use capo_core::workload::RolloutError;

/// Most bytes of an answer that are read.
pub(super) const MOST_BYTES: usize = 16 << 20;

/// Characters of a failing agent's output shown in an error: its end, where the reason stands.
const TAIL: usize = 600;

/// What an agent answered, and what must not be shown of it.
pub(super) struct Answer {
    pub(super) bytes: Vec<u8>,
    pub(super) secrets: Secrets,
}

/// Secret values that must not be shown.
#[derive(Clone, Default)]
pub(super) struct Secrets(Vec<String>);

impl Secrets {
    /// Remembers a value. One of three characters or fewer hides nothing and would garble the text.
    pub(super) fn add(&mut self, value: &str) {
        if value.chars().count() > 3 {
            self.0.push(value.to_owned());
        }
    }

    /// A text without the secrets.
    pub(super) fn redacted(&self, text: &str) -> String {
        self.0
            .iter()
            .fold(text.to_owned(), |text, secret| text.replace(secret, "[redacted]"))
    }

    /// The end of an agent's output, without the secrets.
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

/// Reads an environment variable the study names.
pub(super) fn variable(name: &str, setting: &str) -> Result<String, RolloutError> {
    std::env::var(name).map_err(|error| {
        let why = match error {
            std::env::VarError::NotPresent if cfg!(target_arch = "wasm32") => {
                "a browser has no environment variables"
            }
            std::env::VarError::NotPresent => "it is not set",
            std::env::VarError::NotUnicode(_) => "it is not valid Unicode",
        };
        RolloutError::failed(
            FailureKind::Authentication,
            false,
            format!("workload.{setting} names the environment variable {name}, but {why}"),
        )
    })
}

/// A failure of the agent's.
pub(super) fn failed(
    kind: FailureKind,
    retryable: bool,
    who: &str,
    problem: impl std::fmt::Display,
) -> RolloutError {
    RolloutError::failed(kind, retryable, format!("external agent {who}: {problem}"))
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
