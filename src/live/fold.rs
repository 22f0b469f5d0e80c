//! The fold over one run's journal, with what screens want beside it.

use std::cell::RefCell;
use std::sync::Arc;

use capo_core::journal::{JournalError, parse_line};
use capo_core::run_state::RunState;

use crate::run::activity::Activity;
use crate::run::overview::{Overview, Overviews};

/// A run as far as its journal is read.
#[derive(Debug, Default)]
pub struct Folded {
    /// The fold every door shares.
    pub state: RunState,
    /// The log of what happened.
    pub activity: Activity,
    lines: u64,
    overviews: RefCell<Overviews>,
}

impl Folded {
    /// Lines read.
    pub fn lines(&self) -> u64 {
        self.lines
    }

    /// What charts and tables draw of it, made anew only when there is a new line; `None` before its
    /// study is known.
    pub fn overview(&self) -> Option<Arc<Overview>> {
        self.overviews.borrow_mut().after(self.lines, &self.state)
    }

    /// Says in the log that the run goes on, unless it begins.
    pub fn goes_on(&mut self, at: Option<f64>) {
        if self.lines > 0 {
            self.activity.resumed(&self.state, at);
        }
    }

    /// Takes in the next line (without its trace), seen `at` seconds after the run began; `None`
    /// when it is read from storage.
    ///
    /// # Errors
    /// When it does not parse or does not fit those before; nothing is changed.
    pub fn take(&mut self, line: &str, at: Option<f64>) -> Result<(), JournalError> {
        let number = self.lines as usize + 1;
        let event = parse_line(line, number)?;
        let fits = self.state.apply(&event, self.lines);
        fits.map_err(|reason| JournalError::Line { line: number, reason })?;
        self.activity.follow(&event, &self.state, at);
        self.lines += 1;
        Ok(())
    }
}
