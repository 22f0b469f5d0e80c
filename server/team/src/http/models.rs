//! The server's own models, as its document describes them. [`Settings::models`](super::Settings) brings the routes.

use capo_api::Problem;
use utoipa::OpenApi;

/// What is described.
#[derive(OpenApi)]
#[openapi(paths(list, show, complete))]
pub(super) struct Models;

/// The models by name, as OpenAI's API lists them.
#[utoipa::path(
    get, path = "/api/models/v1/models", operation_id = "models", security(("session" = []), ("token" = [])),
    responses(
        (status = 200, body = Object),
        (status = "4XX", description = "Refused", content((Problem = "application/problem+json"), (Object = "application/json"))),
        (status = "5XX", description = "Broken or busy", content((Problem = "application/problem+json"), (Object = "application/json"))),
    )
)]
#[allow(dead_code, reason = "only its attribute is read")]
fn list() {}

/// One of them.
#[utoipa::path(
    get, path = "/api/models/v1/models/{id}", operation_id = "model", params(("id" = String, Path)),
    security(("session" = []), ("token" = [])),
    responses(
        (status = 200, body = Object),
        (status = "4XX", description = "Refused", content((Problem = "application/problem+json"), (Object = "application/json"))),
        (status = "5XX", description = "Broken or busy", content((Problem = "application/problem+json"), (Object = "application/json"))),
    )
)]
#[allow(dead_code, reason = "only its attribute is read")]
fn show() {}

/// What a model answers, as OpenAI's API has it; as events with `"stream": true`.
#[utoipa::path(
    post, path = "/api/models/v1/chat/completions", operation_id = "complete", request_body = Object,
    security(("session" = []), ("token" = [])),
    responses(
        (status = 200, content((Object = "application/json"), (String = "text/event-stream"))),
        (status = "4XX", description = "Refused", content((Problem = "application/problem+json"), (Object = "application/json"))),
        (status = "5XX", description = "Broken or busy", content((Problem = "application/problem+json"), (Object = "application/json"))),
    )
)]
#[allow(dead_code, reason = "only its attribute is read")]
fn complete() {}
