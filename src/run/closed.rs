//! Closed rounds: they never change, so each is scored once.

use std::sync::Arc;

use capo_core::ids::CandidateId;
use capo_core::journal::RoundEvent;
use capo_core::reading::examples::Examples;
use capo_core::reading::in_force;
use capo_core::reading::metrics::Aims;
use capo_core::reading::standing::{Scored, Scores, best_of};
use capo_core::run_state::RunState;
use capo_core::score::Limits;
use indexmap::IndexMap;

use super::rounds::on_screen;
use super::series::{PoolPlace, RoundPoint};

/// The closed rounds of a run that goes on.
#[derive(Debug, Default)]
pub(super) struct Closed {
    /// The seed, then every closed round; empty before the first.
    points: Arc<Vec<RoundPoint>>,
    /// The constraints in force in each of them.
    limits: Vec<Limits>,
    /// Every prompt as it was scored last, feasible or not by the limits of the last round.
    known: IndexMap<CandidateId, Scored>,
}

impl Closed {
    /// The seed, as soon as it is measured, then every closed round.
    pub(super) fn follow(
        &mut self,
        state: &RunState,
        aims: &Aims,
        standings: &Scores,
    ) -> Arc<Vec<RoundPoint>> {
        if state.rounds().is_empty() {
            let seed = capo_core::reading::lineage::seed(state).and_then(|seed| standings.get(&seed));
            return Arc::new(seed.map(|seed| seed_point(seed)).into_iter().collect());
        }
        for closed in &state.rounds()[self.limits.len()..] {
            self.close(state, aims, closed);
        }
        Arc::clone(&self.points)
    }

    /// The constraints in force in each closed round.
    pub(super) fn limits(&self) -> &[Limits] {
        &self.limits
    }

    fn close(&mut self, state: &RunState, aims: &Aims, closed: &RoundEvent) {
        let limits = in_force::limits(state, Some(closed.round));
        if self.limits.last().is_some_and(|last| *last != limits) {
            for earlier in self.known.values_mut() {
                let feasible = earlier.missed(&limits).next().is_none();
                earlier.feasible = feasible;
            }
        }
        let examples = Examples::of_round(state, closed.round);
        let scored: IndexMap<CandidateId, Scored> = closed
            .scores
            .iter()
            .map(|(id, score)| (*id, Scored::of(state, aims, *id, score, &examples)))
            .collect();
        let points = Arc::make_mut(&mut self.points);
        if points.is_empty() {
            let seed = capo_core::reading::lineage::seed(state).and_then(|seed| scored.get(&seed));
            points.extend(seed.map(seed_point));
        }
        self.known.extend(scored.clone());
        let place = |id: &CandidateId| PoolPlace {
            candidate: *id,
            feasible: scored.get(id).is_some_and(|scored| scored.feasible),
        };
        let best: Vec<&Scored> = closed.best.iter().filter_map(|id| scored.get(id)).collect();
        points.push(RoundPoint {
            round: on_screen(closed.round),
            best: closed.best.clone(),
            leading: Scored::averaged(&best),
            others: scored
                .values()
                .filter(|scored| !closed.best.contains(&scored.candidate))
                .cloned()
                .collect(),
            pool: closed.retained.iter().map(place).collect(),
            best_feasible: best_of(self.known.values().filter(|scored| scored.feasible)).cloned(),
        });
        self.limits.push(limits);
    }
}

/// The seed alone.
fn seed_point(seed: &Scored) -> RoundPoint {
    RoundPoint {
        round: 0,
        best: vec![seed.candidate],
        leading: Some(seed.clone()),
        others: Vec::new(),
        pool: vec![PoolPlace {
            candidate: seed.candidate,
            feasible: seed.feasible,
        }],
        best_feasible: seed.feasible.then(|| seed.clone()),
    }
}
