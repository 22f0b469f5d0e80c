//! Extractors of what a request holds, refused as a [`Refusal`] when it cannot be.

use std::error::Error as _;
use std::time::{Duration, Instant};

use axum::body::{Body, Bytes};
use axum::extract::rejection::{JsonRejection, PathRejection, QueryRejection};
use axum::extract::{FromRequest, FromRequestParts, Request};
use axum::http::request::Parts;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use capo_api::Moment;
use capo_core::study::suggest;
use futures::{Stream, StreamExt as _};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::problem::Refusal;
use crate::store::Millis;

/// How long a caller may take to send a document, or the next piece of something large.
const BODY: Duration = Duration::from_secs(15);

/// Bytes a second of a body, at least, over more than a few seconds.
const PACE: f64 = 16_384.0;

pub(super) struct Json<T>(pub T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequest<S> for Json<T> {
    type Rejection = Refusal;

    async fn from_request(request: Request, state: &S) -> Result<Self, Refusal> {
        let read = tokio::time::timeout(BODY, axum::Json::from_request(request, state)).await;
        match read.map_err(|_| too_slow())? {
            Ok(axum::Json(document)) => Ok(Self(document)),
            Err(error @ JsonRejection::JsonDataError(_)) => Err(Refusal::invalid(told(&error))),
            Err(error) => Err(Refusal::unreadable(error.status(), told(&error))),
        }
    }
}

/// Why a document is refused, in words for people.
fn told(error: &JsonRejection) -> String {
    match error.source() {
        Some(why) => suggest(&why.to_string()),
        None => error.body_text(),
    }
}

impl<T: Serialize> IntoResponse for Json<T> {
    fn into_response(self) -> Response {
        axum::Json(self.0).into_response()
    }
}

/// Parts of the path.
pub(super) struct Path<T>(pub T);

impl<T: DeserializeOwned + Send, S: Send + Sync> FromRequestParts<S> for Path<T> {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Refusal> {
        let path = axum::extract::Path::from_request_parts(parts, state).await;
        let refused = |error: PathRejection| Refusal::unreadable(StatusCode::BAD_REQUEST, error.body_text());
        path.map(|axum::extract::Path(path)| Self(path)).map_err(refused)
    }
}

/// What follows the question mark.
pub(super) struct Query<T>(pub T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequestParts<S> for Query<T> {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Refusal> {
        let query = axum::extract::Query::from_request_parts(parts, state).await;
        let refused = |error: QueryRejection| Refusal::unreadable(StatusCode::BAD_REQUEST, error.body_text());
        query
            .map(|axum::extract::Query(query)| Self(query))
            .map_err(refused)
    }
}

/// Whether who asks has the answer of this entity tag already (`If-None-Match`). What stands between may have made the tag
/// a weak one.
pub(super) fn has_already(headers: &HeaderMap, tag: &str) -> bool {
    let known = headers.get_all(header::IF_NONE_MATCH).iter();
    let mut known = known
        .filter_map(|value| value.to_str().ok())
        .flat_map(|tags| tags.split(','))
        .map(str::trim);
    known.any(|known| known == "*" || known.strip_prefix("W/").unwrap_or(known) == tag)
}

/// A day, counted from 1970-01-01, such as `2026-11-26`.
pub(super) fn day(day: u64) -> String {
    let millis = i64::try_from(day)
        .unwrap_or(i64::MAX)
        .saturating_mul(24 * 60 * 60 * 1000);
    moment(millis)
        .chars()
        .take_while(|letter| *letter != 'T')
        .collect()
}

/// A moment as documents have it; one beyond the years that can be written is the last of these.
pub(crate) fn moment(millis: Millis) -> Moment {
    let (first, last) = (jiff::Timestamp::MIN, jiff::Timestamp::MAX);
    let millis = millis.clamp(first.as_millisecond() + 1, last.as_millisecond());
    let moment = jiff::Timestamp::from_millisecond(millis);
    moment.expect("within the bounds").to_string()
}

/// A body of any kind, of at most so many bytes, as it comes; one of which nothing comes for too long breaks off, and one that
/// comes more slowly than [`PACE`].
pub(super) fn pieces(body: Body, most: usize) -> impl Stream<Item = Result<Bytes, Refusal>> + Send {
    let begun = Some((body.into_data_stream(), most, BODY));
    futures::stream::unfold(begun, move |state| async move {
        // What whoever reads it takes for itself is not the sender's time.
        let (mut pieces, left, patience) = state?;
        let asked = Instant::now();
        let refusal = match tokio::time::timeout(patience, pieces.next()).await {
            Ok(None) => return None,
            Ok(Some(Ok(piece))) => match left.checked_sub(piece.len()) {
                Some(left) => {
                    let earned = Duration::from_secs_f64(piece.len() as f64 / PACE);
                    let patience = patience.saturating_sub(asked.elapsed()) + earned;
                    return Some((Ok(piece), Some((pieces, left, patience.min(BODY)))));
                }
                None => Refusal::unreadable(
                    StatusCode::PAYLOAD_TOO_LARGE,
                    format!("The body is larger than {} MiB.", most >> 20),
                ),
            },
            Ok(Some(Err(_))) => Refusal::unreadable(StatusCode::BAD_REQUEST, "The body broke off."),
            Err(_) => too_slow(),
        };
        Some((Err(refusal), None))
    })
}

fn too_slow() -> Refusal {
    Refusal::unreadable(StatusCode::REQUEST_TIMEOUT, "The body took too long.")
}

/// A body of any kind, of at most so many bytes: read by a handler once it knows that the caller may send one.
///
/// # Errors
/// When it is larger, breaks off, or stalls.
pub(super) async fn bounded(body: Body, most: usize) -> Result<Bytes, Refusal> {
    let mut pieces = std::pin::pin!(pieces(body, most));
    let mut read = Vec::new();
    while let Some(piece) = pieces.next().await {
        read.extend_from_slice(&piece?);
    }
    Ok(read.into())
}

/// A moment of a document.
pub(super) fn millis(moment: &str) -> Result<Millis, Refusal> {
    capo_hosted::millis(moment).map_err(Refusal::invalid)
}
