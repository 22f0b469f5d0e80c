//! Exit codes and errors of commands.

use std::io::{self, IsTerminal as _, Write as _};
use std::path::Path;
use std::process::ExitCode;

use capo_core::RunError;
use capo_core::journal::{JournalError, Status};

use crate::files::TextError;
use crate::session::SessionError;
use crate::stderr::warn;
use crate::terminal::{harmless, harmless_json, writable};

/// Exit code of a command that could not do its work.
const ERROR: u8 = 1;
/// Exit code of a run that was stopped, journal kept.
const STOPPED: u8 = 3;
/// Exit code of a wrong command line or study file, as in `sysexits.h`.
const USAGE: u8 = 64;
/// Differences between two studies that an error names; more do not fit three lines.
const DIFFERENCES: usize = 3;

/// How a command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ending {
    /// Done; where prompts are measured, with a feasible one.
    Done,
    /// Done, but no feasible prompt was found.
    Infeasible,
    /// Budget or interrupt stopped it.
    Stopped,
    /// It failed, and said so already.
    Failed,
}

impl From<Status> for Ending {
    fn from(status: Status) -> Self {
        match status {
            Status::Feasible => Self::Done,
            Status::Infeasible => Self::Infeasible,
            Status::Budget | Status::Stopped => Self::Stopped,
            Status::Failed => Self::Failed,
        }
    }
}

impl From<Ending> for ExitCode {
    fn from(ending: Ending) -> Self {
        Self::from(match ending {
            Ending::Done => 0,
            Ending::Infeasible => 2,
            Ending::Stopped => STOPPED,
            Ending::Failed => ERROR,
        })
    }
}

/// Why a command could not do its work.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Failure {
    code: u8,
    message: String,
}

impl Failure {
    /// Something went wrong in the world.
    pub(crate) fn new(message: impl Into<String>) -> Self {
        Self {
            code: ERROR,
            message: message.into(),
        }
    }

    /// The command line asks for something impossible.
    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Self {
            code: USAGE,
            message: message.into(),
        }
    }

    /// What went wrong.
    pub(crate) fn message(&self) -> &str {
        &self.message
    }

    /// Says what went wrong on standard error, and returns the exit code.
    pub(crate) fn report(&self) -> ExitCode {
        warn(&format!("error: {}", self.message));
        ExitCode::from(self.code)
    }
}

impl From<SessionError> for Failure {
    fn from(error: SessionError) -> Self {
        let code = if error.is_bad_study() { USAGE } else { ERROR };
        Self {
            code,
            message: error.to_string(),
        }
    }
}

impl Failure {
    /// What went wrong with a run over the journal at `path`. One that belongs to another study is
    /// told with its name and the first differences; `way_out` says what to do instead.
    pub(crate) fn of_run(error: SessionError, path: &Path, way_out: &str) -> Self {
        let (SessionError::Run(RunError::Journal(JournalError::OtherStudy(differences)))
        | SessionError::Journal {
            error: JournalError::OtherStudy(differences),
            ..
        }) = &error
        else {
            return error.into();
        };
        Self::new(format!(
            "{} belongs to another study (journal → study): {}\n{way_out}, or undo the change.",
            path.display(),
            shortened(differences)
        ))
    }
}

/// The first differences and how many more there are. A long list was cut before, and ends with
/// `… and N more` itself.
pub(crate) fn shortened(differences: &[String]) -> String {
    let cut = differences.last().and_then(|last| {
        let more = last.strip_prefix("… and ")?.strip_suffix(" more")?;
        more.parse::<usize>().ok()
    });
    let listed = differences.len() - usize::from(cut.is_some());
    let shown = &differences[..listed.min(DIFFERENCES)];
    let more = listed - shown.len() + cut.unwrap_or(0);
    let more = if more > 0 {
        format!("; and {more} more")
    } else {
        String::new()
    };
    shown.join("; ") + &more
}

impl From<RunError> for Failure {
    fn from(error: RunError) -> Self {
        SessionError::from(error).into()
    }
}

impl From<TextError> for Failure {
    fn from(error: TextError) -> Self {
        Self::usage(error.to_string())
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Self::new(error.to_string())
    }
}

/// Writes to standard output what people read; see [`harmless`]. On a terminal it is what the
/// locale can write.
pub(crate) fn print(text: &str) -> Result<(), Failure> {
    let text = harmless(text);
    if io::stdout().is_terminal() {
        print_exactly(&writable(&text))
    } else {
        print_exactly(&text)
    }
}

/// Writes to standard output as it is, for programs; nothing steers a terminal that shows it. A
/// reader that has gone away has seen what it wanted.
pub(crate) fn print_data(text: &str) -> Result<(), Failure> {
    if io::stdout().is_terminal() {
        print_exactly(&harmless(text))
    } else {
        print_exactly(text)
    }
}

fn print_exactly(text: &str) -> Result<(), Failure> {
    let mut output = io::stdout().lock();
    match output.write_all(text.as_bytes()).and_then(|()| output.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(Failure::new(format!(
            "standard output cannot be written: {error}"
        ))),
        _ => Ok(()),
    }
}

/// Writes one JSON value on one line to standard output.
pub(crate) fn print_json(value: &impl serde::Serialize) -> Result<(), Failure> {
    let text = serde_json::to_string(value).map_err(|error| Failure::new(error.to_string()))?;
    print_exactly(&format!("{}\n", harmless_json(&text)))
}

#[cfg(test)]
mod tests {
    use capo_core::study::StudyError;

    use super::*;

    #[test]
    fn a_journal_of_another_study_is_told_in_two_lines_with_its_name() {
        let object = |value: u32| -> serde_json::Value {
            let entries = (0..9).map(|index| (format!("key{index}"), value.into()));
            entries.collect::<serde_json::Map<_, _>>().into()
        };
        for limit in [4, 20] {
            let differences = capo_core::study::differences(&object(1), &object(2), limit);
            let error = SessionError::Run(JournalError::OtherStudy(differences).into());
            let failure = Failure::of_run(error, Path::new("runs/a.jsonl"), "Choose another directory");
            assert_eq!(
                failure,
                Failure::new(
                    "runs/a.jsonl belongs to another study (journal → study): \
                     key0: 1 → 2; key1: 1 → 2; key2: 1 → 2; and 6 more\n\
                     Choose another directory, or undo the change."
                )
            );
        }
    }

    #[test]
    fn a_bad_study_is_bad_usage_and_a_missing_key_is_not() {
        let bad = SessionError::Study {
            study: "a.toml".into(),
            error: StudyError::invalid("study.rounds", "must be at least 1"),
        };
        let failure = Failure::from(bad);
        assert_eq!(
            failure,
            Failure::usage("a.toml: `study.rounds`: must be at least 1")
        );
        let key = capo_models::BuildError::MissingKey {
            role: capo_core::llm::Role::Agent,
            provider: "openai",
            variable: "OPENAI_API_KEY".into(),
        };
        let failure = Failure::from(SessionError::Models {
            study: "a.toml".into(),
            error: key,
        });
        assert_eq!(failure.code, 1);
    }

    #[test]
    fn every_status_has_its_code() {
        let code = |status: Status| format!("{:?}", ExitCode::from(Ending::from(status)));
        for (status, expected) in [
            (Status::Feasible, 0),
            (Status::Infeasible, 2),
            (Status::Budget, 3),
            (Status::Stopped, 3),
            (Status::Failed, 1),
        ] {
            assert_eq!(
                code(status),
                format!("{:?}", ExitCode::from(expected)),
                "{status:?}"
            );
        }
    }
}
