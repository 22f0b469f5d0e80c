//! `--reuse`: what earlier runs paid for.

use std::path::{Path, PathBuf};

use capo_core::journal::{EarlierRuns, Event, FileJournal, JournalError, StudyEvent};
use capo_core::run_state::RunState;
use indexmap::IndexMap;

use super::command_line::CommandLine;
use super::failure::{Failure, shortened};
use crate::recorded::expect_file;
use crate::session::{Session, SessionError, StudyFile};

/// Earlier runs.
#[derive(Debug, Clone, clap::Args)]
pub(super) struct ReuseArgs {
    /// Journals of earlier runs, of other studies too: what they paid for and depends on the same here is taken over, and
    /// counts as nothing spent.
    #[arg(long, value_name = "JOURNAL", num_args = 1..)]
    reuse: Vec<PathBuf>,
}

impl ReuseArgs {
    /// The journals that are named.
    pub(super) fn journals(&self) -> &[PathBuf] {
        &self.reuse
    }

    /// Lets a session take over what the journals hold, each of which is to fit.
    pub(super) fn read_for(&self, session: &mut Session, file: &StudyFile) -> Result<(), Failure> {
        let mut misfits = self.take_over(session, file)?.into_values();
        misfits.next().map_or(Ok(()), Err)
    }

    /// Lets a session take over what the journals hold. Why one is of no use, for each that fits none of its rollouts.
    pub(super) fn take_over(
        &self,
        session: &mut Session,
        file: &StudyFile,
    ) -> Result<IndexMap<PathBuf, Failure>, Failure> {
        let mut misfits = IndexMap::new();
        if self.reuse.is_empty() {
            return Ok(misfits);
        }
        let problem = session.problem();
        let workloads = problem.records();
        if let Some((name, _)) = workloads.iter().find(|(_, record)| record.inputs.is_empty()) {
            return Err(Failure::usage(format!(
                "--reuse: the workload `{name}` cannot say what its rollouts depend on; run without"
            )));
        }
        let mut earlier = EarlierRuns::for_use_on(&workloads);
        for path in &self.reuse {
            let (begun, fits) = take(path, file, &mut earlier)?;
            if fits {
                continue;
            }
            let mut why = problem.differences_of_rollouts(&begun);
            if begun.workloads.values().any(|record| record.inputs.is_empty()) {
                let unknown =
                    "it does not say what its rollouts depend on, and the data files do not say it either";
                why.insert(0, unknown.to_owned());
            }
            if why.is_empty() {
                why.push("it holds no rollout on an example of this study".to_owned());
            }
            let failure = Failure::new(format!(
                "--reuse: no rollout in {} fits this study (journal → study): {}\nName another journal, or run without.",
                path.display(),
                shortened(&why)
            ));
            misfits.insert(path.clone(), failure);
        }
        session.reuse(earlier);
        Ok(misfits)
    }

    /// The option as it was typed, which comes last.
    pub(super) fn typed(&self, line: CommandLine) -> CommandLine {
        line.paths("reuse", &self.reuse)
    }
}

/// Takes in a journal. The study that it is of, and whether the run may want a rollout of it.
fn take(
    path: &Path,
    file: &StudyFile,
    earlier: &mut EarlierRuns,
) -> Result<(StudyEvent, bool), SessionError> {
    expect_file(path)?;
    let (mut state, mut fits) = (RunState::default(), false);
    FileJournal::read(path, |line, mut event| {
        if let Event::Study(begun) = &mut event {
            complete(begun, file);
        }
        let applied = state.apply(&event, line as u64 - 1);
        applied.map_err(|reason| JournalError::Line { line, reason })?;
        if matches!(&event, Event::Rollout(rollout) if rollout.without_trace) {
            return Err(JournalError::WithoutTraces);
        }
        fits |= earlier.take(event);
        Ok(())
    })
    .map_err(|error| SessionError::journal(path, error))?;
    let Some(begun) = state.study() else {
        let reason = "the journal is empty".into();
        let empty = JournalError::Line { line: 1, reason };
        return Err(SessionError::journal(path, empty));
    };
    Ok(((**begun).clone(), fits))
}

/// Adds what rollouts depend on to the first line of a journal of an earlier version, where the data files are as they were.
fn complete(begun: &mut StudyEvent, file: &StudyFile) {
    if begun.workloads.values().all(|record| !record.inputs.is_empty()) {
        return;
    }
    let of_then = StudyFile {
        study: begun.study.clone(),
        ..file.clone()
    };
    let Ok(setup) = of_then.setup() else { return };
    for (name, record) in setup.problem.records() {
        if let Some(noted) = begun.workloads.get_mut(&name)
            && noted.fingerprint == record.fingerprint
            && (&noted.optimize, &noted.evaluate) == (&record.optimize, &record.evaluate)
        {
            noted.inputs = record.inputs;
        }
    }
}
