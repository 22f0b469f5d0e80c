//! Data files of studies.

use axum::body::Body;
use axum::extract::State;
use capo_api::{FileShown, MOST_FILE, Problem, Role};

use super::Server;
use super::caller::Caller;
use super::extract::{Json, Path, bounded, moment};
use super::problem::Refusal;
use crate::secret::sha256;
use crate::store::KeptFile;

/// Bytes of files that a project may have, in all.
const MOST_OF_PROJECT: u64 = 4 << 30;

fn shown(sha256: String, file: &KeptFile) -> FileShown {
    FileShown {
        sha256,
        size: file.size,
        created_at: moment(file.created_at),
    }
}

/// Whether a project has a file.
#[utoipa::path(
    get, path = "/api/projects/{project}/files/{sha256}", operation_id = "file",
    params(("project" = String, Path), ("sha256" = String, Path)), security(("session" = []), ("token" = [])),
    responses((status = 200, body = FileShown), (status = "default", body = Problem, content_type = "application/problem+json"))
)]
pub(super) async fn show(
    State(server): State<Server>,
    caller: Caller,
    Path((project, sha256)): Path<(String, String)>,
) -> Result<Json<FileShown>, Refusal> {
    let (project, _) = caller.project(&server, &project, Role::Viewer).await?;
    let file = server.store().file(&project, &sha256).await?;
    let file = file.ok_or_else(|| Refusal::missing("file"))?;
    Ok(Json(shown(sha256, &file)))
}

/// Keeps a file under its SHA-256.
#[utoipa::path(
    put, path = "/api/projects/{project}/files/{sha256}", operation_id = "put_file",
    params(("project" = String, Path), ("sha256" = String, Path)),
    request_body(content = Vec<u8>, content_type = "application/octet-stream"), security(("session" = []), ("token" = [])),
    responses((status = 200, body = FileShown), (status = "default", body = Problem, content_type = "application/problem+json"))
)]
pub(super) async fn put(
    State(server): State<Server>,
    caller: Caller,
    Path((project, named)): Path<(String, String)>,
    body: Body,
) -> Result<Json<FileShown>, Refusal> {
    let (project, _) = caller.project(&server, &project, Role::Editor).await?;
    if let Some(file) = server.store().file(&project, &named).await? {
        return Ok(Json(shown(named, &file)));
    }
    let _one = server.upload().await?;
    let content = bounded(body, MOST_FILE).await?;
    let size = content.len() as u64;
    let hashed = tokio::task::spawn_blocking(move || (sha256(&content), content)).await;
    let (hash, content) = hashed.map_err(|_| Refusal::internal())?;
    if hash != named {
        return Err(Refusal::invalid(format!(
            "The SHA-256 of what came is {hash}, and not what the address says; it was changed on its way, or \
             is written in capitals."
        )));
    }
    if server.store().size_of_files(&project).await? + size > MOST_OF_PROJECT {
        return Err(Refusal::invalid(format!(
            "The project's data files would be more than {} GiB; delete runs that are no longer needed.",
            MOST_OF_PROJECT >> 30
        )));
    }
    let store = server.store();
    store.put_file(&caller.actor(), &project, &hash, &content).await?;
    let file = store.file(&project, &hash).await?.ok_or_else(Refusal::internal)?;
    Ok(Json(shown(hash, &file)))
}
