//! Outcomes of batches: what comes of requests that are handed in together, and of those about batches.

use bytes::Bytes;
use capo_core::llm::FailureKind;
use http::{Response, StatusCode};
use rig_core::http_client::{Error, Result as Answered};
use serde_json::{Value, json};

use super::parsed;

/// What stands in place of a batch's id until `OpenAI` said that it took it, before the id of the file of its calls.
pub(super) const UPLOADED: &str = "uploaded:";

/// The same with Anthropic, whose list says of a batch only how many calls it has, and its answers say which: before the id
/// of the batch listed first so far, if any, `:`, the batch's first call, `:` and a moment.
pub(super) const AFTER: &str = "after:";

/// What messages call a batch that may have no id yet.
pub(super) fn called(name: &str) -> String {
    match name.strip_prefix(UPLOADED) {
        Some(file) => format!("the batch of file {file}"),
        None if name.starts_with(AFTER) => "the batch handed in last".to_owned(),
        None => format!("batch {name}"),
    }
}

/// What came of a request.
pub(super) enum Outcome {
    Said(Box<Response<Bytes>>),
    /// Nobody was reached.
    Unsent(String),
    /// Nothing, which lies with the batch and with none of its requests.
    Stopped(String),
}

#[derive(Debug, thiserror::Error)]
#[error("{0}")]
struct Unsent(String);

/// A batch gave no answers, whatever was asked in it.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct Stopped(pub(crate) String);

impl From<Response<Bytes>> for Outcome {
    fn from(said: Response<Bytes>) -> Self {
        Self::Said(Box::new(said))
    }
}

impl Outcome {
    pub(super) fn is_success(&self) -> bool {
        matches!(self, Self::Said(reply) if reply.status().is_success())
    }

    /// What whoever made the request gets.
    #[expect(
        clippy::result_large_err,
        reason = "the library's own error, which its client takes so"
    )]
    pub(super) fn reply(&self) -> Answered<Response<Bytes>> {
        match self {
            Self::Said(said) => Ok((**said).clone()),
            Self::Unsent(why) => Err(Error::instance(Unsent(why.clone()))),
            Self::Stopped(why) => Err(Error::instance(Stopped(why.clone()))),
        }
    }

    /// Whether the same question may be answered later.
    pub(super) fn passes(&self) -> bool {
        match self {
            Self::Said(reply) => matches!(reply.status().as_u16(), 408 | 409 | 425 | 429 | 500..=599),
            Self::Unsent(_) => true,
            Self::Stopped(_) => false,
        }
    }

    /// Whether what was asked for may have been done all the same.
    pub(super) fn is_doubtful(&self) -> bool {
        let is_limit = |reply: &Response<Bytes>| reply.status() == StatusCode::TOO_MANY_REQUESTS;
        self.passes() && !matches!(self, Self::Said(reply) if is_limit(reply))
    }

    /// Whether what was asked about is there no longer.
    pub(super) fn is_gone(&self) -> bool {
        matches!(self, Self::Said(reply) if matches!(reply.status().as_u16(), 404 | 410))
    }

    /// Its kind, and what happened, without the words of the provider, which may quote a key.
    pub(super) fn in_short(&self) -> (FailureKind, String) {
        match self {
            Self::Said(reply) => (FailureKind::Provider, format!("HTTP {}", reply.status().as_u16())),
            Self::Unsent(why) => (FailureKind::Unreachable, why.clone()),
            Self::Stopped(why) => (FailureKind::Stopped, why.clone()),
        }
    }

    /// What those hear who wait for a batch that could not be looked at. A refused key is told as ever.
    pub(super) fn of(self, id: &str) -> Self {
        let Self::Said(reply) = &self else { return self };
        if reply.status() == StatusCode::UNAUTHORIZED {
            return self;
        }
        let body = parsed(reply.body());
        let said = body["error"]["message"].as_str().unwrap_or("no message");
        Self::Stopped(format!(
            "{} could not be looked at: HTTP {}: {said}; nothing of it is asked anew, for it may be paid for",
            called(id),
            reply.status().as_u16()
        ))
    }
}

pub(super) fn reply(status: StatusCode, body: Bytes) -> Response<Bytes> {
    let mut reply = Response::new(body);
    *reply.status_mut() = status;
    reply
}

/// A refusal in our words.
pub(super) fn refusal(status: StatusCode, why: &str) -> Response<Bytes> {
    reply(status, json!({ "error": { "message": why } }).to_string().into())
}

pub(super) fn expired() -> Response<Bytes> {
    refusal(StatusCode::GATEWAY_TIMEOUT, "the batch expired before the answer")
}

pub(super) fn cancelled() -> Outcome {
    Outcome::Stopped("the batch was cancelled at the provider; the same command asks anew".to_owned())
}

/// Of a batch that `OpenAI` did not begin to work on.
pub(super) fn failed(error: &Value) -> Outcome {
    let why = error["message"].as_str().unwrap_or("no message");
    match error["code"].as_str() {
        // Only so many tokens may wait in batches.
        Some("token_limit_exceeded") => refusal(StatusCode::TOO_MANY_REQUESTS, why).into(),
        _ => Outcome::Stopped(format!("the provider did not work on the batch: {why}")),
    }
}

/// The status that Anthropic answers a single request with when it says this.
pub(super) fn status_of(error: &Value) -> StatusCode {
    let error = error.get("error").unwrap_or(error);
    match error["type"].as_str().unwrap_or_default() {
        "invalid_request_error" => StatusCode::BAD_REQUEST,
        "authentication_error" => StatusCode::UNAUTHORIZED,
        "billing_error" => StatusCode::PAYMENT_REQUIRED,
        "permission_error" => StatusCode::FORBIDDEN,
        "request_too_large" => StatusCode::PAYLOAD_TOO_LARGE,
        "rate_limit_error" | "overloaded_error" => StatusCode::TOO_MANY_REQUESTS,
        _ => StatusCode::INTERNAL_SERVER_ERROR,
    }
}
