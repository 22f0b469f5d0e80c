//! What a journal says about the prompts of its run.

use std::path::{Path, PathBuf};

use capo_core::estimate::Estimate;
use capo_core::ids::CandidateId;
use capo_core::journal::{FileJournal, JournalError, StudyEvent};
use capo_core::run_state::{RunState, SetKey};
use capo_core::workload::Split;
use indexmap::IndexMap;

use crate::session::SessionError;

/// A run read from its journal.
#[derive(Debug)]
pub struct RecordedRun {
    /// The journal's file.
    pub path: PathBuf,
    /// The fold over it.
    pub state: RunState,
    /// Number of lines.
    pub lines: usize,
    /// The journal's first line.
    pub study: StudyEvent,
}

impl RecordedRun {
    /// Reads a journal without opening it for writing.
    ///
    /// # Errors
    /// When the file cannot be read, or is no journal.
    pub fn read(path: &Path) -> Result<Self, SessionError> {
        Self::read_begun(path)?.ok_or_else(|| {
            let reason = "the journal is empty".into();
            SessionError::journal(path, JournalError::Line { line: 1, reason })
        })
    }

    /// [`RecordedRun::read`] of a journal that may not have begun: `None` where there is no file, or
    /// no whole line in it.
    ///
    /// # Errors
    /// When the file cannot be read, or is no journal.
    pub fn read_begun(path: &Path) -> Result<Option<Self>, SessionError> {
        if !path.exists() {
            return Ok(None);
        }
        let (mut state, mut lines) = (RunState::default(), 0);
        FileJournal::read(path, |line, event| {
            lines = line;
            let applied = state.apply(&event, line as u64 - 1);
            applied.map_err(|reason| JournalError::Line { line, reason })
        })
        .map_err(|error| SessionError::journal(path, error))?;
        let study = state.study().map(|study| (**study).clone());
        Ok(study.map(|study| Self {
            path: path.to_owned(),
            state,
            lines,
            study,
        }))
    }
}

/// Whether these means, by metric, meet every threshold; `None` when none of those that were measured
/// misses its own, but one was not measured. Without constraints there is nothing to fail.
pub fn all_sat(thresholds: &IndexMap<String, f64>, mean: impl Fn(&str) -> Option<f64>) -> Option<bool> {
    let met: Vec<Option<bool>> = thresholds
        .iter()
        .map(|(metric, threshold)| Some(mean(metric)? <= *threshold))
        .collect();
    if met.contains(&Some(false)) {
        return Some(false);
    }
    (!met.contains(&None)).then_some(true)
}

/// Thresholds by metric as they stand now: frozen, then steered. A relative one that is not frozen
/// yet is left out.
pub fn thresholds(state: &RunState) -> IndexMap<String, f64> {
    let constraints = state.study().map(|event| event.study.constraints.as_slice());
    let mut thresholds: IndexMap<String, f64> = constraints
        .unwrap_or_default()
        .iter()
        .filter_map(|constraint| Some((constraint.metric.clone(), constraint.threshold?)))
        .collect();
    for (metric, threshold) in state
        .steers()
        .iter()
        .filter_map(|steer| steer.thresholds.as_ref())
        .flatten()
    {
        thresholds.insert(metric.clone(), *threshold);
    }
    thresholds
}

/// A prompt's value of a metric on each example of a split, in the split's order, means over
/// repeats; `None` unless it was measured on all of them.
pub fn by_example(state: &RunState, candidate: &CandidateId, metric: &str, split: Split) -> Option<Vec<f64>> {
    let candidate = state.position(candidate)?;
    let table = state.rollouts();
    let workloads = &state.study()?.workloads;
    let (place, record) = workloads
        .values()
        .enumerate()
        .find(|(_, record)| record.metrics.iter().any(|spec| spec.name == metric))?;
    let set = SetKey {
        workload: u16::try_from(place).ok()?,
        split,
    };
    let position = table.metric(set.workload, metric)?;
    (0..record.split(split).len())
        .map(|example| {
            let repeats = table.repeats(candidate, set, example);
            let sum: f64 = (0..repeats)
                .filter_map(|repeat| Some(table.values(candidate, set, example, repeat)?[position]))
                .sum();
            (repeats > 0).then(|| sum / f64::from(repeats))
        })
        .collect()
}

/// A prompt's estimate of a metric on a split; `None` unless it was measured on all of it.
pub fn estimate(state: &RunState, candidate: &CandidateId, metric: &str, split: Split) -> Option<Estimate> {
    Estimate::of(&by_example(state, candidate, metric, split)?)
}

/// The number of examples of a split, all workloads together.
pub fn examples(state: &RunState, split: Split) -> usize {
    let workloads = state.study().map(|event| &event.workloads);
    workloads
        .into_iter()
        .flatten()
        .map(|(_, record)| record.split(split).len())
        .sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_threshold_must_be_met_and_every_mean_known() {
        let thresholds: IndexMap<String, f64> = [("a".to_owned(), 1.0), ("b".to_owned(), 2.0)].into();
        let verdict =
            |a: Option<f64>, b: Option<f64>| all_sat(&thresholds, |metric| if metric == "a" { a } else { b });
        assert_eq!(verdict(Some(1.0), Some(2.0)), Some(true));
        assert_eq!(verdict(Some(1.1), Some(2.0)), Some(false));
        assert_eq!(verdict(Some(1.0), None), None);
        assert_eq!(
            verdict(Some(1.1), None),
            Some(false),
            "nothing unknown mends that"
        );
        assert_eq!(all_sat(&IndexMap::new(), |_| None), Some(true));
    }
}
