//! Trainings of the learned rewriter.

use std::collections::BTreeMap;

use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use capo_api::{
    NewTraining, REWRITER, Role, RunStage, TRAINING_EVENT, Title, TrainingDetail, TrainingKind, TrainingList,
    TrainingOrder, TrainingShown, TrainingStart,
};

use super::Server;
use super::caller::Caller;
use super::checkpoints::{listed, of_project, with_checkpoint};
use super::extract::{Json, Path, Query, moment};
use super::problem::Refusal;
use super::runs;
use super::tail::{From, Watched};
use crate::store::{AddedRun, AddedTraining, Member, Project, Store, StoreError, Training};
use crate::trainings::{Offered, OfferedRewriter, forget, is_below};

/// Runs that one training learns from, at most.
const MOST_RUNS: usize = 200;

/// Weights of a fresh model, at most: a larger one learns nothing from as many runs.
const MOST_WEIGHTS: u64 = 500_000_000;

fn shown(training: Training) -> TrainingShown {
    TrainingShown {
        id: training.id,
        project: training.project_name,
        name: training.name,
        kind: training.kind,
        started_by: training.member_name,
        state: training.state,
        stopping: training.stopping,
        error: training.error,
        start: training.start,
        runs: training.runs,
        run: training.run,
        created_at: moment(training.created_at),
        touched_at: moment(training.touched_at),
        lines: training.lines,
    }
}

impl Watched for Training {
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
        0
    }

    fn as_of(&self, lines: u64, other: &Self) -> Self {
        Self {
            lines,
            touched_at: other.touched_at,
            reached: other.reached,
            ..self.clone()
        }
    }

    fn document(&self) -> (&'static str, String) {
        let document = serde_json::to_string(&shown(self.clone())).expect("documents are plain");
        (TRAINING_EVENT, document)
    }

    async fn read(store: &Store, id: &str) -> Result<Self, StoreError> {
        store.training(id).await
    }

    async fn read_lines(store: &Store, id: &str, from: u64) -> Result<Vec<(u64, String)>, StoreError> {
        store.training_lines(id, from).await
    }
}

/// The rewriters that a member may ask among the server's own models.
pub(super) async fn offered(server: &Server, member: &Member) -> Result<Offered, Refusal> {
    if server.trainings().is_none() {
        return Ok(Offered::default());
    }
    let done = server.store().done_trainings(member).await?;
    let offered = done.into_iter().map(|(id, ended_at)| OfferedRewriter {
        name: format!("{REWRITER}{id}"),
        ended_at,
    });
    Ok(Offered(offered.collect()))
}

/// The trainings of a project.
#[utoipa::path(
    get, path = "/api/projects/{project}/trainings", operation_id = "trainings", params(("project" = String, Path)),
    security(("session" = []), ("token" = [])), responses((status = 200, body = TrainingList))
)]
pub(super) async fn list(
    State(server): State<Server>,
    caller: Caller,
    Path(project): Path<String>,
) -> Result<Json<TrainingList>, Refusal> {
    let (project, _) = caller.project(&server, &project, Role::Viewer).await?;
    let models = server.trains()?.models();
    let trainings = server.store().trainings(&project.id).await?;
    Ok(Json(TrainingList {
        trainings: trainings.into_iter().map(shown).collect(),
        models,
    }))
}

/// Starts a training.
#[utoipa::path(
    post, path = "/api/projects/{project}/trainings", operation_id = "add_training",
    params(("project" = String, Path)), request_body = NewTraining, security(("session" = []), ("token" = [])),
    responses((status = 201, body = TrainingShown))
)]
pub(super) async fn add(
    State(server): State<Server>,
    caller: Caller,
    Path(project): Path<String>,
    Json(new): Json<NewTraining>,
) -> Result<(StatusCode, Json<TrainingShown>), Refusal> {
    let (project, _) = caller.project(&server, &project, Role::Editor).await?;
    let trainings = server.trains()?;
    check_runs(&server, &project, &new.runs).await?;
    check_start(&server, &project, &new).await?;
    let of_run = match new.runs.first() {
        Some(run) => Some(server.store().run_study(run).await?),
        None => None,
    };
    let (text, of_run) = of_run.map_or_else(Default::default, |of_run| (Some(of_run.text), of_run.files));
    let study = new.study.or(text).ok_or_else(|| {
        Refusal::invalid(
            "A training by `grpo` needs a `study`, or among `runs` one in whose study it searches.",
        )
    })?;
    let files = if new.files.is_empty() { of_run } else { new.files };
    let checked = trainings.trainer.check(new.kind, &study, &new.settings);
    checked.map_err(Refusal::invalid)?;
    let (files, run) = match new.kind {
        // It asks nobody anything.
        TrainingKind::Sft => (BTreeMap::new(), None),
        TrainingKind::Grpo => {
            let run = search(&server, &project, &new.name, &study, &files).await?;
            (files, Some(run))
        }
    };
    let added = AddedTraining {
        name: new.name.as_str().to_owned(),
        kind: new.kind,
        study,
        files,
        settings: new.settings,
        start: new.start,
        runs: new.runs,
        full: new.full,
        run,
    };
    let training = server
        .store()
        .add_training(&caller.actor(), &project, &caller.member, added)
        .await?;
    Ok((StatusCode::CREATED, Json(shown(training))))
}

/// Refuses runs that a training cannot learn from.
async fn check_runs(server: &Server, project: &Project, runs: &[String]) -> Result<(), Refusal> {
    if runs.len() > MOST_RUNS {
        return Err(Refusal::invalid(format!(
            "A training learns from at most {MOST_RUNS} runs."
        )));
    }
    for id in runs {
        let run = match server.store().run(id).await {
            Err(StoreError::Missing(_)) => None,
            found => Some(found?),
        };
        let run = run.filter(|run| run.project == project.id);
        let run = run.ok_or_else(|| Refusal::invalid(format!("The project has no run {id}.")))?;
        if run.lines == 0 {
            return Err(Refusal::invalid(format!(
                "The run {} has no journal yet.",
                run.name
            )));
        }
    }
    Ok(())
}

async fn check_start(server: &Server, project: &Project, new: &NewTraining) -> Result<(), Refusal> {
    let needs_runs = new.kind == TrainingKind::Sft || matches!(new.start, TrainingStart::Fresh { .. });
    if needs_runs && new.runs.is_empty() {
        return Err(Refusal::invalid(
            "Name in `runs` what it learns from: the journals of earlier runs of the project.",
        ));
    }
    match &new.start {
        TrainingStart::Model { name } if server.trains()?.model(name).is_none() => Err(Refusal::invalid(
            format!("There is no model `{name}` on the server's machine."),
        )),
        TrainingStart::Model { .. } => Ok(()),
        TrainingStart::Training { training, step } => {
            with_checkpoint(server, project, training).await?;
            let training = of_project(server, project, training).await?;
            let checkpoints = listed(server, &training).await?;
            match step {
                Some(step) if checkpoints.iter().all(|one| one.step != *step) => Err(Refusal::invalid(
                    format!("The training {} has no checkpoint of step {step}.", training.name),
                )),
                _ => Ok(()),
            }
        }
        TrainingStart::Fresh {
            vocabulary,
            hidden,
            layers,
            context,
        } => {
            for (name, size, range) in [
                ("vocabulary", vocabulary, 262..=65_536),
                ("hidden", hidden, 1..=4_096),
                ("layers", layers, 1..=64),
                ("context", context, 1..=65_536),
            ] {
                if size.is_some_and(|size| !range.contains(&size)) {
                    let (least, most) = range.into_inner();
                    return Err(Refusal::invalid(format!(
                        "`{name}` of a fresh model is from {least} to {most}."
                    )));
                }
            }
            let weights = weights(*vocabulary, *hidden, *layers);
            if weights > MOST_WEIGHTS {
                return Err(Refusal::invalid(format!(
                    "A fresh model of this size has some {} million weights, and the server makes none of more than {}.",
                    weights / 1_000_000,
                    MOST_WEIGHTS / 1_000_000
                )));
            }
            Ok(())
        }
    }
}

/// Some number of weights of a fresh model, whose layers have about 16 matrices of its width; small where nothing is said.
fn weights(vocabulary: Option<u32>, hidden: Option<u32>, layers: Option<u32>) -> u64 {
    let [vocabulary, hidden, layers] = [
        vocabulary.unwrap_or(4_096),
        hidden.unwrap_or(256),
        layers.unwrap_or(4),
    ]
    .map(u64::from);
    2 * vocabulary * hidden + 16 * layers * hidden * hidden
}

/// The run that is the search of a training, whose study must be one that the server runs.
async fn search(
    server: &Server,
    project: &Project,
    name: &Title,
    study: &str,
    files: &BTreeMap<String, String>,
) -> Result<AddedRun, Refusal> {
    if let Some(path) = files.keys().find(|path| !is_below(path)) {
        return Err(Refusal::invalid(format!(
            "The data file `{path}` does not lie below the study's folder, or is called as the study is."
        )));
    }
    let facts = runs::check(server, project, study, files, None).await?;
    Ok(AddedRun {
        name: name.as_str().to_owned(),
        study: study.to_owned(),
        files: files.clone(),
        method: facts.method,
        objective: facts.objective,
        stage: Some(RunStage::Queued),
        ..AddedRun::default()
    })
}

/// A training with what it was told.
#[utoipa::path(
    get, path = "/api/projects/{project}/trainings/{training}", operation_id = "training",
    params(("project" = String, Path), ("training" = String, Path)), security(("session" = []), ("token" = [])),
    responses((status = 200, body = TrainingDetail))
)]
pub(super) async fn show(
    State(server): State<Server>,
    caller: Caller,
    Path((project, training)): Path<(String, String)>,
) -> Result<Json<TrainingDetail>, Refusal> {
    let training = caller
        .training(&server, &project, &training, Role::Viewer)
        .await?;
    Ok(Json(TrainingDetail {
        study: training.study.clone(),
        files: training.files.clone(),
        settings: training.settings.clone(),
        full: training.full,
        training: shown(training),
    }))
}

/// Deletes a training on which nobody works, with all its checkpoints. Its run stays.
#[utoipa::path(
    delete, path = "/api/projects/{project}/trainings/{training}", operation_id = "delete_training",
    params(("project" = String, Path), ("training" = String, Path)), security(("session" = []), ("token" = [])),
    responses((status = 204))
)]
pub(super) async fn delete(
    State(server): State<Server>,
    caller: Caller,
    Path((project, training)): Path<(String, String)>,
) -> Result<StatusCode, Refusal> {
    let training = caller
        .training(&server, &project, &training, Role::Editor)
        .await?;
    server.store().delete_training(&caller.actor(), &training).await?;
    forget(&server.trains()?.folder_of(&training.id)).await;
    Ok(StatusCode::NO_CONTENT)
}

/// Stops or resumes a training.
#[utoipa::path(
    post, path = "/api/projects/{project}/trainings/{training}/orders", operation_id = "order_training",
    params(("project" = String, Path), ("training" = String, Path)), request_body = TrainingOrder,
    security(("session" = []), ("token" = [])), responses((status = 200, body = TrainingShown))
)]
pub(super) async fn order(
    State(server): State<Server>,
    caller: Caller,
    Path((project, training)): Path<(String, String)>,
    Json(order): Json<TrainingOrder>,
) -> Result<Json<TrainingShown>, Refusal> {
    let training = caller
        .training(&server, &project, &training, Role::Editor)
        .await?;
    let (store, actor) = (server.store(), caller.actor());
    match order {
        TrainingOrder::Stop => store.stop_training(&actor, &training).await?,
        TrainingOrder::Resume => store.resume_training(&actor, &training, &caller.member).await?,
    }
    Ok(Json(shown(store.training(&training.id).await?)))
}

/// A training from a line of its log on, as Server-Sent Events: `line` (a line, whose number is the event's id), `training`
/// (anything else about it). After it was broken off it says again what it did since its last checkpoint.
#[utoipa::path(
    get, path = "/api/projects/{project}/trainings/{training}/events", operation_id = "training_events",
    params(("project" = String, Path), ("training" = String, Path), From), security(("session" = []), ("token" = [])),
    responses((status = 200, body = String, content_type = "text/event-stream"))
)]
pub(super) async fn events(
    State(server): State<Server>,
    caller: Caller,
    headers: HeaderMap,
    Path((project, training)): Path<(String, String)>,
    Query(from): Query<From>,
) -> Result<Response, Refusal> {
    let training = caller
        .training(&server, &project, &training, Role::Viewer)
        .await?;
    let tails = server.0.tails.clone();
    tails.answer(server, &training, &from, (caller, headers))
}
