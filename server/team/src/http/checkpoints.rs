//! The trainings of a project: which checkpoints there are, and their policies to be taken away.

use std::io;
use std::path::PathBuf;

use axum::body::Body;
use axum::extract::State;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use capo_api::{CheckpointShown, Role};
use capo_core::ids::hex;
use futures::TryStreamExt as _;
use sha2::{Digest as _, Sha256};

use super::Server;
use super::caller::Caller;
use super::extract::{Json, Path};
use super::pieces;
use super::problem::Refusal;
use crate::files::{Files, FilesError};
use crate::store::{KeptCheckpoint, Project, Training};
use crate::trainings::{Trainings, archive_name};

/// Bytes of an archive that are sent at once.
const AT_ONCE: usize = 64 << 10;

impl Server {
    /// How this server trains, or that it does not.
    pub(super) fn trains(&self) -> Result<&Trainings, Refusal> {
        self.trainings().ok_or_else(Refusal::without_trainings)
    }
}

impl Caller {
    /// A training of a project in which the caller has at least this role.
    pub(super) async fn training(
        &self,
        server: &Server,
        project: &str,
        id: &str,
        role: Role,
    ) -> Result<Training, Refusal> {
        let (project, _) = self.project(server, project, role).await?;
        server.trains()?;
        of_project(server, &project, id).await
    }
}

pub(super) async fn of_project(server: &Server, project: &Project, id: &str) -> Result<Training, Refusal> {
    let training = server.store().training(id).await?;
    if training.project == project.id {
        Ok(training)
    } else {
        Err(Refusal::missing("training"))
    }
}

/// Refuses a training of which nothing is learned yet.
pub(super) async fn with_checkpoint(server: &Server, project: &Project, id: &str) -> Result<(), Refusal> {
    server.trains()?;
    let training = match of_project(server, project, id).await {
        Err(refusal) if refusal == Refusal::missing("training") => {
            return Err(Refusal::invalid(format!("The project has no training {id}.")));
        }
        found => found?,
    };
    if listed(server, &training).await?.is_empty() {
        return Err(Refusal::invalid(format!(
            "The training {} has no checkpoint yet.",
            training.name
        )));
    }
    Ok(())
}

pub(super) async fn listed(server: &Server, training: &Training) -> Result<Vec<CheckpointShown>, Refusal> {
    let kept = server.store().checkpoints(&training.id).await?;
    if !kept.is_empty() {
        return Ok(kept.into_iter().map(|one| one.shown).collect());
    }
    // One of before they were kept, or that has only begun.
    let read = server.trains()?.checkpoints(&training.id).await;
    read.map_err(|error| {
        tracing::error!(training = training.id, error, "checkpoints do not read");
        Refusal::internal()
    })
}

/// The checkpoints of a training, by step.
#[utoipa::path(
    get, path = "/api/projects/{project}/trainings/{training}/checkpoints", operation_id = "checkpoints",
    params(("project" = String, Path), ("training" = String, Path)), security(("session" = []), ("token" = [])),
    responses((status = 200, body = Vec<CheckpointShown>))
)]
pub(super) async fn list(
    State(server): State<Server>,
    caller: Caller,
    Path((project, training)): Path<(String, String)>,
) -> Result<Json<Vec<CheckpointShown>>, Refusal> {
    let training = caller
        .training(&server, &project, &training, Role::Viewer)
        .await?;
    Ok(Json(listed(&server, &training).await?))
}

/// The policy of a checkpoint, a model or an adapter, as a tar archive.
#[utoipa::path(
    get, path = "/api/projects/{project}/trainings/{training}/checkpoints/{step}", operation_id = "checkpoint",
    params(("project" = String, Path), ("training" = String, Path), ("step" = u64, Path)),
    security(("session" = []), ("token" = [])),
    responses((status = 200, body = Vec<u8>, content_type = "application/x-tar"))
)]
pub(super) async fn fetch(
    State(server): State<Server>,
    caller: Caller,
    Path((project, training, step)): Path<(String, String, u64)>,
) -> Result<Response, Refusal> {
    let training = caller
        .training(&server, &project, &training, Role::Viewer)
        .await?;
    let name = archive_name(&training.id, step);
    let headers = [
        (header::CONTENT_TYPE, "application/x-tar".to_owned()),
        (
            header::CONTENT_DISPOSITION,
            format!("attachment; filename=\"{name}.tar\""),
        ),
    ];
    let kept = server.store().checkpoints(&training.id).await?;
    let kept = kept.into_iter().find(|one| one.shown.step == step);
    let body = if let Some(kept) = kept {
        let place = server.upload(&caller).await?;
        stored(server.files()?, kept, place).await?
    } else {
        let policy = server.trains()?.policy(&training.id, step).await;
        let policy = policy.map_err(|_| Refusal::missing("checkpoint"))?;
        archive(policy, name, server.upload(&caller).await?)
    };
    Ok((headers, body).into_response())
}

/// An archive that is kept, read while it is sent, for which `place` is held. One that is not what was written breaks off.
async fn stored(files: &Files, kept: KeptCheckpoint, place: impl Send + 'static) -> Result<Body, FilesError> {
    let mut read = files.pieces(&kept.object).await?;
    let (pieces, body) = pieces::body();
    tokio::spawn(async move {
        let mut hash = Sha256::new();
        let sent: Result<(), FilesError> = async {
            while let Some(piece) = read.try_next().await? {
                hash.update(&piece);
                pieces.send(piece).await.map_err(io::Error::other)?;
            }
            Ok(())
        }
        .await;
        let is_whole = hex(&hash.finalize()) == kept.sha256;
        match sent {
            Ok(()) if is_whole => pieces.end().await,
            Ok(()) => tracing::error!(
                object = kept.object,
                "a checkpoint has another SHA-256 than was written"
            ),
            Err(error) => {
                tracing::warn!(object = kept.object, %error, "a checkpoint was not sent to its end");
            }
        }
        drop(place);
    });
    Ok(body)
}

/// A folder as an archive, read while it is sent, for which `place` is held.
fn archive(folder: PathBuf, name: String, place: impl Send + 'static) -> Body {
    let (pieces, body) = pieces::body();
    tokio::task::spawn_blocking(move || {
        let mut archive = tar::Builder::new(io::BufWriter::with_capacity(AT_ONCE, pieces.blocking()));
        let written = archive.append_dir_all(name, &folder);
        let written = written.and_then(|()| Ok(archive.into_inner()?.into_inner()?));
        match written {
            Ok(pieces) => pieces.end(),
            // Whoever reads it sees it break off, and is not told where it lies.
            Err(error) => {
                tracing::warn!(folder = %folder.display(), %error, "a checkpoint was not sent to its end");
            }
        }
        drop(place);
    });
    body
}
