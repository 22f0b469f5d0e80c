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
