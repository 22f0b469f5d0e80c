//! `--from`: prompts of earlier runs to start from.

use std::path::PathBuf;

use capo_core::starts::Starts;

use super::failure::Failure;
use crate::recorded::RecordedRun;
use crate::session::{Session, SessionError, StudyFile};

/// Lets a session start from what journals hold, each of which is to be of use.
pub(super) fn start_from(
    journals: &[PathBuf],
    session: &mut Session,
    file: &StudyFile,
) -> Result<(), Failure> {
    if journals.is_empty() {
        return Ok(());
    }
    let mut starts = Starts::of(session.problem()).map_err(|error| SessionError::Study {
        study: file.name.clone(),
        error,
    })?;
    for path in journals {
        let taken = starts.take(&RecordedRun::read(path)?.state);
        taken.map_err(|why| {
            let path = path.display();
            Failure::new(format!(
                "--from: {path}: {why}.\nName another journal, or run without."
            ))
        })?;
    }
    let best = starts.best();
    session.start_from(best);
    Ok(())
}
