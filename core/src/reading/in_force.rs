//! Thresholds and multipliers in force in a round.

use indexmap::IndexMap;

use crate::journal::SteerEvent;
use crate::journal::run_state::RunState;
use crate::reading::examples::Examples;
use crate::reading::metrics::{self, Part};
use crate::reading::rounds::under_way;
use crate::reading::{lineage, measured};
use crate::study::Constraint;
use crate::study::ids::Round;
use crate::study::score::{Limit, Limits, Multipliers};
use crate::study::workload::Split;

/// Thresholds by metric in a round of the journal, or as they stand now: frozen, then changed by
/// hand. A threshold relative to the seed is left out until the seed was measured.
pub fn thresholds(state: &RunState, round: Option<Round>) -> IndexMap<String, f64> {
    // The journal's first line learns a relative threshold only once it is frozen.
    let relative = |constraint: &Constraint| {
        let factor = constraint.relative_to_seed?;
        Some(factor * seed_mean(state, &constraint.metric)?)
    };
    let applies = |steer: &SteerEvent| round.is_none_or(|round| steer.round <= round);
    state.thresholds(relative, applies)
}

fn constraints(state: &RunState) -> &[Constraint] {
    let constraints = state.study().map(|event| event.study.constraints.as_slice());
    constraints.unwrap_or_default()
}

fn seed_mean(state: &RunState, metric: &str) -> Option<f64> {
    let metric = metrics::named(state, metric)?;
    let examples = Examples::whole(state, Split::Optimize);
    Some(measured::complete(state, &lineage::seed(state)?, &metric, &examples)?.mean)
}

/// The constraints in force in a round of the journal, or at the end of the run, when all are.
pub fn limits(state: &RunState, round: Option<Round>) -> Limits {
    limits_of(state, round, &thresholds(state, round))
}

/// [`limits`] for a run whose course has come to the beginning of its round `opened`, whatever the journal holds of
/// later ones: with the thresholds that are frozen, and changed by hand in the rounds opened so far.
pub(crate) fn limits_by(state: &RunState, round: Option<Round>, opened: Option<Round>) -> Limits {
    let applies = |steer: &SteerEvent| opened.is_some_and(|opened| steer.round <= opened);
    limits_of(state, round, &state.thresholds(|_| None, applies))
}

fn limits_of(state: &RunState, round: Option<Round>, thresholds: &IndexMap<String, f64>) -> Limits {
    metrics::constraints(state)
        .into_iter()
        .filter_map(|metric| {
            let Part::Constraint { scale, from_round } = metric.part else {
                return None;
            };
            let threshold = *thresholds.get(metric.name())?;
            let has_entered = round.is_none_or(|round| from_round <= round);
            has_entered.then_some((metric.spec.name, Limit { threshold, scale }))
        })
        .collect()
}

/// The constraints that count now: those of the round under way, or all once the search is over.
pub fn limits_now(state: &RunState) -> Limits {
    limits(state, under_way(state))
}

/// λ of now: the one used in the round under way, or the last. `initial` as for [`multipliers`].
pub fn multipliers_now(state: &RunState, initial: impl FnOnce(&Limits) -> Multipliers) -> Multipliers {
    match state.finished() {
        Some(finished) => finished.multipliers.clone(),
        None => multipliers(state, state.rounds().len() as Round, initial),
    }
}

/// λ used in a round of the journal: as journaled, or as the round that is under way begins with. `initial` gives
/// λ_0 of the constraints in force, as the method has it.
pub fn multipliers(
    state: &RunState,
    round: Round,
    initial: impl FnOnce(&Limits) -> Multipliers,
) -> Multipliers {
    if let Some(closed) = state.rounds().get(round as usize) {
        return closed.multipliers.clone();
    }
    if state.study().is_none() {
        return Multipliers::new();
    }
    let mut multipliers = match state.rounds().last() {
        Some(last) => last.next_multipliers.clone(),
        None => initial(&limits(state, Some(0))),
    };
    enter(constraints(state), round, &mut multipliers);
    for steer in state.steers().iter().filter(|steer| steer.round == round) {
        apply(steer, &mut multipliers);
    }
    multipliers
}

/// Constraints whose round has come enter with λ = 0.
pub(crate) fn enter(constraints: &[Constraint], round: Round, multipliers: &mut Multipliers) {
    for constraint in constraints {
        if constraint.from_round == round && round > 0 {
            multipliers.entry(constraint.metric.clone()).or_insert(0.0);
        }
    }
}

/// What a person changed of the multipliers in force.
pub(crate) fn apply(steer: &SteerEvent, multipliers: &mut Multipliers) {
    for (metric, multiplier) in steer.multipliers.iter().flatten() {
        if let Some(current) = multipliers.get_mut(metric) {
            *current = *multiplier;
        }
    }
}

/// λ_max, for methods that have one.
pub fn cap(state: &RunState) -> Option<f64> {
    state.study()?.study.method.get("lambda_max")?.as_f64()
}
