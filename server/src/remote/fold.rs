//! The fold over the lines of a run elsewhere.

use capo_core::journal::{Event, JournalError, parse_line};
use capo_core::run_state::RunState;

/// A run as far as its lines have come.
#[derive(Debug, Default)]
pub struct Fold {
    state: RunState,
    lines: u64,
}

impl Fold {
    /// The fold every screen shows.
    pub fn state(&self) -> &RunState {
        &self.state
    }

    /// Lines so far.
    pub fn lines(&self) -> u64 {
        self.lines
    }

    /// Takes the next line in.
    ///
    /// # Errors
    /// When it does not parse or does not fit those before.
    pub fn take(&mut self, line: &str) -> Result<Event, JournalError> {
        let number = self.lines as usize + 1;
        let event = parse_line(line, number)?;
        let fits = self.state.apply(&event, self.lines);
        fits.map_err(|reason| JournalError::Line { line: number, reason })?;
        self.lines += 1;
        Ok(event)
    }

    /// Puts another first line in the place of the one that there was: the study with frozen thresholds.
    ///
    /// # Errors
    /// When it is none, or comes once thresholds are in force.
    pub fn replace_first(&mut self, line: &str) -> Result<(), JournalError> {
        let refused = |reason: &str| {
            let reason = reason.to_owned();
            JournalError::Line { line: 1, reason }
        };
        match parse_line(line, 1)? {
            Event::Study(study) if self.lines > 0 && self.state.rounds().is_empty() => {
                self.state.freeze(*study, 0);
                Ok(())
            }
            Event::Study(_) => Err(refused(
                "it was replaced, though a round is closed or there was none",
            )),
            _ => Err(refused("the first line must be a `study` event")),
        }
    }
}
