//! The rows of the pool table.

use capo_core::estimate::Estimate;
use capo_core::ids::{CandidateId, Round};
use capo_core::run_state::RunState;
use capo_core::score::Limits;
use indexmap::IndexMap;

use super::in_force::{self, Examples};
use super::measured::{self, Progress};
use super::rounds::{ScreenRound, on_screen, under_way, written_in};
use super::standing::{self, Scored};
use super::studied;

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
    /// Which prompt.
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
    /// Those of them that wait to be measured; they have no rows in [`Pool::of_now`].
    pub waiting: usize,
    /// The round on screen under way, or the last one.
    pub round: ScreenRound,
}

impl Pool {
    /// The pool, and the children of the round under way that are measured or being measured.
    pub fn of_now(state: &RunState) -> Self {
        let mut pool = Self::whole(state);
        pool.rows
            .retain(|row| !matches!(row.place, Place::Left | Place::Waiting));
        pool
    }

    /// Every prompt of the run.
    pub fn whole(state: &RunState) -> Self {
        let builder = Builder::new(state);
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
}

struct Builder<'a> {
    state: &'a RunState,
    standings: IndexMap<CandidateId, Scored>,
    limits: Limits,
    examples: Examples,
    open: Option<Round>,
}

impl<'a> Builder<'a> {
    fn new(state: &'a RunState) -> Self {
        Self {
            state,
            standings: standing::standings(state),
            limits: in_force::limits_now(state),
            examples: Examples::of_now(state),
            open: under_way(state),
        }
    }

    fn row(&self, id: CandidateId) -> Row {
        let progress = measured::progress(self.state, &id, &self.examples);
        let scored = self.standings.get(&id);
        let candidate = self.state.candidate(&id);
        let missed = scored.into_iter().flat_map(|scored| scored.missed(&self.limits));
        Row {
            candidate: id,
            gate: match scored {
                Some(scored) if scored.feasible => Gate::Feasible,
                Some(_) => Gate::NotFeasible,
                None => Gate::Undecided(progress),
            },
            lagrangian: scored.map(|scored| scored.lagrangian),
            estimates: self.estimates(id, scored),
            missed: missed.map(ToOwned::to_owned).collect(),
            characters: candidate.map_or(0, |candidate| candidate.characters),
            round: candidate.map_or(0, written_in),
            parents: candidate.map_or_else(Vec::new, |candidate| candidate.parents.clone()),
            place: self.place(id, scored.is_some(), progress),
        }
    }

    fn estimates(&self, id: CandidateId, scored: Option<&Scored>) -> IndexMap<String, Estimate> {
        let so_far = |metric: &studied::Studied| {
            let values = measured::values(self.state, &id, metric, &self.examples);
            Estimate::of(&values.into_iter().flatten().collect::<Vec<_>>())
        };
        let of = |metric: &studied::Studied| {
            scored.map_or_else(|| so_far(metric), |scored| scored.estimate(metric).copied())
        };
        studied::metrics(self.state)
            .iter()
            .filter_map(|metric| Some((metric.name().to_owned(), of(metric)?)))
            .collect()
    }

    fn place(&self, id: CandidateId, scored: bool, progress: Progress) -> Place {
        let in_pool = match self.state.rounds().last() {
            Some(last) => last.retained.contains(&id),
            None => super::lineage::seed(self.state) == Some(id),
        };
        let is_new = self.open.is_some_and(|open| {
            let candidate = self.state.candidate(&id);
            candidate.is_some_and(|candidate| written_in(candidate) == on_screen(open))
        });
        match progress.done {
            _ if in_pool => Place::InPool,
            _ if !is_new => Place::Left,
            _ if scored => Place::NewChild,
            0 => Place::Waiting,
            _ => Place::Evaluating(progress),
        }
    }
}
