//! A run read from its journal's file.

use std::path::{Path, PathBuf};

use capo_core::journal::{Event, FileJournal, JournalError, StoreError, StudyEvent, parse_line};
use capo_core::run_state::RunState;

use crate::files::{is_packed, read_whole_lines};
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
        Self::read_begun(path)?.ok_or_else(|| empty(path))
    }

    /// [`RecordedRun::read`] with the whole lines that it is read from.
    ///
    /// # Errors
    /// As [`RecordedRun::read`], and when the file is larger than 1 GiB once it is unpacked.
    pub fn read_with_lines(path: &Path) -> Result<(Self, String), SessionError> {
        expect_file(path)?;
        let text = whole_lines(path)?;
        let run = Self::fold(path, |event| events_of(path, &text, event))?;
        Ok((run.ok_or_else(|| empty(path))?, text))
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
        Self::fold(path, |event| read_events(path, event))
    }

    /// The run of the events that `read` hands on; `None` where there are none.
    fn fold(
        path: &Path,
        read: impl FnOnce(&mut dyn FnMut(usize, Event) -> Result<(), JournalError>) -> Result<(), SessionError>,
    ) -> Result<Option<Self>, SessionError> {
        let (mut state, mut lines) = (RunState::default(), 0);
        read(&mut |line, event| {
            lines = line;
            let applied = state.apply(&event, line as u64 - 1);
            applied.map_err(|reason| JournalError::Line { line, reason })
        })?;
        let study = state.study().map(|study| (**study).clone());
        Ok(study.map(|study| Self {
            path: path.to_owned(),
            state,
            lines,
            study,
        }))
    }
}

/// Reads a journal, which gzip may have packed, without opening it for writing: `event` is called with every line's number
/// (from 1) and event.
///
/// # Errors
/// When the file cannot be read or a line is wrong; a torn last line is ignored.
pub fn read_events(
    path: &Path,
    event: impl FnMut(usize, Event) -> Result<(), JournalError>,
) -> Result<(), SessionError> {
    if !is_packed(path) {
        return FileJournal::read(path, event).map_err(|error| SessionError::journal(path, error));
    }
    events_of(path, &whole_lines(path)?, event)
}

fn whole_lines(path: &Path) -> Result<String, SessionError> {
    let text = read_whole_lines("journal", path);
    text.map_err(|error| SessionError::Store(StoreError(error.to_string())))
}

/// [`read_events`] of a journal whose lines were read.
fn events_of(
    path: &Path,
    text: &str,
    mut event: impl FnMut(usize, Event) -> Result<(), JournalError>,
) -> Result<(), SessionError> {
    let wrong = |error: JournalError| SessionError::journal(path, error);
    for (number, line) in (1..).zip(text.lines()) {
        let parsed = parse_line(line, number).map_err(wrong)?;
        event(number, parsed).map_err(wrong)?;
    }
    Ok(())
}

fn empty(path: &Path) -> SessionError {
    let reason = "the journal is empty".into();
    SessionError::journal(path, JournalError::Line { line: 1, reason })
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

#[cfg(test)]
mod tests {
    use capo_core::ids::CandidateId;
    use capo_core::journal::{Fsync, Origin};
    use capo_core::reading::measured::evaluated as measured_alone;
    use capo_core::workload::Split;
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
            measured_alone(&run.state)
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
