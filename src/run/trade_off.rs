//! Trade-offs: the best prompt of a finished run under other thresholds.

use capo_core::estimate::Estimate;
use capo_core::ids::CandidateId;
use capo_core::reading::examples::Examples;
use capo_core::reading::metrics::{Aims, StudiedMetric};
use capo_core::reading::standing::{Scored, best_of};
use capo_core::reading::{in_force, measured};
use capo_core::run_state::RunState;
use capo_core::workload::Split;

use super::map::Map;

/// What a run measured on the search examples, to choose from.
#[derive(Debug, Clone, PartialEq)]
pub struct TradeOff {
    /// What the run maximises.
    pub objective: StudiedMetric,
    /// The constraints, each with the threshold that the run ended with.
    pub constraints: Vec<(StudiedMetric, f64)>,
    /// The prompt that the run returned.
    pub returned: Option<CandidateId>,
    scored: Vec<Scored>,
}

impl TradeOff {
    /// The choice of a run that has ended, among the prompts measured on every search example: batches of rounds do not
    /// compare. `None` without constraints, or where no prompt is.
    pub fn of(state: &RunState, map: &Map) -> Option<Self> {
        let returned = state.finished()?.best;
        let aims = Aims::of(state)?;
        let all = Examples::whole(state, Split::Optimize);
        let scored = map.places.iter();
        let scored: Vec<Scored> = scored
            .filter_map(|place| on_all(state, &aims, &place.scored, &all))
            .collect();
        let thresholds = in_force::thresholds(state, None);
        let constraints = aims.constraints.into_iter().filter_map(|metric| {
            let threshold = *thresholds.get(metric.name())?;
            Some((metric, threshold))
        });
        let constraints: Vec<(StudiedMetric, f64)> = constraints.collect();
        (!constraints.is_empty() && !scored.is_empty()).then(|| Self {
            objective: aims.objective,
            constraints,
            returned,
            scored,
        })
    }

    /// What each prompt measured of the objective or of a constraint.
    pub fn estimates(&self, metric: &StudiedMetric) -> impl Iterator<Item = &Estimate> {
        self.scored.iter().filter_map(|scored| scored.estimate(metric))
    }

    /// The prompt of the highest objective that keeps these thresholds, one for each constraint in order. A study may choose
    /// with more caution.
    pub fn best(&self, thresholds: &[f64]) -> Option<&Scored> {
        best_of(self.keeping(thresholds, None))
    }

    /// The prompts that are the best one as the threshold of the constraint at `moved` rises from nothing and the others
    /// stay: each costs more than the one before it, and reaches more.
    pub fn front(&self, thresholds: &[f64], moved: usize) -> Vec<&Scored> {
        let cost = |scored: &Scored| self.cost(scored, moved).unwrap_or(f64::INFINITY);
        let mut kept: Vec<&Scored> = self.keeping(thresholds, Some(moved)).collect();
        let reached = |scored: &Scored| scored.objective.mean;
        kept.sort_by(|a, b| {
            let by_cost = cost(a).total_cmp(&cost(b));
            by_cost.then(reached(b).total_cmp(&reached(a)))
        });
        let mut front: Vec<&Scored> = Vec::new();
        for next in kept {
            if front.last().is_none_or(|last| reached(next) > reached(last)) {
                front.push(next);
            }
        }
        front
    }

    fn keeping(&self, thresholds: &[f64], but: Option<usize>) -> impl Iterator<Item = &Scored> {
        let keeps = move |scored: &&Scored| {
            let mut places = thresholds.iter().enumerate();
            places.all(|(place, threshold)| {
                let cost = self.cost(scored, place);
                but == Some(place) || cost.is_some_and(|cost| cost <= *threshold)
            })
        };
        self.scored.iter().filter(keeps)
    }

    fn cost(&self, scored: &Scored, place: usize) -> Option<f64> {
        let (metric, _) = self.constraints.get(place)?;
        Some(scored.costs.get(metric.name())?.mean)
    }
}

/// A prompt by its means on all of these examples, whichever its score is of.
fn on_all(state: &RunState, aims: &Aims, scored: &Scored, all: &Examples) -> Option<Scored> {
    let of = |metric: &StudiedMetric| measured::complete(state, &scored.candidate, metric, all);
    let cost = |metric: &StudiedMetric| Some((metric.name().to_owned(), of(metric)?));
    Some(Scored {
        objective: of(&aims.objective)?,
        costs: aims.constraints.iter().map(cost).collect::<Option<_>>()?,
        ..scored.clone()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::fixture::{events, finished, fold};

    #[test]
    fn what_is_best_under_a_threshold_lies_on_its_front() {
        let state = finished();
        let trade_off = TradeOff::of(&state, &Map::new(&state)).unwrap();
        let own: Vec<f64> = trade_off.constraints.iter().map(|(_, own)| *own).collect();
        assert_eq!(own, [0.4, 1.3, 5.0]);
        assert_eq!(trade_off.best(&[-1.0; 3]), None);
        let all = trade_off.best(&[f64::INFINITY; 3]).unwrap();
        assert!(
            trade_off
                .scored
                .iter()
                .all(|scored| scored.objective.mean <= all.objective.mean)
        );
        for moved in 0..own.len() {
            let lifted = [f64::INFINITY; 3];
            let front = trade_off.front(&lifted, moved);
            assert_eq!(front.last().unwrap().objective.mean, all.objective.mean);
            for prompt in &front {
                let mut thresholds = lifted;
                thresholds[moved] = trade_off.cost(prompt, moved).unwrap();
                let best = trade_off.best(&thresholds).unwrap();
                assert_eq!(best.objective.mean, prompt.objective.mean);
            }
            let costs: Vec<_> = front
                .iter()
                .map(|prompt| trade_off.cost(prompt, moved).unwrap())
                .collect();
            assert!(costs.windows(2).all(|pair| pair[0] < pair[1]), "{costs:?}");
        }
    }

    #[test]
    fn a_prompt_that_a_batch_alone_has_seen_is_no_choice() {
        let state = fold(&events(
            |study| {
                study.study.batch = Some(5);
                study.study.rounds = capo_core::study::Rounds::Count(6);
            },
            None,
        ));
        let map = Map::new(&state);
        let on_batch = map.places.iter().filter(|place| place.scored.objective.n < 12);
        assert!(on_batch.count() > 0);
        let trade_off = TradeOff::of(&state, &map).unwrap();
        let mut chosen_among = trade_off.scored.iter();
        assert!(chosen_among.all(|scored| scored.objective.n == 12));
        let returned = state.finished().unwrap().best;
        assert!(
            trade_off
                .scored
                .iter()
                .any(|scored| Some(scored.candidate) == returned)
        );
    }
}
