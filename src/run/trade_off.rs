//! Which prompt of a finished run is the best under other thresholds.

use std::sync::Arc;

use capo_core::reading::in_force;
use capo_core::reading::metrics::{Aims, StudiedMetric};
use capo_core::reading::standing::{Scored, better};
use capo_core::run_state::RunState;

use super::map::Map;

/// What a run measured on the search examples, to choose from.
#[derive(Debug, Clone, PartialEq)]
pub struct TradeOff {
    /// What the run maximises.
    pub objective: StudiedMetric,
    /// The constraints, each with the threshold that the run ended with.
    pub constraints: Vec<(StudiedMetric, f64)>,
    scored: Vec<Arc<Scored>>,
}

impl TradeOff {
    /// The choice of a run that has ended; `None` without constraints.
    pub fn of(state: &RunState, map: &Map) -> Option<Self> {
        state.finished()?;
        let aims = Aims::of(state)?;
        let thresholds = in_force::thresholds(state, None);
        let constraints = aims.constraints.into_iter().filter_map(|metric| {
            let threshold = *thresholds.get(metric.name())?;
            Some((metric, threshold))
        });
        let constraints: Vec<(StudiedMetric, f64)> = constraints.collect();
        (!constraints.is_empty()).then(|| Self {
            objective: aims.objective,
            constraints,
            scored: map.places.iter().map(|place| Arc::clone(&place.scored)).collect(),
        })
    }

    /// The prompt of the highest objective that keeps these thresholds, one for each constraint in order. A study may choose
    /// with more caution.
    pub fn best(&self, thresholds: &[f64]) -> Option<&Scored> {
        let kept = self.keeping(thresholds, None);
        kept.reduce(|best, next| if better(next, best) { next } else { best })
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
        self.scored.iter().map(AsRef::as_ref).filter(keeps)
    }

    fn cost(&self, scored: &Scored, place: usize) -> Option<f64> {
        let (metric, _) = self.constraints.get(place)?;
        Some(scored.costs.get(metric.name())?.mean)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::fixture::finished;

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
}
