//! Documents about runs on the server.

use std::collections::BTreeMap;

use capo_core::journal::{Status, SteerEvent};
use capo_core::reading::progress::{Progress, Times};
use serde::{Deserialize, Serialize};

use crate::{Moment, Title};

/// Bytes of a data file that a study names, at most.
pub const MOST_FILE: usize = 64 << 20;

/// Bytes of a journal that is pushed, at most.
pub const MOST_JOURNAL: usize = 256 << 20;

/// Where a run on the server stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "lowercase")]
pub enum RunStage {
    /// It waits for a worker, or for its time.
    Queued,
    /// A worker works on it.
    Running,
    /// It was paused, and goes on when somebody resumes it.
    Paused,
    /// It came to an end, which its journal tells.
    Ended,
    /// It could not begin or go on; `error` says why.
    Failed,
}

/// What a run was told and has not done yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "lowercase")]
pub enum RunWish {
    /// To start nothing new until it is resumed.
    Pause,
    /// To end with the best so far.
    Stop,
}

/// Where a run's journal comes from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(tag = "from", rename_all = "lowercase")]
pub enum RunOrigin {
    /// The server ran it from the start.
    Server,
    /// Somebody pushed it from a browser or a command line.
    Pushed,
    /// It is the search of a training, which alone says when it ends and goes on.
    Training {
        /// Id of the training.
        training: String,
    },
    /// It shares the beginning of another run.
    Branch {
        /// Id of the other run.
        run: String,
        /// The first round that is its own, from 0.
        round: u32,
    },
}

/// A run as it is listed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct RunShown {
    /// 32 hexadecimal digits.
    pub id: String,
    /// Name of its project.
    pub project: String,
    /// Its name for people.
    pub name: String,
    /// Name of the member who started it, and on whose account it asks models.
    pub started_by: String,
    /// Where it comes from.
    pub origin: RunOrigin,
    /// Where it stands.
    pub stage: RunStage,
    /// What it was told and has not done yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wish: Option<RunWish>,
    /// How its journal ends, once it does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>))]
    pub status: Option<Status>,
    /// Why it could not begin or go on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Name of the method.
    pub method: String,
    /// The metric that it raises.
    pub objective: String,
    /// When it was added.
    pub created_at: Moment,
    /// Before when it does not start.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start_at: Option<Moment>,
    /// When its journal or its stage last changed.
    pub touched_at: Moment,
    /// Lines of its journal.
    pub lines: u64,
    /// How often the first line was replaced, which freezes thresholds. Who knows another number of it reads the journal anew.
    pub revision: u64,
    /// Its numbers, as of the last round or later.
    #[cfg_attr(feature = "openapi", schema(value_type = Object))]
    pub progress: Progress,
    /// When lines of its journal came, as of the last round or later.
    #[cfg_attr(feature = "openapi", schema(value_type = Vec<(u64, f64)>))]
    pub times: Times,
}

/// A run with what it runs on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct RunDetail {
    /// The run.
    #[serde(flatten)]
    pub run: RunShown,
    /// Its study, as TOML.
    pub study: String,
    /// SHA-256 of the data files that it names, by path.
    pub files: BTreeMap<String, String>,
}

/// A page of a list of runs, those that were added last first.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct RunPage {
    /// The runs, at most 100.
    pub runs: Vec<RunShown>,
    /// Where there are more: what `before` is for the next page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<String>,
}

/// A run that is to be started.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct NewRun {
    /// Its name for people.
    pub name: Title,
    /// Its study, as TOML. Models are asked with keys that the project shares; the prompt stands in it, not in a file.
    pub study: String,
    /// SHA-256 of the data files that it names, by path as the study names them; the project has them already.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub files: BTreeMap<String, String>,
    /// Before when it is not to start.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start_at: Option<Moment>,
}

/// What a run is told.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(tag = "order", rename_all = "lowercase", deny_unknown_fields)]
pub enum RunOrder {
    /// Start nothing new; what is under way is finished and counted.
    Pause,
    /// End with the best so far. It can be resumed all the same.
    Stop,
    /// Go on where the journal ends.
    Resume {
        /// The study that it goes on with, such as one with a larger budget; the one it had unless stated.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        study: Option<String>,
    },
    /// Change thresholds or multipliers at the next round.
    Steer {
        /// What, as in the journal's `steer` lines.
        #[cfg_attr(feature = "openapi", schema(value_type = Object))]
        change: SteerEvent,
    },
    /// Take back thresholds and multipliers that wait for the next round.
    Withdraw {
        /// Which, by their metrics.
        #[cfg_attr(feature = "openapi", schema(value_type = Object))]
        change: SteerEvent,
    },
}

/// A run that is to share the beginning of another.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct NewBranch {
    /// Its name for people.
    pub name: Title,
    /// The first round that is its own, from 0.
    pub round: u32,
    /// What is changed from there on, as in the journal's `steer` lines.
    #[serde(default)]
    #[cfg_attr(feature = "openapi", schema(value_type = Object))]
    pub change: SteerEvent,
    /// Whether it starts at once; else it is paused.
    pub start: bool,
}

/// What is to change about a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct RunChange {
    /// Another name for people.
    pub name: Title,
}

/// A data file of a project.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct FileShown {
    /// SHA-256, in hexadecimal digits, by which it is known.
    pub sha256: String,
    /// Size in bytes.
    pub size: u64,
    /// When it was added.
    pub created_at: Moment,
}

/// The names of the events of `/api/runs/{run}/events`.
pub mod event {
    /// A line of the journal; the event's id is its number, from 0.
    pub const LINE: &str = "line";
    /// The first line was replaced by this one.
    pub const STUDY: &str = "study";
    /// A [`RunShown`](super::RunShown): at first, and whenever something about the run changes.
    pub const RUN: &str = "run";
    /// The [`Wait`](capo_core::notice::Wait) for a model, with the seconds that are left of it, or `null` once it is over.
    pub const WAITS: &str = "waits";

    /// Writes an event as it is sent.
    pub fn write(to: &mut String, name: &str, id: Option<u64>, data: &str) {
        use std::fmt::Write as _;
        // Writing to a string does not fail.
        let _ = writeln!(to, "event: {name}");
        if let Some(id) = id {
            let _ = writeln!(to, "id: {id}");
        }
        for line in data.split(['\r', '\n']) {
            let _ = writeln!(to, "data: {line}");
        }
        to.push('\n');
    }
}

/// The path of a run's events from line `from` of its journal on, as Server-Sent Events. A browser that connects anew says in
/// `Last-Event-ID` which line it had last, and that counts.
pub fn events_path(run: &str, from: u64) -> String {
    format!("/api/runs/{}/events?from={from}", crate::paths::part(run))
}

/// The path of a run's journal from line `from` on, as JSON Lines.
pub fn journal_path(run: &str, from: u64) -> String {
    format!("/api/runs/{}/journal?from={from}", crate::paths::part(run))
}

/// The path under which a data file of a project is read; its SHA-256 is in hexadecimal digits.
pub fn file_path(project: &str, sha256: &str) -> String {
    crate::paths::of_file(project, sha256) + "/content"
}
