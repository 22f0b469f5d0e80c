//! Certificates of a project: what its runs tested.

use std::collections::BTreeSet;

use axum::extract::State;
use capo_api::{CertificatePage, CertificateShown, Role};
use serde::Deserialize;
use utoipa::IntoParams;

use super::caller::Caller;
use super::extract::{Json, Path, Query, moment};
use super::problem::Refusal;
use super::runs::{place, read};
use super::{Server, in_background};
use crate::store::Tested;

/// Runs of one page of the list, and of these those whose journals must be read for it.
const PAGE: u32 = 100;
const JOURNALS: usize = 10;

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
    responses((status = 200, body = CertificatePage))
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
    let mut unread = runs.iter().enumerate().filter(|(_, run)| run.tested.is_none());
    let most = unread.nth(JOURNALS).map_or(PAGE as usize, |(place, _)| place);
    let is_last = runs.len() <= most;
    runs.truncate(most);
    let last = runs.last().filter(|_| !is_last);
    let before = last.map(|run| format!("{}.{}", run.touched_at, run.id));
    for run in runs.iter_mut().filter(|run| run.tested.is_none()) {
        run.tested = noted(&server, &run.id).await?;
    }
    let texts: BTreeSet<String> = runs
        .iter()
        .flat_map(|run| run.tested.iter().flatten())
        .map(|tested| tested.certificate.candidate.to_string())
        .collect();
    let versions = server.store().versions_by_text(&project, &texts).await?;
    let mut certificates = Vec::new();
    for run in runs {
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
        certificates.extend(run.tested.unwrap_or_default().into_iter().rev().map(shown));
    }
    Ok(Json(CertificatePage { certificates, before }))
}

/// What a run tested that came to its end before that was kept: from now on it is, and no journal is read through for it twice.
/// `None` where its journal cannot be read, which another version of this program may.
async fn noted(server: &Server, run: &str) -> Result<Option<Vec<Tested>>, Refusal> {
    let reader = server.reader().await?;
    let lines = server.store().all_lines(run).await?;
    let count = lines.len();
    let tested = in_background(reader, move || {
        read(&lines).map(|(journal, _)| Tested::all(journal.state()))
    });
    let tested = match tested.await? {
        Ok(tested) => tested,
        Err(error) => {
            tracing::warn!(run, %error, "a journal cannot be read: what it tested is not listed");
            return Ok(None);
        }
    };
    if let Err(error) = server.store().note_tested(run, count, &tested).await {
        tracing::warn!(run, %error, "what a run tested could not be kept");
    }
    Ok(Some(tested))
}
