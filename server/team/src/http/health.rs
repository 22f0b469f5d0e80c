//! Whether the server lives, whether it can answer, and what it is.

use std::time::Duration;

use axum::extract::State;
use axum::http::StatusCode;
use capo_api::About;

use super::Server;
use super::caller::Caller;
use super::extract::Json;
use super::problem::Refusal;
use super::sessions::myself;

/// How long the database may take to answer that it does: who asks waits for a few seconds only.
const SOON: Duration = Duration::from_secs(3);

/// Whether the process runs.
#[utoipa::path(
    get, path = "/healthz", operation_id = "alive", responses((status = 200, body = String, content_type = "text/plain"))
)]
pub(super) async fn alive() -> &'static str {
    "ok\n"
}

/// Whether the database answers.
#[utoipa::path(
    get, path = "/readyz", operation_id = "ready",
    responses(
        (status = 200, body = String, content_type = "text/plain"),
        (status = 503, body = String, content_type = "text/plain"),
    )
)]
pub(super) async fn ready(State(server): State<Server>) -> Result<&'static str, (StatusCode, &'static str)> {
    match tokio::time::timeout(SOON, server.store().answers()).await {
        Ok(Ok(())) => return Ok("ok\n"),
        Ok(Err(error)) => tracing::error!(%error, "the database does not answer"),
        Err(_) => tracing::error!("the database does not answer in time"),
    }
    Err((StatusCode::SERVICE_UNAVAILABLE, "the database does not answer\n"))
}

/// What this server is, and who is signed in. A page asks this to find out whether a team server stands behind it.
#[utoipa::path(
    get, path = "/api", operation_id = "about", responses((status = 200, body = About))
)]
pub(super) async fn about(
    State(server): State<Server>,
    caller: Result<Caller, Refusal>,
) -> Result<Json<About>, Refusal> {
    let caller = match caller {
        Ok(caller) => Some(caller),
        Err(Refusal(problem)) if problem.status == 401 => None,
        Err(refusal) => return Err(refusal),
    };
    Ok(Json(About {
        version: env!("CARGO_PKG_VERSION").into(),
        is_set_up: server.store().is_set_up().await?,
        oidc: server.0.oidc.as_ref().map(|oidc| oidc.name().to_owned()),
        has_accounts: true,
        member: caller.map(|caller| myself(caller.member)),
    }))
}
