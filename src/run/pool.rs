//! The rows of the pool table.

use capo_core::estimate::Estimate;
use capo_core::ids::{CandidateId, Round};
use capo_core::methods;
use capo_core::reading::examples::Examples;
use capo_core::reading::in_force;
use capo_core::reading::lineage;
use capo_core::reading::measured::{self, Progress};
use capo_core::reading::metrics::{Aims, StudiedMetric};
use capo_core::reading::standing::{Scored, Scores, Standings};
use capo_core::run_state::RunState;
use capo_core::score::Limits;
use indexmap::IndexMap;

use super::rounds::{ScreenRound, on_screen, under_way, written_in};

/// What a row says about the thresholds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Gate {
    /// It keeps them all.
    Feasible,
    /// It misses one at least.
    NotFeasible,
    /// It is not measured on every example yet.
    Undecided(Progress),
}

/// Where a prompt stands in the search.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// In the pool after the last closed round, or the seed before the first.
    InPool,
    /// Written and measured in the round under way.
    NewChild,
    /// Written in the round under way, being measured.
    Evaluating(Progress),
    /// Written in the round under way, not measured yet.
    Waiting,
    /// Not retained after some round.
    Left,
}

/// A prompt of the pool table.
#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    /// Id of the prompt, the SHA-256 of its text.
    pub candidate: CandidateId,
    /// What it says about the thresholds.
    pub gate: Gate,
    /// J under the multipliers of now; `None` until it is measured.
    pub lagrangian: Option<f64>,
    /// Objective and costs by metric, as far as measured.
    pub estimates: IndexMap<String, Estimate>,
    /// The constraints whose thresholds it misses.
    pub missed: Vec<String>,
    /// Unicode scalar values of the prompt.
    pub characters: usize,
    /// The round on screen in which it was written; 0 for the seed.
    pub round: ScreenRound,
    /// What it was made from.
    pub parents: Vec<CandidateId>,
    /// Where it stands in the search.
    pub place: Place,
}

/// The pool table.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Pool {
    /// Measured prompts, the highest J first, then those being measured.
    pub rows: Vec<Row>,
    /// Prompts that the last closed round retained.
    pub kept: usize,
    /// Children of the round under way that are measured.
    pub measured: usize,
    /// Children of the round under way that are written.
    pub children: usize,
    /// Those of them that wait to be measured; they are not among [`Pool::of_now`].
    pub waiting: usize,
    /// The round on screen under way, or the last one.
    pub round: ScreenRound,
}

impl Pool {
    /// Every prompt of the run.
    pub fn whole(state: &RunState) -> Self {
        Aims::of(state).map_or_else(Self::default, |aims| {
            Self::of(
                state,
                &aims,
                &Standings::default().follow(state, &aims, &methods::multipliers_now(state)),
            )
        })
    }

    /// The same from scores of now that are known already.
    pub(super) fn of(state: &RunState, aims: &Aims, standings: &Scores) -> Self {
        let builder = Builder::new(state, aims, standings);
        let mut rows: Vec<Row> = state.candidates().map(|(id, _)| builder.row(*id)).collect();
        let waits = |row: &Row| matches!(row.place, Place::Waiting);
        // Stable: prompts without a score stay in order of appearance.
        rows.sort_by(|a, b| {
            let rank = |row: &Row| row.lagrangian.unwrap_or(f64::NEG_INFINITY);
            rank(b).total_cmp(&rank(a)).then(waits(a).cmp(&waits(b)))
        });
        let at = |wanted: fn(Place) -> bool| rows.iter().filter(|row| wanted(row.place)).count();
        let measured = at(|place| place == Place::NewChild);
        let waiting = at(|place| place == Place::Waiting);
        Self {
            kept: at(|place| place == Place::InPool),
            measured,
            children: measured + waiting + at(|place| matches!(place, Place::Evaluating(_))),
            waiting,
            round: builder
                .open
                .map_or(state.rounds().len() as ScreenRound, on_screen),
            rows,
        }
    }

    /// The rows of the pool, and of children of the round under way that are measured or being
    /// measured.
    pub fn of_now(&self) -> impl Iterator<Item = &Row> {
        let rows = self.rows.iter();
        rows.filter(|row| !matches!(row.place, Place::Left | Place::Waiting))
    }
}

struct Builder<'a> {
    state: &'a RunState,
    aims: &'a Aims,
    standings: &'a Scores,
    limits: Limits,
    examples: Examples,
    open: Option<Round>,
    seed: Option<CandidateId>,
}

impl<'a> Builder<'a> {
    fn new(state: &'a RunState, aims: &'a Aims, standings: &'a Scores) -> Self {
        Self {
            state,
            aims,
            standings,
            limits: in_force::limits_now(state),
            examples: Examples::of_now(state),
            open: under_way(state),
            seed: lineage::seed(state),
        }
    }

    fn row(&self, id: CandidateId) -> Row {
        let scored = self.standings.get(&id).map(AsRef::as_ref);
        let candidate = self.state.candidate(&id);
        let gate = match scored {
            Some(scored) if scored.feasible => Gate::Feasible,
            Some(_) => Gate::NotFeasible,
            None => Gate::Undecided(measured::progress(self.state, &id, &self.examples)),
        };
        let missed = scored.into_iter().flat_map(|scored| scored.missed(&self.limits));
        Row {
            candidate: id,
            gate,
            lagrangian: scored.map(|scored| scored.lagrangian),
            estimates: self.estimates(id, scored),
            missed: missed.map(ToOwned::to_owned).collect(),
            characters: candidate.map_or(0, |candidate| candidate.characters),
            round: candidate.map_or(0, written_in),
            parents: candidate.map_or_else(Vec::new, |candidate| candidate.parents.clone()),
            place: self.place(id, gate),
        }
    }

    fn estimates(&self, id: CandidateId, scored: Option<&Scored>) -> IndexMap<String, Estimate> {
        let of = |metric: &StudiedMetric| match scored {
            Some(scored) => scored.estimate(metric).copied(),
            None => measured::so_far(self.state, &id, metric, &self.examples),
        };
        let metrics = self.aims.iter();
        metrics
            .filter_map(|metric| Some((metric.name().to_owned(), of(metric)?)))
            .collect()
    }

    fn place(&self, id: CandidateId, gate: Gate) -> Place {
        let in_pool = match self.state.rounds().last() {
            Some(last) => last.retained.contains(&id),
            None => self.seed == Some(id),
        };
        let is_new = self.open.is_some_and(|open| {
            let candidate = self.state.candidate(&id);
            candidate.is_some_and(|candidate| written_in(candidate) == on_screen(open))
        });
        match gate {
            _ if in_pool => Place::InPool,
            _ if !is_new => Place::Left,
            Gate::Undecided(Progress { done: 0, .. }) => Place::Waiting,
            Gate::Undecided(progress) => Place::Evaluating(progress),
            Gate::Feasible | Gate::NotFeasible => Place::NewChild,
        }
    }
}
