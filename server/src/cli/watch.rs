//! A run that a person watches and may interrupt.

use std::path::Path;

use capo_core::journal::{Event, Journal};
use capo_core::run_state::RunState;

use super::failure::Failure;
use crate::interrupt::Interrupts;
use crate::progress::Progress;
use crate::session::{SessionError, Wires, block_on};

/// A run that a person watches.
pub(super) struct Watched<'a> {
    pub(super) path: &'a Path,
    /// Hears who wants it to end.
    pub(super) interrupts: &'a Interrupts,
    /// What is said of a journal of another study.
    pub(super) way_out: &'a str,
    /// Shown on standard error.
    pub(super) progress: &'a Progress,
}

impl Watched<'_> {
    /// Carries out `run`, whose `wires` these are, over the journal; each event is told to `also` too. The first Ctrl-C
    /// lets it end within two seconds, see [`Interrupts::carry_out`]; the second one drops it and leaves at once: `None`.
    pub(super) fn carry_out<T>(
        self,
        mut journal: Journal,
        wires: &Wires,
        mut also: impl FnMut(&Event, &RunState) + 'static,
        run: impl AsyncFnOnce(Journal) -> Result<T, SessionError>,
    ) -> Result<Option<T>, Failure> {
        let interrupts = self.interrupts;
        wires.heed(interrupts);
        let control = wires.control();
        let (watcher, shown, asked) = (control.clone(), self.progress.clone(), interrupts.clone());
        journal.observe(Box::new(move |event, state| {
            // While models in this process answer at once, nothing else gets its turn.
            if asked.is_asked() {
                watcher.interrupt();
            }
            shown.follow(event, state);
            also(event, state);
        }));
        let result = block_on(async {
            tokio::select! {
                outcome = interrupts.carry_out(control, run(journal)) => outcome,
                () = self.progress.keep_telling() => None,
            }
        });
        self.progress.finish();
        let outcome = result?.transpose();
        outcome.map_err(|error| Failure::of_run(error, self.path, self.way_out))
    }
}
