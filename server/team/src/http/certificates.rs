//! What the runs of a project tested.

use axum::extract::State;
use capo_api::{CertificatePage, CertificateShown, Problem, Role};
use serde::Deserialize;
use utoipa::IntoParams;

use super::caller::Caller;
use super::extract::{Json, Path, Query, moment};
use super::problem::Refusal;
use super::runs::{lines, place, read};
use super::{Server, in_background};
use crate::store::Tested;

/// Runs of one page of the list.
const PAGE: u32 = 100;

/// Where to go on.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(super) struct Before {
    /// Where the page before this one says that it goes on.
    before: Option<String>,
}

/// The prompts that runs of a project tested, those of runs that changed last first, and of a run what was tested last.
#[utoipa::path(
    get, path = "/api/projects/{project}/certificates", operation_id = "certificates",
    params(("project" = String, Path), Before), security(("session" = []), ("token" = [])),
    responses((status = 200, body = CertificatePage), (status = "default", body = Problem, content_type = "application/problem+json"))
)]
pub(super) async fn list(
    State(server): State<Server>,
    caller: Caller,
    Path(project): Path<String>,
    Query(page): Query<Before>,
) -> Result<Json<CertificatePage>, Refusal> {
    let (project, _) = caller.project(&server, &project, Role::Viewer).await?;
    let before = place(page.before.as_deref())?;
    let mut runs = server.store().testing_runs(&project, before, PAGE + 1).await?;
    let is_last = runs.len() <= PAGE as usize;
    runs.truncate(PAGE as usize);
    let last = runs.last().filter(|_| !is_last);
    let before = last.map(|run| format!("{}.{}", run.touched_at, run.id));
    let versions = server.store().versions_by_text(&project).await?;
    let mut certificates = Vec::new();
    for run in runs {
        let tested = match run.tested {
            Some(tested) => tested,
            None => noted(&server, &run.id).await?,
        };
        let shown = |tested: Tested| {
            let versions = versions.get(&tested.certificate.candidate.to_string());
            CertificateShown {
                run: run.id.clone(),
                run_name: run.name.clone(),
                at: moment(run.touched_at),
                prompt: tested.beginning,
                versions: versions.cloned().unwrap_or_default(),
                certificate: tested.certificate,
            }
        };
        certificates.extend(tested.into_iter().rev().map(shown));
    }
    Ok(Json(CertificatePage { certificates, before }))
}

/// What a run tested that came to its end before that was kept: from now on it is, and no journal is read through for it twice.
async fn noted(server: &Server, run: &str) -> Result<Vec<Tested>, Refusal> {
    let reader = server.reader().await?;
    let lines = lines(server, run).await?;
    let count = lines.len();
    let tested = in_background(reader, move || {
        read(&lines).map(|(journal, _)| Tested::all(journal.state()))
    });
    let tested = tested.await?.unwrap_or_else(|error| {
        tracing::warn!(run, %error, "a journal cannot be read: what it tested is not listed");
        Vec::new()
    });
    if let Err(error) = server.store().note_tested(run, count, &tested).await {
        tracing::warn!(run, %error, "what a run tested could not be kept");
    }
    Ok(tested)
}
