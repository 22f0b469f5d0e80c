//! Refusals, as problem details (RFC 9457).

use std::borrow::Cow;

use axum::extract::MatchedPath;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use capo_api::Problem;

use crate::files::FilesError;
use crate::password::Weak;
use crate::store::StoreError;

/// The type of the problem that an answer is, for who counts refusals.
#[derive(Debug, Clone)]
pub(super) struct Kind(pub(super) Cow<'static, str>);

/// A request that is refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Refusal(pub(super) Problem);

impl Refusal {
    fn new(status: StatusCode, kind: &'static str, title: &'static str, detail: impl Into<String>) -> Self {
        Self(Problem {
            kind: kind.into(),
            title: title.into(),
            status: status.as_u16(),
            detail: detail.into(),
            retry_after: None,
        })
    }

    /// Too many of these.
    pub(super) fn throttled(seconds: u64) -> Self {
        let mut refusal = Self::new(
            StatusCode::TOO_MANY_REQUESTS,
            "/problems/throttled",
            "Too many failures",
            format!("Signing in failed too often; try again in {seconds} s."),
        );
        refusal.0.retry_after = Some(seconds);
        refusal
    }

    /// More requests than a caller or an address may send.
    pub(super) fn too_fast(seconds: u64) -> Self {
        Self(Problem::too_fast(seconds))
    }

    /// More at a time than the server carries.
    pub(super) fn busy() -> Self {
        Self(Problem::busy())
    }

    /// Signed in, and not allowed to.
    pub(super) fn forbidden(detail: impl Into<String>) -> Self {
        Self::new(
            StatusCode::FORBIDDEN,
            "/problems/forbidden",
            "Not allowed",
            detail,
        )
    }

    /// Nothing there.
    pub(super) fn missing(what: &str) -> Self {
        Self::new(
            StatusCode::NOT_FOUND,
            "/problems/missing",
            "Not there",
            format!("There is no such {what}, or you may not see it."),
        )
    }

    /// It contradicts what is there.
    pub(super) fn conflict(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::CONFLICT, "/problems/conflict", "Conflict", detail)
    }

    /// The request cannot be read.
    pub(super) fn unreadable(status: StatusCode, detail: impl Into<String>) -> Self {
        Self::new(
            status,
            "/problems/unreadable",
            "The request cannot be read",
            detail,
        )
    }

    /// It can be read, and says what cannot be.
    pub(super) fn invalid(detail: impl Into<String>) -> Self {
        Self::new(
            StatusCode::UNPROCESSABLE_ENTITY,
            "/problems/invalid",
            "Not acceptable",
            detail,
        )
    }

    /// One of them takes too long, as a request to this route shows.
    pub(super) fn late(route: Option<&MatchedPath>) -> Self {
        let route = route.map(MatchedPath::as_str).unwrap_or_default();
        tracing::error!(route, "a request took too long");
        Self::unavailable()
    }
}

/// Declares refusals that say the same in every case: their status, kind and title, and what is wrong and to be done.
macro_rules! refusals {
    ($($(#[$about:meta])+ $name:ident: $status:ident $kind:literal $title:literal, $detail:literal;)*) => {
        impl Refusal {
            $($(#[$about])+
            pub(super) fn $name() -> Self {
                Self::new(StatusCode::$status, $kind, $title, $detail)
            })*
        }
    };
}

refusals! {
    /// Nobody is signed in.
    signed_out: UNAUTHORIZED "/problems/not-signed-in" "Not signed in",
        "Sign in, or send a personal token as `Authorization: Bearer TOKEN`.";
    /// A token that is wrong, withdrawn or expired.
    unknown_token: UNAUTHORIZED "/problems/unknown-token" "Unknown token",
        "This token is unknown, withdrawn or expired, or its owner may not sign in any more.";
    /// Name and password do not belong together.
    wrong_password: UNAUTHORIZED "/problems/wrong-password" "Wrong name or password",
        "There is no member of this name with this password.";
    /// A browser asks on behalf of another page.
    cross_origin: FORBIDDEN "/problems/origin-not-allowed" "Origin not allowed",
        "A browser may change something here only from this server's own page; programs send a personal token.";
    /// No such method here.
    method: METHOD_NOT_ALLOWED "/problems/method" "No such method",
        "This address does not take this method; /api/openapi.json lists what it takes.";
    /// No key can be opened.
    sealed: SERVICE_UNAVAILABLE "/problems/master-key" "Keys cannot be opened",
        "The server's master key is missing or another one than this key was encrypted with; its log says more.";
    /// A provider did not answer.
    unreached: BAD_GATEWAY "/problems/unreached" "Provider not reached",
        "The provider was not reached, or broke off before it answered; the server's log says why.";
    /// The OpenID Connect issuer did not answer, or said what does not hold.
    issuer: BAD_GATEWAY "/problems/identity-provider" "Identity provider",
        "The identity provider was not reached, or its answer does not hold; the server's log says why. Name and \
         password serve all the same.";
    /// Nobody trains rewriters here.
    without_trainings: NOT_IMPLEMENTED "/problems/no-trainings" "No trainings here",
        "This server trains no rewriters: its `capo` was built without the feature `train`, or was started with \
         --trainings 0.";
    /// Something here is broken; what, is for the log.
    internal: INTERNAL_SERVER_ERROR "/problems/internal" "The server failed",
        "The server failed; its log says why.";
    /// The database does not answer, or the place of data files.
    unavailable: SERVICE_UNAVAILABLE "/problems/unavailable" "Not available",
        "The database, or the place of data files, does not answer; the server's log says why.";
    /// The database has no more room, or the place of data files.
    full: INSUFFICIENT_STORAGE "/problems/full" "Full",
        "The server's disk is full: nothing was written. Once its administrator has made room, try again.";
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let Self(problem) = self;
        let status = StatusCode::from_u16(problem.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let (retry_after, kind) = (problem.retry_after, Kind(problem.kind.clone()));
        let mut response = (status, axum::Json(problem)).into_response();
        response.extensions_mut().insert(kind);
        let headers = response.headers_mut();
        headers.insert(
            header::CONTENT_TYPE,
            HeaderValue::from_static("application/problem+json"),
        );
        if let Some(seconds) = retry_after {
            headers.insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        }
        if status == StatusCode::UNAUTHORIZED {
            headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        response
    }
}

impl From<StoreError> for Refusal {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Missing(what) => Self::missing(what),
            StoreError::OtherMasterKey => Self::sealed(),
            StoreError::Taken(_)
            | StoreError::SetUp
            | StoreError::LastAdmin
            | StoreError::LastWayIn
            | StoreError::Linked
            | StoreError::OtherHost
            | StoreError::Working
            | StoreError::GoesOn
            | StoreError::TooMany(..)
            | StoreError::LabelMoved { .. }
            | StoreError::AtRest => Self::conflict(sentence(&error.to_string())),
            StoreError::Database(sqlx::Error::PoolTimedOut | sqlx::Error::Io(_)) => {
                tracing::error!(%error, "the database does not answer");
                Self::unavailable()
            }
            StoreError::Files(error) => error.into(),
            error if error.is_full() => {
                tracing::error!(%error, "the disk of the database is full");
                Self::full()
            }
            error if error.is_unkept() => {
                tracing::warn!(%error, "a text that the database does not keep");
                Self::unreadable(
                    StatusCode::BAD_REQUEST,
                    "The request has a character NUL (U+0000), which nothing here has; take it out.",
                )
            }
            error => {
                tracing::error!(%error, "a request failed");
                Self::internal()
            }
        }
    }
}

impl From<FilesError> for Refusal {
    fn from(error: FilesError) -> Self {
        tracing::error!(%error, "data files cannot be kept or read");
        if error.is_full() {
            Self::full()
        } else {
            Self::unavailable()
        }
    }
}

impl From<Weak> for Refusal {
    fn from(weak: Weak) -> Self {
        Self::invalid(sentence(&weak.to_string()))
    }
}

/// "There is no such thing." of "there is no such thing".
fn sentence(text: &str) -> String {
    let mut letters = text.chars();
    let first = letters.next().map(|first| first.to_uppercase().to_string());
    let end = if text.ends_with('.') { "" } else { "." };
    first.unwrap_or_default() + letters.as_str() + end
}
