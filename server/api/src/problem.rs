//! Refusals, as problem details (RFC 9457).

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

/// Why a request is refused. Its media type is `application/problem+json`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Problem {
    /// Names the kind of problem: a path that stays the same.
    #[serde(rename = "type")]
    pub kind: Cow<'static, str>,
    /// The kind in words.
    pub title: Cow<'static, str>,
    /// The HTTP status.
    pub status: u16,
    /// This case: what is wrong and what to do.
    pub detail: String,
    /// Seconds after which it may go better.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_after: Option<u64>,
}

impl Problem {
    /// More requests than a caller or an address may send; the next may come after so many seconds.
    pub fn too_fast(seconds: u64) -> Self {
        Self {
            kind: "/problems/too-many-requests".into(),
            title: "Too many requests".into(),
            status: 429,
            detail: format!(
                "More requests came from this caller or address than one may send; try again in {seconds} s."
            ),
            retry_after: Some(seconds),
        }
    }

    /// More at a time than the server carries.
    pub fn busy() -> Self {
        Self {
            kind: "/problems/busy".into(),
            title: "Busy".into(),
            status: 503,
            detail: "The server does as much as it can just now; try again in a moment.".into(),
            retry_after: Some(2),
        }
    }
}
