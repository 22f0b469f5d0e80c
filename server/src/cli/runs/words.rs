//! A run of a team server in words.

use capo_api::{RunOrigin, RunShown, RunStage, RunWish};
use capo_core::journal::Status;

use super::server::one_line;
use crate::cli::command_line::CommandLine;
use crate::remote::Server;

/// Digits of an id that are shown, where it is not to be copied.
const SHORT: usize = 8;

/// The first digits of a run's id.
pub(super) fn short(id: &str) -> &str {
    id.get(..SHORT).unwrap_or(id)
}

/// Where a run stands, in a word.
pub(super) fn stage(stage: RunStage) -> &'static str {
    match stage {
        RunStage::Queued => "queued",
        RunStage::Running => "running",
        RunStage::Paused => "paused",
        RunStage::Ended => "ended",
        RunStage::Failed => "failed",
    }
}

/// How a journal ends, in a word.
pub(super) fn status(status: Status) -> &'static str {
    match status {
        Status::Feasible => "feasible on search",
        Status::Infeasible => "infeasible on search",
        Status::Budget => "budget spent",
        Status::Stopped => "stopped",
        Status::Failed => "failed",
    }
}

/// Where a run stands, with what it was told and why.
pub(super) fn standing(run: &RunShown) -> String {
    let mut text = stage(run.stage).to_owned();
    if let (RunStage::Queued, Some(start_at)) = (run.stage, &run.start_at) {
        text += &format!(", not before {start_at}");
    }
    match run.wish {
        Some(RunWish::Pause) => text += ", told to pause",
        Some(RunWish::Stop) => text += ", told to stop",
        None => {}
    }
    if let (RunStage::Failed, Some(error)) = (run.stage, &run.error) {
        text += &format!(": {}", one_line(error));
    }
    text
}

/// A run and where it stands.
pub(super) fn sentence(run: &RunShown) -> String {
    format!("{} ({}): {}", run.name, short(&run.id), standing(run))
}

/// Where a run comes from.
pub(super) fn origin(origin: &RunOrigin) -> String {
    match origin {
        RunOrigin::Server => "the server".into(),
        RunOrigin::Pushed => "a journal that was pushed".into(),
        RunOrigin::Training { training } => format!("the training {}", short(training)),
        RunOrigin::Branch { run, round } => format!("{} up to round {round}", short(run)),
    }
}

/// `capo COMMAND RUN --remote URL`.
pub(super) fn command(command: &str, server: &Server, run: &str) -> CommandLine {
    CommandLine::new(command, run.as_ref()).option("remote", Some(server.origin()))
}
