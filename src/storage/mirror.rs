//! Mirrors of runs that are the server's.
//!
//! A mirror is a run kept here whose lines come from the server instead of a worker. It has an id of
//! its own, from which that on the server is read.

use capo_api::{Moment, RunOrigin, RunShown, RunStage, RunWish};
use capo_core::journal::Status;
use idb::{KeyRange, Query};
use js_sys::{Array, JsString};
use serde::{Deserialize, Serialize};

use super::{FILES, LINES, Notes, RUNS, RunRecord, RunStatus, SLIM, Storage, StorageError};

/// What the ids of mirrors begin with; those of other runs are hexadecimal digits.
const PREFIX: &str = "team-";
/// What sorts next after all that begins so.
const NEXT: &str = "team.";

/// What the server said last of a run of its own.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ServerRun {
    /// Its id there.
    pub id: String,
    /// Name of its project.
    pub project: String,
    /// Name of the member who started it.
    pub started_by: String,
    /// Where it stands.
    pub stage: RunStage,
    /// What it was told and has not done yet.
    #[serde(default)]
    pub wish: Option<RunWish>,
    /// Why it could not begin or go on.
    #[serde(default)]
    pub error: Option<String>,
    /// Before when it does not start.
    #[serde(default)]
    pub start_at: Option<Moment>,
    /// Lines of its journal there.
    pub lines: u64,
    /// How often the first line was replaced of the journal whose lines are kept here.
    pub revision: u64,
    /// Whether it is the search of a training, which alone says when it ends and goes on.
    #[serde(default)]
    pub is_of_training: bool,
}

impl ServerRun {
    /// As it is listed.
    pub fn of(shown: &RunShown) -> Self {
        Self {
            id: shown.id.clone(),
            project: shown.project.clone(),
            started_by: shown.started_by.clone(),
            stage: shown.stage,
            wish: shown.wish,
            error: shown.error.clone(),
            start_at: shown.start_at.clone(),
            lines: shown.lines,
            revision: shown.revision,
            is_of_training: matches!(shown.origin, RunOrigin::Training { .. }),
        }
    }

    /// Whether it goes on, or will by itself.
    pub fn goes_on(&self) -> bool {
        matches!(self.stage, RunStage::Queued | RunStage::Running)
    }

    /// "project help-desk, started by ada".
    pub fn whose(&self) -> String {
        format!("project {}, started by {}", self.project, self.started_by)
    }
}

/// The id in this browser of a run of the server.
pub fn mirror_id(run: &str) -> String {
    format!("{PREFIX}{run}")
}

/// The id on the server of a run that is mirrored under this one; `None` for a run of this browser.
pub fn server_id(id: &str) -> Option<&str> {
    id.strip_prefix(PREFIX)
}

impl RunRecord {
    /// The record of a run of the server, as far as its list tells of it.
    pub fn mirrored(shown: &RunShown) -> Self {
        let created = milliseconds(&shown.created_at);
        let mut record = Self {
            id: mirror_id(&shown.id),
            name: String::new(),
            method: shown.method.clone(),
            about: String::new(),
            objective: shown.objective.clone(),
            status: RunStatus::Running,
            study: String::new(),
            created,
            touched: created,
            progress: shown.progress.clone(),
            times: shown.times.clone(),
            pilot: None,
            check: None,
            server: None,
            notes: Notes::new(),
        };
        record.take_shown(shown);
        record
    }

    /// Takes over what the server says of it now, but for the revision: that is of the lines that are kept here.
    pub fn take_shown(&mut self, shown: &RunShown) {
        let revision = self.server.as_ref().map(|server| server.revision);
        self.name.clone_from(&shown.name);
        self.status = status(shown.stage, shown.status);
        self.touched = milliseconds(&shown.touched_at);
        self.progress.clone_from(&shown.progress);
        self.times.clone_from(&shown.times);
        self.server = Some(ServerRun {
            revision: revision.unwrap_or(shown.revision),
            ..ServerRun::of(shown)
        });
    }

    /// Takes over all that the server says of it, whose lines are those kept here.
    pub fn take_with_revision(&mut self, shown: &RunShown) {
        self.server = None;
        self.take_shown(shown);
    }
}

/// A moment in milliseconds since 1970.
fn milliseconds(moment: &str) -> f64 {
    js_sys::Date::new(&moment.into()).get_time()
}

/// Where a run of the server stands, in the words of the list.
fn status(stage: RunStage, status: Option<Status>) -> RunStatus {
    match stage {
        RunStage::Queued | RunStage::Running => RunStatus::Running,
        RunStage::Paused => RunStatus::Paused,
        RunStage::Ended => RunStatus::Ended(status.unwrap_or(Status::Stopped)),
        RunStage::Failed => RunStatus::Ended(Status::Failed),
    }
}

impl Storage {
    /// Forgets all mirrors of runs of the server, and lines of them that another tab wrote after their records were deleted.
    ///
    /// # Errors
    /// When the browser refuses; everything is then kept.
    pub async fn delete_mirrors(&self) -> Result<(), StorageError> {
        let (first, next) = (JsString::from(PREFIX), JsString::from(NEXT));
        self.write(&[RUNS, LINES, SLIM, FILES], |store| {
            let records = KeyRange::bound(&first, &next, None, Some(true))?;
            store(RUNS)?.delete(Query::KeyRange(records))?;
            for name in [LINES, SLIM, FILES] {
                let parts = KeyRange::bound(&Array::of1(&first), &Array::of1(&next), None, Some(true))?;
                store(name)?.delete(Query::KeyRange(parts))?;
            }
            Ok(())
        })
        .await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_id_on_the_server_is_read_off_a_mirrors_id() {
        assert_eq!(server_id(&mirror_id("09af")), Some("09af"));
        assert_eq!(server_id("19a2b3c4d5e00000001"), None);
    }

    #[test]
    fn what_could_not_go_on_is_listed_as_failed_and_what_waits_as_running() {
        let ended = |stage, end| status(stage, end);
        assert_eq!(
            ended(RunStage::Failed, Some(Status::Budget)),
            RunStatus::Ended(Status::Failed)
        );
        assert_eq!(ended(RunStage::Ended, None), RunStatus::Ended(Status::Stopped));
        assert_eq!(ended(RunStage::Queued, None), RunStatus::Running);
        assert_eq!(
            ended(RunStage::Ended, Some(Status::Feasible)),
            RunStatus::Ended(Status::Feasible)
        );
    }
}
