//! Batches that a provider works on: in the journal before they are waited for.

use super::Arena;
use crate::batches::Batches;
use crate::journal::{BatchEvent, Event, StoreError};
use crate::llm::Role;
use crate::notice::{BatchUnderWay, Notice};

impl Arena {
    /// Journals the batches that a provider took, hands all that was journaled to the store, and tells of the batches that
    /// began to be waited for.
    pub(super) fn hand_over(&self) -> Result<(), StoreError> {
        for (id, requests) in self.batches.iter().flat_map(Batches::take_noted) {
            let event = Event::Batch(BatchEvent { id, requests });
            self.journal.borrow_mut().record(&event)?;
        }
        self.journal.borrow_mut().flush()?;
        self.tell_of_batches(Batches::take_news);
        Ok(())
    }

    /// Tells of the batches that nobody waits for any more, since the run ends before them.
    pub(super) fn tell_of_batches_left(&self) {
        self.tell_of_batches(Batches::take_under_way);
    }

    fn tell_of_batches(&self, which: fn(&Batches) -> Vec<(String, usize)>) {
        for (id, calls) in self.batches.iter().flat_map(which) {
            let model = self.models.model(Role::Agent).name().to_owned();
            if let Some(observer) = &self.options.observer {
                observer(&Notice::Batch(BatchUnderWay { model, id, calls }));
            }
        }
    }
}
