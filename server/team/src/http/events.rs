//! The journal of a run as it grows: JSON Lines, and Server-Sent Events for those who watch.

use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::{HeaderMap, header};
use axum::response::{IntoResponse, Response};
use capo_api::{Role, event};
use capo_core::notice::Wait;

use super::Server;
use super::caller::Caller;
use super::extract::{Path, Query};
use super::problem::Refusal;
use super::runs::shown;
use super::tail::{From, Watched};
use crate::store::{Millis, Run, Store, StoreError};

/// Bytes of a journal that are read at once: for who fetches it, and for each who watches and has missed some.
const AT_ONCE: usize = 1 << 20;
const MISSED: usize = 1 << 16;

impl Watched for Run {
    fn id(&self) -> &str {
        &self.id
    }

    fn project_name(&self) -> &str {
        &self.project_name
    }

    fn lines(&self) -> u64 {
        self.lines
    }

    fn revision(&self) -> u64 {
        self.revision
    }

    fn as_of(&self, lines: u64, other: &Self) -> Self {
        Self {
            lines,
            touched_at: other.touched_at,
            waits: other.waits.clone(),
            ..self.clone()
        }
    }

    fn document(&self) -> (&'static str, String) {
        let document = serde_json::to_string(&shown(self.clone())).expect("documents are plain");
        (event::RUN, document)
    }

    fn waits(&self) -> Option<&(Wait, Millis)> {
        self.waits.as_ref()
    }

    async fn read(store: &Store, id: &str) -> Result<Self, StoreError> {
        store.run(id).await
    }

    async fn read_lines(store: &Store, id: &str, from: u64) -> Result<Vec<(u64, String)>, StoreError> {
        store.lines(id, from, MISSED).await
    }
}

/// The journal of a run, as JSON Lines.
#[utoipa::path(
    get, path = "/api/runs/{run}/journal", operation_id = "journal", params(("run" = String, Path), From),
    security(("session" = []), ("token" = [])),
    responses((status = 200, body = String, content_type = "application/x-ndjson"))
)]
pub(super) async fn journal(
    State(server): State<Server>,
    caller: Caller,
    Path(run): Path<String>,
    Query(from): Query<From>,
) -> Result<Response, Refusal> {
    let run = caller.run(&server, &run, Role::Viewer).await?;
    let pieces = futures::stream::try_unfold(from.from.unwrap_or(0), move |next| {
        let (server, id) = (server.clone(), run.id.clone());
        async move {
            let lines = server.store().lines(&id, next, AT_ONCE).await?;
            let Some((last, _)) = lines.last() else {
                return Ok::<_, StoreError>(None);
            };
            let next = last + 1;
            let text: String = lines.into_iter().map(|(_, line)| line + "\n").collect();
            Ok(Some((Bytes::from(text), next)))
        }
    });
    let kind = [(header::CONTENT_TYPE, "application/x-ndjson")];
    Ok((kind, Body::from_stream(pieces)).into_response())
}

/// A run from a line of its journal on, as Server-Sent Events: `line` (a line, whose number is the event's id), `study` (the
/// first line was replaced), `run` (anything else about it), `waits` (the model that it waits for, with the seconds that are left,
/// or `null` once it waits for none; told for as long as that lasts, and kept nowhere).
#[utoipa::path(
    get, path = "/api/runs/{run}/events", operation_id = "events", params(("run" = String, Path), From),
    security(("session" = []), ("token" = [])),
    responses((status = 200, body = String, content_type = "text/event-stream"))
)]
pub(super) async fn events(
    State(server): State<Server>,
    caller: Caller,
    headers: HeaderMap,
    Path(run): Path<String>,
    Query(from): Query<From>,
) -> Result<Response, Refusal> {
    let run = caller.run(&server, &run, Role::Viewer).await?;
    let tails = server.0.tails.clone();
    tails.answer(server, &run, &from, (caller, headers))
}
