//! Batches that a provider works on: in the journal before they are waited for.

use super::Arena;
use crate::batches::Batches;
use crate::journal::{BatchEvent, Event, StoreError};
use crate::notice::Notice;

impl Arena {
    /// Journals the batches that a provider took or is about to be given, hands all that was journaled to the store, and
    /// tells how batches are waited for.
    pub(super) fn hand_over(&self) -> Result<(), StoreError> {
        // Before what they wait for; where that is not written, they are dropped and hear it.
        let unwritten: Vec<_> = self.batches.iter().flat_map(Batches::take_unwritten).collect();
        for (id, requests) in self.batches.iter().flat_map(Batches::take_noted) {
            let event = Event::Batch(BatchEvent { id, requests });
            self.journal.borrow_mut().record(&event)?;
        }
        self.journal.borrow_mut().flush()?;
        for written in unwritten {
            // Whoever waited may be gone.
            let _ = written.send(());
        }
        self.tell(self.batches.iter().flat_map(Batches::take_news));
        Ok(())
    }

    /// Tells of the batches that nobody waits for any more, since the run ends before them.
    pub(super) fn tell_of_batches_left(&self) {
        let left = self.batches.iter().flat_map(Batches::take_under_way);
        self.tell(left.map(Notice::Batch));
    }

    fn tell(&self, notices: impl Iterator<Item = Notice>) {
        for notice in notices {
            if let Some(observer) = &self.options.observer {
                observer(&notice);
            }
        }
    }
}
