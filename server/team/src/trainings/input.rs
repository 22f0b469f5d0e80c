//! Input of a training, in its folder before its process begins: study, data, settings, journals, and the model.

use std::fs;
use std::path::{Path, PathBuf};

use capo_api::TrainingStart;

use super::folder::{STUDY_FILE, is_below};
use super::{Begin, Job, Trainings};
use crate::files::lacks_file;
use crate::http::Server;
use crate::store::Training;

const INPUT: &str = "input";
const STUDY: &str = "study";
const MODEL: &str = "model";

/// The policy that a training starts from, where this machine has it or it is kept.
///
/// # Errors
/// What is not there.
async fn begin(server: &Server, trainings: &Trainings, start: &TrainingStart) -> Result<Begin, String> {
    match start {
        TrainingStart::Model { name } => trainings.model(name).map(Begin::Model).ok_or_else(|| {
            format!(
                "there is no model `{name}` on this machine; an administrator of the server puts it there"
            )
        }),
        TrainingStart::Training { training, step } => {
            let policies = server.policies().ok_or("this process knows no trainings")?;
            policies.policy(training, *step).await.map(Begin::Policy)
        }
        TrainingStart::Fresh {
            vocabulary,
            hidden,
            layers,
            context,
        } => Ok(Begin::Fresh {
            vocabulary: *vocabulary,
            hidden: *hidden,
            layers: *layers,
            context: *context,
        }),
    }
}

/// The job of a training, all of whose files are there but perhaps the model.
pub(super) struct Ready {
    pub(super) job: Job,
    /// What the model is made of, and the folder in which it is made, until it is whole.
    pub(super) model: Option<(Begin, PathBuf)>,
}

/// Writes the files of a training, once: what it learns from stays the same, whatever becomes of the runs.
///
/// # Errors
/// In words, what is not there or cannot be written.
pub(super) async fn prepare(
    server: &Server,
    trainings: &Trainings,
    training: &Training,
) -> Result<Ready, String> {
    let folder = trainings.folder_of(&training.id);
    let input = folder.join(INPUT);
    if !input.is_dir() {
        let new = folder.join(format!("{INPUT}.new"));
        // What a process left that ended in its midst.
        let _ = fs::remove_dir_all(&new);
        write(server, training, &new).await?;
        fs::rename(&new, &input).map_err(|error| failed(&input, &error))?;
    }
    let model = input.join(MODEL);
    let (model, made) = match &training.start {
        start if !matches!(start, TrainingStart::Model { .. }) && model.is_dir() => (model, None),
        start => {
            let begin = begin(server, trainings, start).await?;
            if let Begin::Model(place) = begin {
                (place, None)
            } else {
                let new = input.join(format!("{MODEL}.new"));
                let _ = fs::remove_dir_all(&new);
                (model, Some((begin, new)))
            }
        }
    };
    Ok(Ready {
        job: Job {
            kind: training.kind,
            study: input.join(STUDY).join(STUDY_FILE),
            settings: input.join("settings.toml"),
            journals: training.runs.iter().map(|run| journal(&input, run)).collect(),
            model,
            full: training.full,
            folder,
        },
        model: made,
    })
}

fn journal(input: &Path, run: &str) -> PathBuf {
    input.join(format!("{run}.jsonl"))
}

async fn write(server: &Server, training: &Training, into: &Path) -> Result<(), String> {
    let study = into.join(STUDY);
    fs::create_dir_all(&study).map_err(|error| failed(&study, &error))?;
    let put = |path: &Path, content: &[u8]| fs::write(path, content).map_err(|error| failed(path, &error));
    put(&into.join("settings.toml"), training.settings.as_bytes())?;
    for (path, sha256) in &training.files {
        let content = server.file_content(&training.project, sha256).await;
        let content = content.map_err(|error| error.to_string())?;
        let content = content
            .filter(|_| is_below(path))
            .ok_or_else(|| lacks_file(path, sha256))?;
        let place = study.join(path);
        if let Some(parent) = place.parent() {
            fs::create_dir_all(parent).map_err(|error| failed(parent, &error))?;
        }
        put(&place, &content)?;
    }
    // Last, so that it is the one that was checked, whatever else lies there.
    put(&study.join(STUDY_FILE), training.study.as_bytes())?;
    for run in &training.runs {
        let text = server.store().journal(run).await;
        let text = text.map_err(|error| error.to_string())?;
        if text.is_empty() {
            return Err(format!("the run {run} was deleted, or has no journal"));
        }
        put(&journal(into, run), text.as_bytes())?;
    }
    Ok(())
}

fn failed(path: &Path, error: &std::io::Error) -> String {
    format!("{}: {error}", path.display())
}
