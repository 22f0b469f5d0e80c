//! A run that a person watches and may interrupt.

use std::path::Path;

use capo_core::control::Control;
use capo_core::journal::{Event, Journal};
use capo_core::run_state::RunState;

use super::failure::{Failure, warn};
use crate::interrupt::Interrupts;
use crate::progress::Progress;
use crate::session::{SessionError, block_on};

/// Carries out `run` over the journal at `path` with progress on standard error; each event is told to `also` too.
/// The first Ctrl-C lets what is under way end and starts nothing new; the second one drops it and leaves at once:
/// `None`. `way_out` is said of a journal of another study.
pub(super) fn watched<T>(
    path: &Path,
    way_out: &str,
    mut journal: Journal,
    progress: &Progress,
    mut also: impl FnMut(&Event, &RunState) + 'static,
    run: impl AsyncFnOnce(Journal, Control) -> Result<T, SessionError>,
) -> Result<Option<T>, Failure> {
    let interrupts = Interrupts::listen(|| {
        warn("interrupted: waiting for the answers under way; once more to leave at once");
    })?;

    let control = Control::new();
    let (watcher, mut shown, asked) = (control.clone(), progress.clone(), interrupts.clone());
    journal.observe(Box::new(move |event, state| {
        // While models in this process answer at once, the task below never gets its turn.
        if asked.is_asked() {
            watcher.interrupt();
        }
        shown.follow(event, state);
        also(event, state);
    }));
    let result = block_on(async move {
        let waiter = control.clone();
        let asked = interrupts.clone();
        let listening = tokio::task::spawn_local(async move {
            asked.asked().await;
            waiter.interrupt();
        });
        // Dropping the run ends the commands it has started, and writes out its journal.
        let result = tokio::select! {
            result = run(journal, control) => result.map(Some),
            () = interrupts.insisted() => Ok(None),
        };
        listening.abort();
        result
    });
    progress.finish();
    result?.map_err(|error| Failure::of_run(error, path, way_out))
}
