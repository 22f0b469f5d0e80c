//! Refusals, as problem details (RFC 9457).

use capo_gateway::PROBLEM_JSON;
use serde::Serialize;
use worker::{Response, console_error};

/// A request that is refused.
#[derive(Debug)]
pub(crate) struct Refusal {
    status: u16,
    /// The problem's document.
    body: String,
}

impl Refusal {
    /// One that is written already.
    pub(crate) fn written(status: u16, body: String) -> Self {
        Self { status, body }
    }

    fn of(status: u16, problem: &impl Serialize) -> Self {
        let body = serde_json::to_string(problem).unwrap_or_default();
        Self { status, body }
    }

    fn new(status: u16, kind: &'static str, title: &'static str, detail: &str) -> Self {
        let problem = capo_api::Problem {
            kind: kind.into(),
            title: title.into(),
            status,
            detail: detail.into(),
            retry_after: None,
        };
        Self::of(status, &problem)
    }

    /// A token that is wrong, or none.
    pub(crate) fn unknown_token() -> Self {
        let detail =
            "Send a personal token as `Authorization: Bearer TOKEN`; this is none that is known here.";
        Self::new(401, "/problems/unknown-token", "Unknown token", detail)
    }

    /// Known, and not allowed to.
    pub(crate) fn forbidden() -> Self {
        let detail = "This takes an administrator.";
        Self::new(403, "/problems/forbidden", "Not allowed", detail)
    }

    /// Nothing there.
    pub(crate) fn missing() -> Self {
        let detail = "Here are the page and the proxy of shared keys alone; see docs/edge.md.";
        Self::new(404, "/problems/missing", "Not there", detail)
    }

    /// No such method here.
    pub(crate) fn method() -> Self {
        let detail = "This address is for reading.";
        Self::new(405, "/problems/method", "No such method", detail)
    }

    /// A body that broke off.
    pub(crate) fn unreadable() -> Self {
        let detail = "The body broke off.";
        Self::new(400, "/problems/unreadable", "The request cannot be read", detail)
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
        Ok(response)
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
