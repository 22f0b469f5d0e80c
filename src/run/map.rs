//! Objective against the worst residual: every prompt with a score, and the course to the best.

use std::sync::Arc;

use capo_core::ids::CandidateId;
use capo_core::methods;
use capo_core::reading::in_force;
use capo_core::reading::lineage;
use capo_core::reading::standing::{self, Scored, Scores};
use capo_core::run_state::RunState;

use super::rounds::{ScreenRound, written_in};

/// A prompt on the map.
#[derive(Debug, Clone, PartialEq)]
pub struct Place {
    /// Its score of now.
    pub scored: Arc<Scored>,
    /// max over constraints of (cost − τ)/s; `None` without constraints.
    pub worst_residual: Option<f64>,
    /// The constraint it is worst at.
    pub worst: Option<String>,
    /// The round on screen in which it was written; 0 for the seed.
    pub round: ScreenRound,
    /// What it was made from.
    pub parents: Vec<CandidateId>,
}

/// The map of a run.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Map {
    /// Prompts in order of appearance.
    pub places: Vec<Place>,
    /// The prompt the search starts from.
    pub seed: Option<CandidateId>,
    /// The best feasible prompt so far.
    pub best: Option<CandidateId>,
    /// From the seed to the best, both included; empty while there is none.
    pub course: Vec<CandidateId>,
}

impl Map {
    /// The map of a run as it stands.
    pub fn new(state: &RunState) -> Self {
        Self::of(
            state,
            &standing::standings(state, &methods::multipliers_now(state)),
        )
    }

    /// The same from scores of now that are known already.
    pub(super) fn of(state: &RunState, standings: &Scores) -> Self {
        let best = standing::best_feasible(state, standings);
        let limits = in_force::limits_now(state);
        let place = |(id, scored): (&CandidateId, &Arc<Scored>)| {
            let candidate = state.candidate(id)?;
            let worst = scored.worst_residual(&limits);
            Some(Place {
                worst_residual: worst.map(|(_, residual)| residual),
                worst: worst.map(|(metric, _)| metric.to_owned()),
                round: written_in(candidate),
                parents: candidate.parents.clone(),
                scored: Arc::clone(scored),
            })
        };
        Self {
            places: standings.iter().filter_map(place).collect(),
            seed: lineage::seed(state),
            best,
            course: best.map_or_else(Vec::new, |best| lineage::course(state, best)),
        }
    }

    /// Prompts that are feasible now.
    pub fn feasible(&self) -> usize {
        self.places.iter().filter(|place| place.scored.feasible).count()
    }

    /// The prompt of the smallest worst residual; `None` when none was measured.
    pub fn closest(&self) -> Option<CandidateId> {
        let residual = |place: &Place| place.worst_residual.unwrap_or(f64::INFINITY);
        let places = self.places.iter();
        let closest = places.min_by(|a, b| residual(a).total_cmp(&residual(b)));
        closest.map(|place| place.scored.candidate)
    }

    /// Where a prompt stands.
    pub fn place(&self, candidate: CandidateId) -> Option<&Place> {
        self.places
            .iter()
            .find(|place| place.scored.candidate == candidate)
    }
}
