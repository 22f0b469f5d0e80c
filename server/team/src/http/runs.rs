//! Runs on the server, and those that are pushed to it.

use std::collections::BTreeMap;

use axum::body::Body;
use axum::extract::State;
use axum::http::StatusCode;
use capo_api::{
    MOST_JOURNAL, NewBranch, NewRun, Role, RunChange, RunDetail, RunOrder, RunOrigin, RunPage, RunShown,
    RunStage, RunWish, Title,
};
use capo_core::journal::{self, Event, Journal, MemoryJournal, parse_line};
use capo_core::reading::progress::Progress;
use capo_core::study::{Study, suggest};
use capo_core::verify;
use capo_hosted::{Prepared, by_hand, check_size, steering};
use capo_workloads::files::MemoryFiles;
use futures::executor::block_on;
use serde::Deserialize;
use utoipa::IntoParams;

use super::caller::Caller;
use super::extract::{Json, Path, Query, bounded, millis, moment};
use super::problem::Refusal;
use super::{Server, in_background};
use crate::shared_keys;
use crate::store::{AddedRun, KeptFile, Millis, Project, Run, Tested};

/// Runs of one page of a list.
const PAGE: u32 = 100;

/// Bytes of a study and of the data files that it names that are read to check it.
const MOST_CHECKED: usize = 256 << 20;

/// Bytes of a line of a journal that is pushed.
const MOST_LINE: usize = 4 << 20;

pub(super) fn shown(run: Run) -> RunShown {
    RunShown {
        id: run.id,
        project: run.project_name,
        name: run.name,
        started_by: run.member_name,
        origin: run.origin,
        stage: run.stage,
        wish: run.wish,
        status: run.status,
        error: run.error,
        method: run.method,
        objective: run.objective,
        created_at: moment(run.created_at),
        start_at: run.start_at.map(moment),
        touched_at: moment(run.touched_at),
        lines: run.lines,
        revision: run.revision,
        progress: run.progress,
        times: run.times,
    }
}

impl Caller {
    /// A run of one of the caller's projects, in which they have at least this role. Who has none does not learn that it
    /// exists.
    pub(super) async fn run(&self, server: &Server, id: &str, role: Role) -> Result<Run, Refusal> {
        let run = server.store().run(id).await?;
        let project = self.project(server, &run.project_name, role).await;
        match project {
            Ok(_) => Ok(run),
            Err(refusal) if refusal == Refusal::missing("project") => Err(Refusal::missing("run")),
            Err(refusal) => Err(refusal),
        }
    }
}

/// Which runs.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(super) struct Which {
    /// Name of a project; all of one's projects unless stated.
    project: Option<String>,
    /// Where the page before this one says that it goes on.
    before: Option<String>,
}

/// Runs, those that were added last first.
#[utoipa::path(
    get, path = "/api/runs", operation_id = "runs", params(Which), security(("session" = []), ("token" = [])),
    responses((status = 200, body = RunPage))
)]
pub(super) async fn list(
    State(server): State<Server>,
    caller: Caller,
    Query(which): Query<Which>,
) -> Result<Json<RunPage>, Refusal> {
    let projects = if let Some(name) = &which.project {
        vec![caller.project(&server, name, Role::Viewer).await?.0]
    } else {
        let projects = server.store().projects(&caller.member).await?;
        projects.into_iter().map(|(project, _)| project).collect()
    };
    let ids: Vec<String> = projects.into_iter().map(|project| project.id).collect();
    let before = place(which.before.as_deref())?;
    let mut runs = server.store().runs(&ids, before, PAGE + 1).await?;
    let is_last = runs.len() <= PAGE as usize;
    runs.truncate(PAGE as usize);
    let last = runs.last().filter(|_| !is_last);
    let before = last.map(|run| format!("{}.{}", run.created_at, run.id));
    Ok(Json(RunPage {
        runs: runs.into_iter().map(shown).collect(),
        before,
    }))
}

/// Where a page of a list begins, as the page before it says.
pub(super) fn place(before: Option<&str>) -> Result<Option<(Millis, &str)>, Refusal> {
    let Some(before) = before else { return Ok(None) };
    let place = before
        .split_once('.')
        .and_then(|(at, id)| Some((at.parse().ok()?, id)));
    let unknown = || Refusal::invalid("`before` is what an earlier page of the list said.");
    place.map(Some).ok_or_else(unknown)
}

/// Starts a run.
#[utoipa::path(
    post, path = "/api/projects/{project}/runs", operation_id = "add_run", params(("project" = String, Path)),
    request_body = NewRun, security(("session" = []), ("token" = [])), responses((status = 201, body = RunShown))
)]
pub(super) async fn add(
    State(server): State<Server>,
    caller: Caller,
    Path(project): Path<String>,
    Json(new): Json<NewRun>,
) -> Result<(StatusCode, Json<RunShown>), Refusal> {
    let (project, _) = caller.project(&server, &project, Role::Editor).await?;
    let start_at = new.start_at.as_deref().map(millis).transpose()?;
    let facts = check(&server, &project, &new.study, &new.files, None).await?;
    let added = AddedRun {
        name: new.name.as_str().to_owned(),
        study: new.study,
        files: new.files,
        method: facts.method,
        objective: facts.objective,
        start_at,
        ..AddedRun::default()
    };
    keep(&server, &caller, &project, added).await
}

async fn keep(
    server: &Server,
    caller: &Caller,
    project: &Project,
    added: AddedRun,
) -> Result<(StatusCode, Json<RunShown>), Refusal> {
    let run = server
        .store()
        .add_run(&caller.actor(), project, &caller.member, added)
        .await?;
    server.tell_of_runs();
    Ok((StatusCode::CREATED, Json(shown(run))))
}

/// What lists say of a study, and what else of it is looked at.
pub(super) struct Facts {
    pub(super) method: String,
    pub(super) objective: String,
    /// Ids of the trainings whose rewriters it asks.
    rewriters: Vec<String>,
}

impl Facts {
    pub(super) fn of(study: &Study) -> Self {
        Self {
            method: study.study.method.clone(),
            objective: study.objective.metric.clone(),
            rewriters: Vec::new(),
        }
    }
}

/// Reads a study with its data as a worker will, and refuses what cannot run, or cannot go on with a journal that begins with
/// this line.
pub(super) async fn check(
    server: &Server,
    project: &Project,
    study: &str,
    named: &BTreeMap<String, String>,
    journal: Option<String>,
) -> Result<Facts, Refusal> {
    // Before anything is loaded: studies may bring large files.
    let reader = server.reader().await?;
    let mut files = MemoryFiles::new();
    let mut size = study.len();
    for (path, sha256) in named {
        let file = named_file(server, project, path, sha256).await?;
        size += usize::try_from(file.size).unwrap_or(usize::MAX);
        if size > MOST_CHECKED {
            let most = MOST_CHECKED >> 20;
            return Err(Refusal::invalid(format!(
                "The study's data files are larger than {most} MiB in all."
            )));
        }
        files.insert(path.clone(), server.content(&file).await?);
    }
    let keys = shared_keys::of_project(server.store(), &project.id, "http://127.0.0.1", "unused").await?;
    let study = study.to_owned();
    let checked = in_background(reader, move || {
        let prepared = Prepared::new(&study, &files)?;
        prepared.check_models(&keys)?;
        if let Some(first) = journal {
            prepared.goes_on_from(&first)?;
        }
        Ok::<_, String>(Facts {
            rewriters: prepared.rewriters(),
            ..Facts::of(prepared.setup.problem.study())
        })
    })
    .await?;
    let facts = checked.map_err(Refusal::invalid)?;
    for training in &facts.rewriters {
        super::checkpoints::with_checkpoint(server, project, training).await?;
    }
    Ok(facts)
}

/// Refuses what a training alone decides of the run that is its search.
async fn decides(server: &Server, run: &Run) -> Result<(), Refusal> {
    match server.store().training_of_run(&run.id).await? {
        None => Ok(()),
        Some(name) => Err(Refusal::conflict(format!(
            "This run is the search of the training {name}: stop, resume or delete that. It cannot be branched."
        ))),
    }
}

/// A data file that a study names, which its project must have.
async fn named_file(
    server: &Server,
    project: &Project,
    path: &str,
    sha256: &str,
) -> Result<KeptFile, Refusal> {
    let file = server.store().file(project, sha256, server.now()).await?;
    file.ok_or_else(|| {
        Refusal::invalid(format!(
            "The project does not have the data file `{path}` ({sha256}); upload it first."
        ))
    })
}

/// A run with its study.
#[utoipa::path(
    get, path = "/api/runs/{run}", operation_id = "run", params(("run" = String, Path)),
    security(("session" = []), ("token" = [])), responses((status = 200, body = RunDetail))
)]
pub(super) async fn show(
    State(server): State<Server>,
    caller: Caller,
    Path(run): Path<String>,
) -> Result<Json<RunDetail>, Refusal> {
    let run = caller.run(&server, &run, Role::Viewer).await?;
    let study = server.store().run_study(&run.id).await?;
    Ok(Json(RunDetail {
        run: shown(run),
        study: study.text,
        files: study.files,
    }))
}

/// Gives a run another name.
#[utoipa::path(
    patch, path = "/api/runs/{run}", operation_id = "change_run", params(("run" = String, Path)),
    request_body = RunChange, security(("session" = []), ("token" = [])), responses((status = 200, body = RunShown))
)]
pub(super) async fn change(
    State(server): State<Server>,
    caller: Caller,
    Path(run): Path<String>,
    Json(change): Json<RunChange>,
) -> Result<Json<RunShown>, Refusal> {
    let run = caller.run(&server, &run, Role::Editor).await?;
    let store = server.store();
    store
        .rename_run(&caller.actor(), &run, change.name.as_str())
        .await?;
    Ok(Json(shown(store.run(&run.id).await?)))
}

/// Deletes a run on which nobody works.
#[utoipa::path(
    delete, path = "/api/runs/{run}", operation_id = "delete_run", params(("run" = String, Path)),
    security(("session" = []), ("token" = [])), responses((status = 204))
)]
pub(super) async fn delete(
    State(server): State<Server>,
    caller: Caller,
    Path(run): Path<String>,
) -> Result<StatusCode, Refusal> {
    let run = caller.run(&server, &run, Role::Editor).await?;
    decides(&server, &run).await?;
    server.store().delete_run(&caller.actor(), &run).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Pauses, stops, resumes or steers a run.
#[utoipa::path(
    post, path = "/api/runs/{run}/orders", operation_id = "order_run", params(("run" = String, Path)),
    request_body = RunOrder, security(("session" = []), ("token" = [])), responses((status = 200, body = RunShown))
)]
pub(super) async fn order(
    State(server): State<Server>,
    caller: Caller,
    Path(run): Path<String>,
    Json(order): Json<RunOrder>,
) -> Result<Json<RunShown>, Refusal> {
    let run = caller.run(&server, &run, Role::Editor).await?;
    decides(&server, &run).await?;
    let (store, actor) = (server.store(), caller.actor());
    match order {
        RunOrder::Pause => store.wish(&actor, &run, RunWish::Pause).await?,
        RunOrder::Stop => store.wish(&actor, &run, RunWish::Stop).await?,
        RunOrder::Resume { study } => {
            let kept = store.run_study(&run.id).await?;
            let changed = study.as_deref().unwrap_or(&kept.text);
            let (project, _) = caller.project(&server, &run.project_name, Role::Editor).await?;
            let first = if run.lines > 0 {
                Some(store.line(&run.id, 0).await?)
            } else {
                None
            };
            check(&server, &project, changed, &kept.files, first).await?;
            store
                .resume_run(&actor, &run, &caller.member, study.as_deref())
                .await?;
        }
        RunOrder::Steer { change } => {
            let study = store.run_study(&run.id).await?;
            let change =
                steering(change, run.progress.by_round.len(), &study.text).map_err(Refusal::invalid)?;
            store.steer(&actor, &run, &change).await?;
        }
        RunOrder::Withdraw { change } => {
            let change = by_hand(change).map_err(Refusal::invalid)?;
            store.withdraw_steers(&actor, &run, &change).await?;
        }
    }
    server.tell_of_runs();
    Ok(Json(shown(store.run(&run.id).await?)))
}

/// Makes a run that shares the beginning of another.
#[utoipa::path(
    post, path = "/api/runs/{run}/branches", operation_id = "branch_run", params(("run" = String, Path)),
    request_body = NewBranch, security(("session" = []), ("token" = [])), responses((status = 201, body = RunShown))
)]
pub(super) async fn branch(
    State(server): State<Server>,
    caller: Caller,
    Path(run): Path<String>,
    Json(new): Json<NewBranch>,
) -> Result<(StatusCode, Json<RunShown>), Refusal> {
    let run = caller.run(&server, &run, Role::Editor).await?;
    // Its journal names a rewriter that lies in the training's folder.
    decides(&server, &run).await?;
    let (project, _) = caller.project(&server, &run.project_name, Role::Editor).await?;
    let change = by_hand(new.change).map_err(Refusal::invalid)?;
    let study = server.store().run_study(&run.id).await?;
    if new.start {
        check(&server, &project, &study.text, &study.files, None).await?;
    }
    let reader = server.reader().await?;
    let whole = server.store().all_lines(&run.id).await?;
    let round = new.round;
    let branched = in_background(reader, move || {
        let lines = journal::branch(&whole, round, change).map_err(|error| error.to_string())?;
        let (_, progress) = read(&lines)?;
        Ok((lines, progress))
    })
    .await?;
    let (lines, progress) = branched.map_err(|error: String| Refusal::invalid(error))?;
    let added = AddedRun {
        name: new.name.as_str().to_owned(),
        origin: Some(RunOrigin::Branch { run: run.id, round }),
        study: study.text,
        files: study.files,
        method: run.method,
        objective: run.objective,
        stage: Some(if new.start {
            RunStage::Queued
        } else {
            RunStage::Paused
        }),
        lines,
        progress,
        ..AddedRun::default()
    };
    keep(&server, &caller, &project, added).await
}

/// A journal folded, and what lists show of it.
pub(super) fn read(lines: &[String]) -> Result<(Journal, Progress), String> {
    let numbered = (0..).zip(lines).map(Ok);
    let journal =
        Journal::open(Box::new(MemoryJournal::new()), numbered).map_err(|error| error.to_string())?;
    let progress = Progress::of(journal.state());
    Ok((journal, progress))
}

/// What a pushed run is called, and its data.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(super) struct Named {
    /// Its name for people.
    name: String,
    /// SHA-256 of the data files that its study names, by path, as a JSON object; the project has them already. A run that
    /// comes without them cannot go on here.
    files: Option<String>,
}

/// Keeps the journal of a run that was made elsewhere, as JSON Lines, once it is verified.
#[utoipa::path(
    post, path = "/api/projects/{project}/journals", operation_id = "push_run",
    params(("project" = String, Path), Named), request_body(content = String, content_type = "application/x-ndjson"),
    security(("session" = []), ("token" = [])), responses((status = 201, body = RunShown))
)]
pub(super) async fn push(
    State(server): State<Server>,
    caller: Caller,
    Path(project): Path<String>,
    Query(named): Query<Named>,
    body: Body,
) -> Result<(StatusCode, Json<RunShown>), Refusal> {
    let (project, _) = caller.project(&server, &project, Role::Editor).await?;
    let name = Title::try_from(named.name).map_err(|error| Refusal::invalid(error.to_string()))?;
    let name = name.as_str().to_owned();
    let files = named
        .files
        .map_or_else(|| Ok(BTreeMap::new()), |files| serde_json::from_str(&files));
    let files: BTreeMap<String, String> = files.map_err(|error| {
        let why = suggest(&error.to_string());
        Refusal::invalid(format!("`files` is no object of texts: {why}"))
    })?;
    for (path, sha256) in &files {
        named_file(&server, &project, path, sha256).await?;
    }
    let _one = server.upload(&caller).await?;
    let content = bounded(body, MOST_JOURNAL).await?;
    let verifying = server.verifier().await?;
    let added = in_background(verifying, move || verified(&content, name)).await?;
    let added = added.map_err(Refusal::invalid)?;
    keep(&server, &caller, &project, AddedRun { files, ..added }).await
}

/// A journal that says what follows from it, as a run.
pub(super) fn verified(content: &[u8], name: String) -> Result<AddedRun, String> {
    let text = std::str::from_utf8(content).map_err(|_| "The journal is not UTF-8 text.".to_owned())?;
    let lines: Vec<String> = text.lines().map(str::to_owned).collect();
    if let Some(first) = lines.first()
        && let Ok(Event::Study(begun)) = parse_line(first, 1)
    {
        check_size(&begun.study)?;
    }
    if let Some(long) = lines.iter().position(|line| line.len() > MOST_LINE) {
        let most = MOST_LINE >> 20;
        return Err(format!("Line {} is larger than {most} MiB.", long + 1));
    }
    block_on(verify(&lines)).map_err(|error| error.to_string())?;
    let (journal, progress) = read(&lines)?;
    let study = journal.state().study().ok_or("The journal is empty.")?;
    let status = journal.state().finished().map(|finished| finished.status);
    let facts = Facts::of(&study.study);
    Ok(AddedRun {
        name,
        origin: Some(RunOrigin::Pushed),
        study: study.study.to_toml().map_err(|error| error.to_string())?,
        method: facts.method,
        objective: facts.objective,
        stage: Some(if status.is_some() {
            RunStage::Ended
        } else {
            RunStage::Paused
        }),
        status,
        progress,
        tested: Some(Tested::all(journal.state())),
        lines,
        ..AddedRun::default()
    })
}
