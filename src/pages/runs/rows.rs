//! Rows of the list: what state a run is in, what to do next with it, and in which order they stand.

use std::cmp::Ordering;
use std::collections::BTreeSet;

use capo_api::RunStage;
use capo_core::journal::Status;

use crate::charts::scale::Range;
use crate::run::outcome;
use crate::storage::{RunRecord, RunStatus, ServerRun};
use crate::studies;

/// What state a run is in, as this tab knows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum State {
    /// It goes on in this tab.
    Running,
    /// It goes on in another tab.
    InAnotherTab,
    /// It waits in this tab for its turn.
    InTurn,
    /// It waits on the server.
    Queued,
    /// It goes on there.
    OnServer,
    /// It was going on when its tab was closed.
    Interrupted,
    /// A person paused it.
    Paused,
    /// It ended so.
    Ended(Status),
}

/// What to do next with a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Next {
    /// Look at it.
    Open,
    /// Go on in this round on screen.
    Resume(usize),
    /// Go on with a higher budget.
    RaiseBudget,
}

/// A run in the list.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Row {
    /// What is kept of it.
    pub(super) record: RunRecord,
    pub(super) state: State,
}

impl Row {
    /// A run of which this tab knows whether it is among those `running` or `queued` here, or `held` by some tab.
    pub(super) fn new(
        record: RunRecord,
        running: &BTreeSet<String>,
        queued: &BTreeSet<String>,
        held: &BTreeSet<String>,
    ) -> Self {
        let stage = record.server.as_ref().map(|server| server.stage);
        let state = match record.status {
            _ if stage == Some(RunStage::Queued) => State::Queued,
            _ if stage == Some(RunStage::Running) => State::OnServer,
            RunStatus::Paused if stage.is_some() => State::Paused,
            RunStatus::Ended(status) if stage.is_some() => State::Ended(status),
            _ if running.contains(&record.id) => State::Running,
            _ if queued.contains(&record.id) => State::InTurn,
            _ if held.contains(&record.id) => State::InAnotherTab,
            RunStatus::Running => State::Interrupted,
            RunStatus::Paused => State::Paused,
            RunStatus::Ended(status) => State::Ended(status),
        };
        Self { record, state }
    }

    /// What to do next with it, where one may do more than look at it.
    pub(super) fn next(&self, may: bool) -> Next {
        match self.state {
            _ if !may => Next::Open,
            State::Running
            | State::InAnotherTab
            | State::InTurn
            | State::Queued
            | State::OnServer
            | State::Ended(Status::Feasible | Status::Infeasible) => Next::Open,
            // What it has spent and may spend is read with its journal.
            State::Ended(Status::Budget) if self.record.server.is_some() => Next::Open,
            State::Ended(Status::Budget) => Next::RaiseBudget,
            // What is next is said there: its first rollouts, all of it, or nothing where it is no search.
            State::Interrupted | State::Paused
                if self.record.server.is_none() && self.record.progress.by_round.len() < 2 =>
            {
                Next::Open
            }
            // It has no rounds.
            State::Ended(Status::Stopped | Status::Failed) if self.record.check.is_some() => Next::Open,
            // The seed's point is there before the first round is closed.
            State::Interrupted | State::Paused | State::Ended(Status::Stopped | Status::Failed) => {
                Next::Resume(self.record.progress.by_round.len().max(1))
            }
        }
    }

    /// What stands below its name: what it is about, and whose it is where it is on the server.
    pub(super) fn note(&self) -> String {
        let about = Some(self.record.about.clone()).filter(|about| !about.is_empty());
        let whose = self.record.server.as_ref().map(ServerRun::whose);
        about.into_iter().chain(whose).collect::<Vec<_>>().join(" · ")
    }

    /// Whether this browser keeps something of it; what the server lists has no study.
    pub(super) fn is_kept(&self) -> bool {
        self.record.server.is_none() || !self.record.study.is_empty()
    }

    /// What has been found: whether the best prompt is feasible, once one is measured.
    pub(super) fn gate(&self) -> Option<bool> {
        self.record.progress.best.map(|_| self.record.progress.feasible)
    }
}

impl State {
    /// In a word or two.
    pub(super) fn words(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::InAnotherTab => "running in another tab",
            Self::InTurn => "queued",
            Self::Queued => "queued on the server",
            Self::OnServer => "running on the server",
            Self::Interrupted => "interrupted",
            Self::Paused => "paused",
            Self::Ended(status) => outcome::ended(status),
        }
    }

    /// The classes of its tag.
    pub(super) fn class(self) -> &'static str {
        match self {
            Self::Running | Self::InAnotherTab | Self::OnServer => "live",
            Self::Interrupted | Self::Ended(Status::Failed) => "tag alert",
            Self::InTurn | Self::Queued | Self::Paused | Self::Ended(_) => "tag plain",
        }
    }
}

/// What rows can be ordered by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Column {
    Name,
    State,
    Method,
    Best,
    Gate,
    Spent,
    Time,
    Date,
}

/// An order of rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Order {
    pub(super) by: Column,
    pub(super) descending: bool,
}

impl Default for Order {
    /// The last touched first.
    fn default() -> Self {
        Self {
            by: Column::Date,
            descending: true,
        }
    }
}

impl Order {
    /// The order after a press on a column's header: turned round, or by that column, figures from
    /// the highest down and words from A.
    pub(super) fn pressed(self, by: Column) -> Self {
        if self.by == by {
            return Self {
                descending: !self.descending,
                ..self
            };
        }
        let descending = matches!(
            by,
            Column::Best | Column::Gate | Column::Spent | Column::Time | Column::Date
        );
        Self { by, descending }
    }

    fn compare(self, a: &Row, b: &Row) -> Ordering {
        let number = |value: Option<f64>| value.unwrap_or(f64::NEG_INFINITY);
        let (one, other) = (&a.record, &b.record);
        let ordering = match self.by {
            Column::Name => one.name.to_lowercase().cmp(&other.name.to_lowercase()),
            Column::State => a.state.words().cmp(b.state.words()),
            Column::Method => studies::method_name(&one.method).cmp(&studies::method_name(&other.method)),
            Column::Best => number(one.progress.best).total_cmp(&number(other.progress.best)),
            Column::Gate => a.gate().cmp(&b.gate()),
            Column::Spent => number(one.progress.usd).total_cmp(&number(other.progress.usd)),
            Column::Time => one.times.last().total_cmp(&other.times.last()),
            Column::Date => one.touched.total_cmp(&other.touched),
        };
        if self.descending {
            ordering.reverse()
        } else {
            ordering
        }
    }
}

/// Rows whose name or note holds what is looked for, in order.
pub(super) fn arranged(rows: &[Row], looked_for: &str, order: Order) -> Vec<Row> {
    let looked_for = looked_for.trim().to_lowercase();
    let holds = |text: &str| text.to_lowercase().contains(&looked_for);
    let mut found: Vec<Row> = rows
        .iter()
        .filter(|row| holds(&row.record.name) || holds(&row.note()))
        .cloned()
        .collect();
    found.sort_by(|a, b| order.compare(a, b));
    found
}

/// The range that all rows' courses share, so that they can be compared by eye.
pub(super) fn shared_range(rows: &[Row]) -> Range {
    let courses = rows.iter().flat_map(|row| &row.record.progress.by_round);
    Range::around(courses.map(|(value, _)| *value), (0.0, 1.0))
}

#[cfg(test)]
mod tests {
    use capo_core::reading::progress::{Progress, Times};

    use super::*;
    use crate::storage::Check;

    fn row(id: &str, status: RunStatus, best: Option<f64>, usd: Option<f64>, touched: f64) -> Row {
        let record = RunRecord {
            id: id.into(),
            name: format!("Run {id}"),
            method: "capo".into(),
            about: "sim-medium, seed 0".into(),
            objective: "success".into(),
            status,
            study: String::new(),
            created: 0.0,
            touched,
            progress: Progress {
                by_round: vec![(0.4, false), (0.5, false), (0.6, true)],
                best,
                usd,
                ..Progress::default()
            },
            times: Times::default(),
            pilot: None,
            check: None,
            server: None,
            notes: <_>::default(),
        };
        let here = BTreeSet::from(["here".to_owned()]);
        let waits = BTreeSet::from(["waits".to_owned()]);
        let held = BTreeSet::from(["here".to_owned(), "there".to_owned()]);
        Row::new(record, &here, &waits, &held)
    }

    #[test]
    fn a_run_that_says_running_and_is_held_by_no_tab_is_interrupted() {
        let here = row("here", RunStatus::Running, None, None, 0.0);
        assert_eq!((here.state, here.next(true)), (State::Running, Next::Open));
        let there = row("there", RunStatus::Paused, None, None, 0.0);
        assert_eq!(
            (there.state.words(), there.next(true)),
            ("running in another tab", Next::Open)
        );
        let waits = row("waits", RunStatus::Running, None, None, 0.0);
        assert_eq!((waits.state.words(), waits.next(true)), ("queued", Next::Open));
        let mut piloted = row("a", RunStatus::Paused, None, None, 0.0);
        assert_eq!(piloted.next(true), Next::Resume(3));
        piloted.record.progress.by_round.clear();
        for state in [State::Paused, State::Interrupted] {
            piloted.state = state;
            assert_eq!(piloted.next(true), Next::Open);
        }
        piloted.state = State::Ended(Status::Failed);
        assert_eq!(piloted.next(true), Next::Resume(1));
        piloted.record.check = Some(Check {
            of: "b".into(),
            prompt: "Help.".into(),
            examples: 3,
        });
        assert_eq!(piloted.next(true), Next::Open);
        let gone = row("gone", RunStatus::Running, None, None, 0.0);
        assert_eq!(gone.state.words(), "interrupted");
        // The seed and two rounds are closed.
        assert_eq!(gone.next(true), Next::Resume(3));
    }

    #[test]
    fn a_run_of_the_server_is_where_the_server_says_whoever_holds_its_mirror() {
        let on_server = |id, stage, status| {
            let mut record = row(id, status, None, None, 0.0).record;
            record.server = Some(ServerRun {
                id: "09af".into(),
                project: "help-desk".into(),
                started_by: "ada".into(),
                stage,
                wish: None,
                error: None,
                start_at: None,
                lines: 0,
                revision: 0,
                is_of_training: false,
            });
            let nowhere = BTreeSet::new();
            Row::new(record, &nowhere, &nowhere, &BTreeSet::from(["there".to_owned()]))
        };
        let running = on_server("there", RunStage::Running, RunStatus::Running);
        assert_eq!((running.state, running.next(true)), (State::OnServer, Next::Open));
        assert_eq!(
            running.note(),
            "sim-medium, seed 0 · project help-desk, started by ada"
        );
        assert!(!running.is_kept());
        let paused = on_server("there", RunStage::Paused, RunStatus::Paused);
        assert_eq!(
            (paused.state, paused.next(true)),
            (State::Paused, Next::Resume(3))
        );
        assert_eq!(paused.next(false), Next::Open, "viewers look at it");
        let spent = on_server("a", RunStage::Ended, RunStatus::Ended(Status::Budget));
        assert_eq!(spent.next(true), Next::Open);
    }

    #[test]
    fn what_ended_early_can_go_on() {
        let next = |status| row("a", RunStatus::Ended(status), None, None, 0.0).next(true);
        assert_eq!(next(Status::Budget), Next::RaiseBudget);
        assert_eq!(next(Status::Stopped), Next::Resume(3));
        assert_eq!(next(Status::Infeasible), Next::Open);
    }

    #[test]
    fn rows_are_found_and_ordered() {
        let ended = RunStatus::Ended(Status::Feasible);
        let rows = [
            row("a", ended, Some(0.7), Some(4.0), 1.0),
            row("b", ended, Some(0.8), None, 3.0),
            row("c", ended, None, Some(6.0), 2.0),
        ];
        let ids = |order| -> Vec<String> {
            let found = arranged(&rows, " RUN ", order);
            found.into_iter().map(|row| row.record.id).collect()
        };
        let by_date = Order::default();
        assert_eq!(ids(by_date), ["b", "c", "a"]);
        assert_eq!(ids(by_date.pressed(Column::Date)), ["a", "c", "b"]);
        assert_eq!(ids(by_date.pressed(Column::Best)), ["b", "a", "c"]);
        assert_eq!(ids(by_date.pressed(Column::Spent)), ["c", "a", "b"]);
        assert_eq!(ids(by_date.pressed(Column::Name)), ["a", "b", "c"]);
        assert!(arranged(&rows, "nothing", by_date).is_empty());
    }
}
