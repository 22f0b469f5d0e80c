//! Batches in parts, and scores by example: for methods that look at less than means.

use std::collections::BTreeMap;

use super::Arena;
use super::measure::Batch;
use crate::journal::run_state::SetKey;
use crate::random::without_replacement;
use crate::reading::metrics::StudiedMetric;
use crate::study::ids::{CandidateId, Round};
use crate::study::score::{Limits, Multipliers};

impl Arena {
    /// The `number`-th part of a batch, at most `size` examples of each workload. Their order is drawn anew for each pass
    /// over them; the last part of a pass is filled up from its beginning.
    pub fn part(&self, batch: &Batch, size: usize, number: u32) -> Batch {
        self.drawn(batch, size, |examples| {
            let parts = examples.div_ceil(size).max(1);
            (number as usize / parts, number as usize % parts)
        })
    }

    /// The beginning of a batch, at most `size` examples of each workload, in an order that is drawn anew for each round.
    pub fn beginning(&self, batch: &Batch, size: usize, round: Round) -> Batch {
        self.drawn(batch, size, |_| (round as usize, 0))
    }

    /// A part of a batch, told its pass and its place there by how many examples of a workload there are.
    fn drawn(&self, batch: &Batch, size: usize, place: impl Fn(usize) -> (usize, usize)) -> Batch {
        let mut part = batch.clone();
        part.whole = false;
        for (workload, examples) in (0..).zip(&mut part.examples) {
            let split = batch.split;
            examples.retain(|example| !self.is_left_out(SetKey { workload, split }, *example));
            let (pass, place) = place(examples.len());
            let mut stream = self.streams.stream("part", pass as u64, u64::from(workload));
            let order = without_replacement(&vec![0.0; examples.len()], 1.0, examples.len(), &mut stream);
            let drawn = order.iter().cycle().skip(place * size);
            let drawn = drawn.take(size.min(order.len()));
            let mut drawn: Vec<usize> = drawn.map(|index| examples[*index]).collect();
            drawn.sort_unstable();
            *examples = drawn;
        }
        part
    }

    /// What each example of a batch adds to a candidate's J, by workload and example: its objective and, less λ, its
    /// residuals, as far as its workload measures them. Caution adds nothing here.
    pub fn score_by_example(
        &self,
        candidate: CandidateId,
        batch: &Batch,
        limits: &Limits,
        multipliers: &Multipliers,
    ) -> Vec<f64> {
        let problem = self.problem.borrow();
        let mut scores: BTreeMap<(u16, usize), f64> = BTreeMap::new();
        let mut add = |metric: &StudiedMetric, term: &dyn Fn(f64) -> f64| {
            for (example, value) in self.per_example(candidate, metric, batch) {
                let term = term(value).clamp(-f64::MAX, f64::MAX);
                *scores.entry((metric.workload, example)).or_default() += term;
            }
        };
        add(problem.objective(), &|value| value);
        for constraint in problem.constraints() {
            let name = &constraint.source.spec.name;
            if let Some(limit) = limits.get(name) {
                let weight = multipliers.get(name).copied().unwrap_or(0.0);
                add(&constraint.source, &|cost| -weight * limit.residual(cost));
            }
        }
        scores.into_values().collect()
    }
}
