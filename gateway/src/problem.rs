//! Why the gateway refuses, as problem details (RFC 9457). None of them holds a key.

use capo_models::{Redactor, Secret};
use http::StatusCode;
use serde::Serialize;
use serde_json::{Map, Value, json};

/// The media type of a [`Problem`].
pub const PROBLEM_JSON: &str = "application/problem+json";

/// A kind of problem: its HTTP status and its title, of which its type is made.
pub(crate) type Kind = (u16, &'static str);

pub(crate) const NOT_SIGNED_IN: Kind = (401, "Not signed in");
pub(crate) const ORIGIN_NOT_ALLOWED: Kind = (403, "Origin not allowed");
pub(crate) const ROLE_NOT_ALLOWED: Kind = (403, "Role not allowed");
pub(crate) const MODEL_NOT_ALLOWED: Kind = (403, "Model not allowed");
pub(crate) const PRICE_UNKNOWN: Kind = (403, "Price unknown");
pub(crate) const NO_SUCH_KEY: Kind = (404, "No such key");
pub(crate) const NO_SUCH_ENDPOINT: Kind = (404, "No such endpoint");
pub(crate) const METHOD_NOT_ALLOWED: Kind = (405, "Method not allowed");
pub(crate) const BODY_TOO_LARGE: Kind = (413, "Body too large");
pub(crate) const UNSUPPORTED_MEDIA_TYPE: Kind = (415, "Unsupported media type");
pub(crate) const QUERY_NOT_ALLOWED: Kind = (422, "Query not allowed");
pub(crate) const BODY_NOT_ALLOWED: Kind = (422, "Body not allowed");
pub(crate) const PROJECT_NOT_NAMED: Kind = (422, "Project not named");
pub(crate) const LIMIT_REACHED: Kind = (429, "Limit reached");
pub(crate) const ANSWER_CUT: Kind = (429, "Answer cut");
pub(crate) const KEY_REFUSED: Kind = (502, "Key refused");
pub(crate) const REDIRECT_REFUSED: Kind = (502, "Redirect refused");

/// The most characters of a caller's own text that are repeated.
const LONGEST: usize = 80;

/// Why something is not passed on.
#[derive(Debug, Clone, PartialEq, Serialize, thiserror::Error)]
#[error("{detail}")]
pub struct Problem {
    /// Which problem it is: a URI reference such as `/problems/limit-reached`.
    pub r#type: String,
    /// The problem in a few words, always the same for a type.
    pub title: &'static str,
    /// The HTTP status.
    pub status: u16,
    /// What is wrong this time.
    pub detail: String,
    /// Further members. Of a limit: `scope`, `quantity` (`usd` or `requests`) with `limit`, `left` and `needed` in it,
    /// and `resets_at` (in seconds since 1970-01-01T00:00:00Z). Of a body: `pointer` (RFC 6901). Of a method: `allow`.
    #[serde(flatten)]
    pub members: Box<Map<String, Value>>,
}

impl Problem {
    pub(crate) fn new((status, title): Kind, detail: impl Into<String>) -> Self {
        Self {
            r#type: format!("/problems/{}", title.to_ascii_lowercase().replace(' ', "-")),
            title,
            status,
            detail: detail.into(),
            members: Box::default(),
        }
    }

    /// A problem with a part of a request's body.
    pub(crate) fn of_body(pointer: &str, reason: &str) -> Self {
        let pointer = excerpt(pointer);
        let place = if pointer.is_empty() { "the body" } else { &pointer };
        let problem = Self::new(BODY_NOT_ALLOWED, format!("{place} {reason}"));
        problem.with(json!({ "pointer": pointer }))
    }

    /// With the members of an object.
    pub(crate) fn with(mut self, mut members: Value) -> Self {
        self.members
            .extend(members.as_object_mut().map(std::mem::take).unwrap_or_default());
        self
    }

    /// The last event of a stream that is cut, in the shape of an error in OpenAI's, Anthropic's and Gemini's streams.
    pub fn event(&self) -> String {
        let mut error = json!(self);
        error["message"] = json!(self.detail);
        format!(
            "event: error\ndata: {}\n\n",
            json!({ "type": "error", "error": error })
        )
    }
}

/// As much of a caller's own text as is repeated.
pub(crate) fn excerpt(text: &str) -> String {
    text.chars().take(LONGEST).collect()
}

/// Refuses answers of a provider that must not reach the caller, body and all. Any other status is passed on.
///
/// # Errors
/// On a redirect, which might lead anywhere, and when the provider refuses the key: what it says then may quote the key.
pub fn check_response(status: StatusCode) -> Result<(), Problem> {
    if [StatusCode::UNAUTHORIZED, StatusCode::FORBIDDEN].contains(&status) {
        let detail = format!("the provider refused the shared key or what it was used for ({status})");
        return Err(Problem::new(KEY_REFUSED, detail));
    }
    if status.is_redirection() {
        return Err(Problem::new(
            REDIRECT_REFUSED,
            "a redirect of the provider is not followed",
        ));
    }
    Ok(())
}

/// The body of a provider's error, with the key masked should it be quoted.
pub fn error_body(body: &[u8], key: &Secret) -> String {
    Redactor::new([key])
        .mask(&String::from_utf8_lossy(body))
        .into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_problem_is_written_as_rfc_9457_has_it() {
        let problem = Problem::of_body(&"/a".repeat(50), "is wrong");
        let pointer = "/a".repeat(40);
        let expected = json!({
            "type": "/problems/body-not-allowed", "title": "Body not allowed", "status": 422,
            "detail": format!("{pointer} is wrong"), "pointer": pointer,
        });
        assert_eq!(json!(problem), expected);
    }

    #[test]
    fn a_cut_stream_ends_with_an_error_event() {
        let event = Problem::new(ANSWER_CUT, "too long").event();
        let data = event.strip_prefix("event: error\ndata: ").unwrap();
        let error = &serde_json::from_str::<Value>(data).unwrap()["error"];
        assert_eq!(
            (&error["type"], &error["message"]),
            (&json!("/problems/answer-cut"), &json!("too long"))
        );
        assert!(event.ends_with("}\n\n"));
    }

    #[test]
    fn answers_that_could_show_the_key_are_replaced_or_masked() {
        let refused =
            |status| check_response(StatusCode::from_u16(status).unwrap()).map_err(|problem| problem.title);
        assert_eq!([200, 400, 404, 429, 500].map(refused), [Ok(()); 5]);
        assert_eq!([401, 403].map(refused), [Err("Key refused"); 2]);
        assert_eq!([301, 302, 307, 308].map(refused), [Err("Redirect refused"); 4]);
        assert_eq!(
            error_body(b"no sk-1, sk-1x", &Secret::new("sk-1")),
            "no •••, •••x"
        );
        assert_eq!(error_body(br#""no a\/b""#, &Secret::new("a/b")), r#""no •••""#);
        assert_eq!(error_body(b"a", &Secret::new("")), "a");
    }
}
