//! Measurements of a prompt: means over examples of each example's mean over repeats.

use indexmap::IndexMap;

use crate::journal::Origin;
use crate::journal::run_state::{Candidate, Row, RunState, SetKey};
use crate::reading::examples::Examples;
use crate::reading::metrics::{self, StudiedMetric};
use crate::study::estimate::{Estimate, mean_of};
use crate::study::ids::CandidateId;
use crate::study::workload::Split;

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

/// A prompt on the examples of a split, so far.
pub fn on_split(state: &RunState, candidate: &CandidateId, split: Split) -> Measured {
    on(state, candidate, &Examples::whole(state, split))
}

/// A prompt on some examples, so far.
pub fn on(state: &RunState, candidate: &CandidateId, examples: &Examples) -> Measured {
    let estimate = |metric: StudiedMetric| {
        let estimate = so_far(state, candidate, &metric, examples)?;
        Some((metric.spec.name.clone(), estimate))
    };
    Measured {
        estimates: metrics::all(state).into_iter().filter_map(estimate).collect(),
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
    metric: &StudiedMetric,
    examples: &Examples,
) -> Vec<Option<f64>> {
    let places = examples.places.get(usize::from(metric.workload));
    let set = SetKey {
        workload: metric.workload,
        split: examples.split,
    };
    let candidate = state.position(candidate);
    let row = candidate.and_then(|candidate| state.rollouts().row(candidate, set));
    let value = |place: &usize| {
        let row = row?;
        mean(&row, metric.position, *place, row.repeats(*place))
    };
    places.into_iter().flatten().map(value).collect()
}

/// Mean of the metric at a position over the first `repeats` rollouts of an example; `None` where there is none.
pub fn mean(row: &Row<'_>, metric: usize, example: usize, repeats: u32) -> Option<f64> {
    let of_repeat = |repeat| row.values(example, repeat)?.get(metric).copied();
    mean_of((0..repeats).filter_map(of_repeat))
}

/// [`values`] of a prompt that was measured on every one of the examples, with their positions in the split.
/// Runs leave out different examples, so that only the positions say which values belong together.
pub fn by_example(
    state: &RunState,
    candidate: &CandidateId,
    metric: &StudiedMetric,
    examples: &Examples,
) -> Option<Vec<(usize, f64)>> {
    let places = examples.places.get(usize::from(metric.workload))?;
    let found = some_by_example(state, candidate, metric, examples);
    (found.len() == places.len()).then_some(found)
}

/// The same of a prompt that was measured on some of the examples, on those.
pub fn some_by_example(
    state: &RunState,
    candidate: &CandidateId,
    metric: &StudiedMetric,
    examples: &Examples,
) -> Vec<(usize, f64)> {
    let places = examples.places.get(usize::from(metric.workload));
    let values = values(state, candidate, metric, examples);
    let found = places.into_iter().flatten().zip(values);
    found
        .filter_map(|(place, value)| Some((*place, value?)))
        .collect()
}

/// The estimate of a metric of a prompt over those of some examples that it was measured on so far.
pub fn so_far(
    state: &RunState,
    candidate: &CandidateId,
    metric: &StudiedMetric,
    examples: &Examples,
) -> Option<Estimate> {
    let values = values(state, candidate, metric, examples);
    Estimate::of(&values.into_iter().flatten().collect::<Vec<_>>())
}

/// The estimate of a metric of a prompt that was measured on every one of the examples.
pub fn complete(
    state: &RunState,
    candidate: &CandidateId,
    metric: &StudiedMetric,
    examples: &Examples,
) -> Option<Estimate> {
    let values: Option<Vec<f64>> = values(state, candidate, metric, examples).into_iter().collect();
    Estimate::of(&values?)
}

/// A prompt's estimate of a metric on a split; `None` unless it was measured on all of it.
pub fn estimate(state: &RunState, candidate: &CandidateId, metric: &str, split: Split) -> Option<Estimate> {
    let metric = metrics::named(state, metric)?;
    complete(state, candidate, &metric, &Examples::whole(state, split))
}

/// Whether a prompt's objective was measured on every example of a split, if there are any.
pub fn is_measured(state: &RunState, candidate: &CandidateId, split: Split) -> bool {
    let objective = metrics::objective(state);
    let estimate =
        objective.and_then(|metric| complete(state, candidate, &metric, &Examples::whole(state, split)));
    estimate.is_some()
}

/// Whether a journal has prompts that were given to be measured, and no search.
pub fn is_no_search(state: &RunState) -> bool {
    let is_given = |(_, candidate): (_, &Candidate)| candidate.origin == Origin::Given;
    state.rounds().is_empty() && state.finished().is_none() && state.candidates().any(is_given)
}

/// The prompts that were measured without a search, in their order; none where a search was run over the
/// journal.
pub fn evaluated(state: &RunState) -> Vec<CandidateId> {
    if !state.rounds().is_empty() || state.finished().is_some() {
        return Vec::new();
    }
    let is_alone = state.candidates().len() == 1;
    let evaluated = state
        .candidates()
        .filter(|(id, candidate)| match candidate.origin {
            Origin::Given => {
                is_measured(state, id, Split::Optimize) || is_measured(state, id, Split::Evaluate)
            }
            // On the optimisation split it may be there for thresholds that are relative to it, unless
            // nothing else is there.
            Origin::Seed => {
                is_measured(state, id, Split::Evaluate)
                    || (is_alone && is_measured(state, id, Split::Optimize))
            }
            _ => false,
        });
    evaluated.map(|(id, _)| *id).collect()
}
