//! The body of a reply that is no answer.

use std::time::Duration;

use http::StatusCode;
use serde_json::Value;

use super::About;

/// What the body of a reply says about a failure, in any of the providers' spellings.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Body {
    pub(super) message: Option<String>,
    /// Codes and reasons, as far as they are words.
    code: String,
    /// A status of its own: gateways pass an upstream's on.
    pub(super) status: Option<StatusCode>,
    /// How long it asks to wait: Gemini says it here, not in a header.
    pub(super) wait: Option<Duration>,
}

impl Body {
    pub(super) fn read(bytes: &[u8]) -> Self {
        let Ok(value) = serde_json::from_slice::<Value>(bytes) else {
            let text = String::from_utf8_lossy(bytes);
            let line = text.lines().map(str::trim).find(|line| !line.is_empty());
            return Self {
                message: line.map(str::to_owned),
                ..Self::default()
            };
        };
        // Gemini wraps the object in an array on some routes.
        let value = value.get(0).unwrap_or(&value);
        let error = value
            .get("error")
            .or_else(|| value.pointer("/choices/0/error"))
            .filter(|error| !error.is_null());
        let source = error.unwrap_or(value);
        let message = source
            .as_str()
            .or_else(|| {
                ["message", "detail", "error_description"]
                    .iter()
                    .find_map(|key| source.get(*key).and_then(Value::as_str))
            })
            .map(str::to_owned)
            .or_else(|| {
                source
                    .get("detail")
                    .or_else(|| source.get("message"))
                    .map(Value::to_string)
            });
        let details = || {
            source
                .get("details")
                .and_then(Value::as_array)
                .into_iter()
                .flatten()
        };
        let code = ["code", "type", "status"]
            .iter()
            .filter_map(|key| source.get(*key))
            .chain(details().filter_map(|detail| detail.get("reason")))
            .filter_map(Value::as_str)
            .collect::<Vec<_>>()
            .join(" ");
        let wait = details()
            .filter_map(|detail| detail.get("retryDelay").and_then(Value::as_str))
            .find_map(|delay| humantime::parse_duration(delay).ok());
        let status = error
            .and_then(|error| error.get("code"))
            .and_then(Value::as_u64)
            .and_then(|code| u16::try_from(code).ok())
            .and_then(|code| StatusCode::from_u16(code).ok())
            .filter(|status| status.is_client_error() || status.is_server_error());
        Self {
            message,
            code,
            status,
            wait,
        }
    }

    fn mentions(&self, words: &[&str]) -> bool {
        let said = self.message.as_deref().unwrap_or_default().to_lowercase();
        words.iter().any(|word| said.contains(word))
    }

    pub(super) fn is_about_context(&self) -> bool {
        self.code.contains("context_length")
            || self.code.contains("exceed_context_size")
            || self.mentions(&[
                "context length",
                "context window",
                "context size",
                "maximum context",
                "prompt is too long",
                "input is too long",
                "input token count",
                "too many tokens",
            ])
    }

    /// Whether the account is spent. Gemini names billing for its limits by the minute, too.
    pub(super) fn is_about_money(&self) -> bool {
        self.code.contains("insufficient_quota")
            || self.code.contains("billing")
            || (!self.code.contains("RESOURCE_EXHAUSTED")
                && self.mentions(&["billing", "credit balance", "insufficient credits"]))
    }

    /// Whether the key is refused under another status than 401, as Gemini does.
    pub(super) fn refuses_key(&self) -> bool {
        self.code.contains("API_KEY_INVALID")
    }

    /// Whether the request's content is refused, as `OpenRouter` does for models it moderates.
    pub(super) fn is_about_content(&self) -> bool {
        self.mentions(&["flagged", "moderation"])
    }

    /// What the failure is about, of what only some callers tell apart.
    pub(super) fn about(&self, status: StatusCode) -> Option<About> {
        if !status.is_client_error() {
            return None;
        }
        if self.is_about_model() {
            return Some(About::Model);
        }
        // OpenAI's reasoning models, when they have thought until their tokens were gone.
        self.mentions(&["output limit was reached"])
            .then_some(About::AnswerLength)
    }

    fn is_about_model(&self) -> bool {
        let absent = [
            "not found",
            "not exist",
            "invalid model",
            "unknown model",
            "no such model",
            "not a valid model",
        ];
        self.code.contains("model_not_found")
            || self.code.contains("invalid_model")
            || (self.mentions(&["model"]) && (self.code.contains("not_found") || self.mentions(&absent)))
    }
}
