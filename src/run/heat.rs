//! Prompts × examples: every single value behind the means.

use capo_core::estimate::Estimate;
use capo_core::ids::CandidateId;
use capo_core::reading::examples::Examples;
use capo_core::reading::lineage;
use capo_core::reading::measured;
use capo_core::reading::metrics::{self, StudiedMetric};
use capo_core::run_state::RunState;
use capo_core::workload::Split;

/// The values of one metric of several prompts, example by example.
#[derive(Debug, Clone, PartialEq)]
pub struct Heat {
    /// The columns: those that the most prompts solve first.
    pub examples: Vec<Example>,
    /// The rows, in the order asked for.
    pub rows: Vec<Row>,
}

/// An example of the heat table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Example {
    /// Its workload.
    pub workload: String,
    /// Its id.
    pub id: String,
    /// Its position in the split, from 0.
    pub position: usize,
}

/// A prompt of the heat table.
#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    /// Id of the prompt, the SHA-256 of its text.
    pub candidate: CandidateId,
    /// Its mean over the examples measured so far; `None` before the first.
    pub estimate: Option<Estimate>,
    /// Its value on each column's example, mean over repeats; `None` where it was not measured.
    pub values: Vec<Option<f64>>,
}

impl Heat {
    /// The values of a metric on a split. The order of the columns is that of the objective when
    /// the same workload measures it, so that it stays when another metric is looked at.
    pub fn new(state: &RunState, candidates: &[CandidateId], metric: &StudiedMetric, split: Split) -> Self {
        let whole = Examples::whole(state, split);
        let sort_by = metrics::objective(state)
            .filter(|objective| objective.workload == metric.workload)
            .unwrap_or_else(|| metric.clone());
        let values = |metric: &StudiedMetric| -> Vec<Vec<Option<f64>>> {
            let of = |candidate| measured::values(state, candidate, metric, &whole);
            candidates.iter().map(of).collect()
        };
        let (sorting, shown) = (values(&sort_by), values(metric));
        let solved =
            |example: usize| -> f64 { sorting.iter().filter_map(|row| row.get(example).copied()?).sum() };
        let sign = match sort_by.spec.direction {
            capo_core::metric::Direction::Objective => -1.0,
            capo_core::metric::Direction::Cost => 1.0,
        };
        let records = state.study().map(|event| &event.workloads);
        let record = records.and_then(|records| records.get_index(usize::from(metric.workload)));
        // With its place among the values.
        let mut examples: Vec<(usize, Example)> = record
            .into_iter()
            .flat_map(|(workload, record)| {
                let places = whole.places.get(usize::from(metric.workload));
                let examples = places.into_iter().flatten().map(|position| Example {
                    workload: workload.clone(),
                    id: record.split(split)[*position].clone(),
                    position: *position,
                });
                examples.enumerate()
            })
            .collect();
        // Stable: equals stay in the split's order.
        examples.sort_by(|a, b| (sign * solved(a.0)).total_cmp(&(sign * solved(b.0))));
        let row = |(candidate, values): (&CandidateId, Vec<Option<f64>>)| Row {
            candidate: *candidate,
            estimate: measured::so_far(state, candidate, metric, &whole),
            values: examples.iter().map(|(place, _)| values[*place]).collect(),
        };
        let rows = candidates.iter().zip(shown).map(row).collect();
        Self {
            examples: examples.into_iter().map(|(_, example)| example).collect(),
            rows,
        }
    }
}

/// The prompts to show beside a selected one: it, the rest of the latest pool, its ancestors, the
/// seed last.
pub fn beside(state: &RunState, selected: CandidateId) -> Vec<CandidateId> {
    let pool = state.rounds().last().map_or(&[][..], |round| &round.retained);
    let mut shown = vec![selected];
    let seed = lineage::seed(state);
    let others = pool.iter().copied().chain(lineage::ancestors(state, selected));
    for candidate in others.filter(|other| Some(*other) != seed).chain(seed) {
        if !shown.contains(&candidate) {
            shown.push(candidate);
        }
    }
    shown
}
