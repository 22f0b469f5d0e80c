//! A run that a person watches and may interrupt.

use capo_core::control::Control;
use capo_core::journal::Journal;

use super::failure::Failure;
use crate::interrupt::Interrupts;
use crate::progress::Progress;
use crate::session::{SessionError, block_on};

/// Carries out `run` with progress on standard error. The first Ctrl-C lets what is under way end
/// and starts nothing new; the second one leaves at once.
pub(super) fn watched<T>(
    mut journal: Journal,
    run: impl AsyncFnOnce(Journal, Control) -> Result<T, SessionError>,
) -> Result<T, Failure> {
    let progress = Progress::new();
    let said = progress.clone();
    let interrupts = Interrupts::listen(move || {
        said.say("interrupted: waiting for the answers under way; once more to leave at once");
    })?;

    let control = Control::new();
    let (watcher, mut shown, asked) = (control.clone(), progress.clone(), interrupts.clone());
    journal.observe(Box::new(move |event, state| {
        // While models in this process answer at once, the task below never gets its turn.
        if asked.is_asked() {
            watcher.interrupt();
        }
        shown.follow(event, state);
    }));
    let waiter = control.clone();
    let result = block_on(async move {
        let listening = tokio::task::spawn_local(async move {
            interrupts.asked().await;
            waiter.interrupt();
        });
        let result = run(journal, control).await;
        listening.abort();
        result
    });
    progress.finish();
    Ok(result??)
}
