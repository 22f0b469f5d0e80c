//! Paired differences of two prompts on the same examples, with 95 % intervals.

use capo_core::ids::CandidateId;
use capo_core::metric::Direction;
use capo_core::random::Streams;
use capo_core::run_state::RunState;
use capo_core::statistics::{PairedDifference, RESAMPLES, paired_difference};
use capo_core::workload::Split;

use super::in_force::Examples;
use super::measured;
use super::studied::{self, Studied};

/// Confidence of the intervals.
pub const CONFIDENCE: f64 = 0.95;

/// A prompt of a run.
#[derive(Debug, Clone, Copy)]
pub struct Of<'a> {
    /// The run.
    pub state: &'a RunState,
    /// The prompt.
    pub candidate: CandidateId,
}

/// What an interval says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reading {
    /// The first prompt is better: the interval leaves zero out on the good side.
    Better,
    /// The first prompt is worse.
    Worse,
    /// The interval holds zero, or there are too few examples to tell.
    NoClearDifference,
}

impl Reading {
    /// In words.
    pub fn words(self) -> &'static str {
        match self {
            Self::Better => "better",
            Self::Worse => "worse",
            Self::NoClearDifference => "no clear difference",
        }
    }
}

/// The difference of one metric, first minus second.
#[derive(Debug, Clone, PartialEq)]
pub struct Difference {
    /// Which metric.
    pub metric: Studied,
    /// Mean difference with its interval.
    pub paired: PairedDifference,
}

impl Difference {
    /// What the interval says.
    pub fn reading(&self) -> Reading {
        let raises = self.paired.mean > 0.0;
        let raises_is_good = self.metric.spec.direction == Direction::Objective;
        match self.paired.is_clear() {
            false => Reading::NoClearDifference,
            true if raises == raises_is_good => Reading::Better,
            true => Reading::Worse,
        }
    }

    /// The mean difference: "−40.0 pts".
    pub fn mean(&self) -> String {
        self.metric.quantity.difference(self.paired.mean)
    }

    /// The interval: "−62.5 to −17.5"; an en dash of one example.
    pub fn interval(&self) -> String {
        let quantity = self.metric.quantity;
        self.paired.interval.map_or_else(
            || crate::format::NOTHING.to_owned(),
            |interval| {
                let (low, high) = (interval.low, interval.high);
                format!(
                    "{} to {}",
                    quantity.bare_difference(low),
                    quantity.bare_difference(high)
                )
            },
        )
    }
}

/// Differences of two prompts, the first minus the second, on every metric of the second's study
/// that both were measured on for the whole split; of two runs, only those that [`comparable`]
/// allows mean anything. The interval of a pair does not depend on what else is compared.
pub fn differences(first: Of<'_>, second: Of<'_>, split: Split) -> Vec<Difference> {
    let values = |of: Of<'_>, name: &str| {
        let metric = studied::named(of.state, name)?;
        measured::complete_values(
            of.state,
            &of.candidate,
            &metric,
            &Examples::whole(of.state, split),
        )
    };
    studied::metrics(second.state)
        .into_iter()
        .filter_map(|metric| {
            let (one, other) = (values(first, metric.name())?, values(second, metric.name())?);
            let mut stream = Streams::new(0).stream("compare", 0, 0);
            let paired = paired_difference(&one, &other, CONFIDENCE, RESAMPLES, &mut stream)?;
            Some(Difference { metric, paired })
        })
        .collect()
}

/// Whether two runs were measured on the same held-out examples of the same data, and maximise the
/// same.
///
/// # Errors
/// Why they cannot be compared, as the end of a sentence.
pub fn comparable(first: &RunState, second: &RunState) -> Result<(), String> {
    let (Some(here), Some(there)) = (first.study(), second.study()) else {
        return Err("one of the journals is empty".to_owned());
    };
    let (ours, theirs) = (&here.study.objective.metric, &there.study.objective.metric);
    if ours != theirs {
        return Err(format!("one maximises {ours}, the other {theirs}"));
    }
    for (name, record) in &here.workloads {
        let Some(other) = there.workloads.get(name) else {
            return Err(format!("only one of them has the workload {name}"));
        };
        if record.evaluate != other.evaluate {
            let shared = record.evaluate.iter().filter(|id| other.evaluate.contains(id));
            return Err(format!(
                "their held-out examples differ ({} and {}, {} of them shared)",
                record.evaluate.len(),
                other.evaluate.len(),
                shared.count()
            ));
        }
        if record.fingerprint != other.fingerprint {
            return Err(format!("the data of {name} differ"));
        }
    }
    match there
        .workloads
        .keys()
        .find(|name| !here.workloads.contains_key(*name))
    {
        Some(name) => Err(format!("only one of them has the workload {name}")),
        None => Ok(()),
    }
}
