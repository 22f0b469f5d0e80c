//! Refusals, as problem details (RFC 9457).

use bytes::Bytes;
use capo_gateway::PROBLEM_JSON;
use http::{HeaderValue, StatusCode, header};
use serde::Serialize;
use worker::{Response, console_error};

/// A request that is refused.
#[derive(Debug)]
pub(crate) struct Refusal {
    status: u16,
    /// The problem's document.
    body: String,
    /// Seconds after which it may go better.
    retry_after: Option<u64>,
}

impl Refusal {
    /// One that an object has written.
    pub(crate) async fn written(mut answer: Response) -> Self {
        let retry_after = answer.headers().get("retry-after").ok().flatten();
        let (status, body) = (answer.status_code(), answer.text().await);
        body.map_or_else(Self::from, |body| Self {
            status,
            body,
            retry_after: retry_after.and_then(|seconds| seconds.parse().ok()),
        })
    }

    fn of(status: u16, problem: &impl Serialize) -> Self {
        Self {
            status,
            body: serde_json::to_string(problem).unwrap_or_default(),
            retry_after: None,
        }
    }

    fn new(status: u16, kind: &'static str, title: &'static str, detail: &str) -> Self {
        Self::from(capo_api::Problem {
            kind: kind.into(),
            title: title.into(),
            status,
            detail: detail.into(),
            retry_after: None,
        })
    }

    /// A token that is wrong, or none.
    pub(crate) fn unknown_token() -> Self {
        let detail =
            "Send a personal token as `Authorization: Bearer TOKEN`; this is none that is known here.";
        Self::new(401, "/problems/unknown-token", "Unknown token", detail)
    }

    /// Nobody is signed in.
    pub(crate) fn signed_out() -> Self {
        let detail = "Sign in, or send a personal token as `Authorization: Bearer TOKEN`.";
        Self::new(401, "/problems/not-signed-in", "Not signed in", detail)
    }

    /// Name and token do not belong together.
    pub(crate) fn wrong_token() -> Self {
        let detail = "There is no member of this name with this token.";
        Self::new(401, "/problems/wrong-password", "Wrong name or token", detail)
    }

    /// Known, and not allowed to.
    pub(crate) fn forbidden(detail: &str) -> Self {
        Self::new(403, "/problems/forbidden", "Not allowed", detail)
    }

    /// A browser asks on behalf of another page.
    pub(crate) fn cross_origin() -> Self {
        let detail = "A browser may change something here only from this worker's own page; programs send a personal token.";
        Self::new(403, "/problems/origin-not-allowed", "Origin not allowed", detail)
    }

    /// Nothing there.
    pub(crate) fn missing() -> Self {
        let detail = "Here are the page, runs and the proxy of shared keys; what else a team server has, docs/edge.md says.";
        Self::new(404, "/problems/missing", "Not there", detail)
    }

    /// No such thing, as far as the caller may know.
    pub(crate) fn no_such(what: &str) -> Self {
        let detail = format!("There is no such {what}, or you may not see it.");
        Self::new(404, "/problems/missing", "Not there", &detail)
    }

    /// No such method here.
    pub(crate) fn method() -> Self {
        let detail = "This address does not take this method.";
        Self::new(405, "/problems/method", "No such method", detail)
    }

    /// It contradicts what is there.
    pub(crate) fn conflict(detail: &str) -> Self {
        Self::new(409, "/problems/conflict", "Conflict", detail)
    }

    /// A body that is larger than it may be.
    pub(crate) fn too_large(most: usize) -> Self {
        let detail = format!("The body may have at most {most} bytes.");
        Self::new(413, "/problems/body-too-large", "Too large", &detail)
    }

    /// A body that broke off, or says nothing that is known.
    pub(crate) fn unreadable(detail: &str) -> Self {
        Self::new(400, "/problems/unreadable", "The request cannot be read", detail)
    }

    /// It can be read, and says what cannot be.
    pub(crate) fn invalid(detail: impl AsRef<str>) -> Self {
        Self::new(422, "/problems/invalid", "Not acceptable", detail.as_ref())
    }

    /// A provider did not answer.
    pub(crate) fn unreached() -> Self {
        let detail = "The provider was not reached, or broke off before it answered; the log says why.";
        Self::new(502, "/problems/unreached", "Provider not reached", detail)
    }

    /// What is configured cannot be.
    pub(crate) fn misconfigured() -> Self {
        let detail = "A variable or secret of this worker is missing or wrong; the log says which.";
        Self::new(503, "/problems/configuration", "Wrong configuration", detail)
    }

    /// The same to a run's own call, which never left the worker.
    pub(crate) fn into_http(self) -> http::Response<Bytes> {
        let mut response = http::Response::new(self.body.into());
        *response.status_mut() = StatusCode::from_u16(self.status).unwrap_or(StatusCode::BAD_GATEWAY);
        let media = HeaderValue::from_static(PROBLEM_JSON);
        response.headers_mut().insert(header::CONTENT_TYPE, media);
        response
    }

    /// The answer that says so.
    pub(crate) fn into_response(self) -> worker::Result<Response> {
        let mut response = Response::builder()
            .with_status(self.status)
            .fixed(self.body.into_bytes());
        let headers = response.headers_mut();
        headers.set("content-type", PROBLEM_JSON)?;
        if self.status == 401 {
            headers.set("www-authenticate", "Bearer")?;
        }
        if let Some(seconds) = self.retry_after {
            headers.set("retry-after", &seconds.to_string())?;
        }
        Ok(response)
    }
}

impl From<capo_api::Problem> for Refusal {
    fn from(problem: capo_api::Problem) -> Self {
        Self {
            retry_after: problem.retry_after,
            ..Self::of(problem.status, &problem)
        }
    }
}

impl From<capo_gateway::Problem> for Refusal {
    fn from(problem: capo_gateway::Problem) -> Self {
        Self::of(problem.status, &problem)
    }
}

impl From<worker::Error> for Refusal {
    fn from(error: worker::Error) -> Self {
        console_error!("a request failed: {error}");
        let detail = "The worker failed; its log says why.";
        Self::new(500, "/problems/internal", "The worker failed", detail)
    }
}
