//! Answers other than what was asked for, in the shape OpenAI's clients expect.

use std::time::Duration;

use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use axum::{Json, Router};
use capo_core::llm::{FailureKind, LlmError};
use capo_team::secret::is_same;
use serde_json::json;

/// A request that gets no answer of its kind: status and the fields of OpenAI's error object.
#[derive(Debug, Clone)]
pub(crate) struct Refusal {
    pub(super) status: StatusCode,
    kind: &'static str,
    code: Option<&'static str>,
    parameter: Option<String>,
    message: String,
    retry_after: Option<Duration>,
}

impl Refusal {
    /// `kind` is the field `type` of the error object.
    pub(crate) fn new(status: StatusCode, kind: &'static str, message: impl Into<String>) -> Self {
        Self {
            status,
            kind,
            code: None,
            parameter: None,
            message: message.into(),
            retry_after: None,
        }
    }

    /// The request as a whole cannot be read.
    pub(crate) fn unreadable(status: StatusCode, message: impl Into<String>) -> Self {
        Self::new(status, "invalid_request_error", message)
    }

    /// The body is no request.
    pub(super) fn body(message: impl Into<String>) -> Self {
        Self::unreadable(StatusCode::BAD_REQUEST, message)
    }

    /// One field of the request cannot be honoured.
    pub(crate) fn field(parameter: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            parameter: Some(parameter.into()),
            ..Self::unreadable(StatusCode::BAD_REQUEST, message)
        }
    }

    /// No model of this name is served.
    pub(super) fn unknown_model(name: &str, served: &[String]) -> Self {
        let message = format!(
            "The model {name:?} does not exist; this server has {}.",
            served.join(", ")
        );
        Self {
            code: Some("model_not_found"),
            parameter: Some("model".into()),
            ..Self::unreadable(StatusCode::NOT_FOUND, message)
        }
    }

    /// The key is missing or wrong. The message holds neither the given nor the expected one.
    fn wrong_key() -> Self {
        Self {
            code: Some("invalid_api_key"),
            ..Self::unreadable(
                StatusCode::UNAUTHORIZED,
                "The API key is missing or wrong; send `Authorization: Bearer KEY` with the key this \
                 server was started with.",
            )
        }
    }

    /// An injected failure with this status.
    pub(super) fn injected(status: StatusCode, retry_after: Duration) -> Self {
        let limited = status == StatusCode::TOO_MANY_REQUESTS;
        let kind = match status.as_u16() {
            429 => "rate_limit_error",
            401 => "authentication_error",
            500.. => "server_error",
            _ => "invalid_request_error",
        };
        Self {
            code: limited.then_some("rate_limit_exceeded"),
            retry_after: limited.then_some(retry_after),
            ..Self::new(status, kind, format!("Injected failure: {status}."))
        }
    }

    /// The connection was held open without an answer until the server lost patience as well.
    pub(super) fn hung() -> Self {
        Self::new(
            StatusCode::GATEWAY_TIMEOUT,
            "server_error",
            "Injected failure: no answer in time.",
        )
    }

    /// The server ends before it can answer.
    pub(crate) fn stopping() -> Self {
        Self::new(
            StatusCode::SERVICE_UNAVAILABLE,
            "server_error",
            "The server is stopping.",
        )
    }

    /// The server itself failed.
    pub(crate) fn internal(message: impl Into<String>) -> Self {
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "server_error", message)
    }
}

/// Refuses a request that does not bring the key, where one is demanded.
pub(crate) fn check_key(expected: Option<&str>, headers: &HeaderMap) -> Result<(), Refusal> {
    let given = headers.get(header::AUTHORIZATION);
    let given = given.and_then(|value| value.to_str().ok());
    let given = given.and_then(|value| value.strip_prefix("Bearer "));
    match expected {
        Some(key) if !given.is_some_and(|given| is_same(given.as_bytes(), key.as_bytes())) => {
            Err(Refusal::wrong_key())
        }
        _ => Ok(()),
    }
}

/// Answers what no route of the router does; `routes` says in words which ones there are.
pub(crate) fn refusing_others<S: Clone + Send + Sync + 'static>(
    router: Router<S>,
    routes: &'static str,
) -> Router<S> {
    router
        .fallback(async move |method: Method, uri: Uri| {
            let message = format!("There is no {method} {} here; try {routes}.", uri.path());
            Refusal::unreadable(StatusCode::NOT_FOUND, message)
        })
        .method_not_allowed_fallback(async |method: Method, uri: Uri| {
            let message = format!("{} does not take {method}.", uri.path());
            Refusal::unreadable(StatusCode::METHOD_NOT_ALLOWED, message)
        })
}

impl From<LlmError> for Refusal {
    fn from(error: LlmError) -> Self {
        let message = error.to_string();
        let LlmError::Failed { kind, .. } = error else {
            return Self {
                code: Some("insufficient_quota"),
                ..Self::new(StatusCode::TOO_MANY_REQUESTS, "insufficient_quota", message)
            };
        };
        let (status, error_type, code) = match kind {
            FailureKind::RateLimit => (
                StatusCode::TOO_MANY_REQUESTS,
                "rate_limit_error",
                Some("rate_limit_exceeded"),
            ),
            FailureKind::Timeout => (StatusCode::GATEWAY_TIMEOUT, "server_error", None),
            FailureKind::Authentication => (
                StatusCode::UNAUTHORIZED,
                "authentication_error",
                Some("invalid_api_key"),
            ),
            FailureKind::ContextLength => (
                StatusCode::BAD_REQUEST,
                "invalid_request_error",
                Some("context_length_exceeded"),
            ),
            FailureKind::Provider | FailureKind::Malformed => (StatusCode::BAD_GATEWAY, "server_error", None),
            FailureKind::Unreachable | FailureKind::Tool | FailureKind::Stopped => {
                (StatusCode::INTERNAL_SERVER_ERROR, "server_error", None)
            }
        };
        Self {
            code,
            ..Self::new(status, error_type, message)
        }
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let body = Json(json!({
            "error": {
                "message": self.message,
                "type": self.kind,
                "param": self.parameter,
                "code": self.code,
            }
        }));
        let mut response = (self.status, body).into_response();
        if let Some(wait) = self.retry_after {
            // The standard header counts whole seconds; the second one is OpenAI's finer form.
            let seconds = HeaderValue::from(wait.as_secs_f64().ceil() as u64);
            let milliseconds = HeaderValue::from(u64::try_from(wait.as_millis()).unwrap_or(u64::MAX));
            response.headers_mut().insert(header::RETRY_AFTER, seconds);
            response.headers_mut().insert("retry-after-ms", milliseconds);
        }
        response
    }
}
