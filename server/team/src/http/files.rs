//! Data files: their routes, and their bytes on the way between requests, runs and the place where they lie.

use std::time::Duration;

use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse as _, Response};
use capo_api::{FileShown, MOST_FILE, Role};
use capo_core::ids::hex;
use futures::StreamExt as _;
use object_store::buffered::BufWriter;
use sha2::{Digest as _, Sha256};
use tokio::io::AsyncWriteExt as _;

use super::Server;
use super::caller::Caller;
use super::extract::{Json, Path, moment, pieces};
use super::problem::Refusal;
use crate::files::{Files, FilesError};
use crate::store::{Actor, KeptFile, Project, StoreError};

/// Bytes of files that a project may have, in all.
const MOST_OF_PROJECT: u64 = 4 << 30;

impl Server {
    pub(crate) fn files(&self) -> Result<&Files, FilesError> {
        self.0.files.as_ref().ok_or(FilesError::Nowhere)
    }

    /// What a file holds.
    pub(super) async fn content(&self, file: &KeptFile) -> Result<Vec<u8>, StoreError> {
        let files = self.files()?;
        files
            .read(&file.object)
            .await?
            .ok_or_else(|| StoreError::NoObject {
                object: file.object.clone(),
                place: files.to_string(),
            })
    }

    /// What a file of a project (by id) holds; `None` where there is no such file, or it does not lie where this process looks.
    pub(crate) async fn file_content(
        &self,
        project: &str,
        sha256: &str,
    ) -> Result<Option<Vec<u8>>, StoreError> {
        match self.store().kept_file(project, sha256).await? {
            Some(file) => Ok(self.files()?.read(&file.object).await?),
            None => Ok(None),
        }
    }

    /// Keeps what a body holds as a file of a project, whose SHA-256 it must have.
    pub(super) async fn keep_file(
        &self,
        actor: &Actor,
        project: &Project,
        named: &str,
        body: Body,
    ) -> Result<(), Refusal> {
        let store = self.store();
        let object = store.begin_file(project, self.now()).await?;
        let mut into = self.files()?.writer(&object, MOST_FILE as u64);
        let written = write(&mut into, body).await;
        let (hash, size) = match written {
            Ok(written) if written.0 == named => written,
            refused => {
                // What is left of it is deleted later.
                let _ = into.abort().await;
                let (hash, _) = refused?;
                return Err(Refusal::invalid(format!(
                    "The SHA-256 of what came is {hash}, and not what the address says; it was changed on its way, or \
                     is written in capitals."
                )));
            }
        };
        if store.size_of_files(project).await? + size > MOST_OF_PROJECT {
            let _ = into.abort().await;
            return Err(Refusal::invalid(format!(
                "The project's data files would be more than {} GiB; delete runs and data sets that are no longer needed.",
                MOST_OF_PROJECT >> 30
            )));
        }
        into.shutdown().await.map_err(FilesError::from)?;
        store.put_file(actor, project, &hash, size, &object).await?;
        Ok(())
    }

    /// What a file holds, for a browser to save under a name.
    pub(super) async fn handed_out(&self, file: Option<KeptFile>, name: &str) -> Result<Response, Refusal> {
        let file = file.ok_or_else(|| Refusal::missing("file"))?;
        let body = Body::from_stream(self.files()?.pieces(&file.object).await?);
        let headers = [
            // Whatever it holds, no browser shows it.
            (
                header::CONTENT_TYPE,
                HeaderValue::from_static("application/octet-stream"),
            ),
            (header::CONTENT_DISPOSITION, attachment(name)),
            (header::CONTENT_LENGTH, HeaderValue::from(file.size)),
        ];
        Ok((headers, body).into_response())
    }

    /// Takes what data files hold out of the database, where it lay once and lies in backups. To be called before anybody is
    /// served.
    ///
    /// # Errors
    /// When the database fails, or the place of data files.
    pub async fn take_contents(&self) -> Result<(), StoreError> {
        while let Some((object, content)) = self.store().content().await? {
            self.files()?.write(&object, content).await?;
            self.store().content_written(&object).await?;
        }
        Ok(())
    }

    /// Deletes objects that nothing needs any more now and then, for as long as it is polled.
    pub async fn keep_clearing(&self) {
        loop {
            tokio::time::sleep(CLEAR).await;
            if let Err(error) = self.clear().await {
                tracing::error!(%error, "what data files have left could not be deleted");
            }
        }
    }

    pub(super) async fn clear(&self) -> Result<(), StoreError> {
        for object in self.store().leftovers(self.now()).await? {
            match self.files()?.delete(&object).await {
                Ok(()) => self.store().forget_leftover(&object).await?,
                // The others go all the same.
                Err(error) => {
                    tracing::warn!(object, %error, "what a data file has left could not be deleted");
                }
            }
        }
        Ok(())
    }
}

/// How often objects that nothing needs are deleted.
const CLEAR: Duration = Duration::from_mins(10);

fn shown(sha256: String, file: &KeptFile) -> FileShown {
    FileShown {
        sha256,
        size: file.size,
        created_at: moment(file.created_at),
    }
}

/// Whether a project has a file. One that it has stays for an hour, though nothing names it.
#[utoipa::path(
    get, path = "/api/projects/{project}/files/{sha256}", operation_id = "file",
    params(("project" = String, Path), ("sha256" = String, Path)), security(("session" = []), ("token" = [])),
    responses((status = 200, body = FileShown))
)]
pub(super) async fn show(
    State(server): State<Server>,
    caller: Caller,
    Path((project, sha256)): Path<(String, String)>,
) -> Result<Json<FileShown>, Refusal> {
    let (project, _) = caller.project(&server, &project, Role::Viewer).await?;
    let file = server.store().file(&project, &sha256, server.now()).await?;
    let file = file.ok_or_else(|| Refusal::missing("file"))?;
    Ok(Json(shown(sha256, &file)))
}

/// What a file holds, as it was uploaded. It stays for an hour, though nothing names it.
#[utoipa::path(
    get, path = "/api/projects/{project}/files/{sha256}/content", operation_id = "file_content",
    params(("project" = String, Path), ("sha256" = String, Path)), security(("session" = []), ("token" = [])),
    responses((status = 200, body = Vec<u8>, content_type = "application/octet-stream"))
)]
pub(super) async fn content(
    State(server): State<Server>,
    caller: Caller,
    Path((project, sha256)): Path<(String, String)>,
) -> Result<Response, Refusal> {
    let (project, _) = caller.project(&server, &project, Role::Viewer).await?;
    let file = server.store().file(&project, &sha256, server.now()).await?;
    server.handed_out(file, &sha256).await
}

/// Keeps a file under its SHA-256.
#[utoipa::path(
    put, path = "/api/projects/{project}/files/{sha256}", operation_id = "put_file",
    params(("project" = String, Path), ("sha256" = String, Path)),
    request_body(content = Vec<u8>, content_type = "application/octet-stream"),
    security(("session" = []), ("token" = [])), responses((status = 200, body = FileShown))
)]
pub(super) async fn put(
    State(server): State<Server>,
    caller: Caller,
    Path((project, named)): Path<(String, String)>,
    body: Body,
) -> Result<Json<FileShown>, Refusal> {
    let (project, _) = caller.project(&server, &project, Role::Editor).await?;
    let store = server.store();
    if let Some(file) = store.file(&project, &named, server.now()).await? {
        return Ok(Json(shown(named, &file)));
    }
    let _one = server.upload(&caller).await?;
    server.keep_file(&caller.actor(), &project, &named, body).await?;
    let file = store.kept_file(&project.id, &named).await?;
    Ok(Json(shown(named, &file.ok_or_else(Refusal::internal)?)))
}

/// Has a browser save an answer under a name, every letter of it as [RFC 8187](https://www.rfc-editor.org/rfc/rfc8187) has it.
fn attachment(name: &str) -> HeaderValue {
    use std::fmt::Write as _;
    let mut value = "attachment; filename*=UTF-8''".to_owned();
    for byte in name.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            value.push(char::from(byte));
        } else {
            // Writing to a string does not fail.
            let _ = write!(value, "%{byte:02X}");
        }
    }
    HeaderValue::try_from(value).expect("letters of ASCII")
}

/// Writes a body without holding it, and returns its SHA-256 and its size.
async fn write(into: &mut BufWriter, body: Body) -> Result<(String, u64), Refusal> {
    let mut pieces = std::pin::pin!(pieces(body, MOST_FILE));
    let (mut hash, mut size) = (Sha256::new(), 0);
    while let Some(piece) = pieces.next().await {
        let piece = piece?;
        size += piece.len() as u64;
        hash.update(&piece);
        into.put(piece).await.map_err(FilesError::from)?;
    }
    Ok((hex(&hash.finalize()), size))
}
