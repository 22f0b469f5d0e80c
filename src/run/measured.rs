//! What was measured of a prompt: means over examples of each example's mean over repeats.

use capo_core::estimate::{Estimate, mean_of};
use capo_core::ids::CandidateId;
use capo_core::run_state::{Row, RunState, SetKey};
use capo_core::workload::Split;
use indexmap::IndexMap;

use super::in_force::Examples;
use super::studied::{self, Studied};

/// How many of the examples asked for have all their repeats.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    /// Examples measured.
    pub done: usize,
    /// Examples in all.
    pub of: usize,
}

impl Progress {
    /// Whether nothing is missing.
    pub fn is_whole(self) -> bool {
        self.done == self.of
    }
}

/// A prompt on the examples of a split that it was measured on so far.
#[derive(Debug, Clone, PartialEq)]
pub struct Measured {
    /// Means with standard errors by metric, the objective first, then the constraints, then all
    /// others; a metric that no example measured yet is left out.
    pub estimates: IndexMap<String, Estimate>,
    /// How many examples they rest on.
    pub examples: Progress,
}

/// A prompt on the examples the search uses, so far.
pub fn on_search(state: &RunState, candidate: &CandidateId) -> Measured {
    on(state, candidate, &Examples::whole(state, Split::Optimize))
}

/// A prompt on the held-out examples, so far.
pub fn held_out(state: &RunState, candidate: &CandidateId) -> Measured {
    on(state, candidate, &Examples::whole(state, Split::Evaluate))
}

/// A prompt on some examples, so far.
pub fn on(state: &RunState, candidate: &CandidateId, examples: &Examples) -> Measured {
    let estimate = |metric: Studied| {
        let values: Vec<f64> = values(state, candidate, &metric, examples)
            .into_iter()
            .flatten()
            .collect();
        Some((metric.spec.name.clone(), Estimate::of(&values)?))
    };
    Measured {
        estimates: studied::all(state).into_iter().filter_map(estimate).collect(),
        examples: progress(state, candidate, examples),
    }
}

/// How far a prompt's measurement on some examples has come.
pub fn progress(state: &RunState, candidate: &CandidateId, examples: &Examples) -> Progress {
    let repeats = state.study().map_or(1, |event| event.study.study.repeats);
    let position = state.position(candidate);
    let of_set = |(set, places): (SetKey, &[usize])| {
        let row = position.and_then(|candidate| state.rollouts().row(candidate, set));
        let is_done = |row: &Row<'_>, place: usize| row.repeats(place) >= repeats;
        row.map_or(0, |row| {
            places.iter().filter(|place| is_done(&row, **place)).count()
        })
    };
    Progress {
        done: examples.sets().map(of_set).sum(),
        of: examples.len(),
    }
}

/// A prompt's value of a metric on each of some examples (those of the workload that measures it),
/// means over the repeats made so far; `None` where there is none yet.
pub fn values(
    state: &RunState,
    candidate: &CandidateId,
    metric: &Studied,
    examples: &Examples,
) -> Vec<Option<f64>> {
    let places = examples.places.get(usize::from(metric.workload));
    let set = SetKey {
        workload: metric.workload,
        split: examples.split,
    };
    let candidate = state.position(candidate);
    let row = candidate.and_then(|candidate| state.rollouts().row(candidate, set));
    let value = |place: &usize| value(&row?, metric, *place);
    places.into_iter().flatten().map(value).collect()
}

fn value(row: &Row<'_>, metric: &Studied, example: usize) -> Option<f64> {
    let of_repeat = |repeat| row.values(example, repeat)?.get(metric.position).copied();
    mean_of((0..row.repeats(example)).filter_map(of_repeat))
}

/// [`values`] of a prompt that was measured on every one of the examples.
pub fn complete_values(
    state: &RunState,
    candidate: &CandidateId,
    metric: &Studied,
    examples: &Examples,
) -> Option<Vec<f64>> {
    values(state, candidate, metric, examples).into_iter().collect()
}

/// The estimate of a metric of a prompt that was measured on every one of the examples.
pub fn complete(
    state: &RunState,
    candidate: &CandidateId,
    metric: &Studied,
    examples: &Examples,
) -> Option<Estimate> {
    Estimate::of(&complete_values(state, candidate, metric, examples)?)
}
