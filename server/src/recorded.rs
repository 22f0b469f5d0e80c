//! What a journal says about the prompts of its run.

use std::path::{Path, PathBuf};

use capo_core::estimate::Estimate;
use capo_core::ids::CandidateId;
use capo_core::journal::{FileJournal, JournalError, StudyEvent};
use capo_core::run_state::{RunState, SetKey};
use capo_core::workload::Split;

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
