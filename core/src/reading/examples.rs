//! The examples that prompts are measured on: a whole split, or the batch of a round.

use std::collections::{HashMap, HashSet};

use crate::journal::run_state::{RunState, SetKey};
use crate::journal::{RoundEvent, WorkloadRecord};
use crate::random::{Streams, subset, without_replacement};
use crate::reading::lineage;
use crate::reading::rounds::under_way;
use crate::study::Search;
use crate::study::ids::Round;
use crate::study::workload::Split;

/// Examples of each workload by their position in a split, ascending.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Examples {
    /// The split that the examples belong to.
    pub split: Split,
    /// Positions by workload, in the study's order.
    pub places: Vec<Vec<usize>>,
}

impl Examples {
    /// Every example of a split that is not left out, nor kept for the test of the prompts that were found.
    pub fn whole(state: &RunState, split: Split) -> Self {
        let kept = match split {
            Split::Optimize => Vec::new(),
            Split::Evaluate => Self::reserve(state, usize::MAX).places,
        };
        Self::that(state, split, |set, example| {
            let is_kept = kept
                .get(usize::from(set.workload))
                .is_some_and(|kept| kept.contains(&example));
            !is_kept && !state.rollouts().is_left_out(set, example)
        })
    }

    /// The first so many examples of each workload that are kept for the test of the prompts that were found, in the
    /// order in which they are measured. Left out ones are among them.
    pub fn reserve(state: &RunState, count: usize) -> Self {
        let records = state
            .study()
            .into_iter()
            .flat_map(|event| event.workloads.values());
        let places = records.map(|record: &WorkloadRecord| {
            let positions: HashMap<&String, usize> = match &record.reserve[..] {
                [] => HashMap::new(),
                _ => record.evaluate.iter().zip(0..).collect(),
            };
            let kept = record.reserve.iter().take(count);
            kept.filter_map(|id| positions.get(id).copied()).collect()
        });
        Self {
            split: Split::Evaluate,
            places: places.collect(),
        }
    }

    /// The examples that a round measures prompts on: those that the journal names once it is closed, else the
    /// whole split, or the batch that is drawn for the round. Examples left out since are none of them.
    pub fn of_round(state: &RunState, round: Round) -> Self {
        let whole = Self::whole(state, Split::Optimize);
        let Some(event) = state.study() else {
            return whole;
        };
        if let Some(closed) = state.rounds().get(round as usize) {
            let Some(batch) = &closed.batch else { return whole };
            let workloads = event.workloads.iter();
            let places = workloads.map(|(name, record)| {
                named(
                    record.split(Split::Optimize),
                    batch.get(name).into_iter().flatten(),
                )
            });
            return Self {
                places: places.collect(),
                ..whole
            };
        }
        let search = &event.study.study;
        let Some(size) = batch_size(search, state.rounds()) else {
            return whole;
        };
        let streams = Streams::new(event.study.study.seed);
        let at_its_beginning = Self::that(state, Split::Optimize, |set, example| {
            !was_left_out_before(state, set, example, round)
        });
        let places = (0..).zip(at_its_beginning.places).zip(&whole.places);
        let places = places.map(|((workload, available), counting)| {
            let mut drawn = batch(streams, search, round, workload, &available, size);
            drawn.retain(|place| counting.contains(place));
            drawn
        });
        Self {
            places: places.collect(),
            ..whole
        }
    }

    /// The examples of the round under way, or of the last one.
    pub fn of_now(state: &RunState) -> Self {
        let last = (state.rounds().len() as Round).saturating_sub(1);
        Self::of_round(state, under_way(state).unwrap_or(last))
    }

    fn that(state: &RunState, split: Split, counts: impl Fn(SetKey, usize) -> bool) -> Self {
        let records = state.study().map(|event| event.workloads.values());
        let places = (0..).zip(records.into_iter().flatten());
        let places = places.map(|(workload, record): (u16, &WorkloadRecord)| {
            let all = 0..record.split(split).len();
            all.filter(|example| counts(SetKey { workload, split }, *example))
                .collect()
        });
        Self {
            split,
            places: places.collect(),
        }
    }

    /// Whether an example of a workload, both by name, is one of these.
    pub fn holds(&self, state: &RunState, workload: &str, example: &str) -> bool {
        let place = state.rollouts().place_of(workload, self.split, example);
        place.is_some_and(|(set, place)| self.places[usize::from(set.workload)].contains(&place))
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
    pub fn sets(&self) -> impl Iterator<Item = (SetKey, &[usize])> {
        (0..).zip(&self.places).map(|(workload, places)| {
            let set = SetKey {
                workload,
                split: self.split,
            };
            (set, places.as_slice())
        })
    }
}

/// After so many rounds in a row whose best prompt is that of the round before a batch grows.
const PATIENCE: usize = 2;

/// How many examples of each workload the round after `rounds` measures prompts on, or `None` for all of them. With
/// `batch_growth` a batch has grown after each round whose best prompt was feasible on it, and after the second in a row
/// since it last grew whose best prompt was that of the round before.
pub(crate) fn batch_size(search: &Search, rounds: &[RoundEvent]) -> Option<usize> {
    let mut size = search.batch?;
    let Some(growth) = search.batch_growth else {
        return Some(size);
    };
    let (mut last, mut stood) = (None, 0);
    for round in rounds {
        let best = round.best.first();
        stood = if best == last { stood + 1 } else { 0 };
        last = best;
        let score = best.and_then(|best| round.scores.get(best));
        if stood >= PATIENCE || score.is_some_and(|score| score.feasible) {
            // 1.1 · 50 is 55, whatever its binary digits say.
            size = (size as f64 * growth - 1e-9).ceil() as usize;
            stood = 0;
        }
    }
    Some(size)
}

/// Draws the batch of a round among the examples of a workload that are available at its beginning: positions,
/// ascending. With `batch_growth` all batches are beginnings of one order.
pub(crate) fn batch(
    streams: Streams,
    search: &Search,
    round: Round,
    workload: u16,
    available: &[usize],
    size: usize,
) -> Vec<usize> {
    let stream = |round| streams.stream("batch", u64::from(round), u64::from(workload));
    if search.batch_growth.is_none() {
        let drawn = subset(available.len(), size, &mut stream(round));
        return drawn.into_iter().map(|place| available[place]).collect();
    }
    // An example's place in the order depends on no example after it in the split, nor on those that were left out.
    let all = vec![0.0; available.last().map_or(0, |last| last + 1)];
    let mut drawn = without_replacement(&all, 1.0, all.len(), &mut stream(0));
    drawn.retain(|place| available.binary_search(place).is_ok());
    drawn.truncate(size);
    drawn.sort_unstable();
    drawn
}

/// The positions of the named ones among all ids of a split, ascending.
pub(crate) fn named<'a>(ids: &[String], names: impl Iterator<Item = &'a String>) -> Vec<usize> {
    let names: HashSet<&String> = names.collect();
    let places = ids.iter().enumerate();
    places
        .filter(|(_, id)| names.contains(id))
        .map(|(place, _)| place)
        .collect()
}

/// Whether an example was left out before a round drew its batch. What the seed failed at while relative thresholds
/// were measured counts as round 0, and comes before its batch.
fn was_left_out_before(state: &RunState, set: SetKey, example: usize, round: Round) -> bool {
    if let Some(before) = round.checked_sub(1) {
        return state.rollouts().is_left_out_by(set, example, Some(before));
    }
    let mut constraints = state
        .study()
        .into_iter()
        .flat_map(|event| &event.study.constraints);
    if !constraints.any(|constraint| constraint.relative_to_seed.is_some()) {
        return false;
    }
    let seed = lineage::seed(state);
    let mut by_seed = state
        .left_out()
        .iter()
        .filter(|event| seed == Some(event.candidate));
    by_seed.any(|event| {
        event.round == Some(0)
            && state
                .rollouts()
                .place_of(&event.workload, event.split, &event.example)
                == Some((set, example))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_batch_grows_once_its_best_prompt_holds_or_stays() {
        let search = |growth: Option<f64>| -> Search {
            serde_json::from_value(serde_json::json!({ "name": "n", "batch": 50, "batch_growth": growth }))
                .unwrap()
        };
        // Each round's best prompt, and whether it is feasible; none was journaled without its score.
        let sizes = |growth, rounds: &[(char, bool)]| -> Vec<usize> {
            let round = |(best, feasible): &(char, bool)| -> RoundEvent {
                let best = best.to_string().repeat(64);
                let score = serde_json::json!({ "objective": 0.5, "costs": {}, "lagrangian": 0.5, "feasible": feasible });
                serde_json::from_value(serde_json::json!({
                    "round": 0, "multipliers": {}, "scores": { &best: score }, "parents": [], "best": [best],
                    "next_multipliers": {}, "retained": [],
                }))
                .unwrap()
            };
            let rounds: Vec<RoundEvent> = rounds.iter().map(round).collect();
            let size = |count| batch_size(&search(growth), &rounds[..count]).unwrap();
            (0..=rounds.len()).map(size).collect()
        };
        let stays = [('a', false); 6];
        assert_eq!(sizes(Some(1.1), &stays), [50, 50, 50, 55, 55, 61, 61]);
        assert_eq!(sizes(Some(1.0), &stays), [50; 7]);
        assert_eq!(sizes(None, &stays), [50; 7]);
        let changes = [
            ('a', false),
            ('a', false),
            ('b', false),
            ('b', true),
            ('b', false),
        ];
        assert_eq!(sizes(Some(2.0), &changes), [50, 50, 50, 50, 100, 100]);
        let mut unscored: RoundEvent = serde_json::from_value(serde_json::json!({
            "round": 0, "multipliers": {}, "scores": {}, "parents": [], "best": [], "next_multipliers": {}, "retained": [],
        }))
        .unwrap();
        unscored.best = vec!["c".repeat(64).parse().unwrap()];
        assert_eq!(batch_size(&search(Some(2.0)), &[unscored]), Some(50));
    }
}
