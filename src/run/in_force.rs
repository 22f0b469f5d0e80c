//! What was in force in a round: thresholds, multipliers, examples.

use std::collections::HashSet;

use capo_core::ids::Round;
use capo_core::journal::{Origin, WorkloadRecord};
use capo_core::methods;
use capo_core::random::Streams;
use capo_core::run_state::{RunState, SetKey};
use capo_core::sampling::subset;
use capo_core::score::{Limit, Limits, Multipliers};
use capo_core::workload::Split;
use indexmap::IndexMap;

use super::measured;
use super::rounds::under_way;
use super::studied::{self, Part};

/// Thresholds by metric in a round of the journal, or as they stand now: frozen, then changed by
/// hand. A threshold relative to the seed is left out until the seed was measured.
pub fn thresholds(state: &RunState, round: Option<Round>) -> IndexMap<String, f64> {
    let Some(event) = state.study() else {
        return IndexMap::new();
    };
    let mut thresholds: IndexMap<String, f64> = event
        .study
        .constraints
        .iter()
        .filter_map(|constraint| {
            let relative = || {
                // The journal's first line learns the threshold only once it is frozen.
                let factor = constraint.relative_to_seed?;
                Some(factor * seed_mean(state, &constraint.metric)?)
            };
            let threshold = constraint.threshold.or_else(relative)?;
            Some((constraint.metric.clone(), threshold))
        })
        .collect();
    let steers = state.steers().iter();
    for steer in steers.filter(|steer| round.is_none_or(|round| steer.round <= round)) {
        for (metric, threshold) in steer.thresholds.iter().flatten() {
            thresholds.insert(metric.clone(), *threshold);
        }
    }
    thresholds
}

fn seed_mean(state: &RunState, metric: &str) -> Option<f64> {
    let mut candidates = state.candidates();
    let (seed, _) = candidates.find(|(_, candidate)| candidate.origin == Origin::Seed)?;
    let metric = studied::named(state, metric)?;
    let examples = Examples::whole(state, Split::Optimize);
    Some(measured::complete(state, seed, &metric, &examples)?.mean)
}

/// The constraints in force in a round of the journal, or at the end of the run, when all are.
pub fn limits(state: &RunState, round: Option<Round>) -> Limits {
    let thresholds = thresholds(state, round);
    let entered = |metric: &str| {
        let constraints = state.study().map(|event| event.study.constraints.as_slice());
        let mut constraints = constraints.unwrap_or_default().iter();
        constraints.any(|constraint| {
            constraint.metric == metric && round.is_none_or(|round| constraint.from_round <= round)
        })
    };
    studied::constraints(state)
        .into_iter()
        .filter(|metric| entered(metric.name()))
        .filter_map(|metric| {
            let Part::Constraint { scale, .. } = metric.part else {
                return None;
            };
            let threshold = *thresholds.get(metric.name())?;
            Some((metric.spec.name, Limit { threshold, scale }))
        })
        .collect()
}

/// The constraints that count now: those of the round under way, or all once the search is over.
pub fn limits_now(state: &RunState) -> Limits {
    limits(state, under_way(state))
}

/// λ of now: the one used in the round under way, or the last.
pub fn multipliers_now(state: &RunState) -> Multipliers {
    if let Some(finished) = state.finished() {
        return finished.multipliers.clone();
    }
    multipliers(state, state.rounds().len() as Round)
}

/// λ used in a round of the journal: as journaled, or as the round that is under way begins with.
pub fn multipliers(state: &RunState, round: Round) -> Multipliers {
    if let Some(closed) = state.rounds().get(round as usize) {
        return closed.multipliers.clone();
    }
    let Some(event) = state.study() else {
        return Multipliers::new();
    };
    let study = &event.study;
    let mut multipliers = match state.rounds().last() {
        Some(last) => last.next_multipliers.clone(),
        None => methods::build(&study.study.method, &study.method)
            .map(|method| method.start(&limits(state, Some(0))))
            .unwrap_or_default(),
    };
    for constraint in &study.constraints {
        if constraint.from_round == round && round > 0 {
            multipliers.entry(constraint.metric.clone()).or_insert(0.0);
        }
    }
    for steer in state.steers().iter().filter(|steer| steer.round == round) {
        for (metric, multiplier) in steer.multipliers.iter().flatten() {
            if let Some(current) = multipliers.get_mut(metric) {
                *current = *multiplier;
            }
        }
    }
    multipliers
}

/// λ_max, for methods that have one.
pub fn cap(state: &RunState) -> Option<f64> {
    state.study()?.study.method.get("lambda_max")?.as_f64()
}

/// Examples of each workload by their position in a split, ascending.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Examples {
    /// Which split.
    pub split: Split,
    /// Positions by workload, in the study's order.
    pub places: Vec<Vec<usize>>,
}

impl Examples {
    /// Every example of a split that is not left out.
    pub fn whole(state: &RunState, split: Split) -> Self {
        let records = state.study().map(|event| &event.workloads);
        let counts = |workload, example: &usize| {
            let set = SetKey { workload, split };
            !state.rollouts().is_left_out(set, *example)
        };
        let places = (0..)
            .zip(records.into_iter().flatten())
            .map(|(workload, (_, record))| {
                let all = 0..record.split(split).len();
                all.filter(|example| counts(workload, example)).collect()
            });
        Self {
            split,
            places: places.collect(),
        }
    }

    /// The examples that a round measures prompts on: those that the journal names once it is closed,
    /// else the whole split, or the batch drawn for the round.
    pub fn of_round(state: &RunState, round: Round) -> Self {
        let whole = Self::whole(state, Split::Optimize);
        let Some(event) = state.study() else {
            return whole;
        };
        if let Some(batch) = state
            .rounds()
            .get(round as usize)
            .and_then(|closed| closed.batch.as_ref())
        {
            let places = event.workloads.iter().map(|(name, record)| {
                let named: HashSet<&String> = batch.get(name).into_iter().flatten().collect();
                let all = record.split(Split::Optimize).iter().enumerate();
                all.filter(|(_, id)| named.contains(id))
                    .map(|(place, _)| place)
                    .collect()
            });
            return Self {
                places: places.collect(),
                ..whole
            };
        }
        let Some(size) = event.study.study.batch else {
            return whole;
        };
        let streams = Streams::new(event.study.study.seed);
        let draw = |(workload, (all, left)): (u64, (&WorkloadRecord, &Vec<usize>))| -> Vec<usize> {
            let drawn = subset(
                all.split(Split::Optimize).len(),
                size,
                &mut streams.stream("batch", u64::from(round), workload),
            );
            drawn.into_iter().filter(|place| left.contains(place)).collect()
        };
        Self {
            places: (0..)
                .zip(event.workloads.values().zip(&whole.places))
                .map(draw)
                .collect(),
            ..whole
        }
    }

    /// The examples of the round under way, or of the last one.
    pub fn of_now(state: &RunState) -> Self {
        let last = (state.rounds().len() as Round).saturating_sub(1);
        Self::of_round(state, under_way(state).unwrap_or(last))
    }

    /// Examples of all workloads together.
    pub fn len(&self) -> usize {
        self.places.iter().map(Vec::len).sum()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.places.iter().all(Vec::is_empty)
    }

    /// The examples of each workload with the set they belong to.
    pub(super) fn sets(&self) -> impl Iterator<Item = (SetKey, &[usize])> {
        (0..).zip(&self.places).map(|(workload, places)| {
            let set = SetKey {
                workload,
                split: self.split,
            };
            (set, places.as_slice())
        })
    }
}
