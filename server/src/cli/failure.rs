//! How commands end, and how they fail.

use std::io::{self, Write as _};
use std::process::ExitCode;

use capo_core::RunError;
use capo_core::journal::{JournalError, Status};

use crate::files::TextError;
use crate::session::SessionError;

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

    /// Says what went wrong on standard error, and returns the exit code.
    pub(crate) fn report(&self) -> ExitCode {
        warn(&format!("error: {}", self.message));
        ExitCode::from(self.code)
    }
}

impl From<SessionError> for Failure {
    fn from(error: SessionError) -> Self {
        let code = if error.is_bad_study() { USAGE } else { ERROR };
        let other_study = match &error {
            SessionError::Run(RunError::Journal(JournalError::OtherStudy(differences)))
            | SessionError::Journal {
                error: JournalError::OtherStudy(differences),
                ..
            } => Some(differences),
            _ => None,
        };
        let message = match other_study {
            Some(differences) => {
                let shown = differences
                    .iter()
                    .take(DIFFERENCES)
                    .map(String::as_str)
                    .collect::<Vec<_>>()
                    .join("; ");
                let more = differences.len().saturating_sub(DIFFERENCES);
                let more = if more > 0 {
                    format!("; and {more} more")
                } else {
                    String::new()
                };
                format!(
                    "the journal belongs to another study (journal → study): {shown}{more}\n\
                     Choose another file with --journal, or undo the change."
                )
            }
            None => error.to_string(),
        };
        Self { code, message }
    }
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

/// Writes to standard output. A reader that has gone away has seen what it wanted.
pub(crate) fn print(text: &str) -> Result<(), Failure> {
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
    print(&format!("{text}\n"))
}

/// Writes a line to standard error. Where that cannot be written there is nobody to tell.
pub(crate) fn warn(text: &str) {
    let _ = writeln!(io::stderr().lock(), "{}", text.trim_end());
}

#[cfg(test)]
mod tests {
    use capo_core::study::StudyError;

    use super::*;

    #[test]
    fn a_journal_of_another_study_is_told_in_two_lines() {
        let differences = (0..9).map(|index| format!("key{index}: 1 → 2")).collect();
        let error = SessionError::Run(JournalError::OtherStudy(differences).into_run());
        let failure = Failure::from(error);
        assert_eq!(failure.code, 1);
        assert_eq!(failure.message.lines().count(), 2);
        assert!(
            failure.message.contains("key2: 1 → 2; and 6 more"),
            "{}",
            failure.message
        );
    }

    trait IntoRun {
        fn into_run(self) -> RunError;
    }

    impl IntoRun for JournalError {
        fn into_run(self) -> RunError {
            RunError::from(self)
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
