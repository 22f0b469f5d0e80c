//! What a journal says about the prompts of its run.

use std::path::{Path, PathBuf};

use capo_core::estimate::Estimate;
use capo_core::ids::CandidateId;
use capo_core::journal::{FileJournal, JournalError, Origin, StudyEvent, WorkloadRecord};
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
    /// When the file is not there, cannot be read, or is no journal.
    pub fn read(path: &Path) -> Result<Self, SessionError> {
        expect_file(path)?;
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
        expect_file(path)?;
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

impl RecordedRun {
    /// The prompts that `capo evaluate` measured whole into this journal, in their order; none where a
    /// search was run over it.
    pub fn evaluated(&self) -> Vec<CandidateId> {
        if !self.state.rounds().is_empty() || self.state.finished().is_some() {
            return Vec::new();
        }
        let is_alone = self.state.candidates().count() == 1;
        let candidates = self.state.candidates();
        let evaluated = candidates.filter(|(id, candidate)| match candidate.origin {
            Origin::Given => self.is_measured(id, Split::Optimize) || self.is_measured(id, Split::Evaluate),
            // On the optimisation split it may be there for thresholds that are relative to it, unless
            // nothing else is there.
            Origin::Seed => {
                self.is_measured(id, Split::Evaluate) || (is_alone && self.is_measured(id, Split::Optimize))
            }
            _ => false,
        });
        evaluated.map(|(id, _)| *id).collect()
    }

    /// Whether a prompt was measured on all of a split.
    pub fn is_measured(&self, candidate: &CandidateId, split: Split) -> bool {
        let objective = &self.study.study.objective.metric;
        by_example(&self.state, candidate, objective, split).is_some_and(|values| !values.is_empty())
    }

    /// The study's own prompt.
    pub fn seed(&self) -> Option<CandidateId> {
        let mut candidates = self.state.candidates();
        candidates
            .find(|(_, candidate)| candidate.origin == Origin::Seed)
            .map(|(id, _)| *id)
    }
}

/// Says that there is no journal where there is no regular file: a pipe waits for somebody who writes,
/// and a device may have no end.
///
/// # Errors
/// [`SessionError::NoJournal`], [`SessionError::NoRegularFile`].
pub fn expect_file(path: &Path) -> Result<(), SessionError> {
    if path.is_file() {
        Ok(())
    } else if path.exists() {
        Err(SessionError::NoRegularFile(path.to_owned()))
    } else {
        Err(SessionError::NoJournal(path.to_owned()))
    }
}

/// A prompt's value of a metric on each example of a split that is not left out, with the example's
/// place in the split, in order, means over repeats; `None` unless it was measured on all of them.
/// Runs leave out different examples, so that only the places say which values belong together.
pub fn by_example(
    state: &RunState,
    candidate: &CandidateId,
    metric: &str,
    split: Split,
) -> Option<Vec<(usize, f64)>> {
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
        .filter(|example| !table.is_left_out(set, *example))
        .map(|example| {
            let repeats = table.repeats(candidate, set, example);
            let sum: f64 = (0..repeats)
                .filter_map(|repeat| Some(table.values(candidate, set, example, repeat)?[position]))
                .sum();
            (repeats > 0).then(|| (example, sum / f64::from(repeats)))
        })
        .collect()
}

/// A prompt's estimate of a metric on a split; `None` unless it was measured on all of it.
pub fn estimate(state: &RunState, candidate: &CandidateId, metric: &str, split: Split) -> Option<Estimate> {
    let values = by_example(state, candidate, metric, split)?;
    Estimate::of(&values.into_iter().map(|(_, value)| value).collect::<Vec<_>>())
}

/// The number of examples of a split, all workloads together, without those that are left out.
pub fn examples(state: &RunState, split: Split) -> usize {
    let workloads = state.study().map(|event| &event.workloads);
    let counting = |(workload, (_, record)): (u16, (&String, &WorkloadRecord))| {
        let set = SetKey { workload, split };
        let all = 0..record.split(split).len();
        all.filter(|example| !state.rollouts().is_left_out(set, *example))
            .count()
    };
    (0..).zip(workloads.into_iter().flatten()).map(counting).sum()
}

#[cfg(test)]
mod tests {
    use capo_core::journal::Fsync;
    use capo_models::Environment;
    use capo_models::prices::PriceTable;

    use super::*;
    use crate::session::{Session, StudyFile, block_on};

    const STUDY: &str = r#"
        [study]
        name = "small desk"

        [workload]
        kind = "desk"
        optimize = 4
        evaluate = 2

        [prompt]
        text = "You are a customer service agent."

        [objective]
        metric = "success"

        [[constraint]]
        metric = "excess_tools"
        relative_to_seed = 0.5

        [models.agent]
        provider = "simulated"
    "#;

    #[test]
    fn the_seed_counts_as_evaluated_where_nothing_else_was_measured() {
        let folder = tempfile::tempdir().unwrap();
        let file = StudyFile::parse(STUDY, Path::new("study.toml")).unwrap();
        let evaluated = |name: &str, prompt: &str| {
            let path = folder.path().join(name);
            let session = Session::new(&file, &Environment, PriceTable::shipped()).unwrap();
            let journal = FileJournal::open(&path, Fsync::Never).unwrap();
            block_on(session.evaluate(journal, prompt, Split::Optimize))
                .unwrap()
                .unwrap();
            let run = RecordedRun::read(&path).unwrap();
            let origin = |id: &CandidateId| {
                let mut candidates = run.state.candidates();
                candidates
                    .find(|(known, _)| *known == id)
                    .map(|(_, candidate)| candidate.origin == Origin::Seed)
            };
            run.evaluated()
                .iter()
                .map(|id| origin(id).unwrap())
                .collect::<Vec<bool>>()
        };
        assert_eq!(evaluated("seed", "You are a customer service agent."), [true]);
        assert_eq!(evaluated("other", "Help."), [false]);
    }

    #[cfg(unix)]
    #[test]
    fn what_is_no_regular_file_is_no_journal() {
        let folder = tempfile::tempdir().unwrap();
        let pipe = folder.path().join("pipe");
        let made = std::process::Command::new("mkfifo").arg(&pipe).status();
        assert!(made.unwrap().success());
        for path in [pipe.as_path(), Path::new("/dev/zero"), folder.path()] {
            let read = RecordedRun::read(path).unwrap_err().to_string();
            let begun = RecordedRun::read_begun(path).unwrap_err().to_string();
            for message in [read, begun] {
                assert!(message.contains("no regular file"), "{message}");
            }
        }
    }
}
