//! What is read from a request, refused as a [`Refusal`] when it cannot be.

use axum::extract::rejection::{JsonRejection, PathRejection, QueryRejection};
use axum::extract::{FromRequest, FromRequestParts, Request};
use axum::http::StatusCode;
use axum::http::request::Parts;
use axum::response::{IntoResponse, Response};
use capo_api::Moment;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::problem::Refusal;
use crate::store::Millis;

/// A document.
pub(super) struct Json<T>(pub T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequest<S> for Json<T> {
    type Rejection = Refusal;

    async fn from_request(request: Request, state: &S) -> Result<Self, Refusal> {
        match axum::Json::from_request(request, state).await {
            Ok(axum::Json(document)) => Ok(Self(document)),
            Err(JsonRejection::JsonDataError(error)) => Err(Refusal::invalid(error.body_text())),
            Err(error) => Err(Refusal::unreadable(error.status(), error.body_text())),
        }
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
pub(super) fn moment(millis: Millis) -> Moment {
    let (first, last) = (jiff::Timestamp::MIN, jiff::Timestamp::MAX);
    let millis = millis.clamp(first.as_millisecond() + 1, last.as_millisecond());
    let moment = jiff::Timestamp::from_millisecond(millis);
    moment.expect("within the bounds").to_string()
}
