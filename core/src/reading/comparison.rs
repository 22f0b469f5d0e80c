//! Two prompts on the same examples: whether they may be compared, and their paired differences with intervals.

use std::collections::BTreeMap;

use crate::journal::WorkloadRecord;
use crate::journal::run_state::RunState;
use crate::random::Streams;
use crate::reading::examples::Examples;
use crate::reading::metrics::{self, StudiedMetric};
use crate::reading::statistics::{Interval, PairedDifference, RESAMPLES, clustered_mean, paired_difference};
use crate::reading::{lineage, measured};
use crate::study::ids::CandidateId;
use crate::study::metric::Direction;
use crate::study::workload::Split;

/// Confidence of the intervals.
pub const CONFIDENCE: f64 = 0.95;

/// A prompt of a run.
#[derive(Debug, Clone, Copy)]
pub struct PromptOf<'a> {
    /// The run.
    pub state: &'a RunState,
    /// The prompt.
    pub candidate: CandidateId,
}

impl<'a> PromptOf<'a> {
    /// The prompt that a run's search starts from; `None` before it is known.
    pub fn seed(state: &'a RunState) -> Option<Self> {
        let candidate = lineage::seed(state)?;
        Some(Self { state, candidate })
    }

    /// The prompt that a run returned; `None` before it has ended.
    pub fn best(state: &'a RunState) -> Option<Self> {
        let candidate = state.finished()?.best?;
        Some(Self { state, candidate })
    }
}

/// What an interval says of the first prompt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// It is better: the interval leaves zero out on the good side.
    Better,
    /// It is worse.
    Worse,
    /// The interval holds zero, or there are too few examples to tell.
    NoClearDifference,
}

/// The difference of one metric, first minus second.
#[derive(Debug, Clone, PartialEq)]
pub struct Difference {
    /// The metric, with its unit and direction.
    pub metric: StudiedMetric,
    /// Mean difference with its interval.
    pub paired: PairedDifference,
}

impl Difference {
    /// What the interval says.
    pub fn verdict(&self) -> Verdict {
        let raises = self.paired.mean > 0.0;
        let raises_is_good = self.metric.spec.direction == Direction::Objective;
        match self.paired.is_clear() {
            false => Verdict::NoClearDifference,
            true if raises == raises_is_good => Verdict::Better,
            true => Verdict::Worse,
        }
    }
}

/// The differences of two prompts on one split.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Differences {
    /// By metric: the objective, then the constraints.
    pub metrics: Vec<Difference>,
    /// Examples that are not compared, since one of the two runs left them out.
    pub dropped: usize,
}

/// Differences of two prompts, the first minus the second, on every metric of the second's study
/// that both were measured on for the whole split; of two runs, only those that [`comparable`]
/// allows mean anything. Values are paired by example. The interval of a pair does not depend on what else is
/// compared.
pub fn differences(first: PromptOf<'_>, second: PromptOf<'_>, split: Split) -> Differences {
    paired(first, second, split, measured::by_example)
}

/// The same on the examples of the split that both were measured on, however many these are.
pub fn differences_on_shared(first: PromptOf<'_>, second: PromptOf<'_>, split: Split) -> Differences {
    paired(first, second, split, |state, candidate, metric, examples| {
        Some(measured::some_by_example(state, candidate, metric, examples))
    })
}

/// Values by example of what was measured.
type Values = fn(&RunState, &CandidateId, &StudiedMetric, &Examples) -> Option<Vec<(usize, f64)>>;

fn paired(first: PromptOf<'_>, second: PromptOf<'_>, split: Split, measured: Values) -> Differences {
    let values = |of: PromptOf<'_>, name: &str| {
        let metric = metrics::named(of.state, name)?;
        measured(
            of.state,
            &of.candidate,
            &metric,
            &Examples::whole(of.state, split),
        )
    };
    let mut found = Differences::default();
    for metric in metrics::of_study(second.state) {
        let Some((one, other)) = values(first, metric.name()).zip(values(second, metric.name())) else {
            continue;
        };
        let pairs = Pairs::of(&one, &other);
        let mut stream = Streams::new(0).stream("compare", 0, 0);
        let paired = paired_difference(&pairs.first, &pairs.second, CONFIDENCE, RESAMPLES, &mut stream);
        if let Some(paired) = paired {
            found.dropped = found.dropped.max(pairs.dropped);
            found.metrics.push(Difference { metric, paired });
        }
    }
    found
}

/// Where a prompt's mean of a metric over a split would lie with other examples, by the bootstrap of [`differences`].
///
/// `None` unless it was measured on all of the split, and where all examples measure the same, which says nothing of others.
pub fn interval(of: PromptOf<'_>, metric: &StudiedMetric, split: Split) -> Option<Interval> {
    let examples = Examples::whole(of.state, split);
    let values = measured::by_example(of.state, &of.candidate, metric, &examples)?;
    let each: Vec<Vec<f64>> = values.into_iter().map(|(_, value)| vec![value]).collect();
    let mut stream = Streams::new(0).stream("compare", 0, 0);
    let interval = clustered_mean(&each, CONFIDENCE, RESAMPLES, &mut stream)?.interval;
    interval.filter(|interval| interval.low < interval.high)
}

/// [`differences`] of the prompt that a run returned to the one it started from; none where they are the same, or
/// the run has not ended.
pub fn best_minus_seed(state: &RunState, split: Split) -> Differences {
    let pair = PromptOf::best(state)
        .zip(PromptOf::seed(state))
        .filter(|(best, seed)| best.candidate != seed.candidate);
    pair.map_or_else(Differences::default, |(best, seed)| {
        differences(best, seed, split)
    })
}

/// Values of two prompts on the examples that both have.
#[derive(Debug, Default, PartialEq)]
struct Pairs {
    first: Vec<f64>,
    second: Vec<f64>,
    /// Examples that only one of them has.
    dropped: usize,
}

impl Pairs {
    /// Of values with their examples' positions, in order.
    fn of(first: &[(usize, f64)], second: &[(usize, f64)]) -> Self {
        let theirs: BTreeMap<usize, f64> = second.iter().copied().collect();
        let mut pairs = Self::default();
        for (example, value) in first {
            if let Some(other) = theirs.get(example) {
                pairs.first.push(*value);
                pairs.second.push(*other);
            }
        }
        pairs.dropped = first.len() + second.len() - 2 * pairs.first.len();
        pairs
    }
}

/// Why two runs cannot be compared.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Incomparable {
    /// One of them has no study yet.
    #[error("one of the journals is empty")]
    Empty,
    /// Their prompts were measured by different workloads.
    #[error("only one of them has the workload `{0}`")]
    Workload(String),
    /// Their held-out examples differ.
    #[error("the held-out examples of `{workload}` differ ({first} and {second}, {shared} of them shared)")]
    HeldOut {
        /// The workload's name.
        workload: String,
        /// How many the first run has.
        first: usize,
        /// How many the second run has.
        second: usize,
        /// How many both have.
        shared: usize,
    },
    /// The examples have the same names, and are others.
    #[error("the data of `{0}` differ")]
    Data(String),
    /// They maximise different metrics.
    #[error("the objectives are `{first}` and `{second}`")]
    Objective {
        /// The first run's.
        first: String,
        /// The second run's.
        second: String,
    },
}

/// Whether two runs were measured on the same held-out examples of the same data, and maximise the
/// same.
///
/// # Errors
/// Why they cannot be compared.
pub fn comparable(first: &RunState, second: &RunState) -> Result<(), Incomparable> {
    let (here, there) = first.study().zip(second.study()).ok_or(Incomparable::Empty)?;
    let only = |name: &String| Incomparable::Workload(name.clone());
    for (name, record) in &here.workloads {
        let other = there.workloads.get(name).ok_or_else(|| only(name))?;
        if record.evaluate != other.evaluate {
            let shared = record.evaluate.iter().filter(|id| other.evaluate.contains(id));
            return Err(Incomparable::HeldOut {
                workload: name.clone(),
                first: record.evaluate.len(),
                second: other.evaluate.len(),
                shared: shared.count(),
            });
        }
        if record.fingerprint != other.fingerprint {
            return Err(Incomparable::Data(name.clone()));
        }
    }
    let mut theirs = there.workloads.keys();
    if let Some(name) = theirs.find(|name| !here.workloads.contains_key(*name)) {
        return Err(only(name));
    }
    let (ours, theirs) = (&here.study.objective.metric, &there.study.objective.metric);
    if ours != theirs {
        return Err(Incomparable::Objective {
            first: ours.clone(),
            second: theirs.clone(),
        });
    }
    Ok(())
}

/// Whether the searches of two runs measure on the same examples. [`comparable`] looks at the held-out ones only.
pub fn searched_alike(first: &RunState, second: &RunState) -> bool {
    let Some((here, there)) = first.study().zip(second.study()) else {
        return false;
    };
    let same = |(name, record): (&String, &WorkloadRecord)| {
        let theirs = there.workloads.get(name);
        theirs.is_some_and(|theirs| theirs.optimize == record.optimize)
    };
    here.workloads.iter().all(same)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_paired_by_example_where_runs_left_out_different_ones() {
        let first = [(0, 0.1), (2, 0.3), (3, 0.4)];
        let second = [(0, 0.5), (1, 0.6), (3, 0.8)];
        let pairs = Pairs {
            first: vec![0.1, 0.4],
            second: vec![0.5, 0.8],
            dropped: 2,
        };
        assert_eq!(Pairs::of(&first, &second), pairs);
    }
}
