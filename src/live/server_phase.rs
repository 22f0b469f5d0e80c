//! Phases of a run of the server, as screens say it, and how far the lines known here go.

use capo_api::{RunStage, RunWish};

use super::phase::{Pause, Phase};
use crate::storage::ServerRun;
use crate::team::again;

impl Phase {
    /// What a run of the server is doing; `start` is when it is to start, in milliseconds since 1970, if that is to come.
    pub(super) fn of_server(run: &ServerRun, start: Option<f64>) -> Self {
        match (run.stage, run.wish) {
            (RunStage::Queued, None) => Self::Queued(start),
            (RunStage::Running, None) => Self::Running,
            (RunStage::Queued | RunStage::Running, Some(_)) => Self::Pausing,
            (RunStage::Paused, _) => Self::Paused(Pause::Asked),
            (RunStage::Ended, _) => Self::Resting,
            (RunStage::Failed, _) => Self::Failed(run.error.clone().unwrap_or_default()),
        }
    }
}

/// Whether a run was told to stop, rather than to pause.
pub(super) fn why(run: &ServerRun) -> Pause {
    if run.wish == Some(RunWish::Stop) {
        Pause::Stopped
    } else {
        Pause::Asked
    }
}

/// Why a run of the server is not followed at the moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Disconnection {
    /// Nobody sees it: this tab shows something else, or is not shown itself.
    Unseen,
    /// Another tab follows it.
    Elsewhere,
    /// It neither runs nor waits to.
    Rests,
    /// Others of this tab need its connection.
    Crowded,
    /// The connection is lost.
    Lost,
    /// The lines known here are not those of the journal.
    Again,
    /// Nothing comes of asking before something has changed here.
    NotAllowed,
}

impl Disconnection {
    /// Milliseconds until the next look, after so many looks before that ended in the same way; none before somebody has it
    /// looked at.
    pub(super) fn wait(self, looks: u32) -> Option<u32> {
        let (first, longest) = match self {
            Self::Unseen | Self::NotAllowed => return None,
            Self::Lost => return Some(again(looks)),
            Self::Elsewhere => (1_000, 1_000),
            Self::Crowded => (3_000, 3_000),
            Self::Again => (100, 10_000),
            Self::Rests => (5_000, 60_000),
        };
        Some(u32::min(longest, first << looks.min(16)))
    }
}

/// What is to be done with a line that came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Coming {
    /// It is the next one.
    Next,
    /// It is known already.
    Known,
    /// Others are missing before it.
    Beyond,
}

/// What a connection has told so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Connection {
    /// Lines known here, and the revision of their journal.
    pub(super) lines: u64,
    revision: u64,
    /// Whether the first line was replaced since `run` was told last.
    replaced: bool,
    /// How often `run` was told: the second time all lines that there were have come.
    told: u32,
}

impl Connection {
    /// One by which a journal of `revision` is read on from line `lines`.
    pub(super) fn new(lines: u64, revision: u64) -> Self {
        Self {
            lines,
            revision,
            replaced: false,
            told: 0,
        }
    }

    /// Takes in that a line came.
    pub(super) fn line(&mut self, number: u64) -> Coming {
        if number < self.lines {
            return Coming::Known;
        }
        if number > self.lines {
            return Coming::Beyond;
        }
        self.lines += 1;
        Coming::Next
    }

    /// Takes in that the first line was replaced.
    pub(super) fn study(&mut self) {
        self.replaced = true;
    }

    /// Takes in where the run stands, and returns whether the lines known here are still those of its journal.
    pub(super) fn run(&mut self, revision: u64) -> bool {
        self.told += 1;
        let goes_on = self.lines == 0 || self.replaced || revision == self.revision;
        self.replaced = false;
        self.revision = revision;
        goes_on
    }

    /// Whether all lines are here that there were when it began.
    pub(super) fn is_level(&self) -> bool {
        self.told > 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(stage: RunStage, wish: Option<RunWish>) -> ServerRun {
        ServerRun {
            id: "09af".into(),
            project: "help-desk".into(),
            started_by: "ada".into(),
            stage,
            wish,
            error: (stage == RunStage::Failed).then(|| "No key is shared for it.".into()),
            start_at: None,
            lines: 0,
            revision: 0,
            is_of_training: false,
        }
    }

    #[test]
    fn the_stage_on_the_server_decides_what_a_run_is_doing() {
        let phase = |stage, wish| Phase::of_server(&run(stage, wish), None);
        assert_eq!(phase(RunStage::Queued, None), Phase::Queued(None));
        assert_eq!(phase(RunStage::Running, None), Phase::Running);
        assert_eq!(phase(RunStage::Running, Some(RunWish::Pause)), Phase::Pausing);
        assert_eq!(phase(RunStage::Paused, None), Phase::Paused(Pause::Asked));
        assert_eq!(phase(RunStage::Ended, None), Phase::Resting);
        assert_eq!(
            phase(RunStage::Failed, None),
            Phase::Failed("No key is shared for it.".into())
        );
        assert_eq!(why(&run(RunStage::Running, Some(RunWish::Stop))), Pause::Stopped);
    }

    #[test]
    fn a_server_that_is_lost_is_looked_for_soon_and_then_less_often() {
        assert_eq!(
            [0, 1, 9].map(|looks| Disconnection::Lost.wait(looks)),
            [Some(1_000), Some(2_000), Some(30_000)]
        );
        assert_eq!(Disconnection::Elsewhere.wait(40), Some(1_000));
        assert_eq!(Disconnection::Rests.wait(40), Some(60_000));
    }

    #[test]
    fn what_nobody_sees_or_may_see_is_not_asked_for() {
        for left in [Disconnection::Unseen, Disconnection::NotAllowed] {
            assert_eq!([0, 40].map(|looks| left.wait(looks)), [None, None]);
        }
    }

    #[test]
    fn lines_follow_one_another_whatever_a_server_sends_again() {
        let mut connection = Connection::new(3, 1);
        assert!(connection.run(1) && !connection.is_level());
        assert_eq!(
            [2, 3, 4, 6].map(|number| connection.line(number)),
            [Coming::Known, Coming::Next, Coming::Next, Coming::Beyond]
        );
        assert!(connection.run(1) && connection.is_level());
    }

    #[test]
    fn a_journal_of_another_revision_is_read_anew_unless_its_new_first_line_was_told() {
        let mut behind = Connection::new(3, 0);
        assert!(!behind.run(1));
        let mut told = Connection::new(3, 0);
        assert!(told.run(0));
        told.study();
        assert!(told.run(1) && told.run(1));
        assert!(!told.run(2));
        assert!(Connection::new(0, 0).run(4), "nothing is known of it");
    }
}
