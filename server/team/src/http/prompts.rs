//! Prompts for programs: versions with what speaks for them, and labels that people move between these.

use std::collections::BTreeMap;

use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use capo_api::{
    LabelMove, LabelMoved, LabelName, LabelShown, MOST_PROMPT, NewVersion, PRODUCTION, PromptName,
    PromptShown, Role, RunOrigin, Title, VersionPage, VersionShown,
};
use capo_core::ids::CandidateId;
use capo_core::reading::evidence::Evidence;
use capo_core::run_state::RunState;
use serde::Deserialize;
use utoipa::IntoParams;

use super::caller::Caller;
use super::extract::{Json, Path, Query, has_already, moment};
use super::problem::Refusal;
use super::runs::read;
use super::{Server, in_background};
use crate::secret;
use crate::store::{AddedVersion, Moved, Project, Prompt, PromptVersion, Run, StoreError};

/// Versions of one page of a list.
const PAGE: u32 = 20;

/// Moves of one page of a label's history.
const MOVES: u32 = 100;

/// Digits that name a candidate, at least.
const FEWEST: usize = 6;

impl Caller {
    /// A prompt of a project in which the caller has at least this role.
    async fn prompt(
        &self,
        server: &Server,
        project: &str,
        name: &str,
        role: Role,
    ) -> Result<Prompt, Refusal> {
        let (project, _) = self.project(server, project, role).await?;
        Ok(server.store().prompt(&project, name).await?)
    }
}

fn shown(name: &str, version: PromptVersion, labels: &BTreeMap<String, u64>) -> VersionShown {
    let labels = labels.iter().filter(|(_, on)| **on == version.number);
    VersionShown {
        name: name.to_owned(),
        version: version.number,
        labels: labels.map(|(label, _)| label.clone()).collect(),
        text: version.text,
        sha256: version.sha256,
        fingerprint: version.fingerprint,
        note: version.note,
        run: version.run,
        evidence: version.evidence,
        created_by: version.created_by,
        created_at: moment(version.created_at),
    }
}

/// The prompts of a project, by name.
#[utoipa::path(
    get, path = "/api/projects/{project}/prompts", operation_id = "prompts", params(("project" = String, Path)),
    security(("session" = []), ("token" = [])), responses((status = 200, body = Vec<PromptShown>))
)]
pub(super) async fn list(
    State(server): State<Server>,
    caller: Caller,
    Path(project): Path<String>,
) -> Result<Json<Vec<PromptShown>>, Refusal> {
    let (project, _) = caller.project(&server, &project, Role::Viewer).await?;
    let prompts = server.store().prompts(&project).await?.into_iter();
    let prompts = prompts.map(|(prompt, labels)| PromptShown {
        name: prompt.name,
        labels,
        newest: prompt.newest,
        touched_at: moment(prompt.touched_at),
    });
    Ok(Json(prompts.collect()))
}

/// Which version.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(super) struct Which {
    /// The one that this label is on.
    label: Option<String>,
    /// The one of this number; the newest where neither is named.
    version: Option<u64>,
}

/// A version of a prompt; with `Accept: text/plain` its text alone. Who sends the `ETag` of the answer that they have as
/// `If-None-Match` gets 304 for as long as it is the same.
#[utoipa::path(
    get, path = "/api/projects/{project}/prompts/{name}", operation_id = "prompt",
    params(("project" = String, Path), ("name" = String, Path), Which), security(("session" = []), ("token" = [])),
    responses((status = 200, content((VersionShown = "application/json"), (String = "text/plain")), headers(("etag" = String))), (status = 304))
)]
pub(super) async fn show(
    State(server): State<Server>,
    caller: Caller,
    Path((project, name)): Path<(String, String)>,
    Query(which): Query<Which>,
    headers: HeaderMap,
) -> Result<Response, Refusal> {
    let prompt = caller.prompt(&server, &project, &name, Role::Viewer).await?;
    let labels = server.store().labels(&prompt).await?;
    let number = match (&which.label, which.version) {
        (None, None) => prompt.newest,
        (None, Some(version)) => version,
        (Some(label), None) => *labels.get(label).ok_or_else(|| Refusal::missing("label"))?,
        (Some(_), Some(_)) => {
            return Err(Refusal::invalid("Name a `label` or a `version`, not both."));
        }
    };
    let version = server.store().prompt_version(&prompt, number).await?;
    let (kind, body) = if wants_text(&headers) {
        ("text/plain; charset=utf-8", version.text.into_bytes())
    } else {
        let document = serde_json::to_vec(&shown(&prompt.name, version, &labels));
        ("application/json", document.map_err(|_| Refusal::internal())?)
    };
    Ok(tagged(&headers, kind, body))
}

/// Whether a program asks for the text alone.
fn wants_text(headers: &HeaderMap) -> bool {
    let accepted = headers.get_all(header::ACCEPT).iter();
    let accepted: Vec<&str> = accepted
        .filter_map(|value| value.to_str().ok())
        .flat_map(|kinds| kinds.split(','))
        .map(|kind| kind.split(';').next().unwrap_or_default().trim())
        .collect();
    accepted.contains(&"text/plain") && !accepted.contains(&"application/json")
}

/// An answer that is sent only to who does not have it.
fn tagged(headers: &HeaderMap, kind: &'static str, body: Vec<u8>) -> Response {
    let tag = format!("\"{}\"", secret::sha256(&body));
    let mut response = if has_already(headers, &tag) {
        StatusCode::NOT_MODIFIED.into_response()
    } else {
        ([(header::CONTENT_TYPE, kind)], body).into_response()
    };
    let sent = response.headers_mut();
    sent.extend(HeaderValue::from_str(&tag).ok().map(|tag| (header::ETAG, tag)));
    // It may be kept, and is asked for each time: a label may have moved, and a token been withdrawn.
    let caching = HeaderValue::from_static("private, no-cache");
    sent.insert(header::CACHE_CONTROL, caching);
    sent.insert(header::VARY, HeaderValue::from_static("accept"));
    response
}

/// Deletes a prompt with its versions and labels.
#[utoipa::path(
    delete, path = "/api/projects/{project}/prompts/{name}", operation_id = "delete_prompt",
    params(("project" = String, Path), ("name" = String, Path)), security(("session" = [])), responses((status = 204))
)]
pub(super) async fn delete(
    State(server): State<Server>,
    caller: Caller,
    Path((project, name)): Path<(String, String)>,
) -> Result<StatusCode, Refusal> {
    let prompt = caller.prompt(&server, &project, &name, Role::Admin).await?;
    caller.in_person_or(
        "A prompt is deleted by a person who is signed in, on the server's page, and by no token.",
    )?;
    server.store().delete_prompt(&caller.actor(), &prompt).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Where to go on.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(super) struct Before {
    /// Only those before the one of this number.
    before: Option<u64>,
}

/// The versions of a prompt, the newest first.
#[utoipa::path(
    get, path = "/api/projects/{project}/prompts/{name}/versions", operation_id = "prompt_versions",
    params(("project" = String, Path), ("name" = String, Path), Before), security(("session" = []), ("token" = [])),
    responses((status = 200, body = VersionPage))
)]
pub(super) async fn versions(
    State(server): State<Server>,
    caller: Caller,
    Path((project, name)): Path<(String, String)>,
    Query(page): Query<Before>,
) -> Result<Json<VersionPage>, Refusal> {
    let prompt = caller.prompt(&server, &project, &name, Role::Viewer).await?;
    let labels = server.store().labels(&prompt).await?;
    let versions = server.store().prompt_versions(&prompt, page.before, PAGE).await?;
    let last = versions.last().map(|version| version.number);
    let shown = |version| shown(&prompt.name, version, &labels);
    Ok(Json(VersionPage {
        // None is ever deleted alone: the first one is the last of the list.
        before: last.filter(|number| *number > 1),
        versions: versions.into_iter().map(shown).collect(),
    }))
}

/// Adds a version, and with the first one the prompt. What the newest version says already is not added twice.
#[utoipa::path(
    post, path = "/api/projects/{project}/prompts/{name}/versions", operation_id = "add_prompt_version",
    params(("project" = String, Path), ("name" = String, Path)), request_body = NewVersion,
    security(("session" = []), ("token" = [])),
    responses((status = 201, body = VersionShown), (status = 200, body = VersionShown))
)]
pub(super) async fn add(
    State(server): State<Server>,
    caller: Caller,
    Path((project, name)): Path<(String, String)>,
    Json(new): Json<NewVersion>,
) -> Result<(StatusCode, Json<VersionShown>), Refusal> {
    let (project, _) = caller.project(&server, &project, Role::Editor).await?;
    let name = PromptName::try_from(name).map_err(|error| Refusal::invalid(error.to_string()))?;
    let (text, source, note) = match new {
        NewVersion::Text { text, note } => (text, None, note),
        NewVersion::Run { run, candidate, note } => {
            let (text, evidence) = of_run(&server, &caller, &project, &run, candidate).await?;
            (text, Some((run, evidence)), note)
        }
    };
    check(&text)?;
    let note = note.as_ref().map(Title::as_str).map(str::to_owned);
    let new = AddedVersion {
        text,
        note,
        source,
        made: None,
    };
    let (store, actor) = (server.store(), caller.actor());
    let (version, is_new) = store
        .add_prompt_version(&actor, &project, name.as_str(), &new)
        .await?;
    let prompt = store.prompt(&project, name.as_str()).await?;
    let labels = store.labels(&prompt).await?;
    let status = if is_new {
        StatusCode::CREATED
    } else {
        StatusCode::OK
    };
    Ok((status, Json(shown(&prompt.name, version, &labels))))
}

/// Refuses a text that is no prompt.
pub(super) fn check(text: &str) -> Result<(), Refusal> {
    if text.trim().is_empty() {
        return Err(Refusal::invalid("The prompt's text is empty."));
    }
    if text.len() > MOST_PROMPT {
        let most = MOST_PROMPT >> 10;
        return Err(Refusal::invalid(format!(
            "The prompt's text is larger than {most} KiB."
        )));
    }
    // PostgreSQL keeps no such text.
    if text.contains('\0') {
        return Err(Refusal::invalid(
            "The prompt's text has a character NUL (U+0000); take it out.",
        ));
    }
    Ok(())
}

/// A prompt of a run of the project, and what the run says of it.
async fn of_run(
    server: &Server,
    caller: &Caller,
    project: &Project,
    run: &str,
    candidate: Option<String>,
) -> Result<(String, Evidence), Refusal> {
    let run = caller.run(server, run, Role::Viewer).await?;
    if run.project != project.id {
        return Err(Refusal::invalid(format!(
            "This run is one of the project {}, and a prompt is taken from a run of its own project.",
            run.project_name
        )));
    }
    let measured_elsewhere = is_from_elsewhere(server, &run).await?;
    let reader = server.reader().await?;
    let lines = server.store().all_lines(&run.id).await?;
    let taken = in_background(reader, move || {
        let (journal, _) = read(&lines)?;
        take(journal.state(), candidate.as_deref())
    })
    .await?;
    let (text, evidence) = taken.map_err(Refusal::invalid)?;
    let evidence = Evidence {
        measured_elsewhere,
        ..evidence
    };
    Ok((text, evidence))
}

/// Whether a journal, or the one that it branched off in the end, was pushed; so is one whose origin is there no more.
async fn is_from_elsewhere(server: &Server, run: &Run) -> Result<bool, Refusal> {
    let mut origin = run.origin.clone();
    loop {
        let of = match origin {
            RunOrigin::Server | RunOrigin::Training { .. } => return Ok(false),
            RunOrigin::Pushed => return Ok(true),
            RunOrigin::Branch { run, .. } => run,
        };
        origin = match server.store().run(&of).await {
            Ok(run) => run.origin,
            Err(StoreError::Missing(_)) => return Ok(true),
            Err(error) => return Err(error.into()),
        };
    }
}

/// The text of a candidate, the returned one unless stated, and what the run says of it.
fn take(state: &RunState, named: Option<&str>) -> Result<(String, Evidence), String> {
    let finished = state.finished().ok_or(
        "This run has not come to an end; let it end, or stop it, before a prompt is taken from it.",
    )?;
    let id = match named {
        Some(named) => only(state, named)?,
        None => finished
            .best
            .ok_or("This run returned no prompt, because not even the seed prompt was measured.")?,
    };
    let taken = state.candidate(&id).zip(Evidence::of(state, &id));
    let (candidate, evidence) = taken.ok_or("The journal of this run has no text of its best prompt.")?;
    Ok((candidate.prompt.to_string(), evidence))
}

/// The candidate of an id, or the only one whose id begins so.
fn only(state: &RunState, named: &str) -> Result<CandidateId, String> {
    let is_digit = |sign: char| matches!(sign, '0'..='9' | 'a'..='f');
    if named.len() < FEWEST || !named.chars().all(is_digit) {
        return Err(format!(
            "A candidate is named by its id, the SHA-256 of its text, or the first {FEWEST} or more digits (0-9, a-f) of it."
        ));
    }
    let ids = state.candidates().map(|(id, _)| *id);
    let found: Vec<CandidateId> = ids.filter(|id| id.to_string().starts_with(named)).collect();
    match found[..] {
        [id] => Ok(id),
        [] => Err(format!("This run has no candidate whose id begins with {named}.")),
        _ => Err(format!(
            "{} candidates of this run have ids that begin with {named}; give more digits.",
            found.len()
        )),
    }
}

/// The last move of a label that is on a version.
async fn label_of(server: &Server, prompt: &Prompt, label: String) -> Result<LabelShown, Refusal> {
    let last = server.store().label_moves(prompt, &label, None, 1).await?.pop();
    let last = last.and_then(|last| Some((last.to?, last.actor, last.at)));
    let (version, moved_by, at) = last.ok_or_else(|| Refusal::missing("label"))?;
    Ok(LabelShown {
        label,
        version,
        moved_by,
        moved_at: moment(at),
    })
}

/// Refuses a token that would change which prompt is approved.
fn may_move(caller: &Caller, label: &str) -> Result<(), Refusal> {
    if label == PRODUCTION {
        caller.in_person_or(
            "The label production is moved by a person who is signed in, with the version's numbers in front of them: do it \
             on the server's page. A token may move other labels.",
        )?;
    }
    Ok(())
}

/// The version that a label is on.
#[utoipa::path(
    get, path = "/api/projects/{project}/prompts/{name}/labels/{label}", operation_id = "label",
    params(("project" = String, Path), ("name" = String, Path), ("label" = String, Path)),
    security(("session" = []), ("token" = [])), responses((status = 200, body = LabelShown))
)]
pub(super) async fn label(
    State(server): State<Server>,
    caller: Caller,
    Path((project, name, label)): Path<(String, String, String)>,
) -> Result<Json<LabelShown>, Refusal> {
    let prompt = caller.prompt(&server, &project, &name, Role::Viewer).await?;
    Ok(Json(label_of(&server, &prompt, label).await?))
}

/// Moves a label to a version, the first time too, and back; `production` is moved by people alone.
#[utoipa::path(
    put, path = "/api/projects/{project}/prompts/{name}/labels/{label}", operation_id = "move_label",
    params(("project" = String, Path), ("name" = String, Path), ("label" = String, Path)), request_body = LabelMove,
    security(("session" = []), ("token" = [])), responses((status = 200, body = LabelShown))
)]
pub(super) async fn move_label(
    State(server): State<Server>,
    caller: Caller,
    Path((project, name, label)): Path<(String, String, String)>,
    Json(to): Json<LabelMove>,
) -> Result<Json<LabelShown>, Refusal> {
    let prompt = caller.prompt(&server, &project, &name, Role::Editor).await?;
    let label = LabelName::try_from(label).map_err(|error| Refusal::invalid(error.to_string()))?;
    let label = label.as_str();
    may_move(&caller, label)?;
    let (store, actor) = (server.store(), caller.actor());
    let version = store.prompt_version(&prompt, to.version).await?;
    if version.fingerprint != to.seen {
        return Err(Refusal::invalid(format!(
            "`seen` is not the fingerprint of version {}: read its text and its evidence, and send the `fingerprint` that \
             stands with them.",
            to.version
        )));
    }
    store
        .move_label(&actor, &prompt, label, Some(to.version), to.was)
        .await?;
    Ok(Json(label_of(&server, &prompt, label.to_owned()).await?))
}

/// What a label is thought to be on.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(super) struct Was {
    /// The version; where it is on another one by now, nothing is done.
    was: Option<u64>,
}

/// Takes a label away; `production` is taken away by people alone.
#[utoipa::path(
    delete, path = "/api/projects/{project}/prompts/{name}/labels/{label}", operation_id = "remove_label",
    params(("project" = String, Path), ("name" = String, Path), ("label" = String, Path), Was),
    security(("session" = []), ("token" = [])), responses((status = 204))
)]
pub(super) async fn remove_label(
    State(server): State<Server>,
    caller: Caller,
    Path((project, name, label)): Path<(String, String, String)>,
    Query(seen): Query<Was>,
) -> Result<StatusCode, Refusal> {
    let prompt = caller.prompt(&server, &project, &name, Role::Editor).await?;
    may_move(&caller, &label)?;
    let (store, actor) = (server.store(), caller.actor());
    store.move_label(&actor, &prompt, &label, None, seen.was).await?;
    Ok(StatusCode::NO_CONTENT)
}

pub(super) fn moved(moved: Moved) -> LabelMoved {
    LabelMoved {
        number: moved.number,
        at: moment(moved.at),
        actor: moved.actor,
        from: moved.from,
        to: moved.to,
    }
}

/// The moves of a label, the latest first, at most 100.
#[utoipa::path(
    get, path = "/api/projects/{project}/prompts/{name}/labels/{label}/history", operation_id = "label_history",
    params(("project" = String, Path), ("name" = String, Path), ("label" = String, Path), Before),
    security(("session" = []), ("token" = [])), responses((status = 200, body = Vec<LabelMoved>))
)]
pub(super) async fn history(
    State(server): State<Server>,
    caller: Caller,
    Path((project, name, label)): Path<(String, String, String)>,
    Query(page): Query<Before>,
) -> Result<Json<Vec<LabelMoved>>, Refusal> {
    let prompt = caller.prompt(&server, &project, &name, Role::Viewer).await?;
    let moves = server
        .store()
        .label_moves(&prompt, &label, page.before, MOVES)
        .await?;
    Ok(Json(moves.into_iter().map(moved).collect()))
}
