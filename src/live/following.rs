//! A run that another tab works on, followed as what that tab keeps of it grows.

use gloo_timers::future::TimeoutFuture;
use leptos::prelude::*;
use wasm_bindgen_futures::spawn_local;

use super::fold::Folded;
use super::phase::Phase;
use super::run::Run;
use crate::storage::{Storage, StorageError, lock};

/// Milliseconds between two looks at who works on a run.
const LOOK: u32 = 1_000;

impl Run {
    /// Follows the run whenever another tab works on it, from now on.
    pub(super) fn watch(self) {
        spawn_local(async move {
            loop {
                TimeoutFuture::new(LOOK).await;
                let kept = self.inner.try_with_value(|inner| inner.keep && !inner.closed);
                if kept != Some(true) {
                    return;
                }
                // A page that nobody sees is brought up to date when somebody does.
                if !document().hidden() {
                    self.look_elsewhere().await;
                }
            }
        });
    }

    /// Whether this tab leaves the run alone.
    fn rests(self) -> bool {
        if self.is_on_server() {
            return !self.is_closed();
        }
        !matches!(
            self.phase.get_untracked(),
            Phase::Opening(..) | Phase::Running | Phase::Pausing
        )
    }

    async fn look_elsewhere(self) {
        if !self.rests() {
            return;
        }
        let held = lock::held().await.contains(&self.id());
        let followed = self.phase.get_untracked() == Phase::InAnotherTab;
        // This tab may have begun to work on it meanwhile.
        if !self.rests() || !(held || followed) {
            return;
        }
        if held && !followed {
            self.phase.set(Phase::InAnotherTab);
        }
        // What cannot be read now is looked for again; the other tab says what is wrong with it.
        let read = self.follow().await;
        if !held && self.rests() {
            self.phase.set(match read {
                Ok(()) => self.left_as(),
                Err(message) => Phase::Unreadable(message),
            });
        }
    }

    /// Folds what was kept since, or everything anew where the journal does not go on from what is known.
    pub(super) async fn follow(self) -> Result<(), String> {
        let words = |error: StorageError| error.to_string();
        let storage = Storage::open().await.map_err(words)?;
        let (id, known) = (self.id(), self.peek(Folded::lines));
        // First, for it says when the lines came.
        let record = storage.run(&id).await.map_err(words)?;
        if let Some(record) = record
            && self.rests()
            && self
                .record
                .with_untracked(|known| known.as_ref() != Some(&record))
        {
            self.set_record(record);
        }
        if known > 0 {
            let first = storage.slim_line(&id, 0).await.map_err(words)?;
            let last = storage.slim_line(&id, known - 1).await.map_err(words)?;
            let goes_on = self
                .peek(|folded| first.as_deref() == folded.first() && last.as_deref() == Some(folded.last()));
            // This tab may have begun to work on it meanwhile.
            if !self.rests() {
                return Ok(());
            }
            if !goes_on {
                self.inner.update_value(|inner| inner.folded = Folded::default());
            }
        }
        self.fold_stored(|_, _| {}).await?;
        // Time passes without a line, too.
        let passes = self.is_on_server() || self.phase.get_untracked() == Phase::InAnotherTab;
        if passes || self.peek(Folded::lines) != known {
            self.show();
        }
        Ok(())
    }
}
