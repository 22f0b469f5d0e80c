//! The numbers of a line.

use indexmap::IndexMap;

use super::Event;
use crate::study::estimate::Estimate;
use crate::study::score::Score;

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
            all(&score.margins);
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
        | Event::Failure(_)
        | Event::Batch(_) => {}
    }
    found
}
