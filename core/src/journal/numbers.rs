//! The numbers of a line: JSON writes those that are not finite as null, and null reads as no number.

use indexmap::IndexMap;
use serde::{Deserialize, Deserializer};

use super::Event;
use crate::estimate::Estimate;
use crate::score::Score;

/// A number, NaN where null was written for one that was not finite.
pub(crate) fn number<'de, D: Deserializer<'de>>(deserializer: D) -> Result<f64, D::Error> {
    Ok(Option::deserialize(deserializer)?.unwrap_or(f64::NAN))
}

/// Numbers by name, as [`number`] reads them.
pub(crate) fn numbers<'de, D: Deserializer<'de>>(deserializer: D) -> Result<IndexMap<String, f64>, D::Error> {
    let read: IndexMap<String, Option<f64>> = IndexMap::deserialize(deserializer)?;
    Ok(read
        .into_iter()
        .map(|(name, number)| (name, number.unwrap_or(f64::NAN)))
        .collect())
}

/// The first number of an event that is not finite, by the name of what it measures. Such an event is
/// never written.
pub(crate) fn not_finite(event: &Event) -> Option<String> {
    let mut found = None;
    let mut look = |name: &str, number: f64| {
        if !number.is_finite() {
            found.get_or_insert_with(|| format!("`{name}` is {number}"));
        }
    };
    let mut all =
        |numbers: &IndexMap<String, f64>| numbers.iter().for_each(|(name, number)| look(name, *number));
    let estimates = |all: &mut dyn FnMut(&IndexMap<String, f64>), estimates: &IndexMap<String, Estimate>| {
        for (name, estimate) in estimates {
            all(&[
                (name.clone(), estimate.mean),
                (format!("{name}'s standard error"), estimate.standard_error),
            ]
            .into());
        }
    };
    let scores = |all: &mut dyn FnMut(&IndexMap<String, f64>), scores: &mut dyn Iterator<Item = &Score>| {
        for score in scores {
            all(&score.costs);
            all(&[
                ("objective".to_owned(), score.objective),
                ("lagrangian".to_owned(), score.lagrangian),
            ]
            .into());
        }
    };
    match event {
        Event::Rollout(rollout) => all(&rollout.measurements),
        Event::Learned(learned) => all(&learned.figures),
        Event::Round(round) => {
            all(&round.multipliers);
            all(&round.next_multipliers);
            scores(&mut all, &mut round.scores.values());
        }
        Event::Steer(steer) => {
            steer.thresholds.iter().for_each(&mut all);
            steer.multipliers.iter().for_each(&mut all);
        }
        Event::Finished(finished) => {
            all(&finished.multipliers);
            scores(&mut all, &mut finished.final_scores.values());
            estimates(&mut all, &finished.evaluation);
            estimates(&mut all, &finished.seed_evaluation);
        }
        Event::Study(_)
        | Event::Candidate(_)
        | Event::Discard(_)
        | Event::LeaveOut(_)
        | Event::Critique(_)
        | Event::Rewrite(_)
        | Event::Failure(_) => {}
    }
    found
}
