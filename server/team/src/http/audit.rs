//! The audit log.

use axum::extract::State;
use capo_api::EntryShown;
use serde::Deserialize;
use utoipa::IntoParams;

use super::Server;
use super::caller::Caller;
use super::extract::{Json, Query, moment};
use super::problem::Refusal;
use crate::store::{Entry, Project};

/// Lines of an answer, at most.
const LINES: u32 = 500;

/// A part of the log.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(super) struct Since {
    /// Only lines before the one of this id.
    before: Option<i64>,
    /// Lines, at most 500; 100 unless stated.
    limit: Option<u32>,
}

pub(super) fn line(entry: Entry) -> EntryShown {
    EntryShown {
        id: entry.id,
        imported: entry.id <= 0,
        at: moment(entry.at),
        actor: entry.actor,
        address: entry.address,
        action: entry.action,
        subject: entry.subject,
    }
}

/// The audit log of the whole server, the latest lines first.
#[utoipa::path(
    get, path = "/api/audit", operation_id = "audit", params(Since), security(("session" = []), ("token" = [])),
    responses((status = 200, body = Vec<EntryShown>))
)]
pub(super) async fn list(
    State(server): State<Server>,
    caller: Caller,
    Query(since): Query<Since>,
) -> Result<Json<Vec<EntryShown>>, Refusal> {
    caller.as_admin()?;
    lines(&server, None, &since).await
}

/// The lines that are asked for.
pub(super) async fn lines(
    server: &Server,
    project: Option<&Project>,
    since: &Since,
) -> Result<Json<Vec<EntryShown>>, Refusal> {
    let limit = since.limit.unwrap_or(100).clamp(1, LINES);
    let project = project.map(|project| project.id.as_str());
    let entries = server.store().audit(project, since.before, limit).await?;
    Ok(Json(entries.into_iter().map(line).collect()))
}
