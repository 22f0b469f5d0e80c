//! A prompt of an earlier run that this one starts from.

use std::rc::Rc;

use crate::journal::{CandidateEvent, Event, Journal, Origin, StoreError};
use crate::study::ids::CandidateId;

/// A prompt of an earlier run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Start {
    /// The text.
    pub prompt: Rc<str>,
    /// Id of the study of that run.
    pub run: String,
}

impl Start {
    /// Writes it down as a candidate, unless the journal has it.
    pub(crate) fn record(&self, journal: &mut Journal) -> Result<(), StoreError> {
        let id = CandidateId::of(&self.prompt);
        if journal.state().candidate(&id).is_some() {
            return Ok(());
        }
        journal.record(&Event::Candidate(CandidateEvent {
            id,
            round: 0,
            origin: Origin::From,
            parents: Vec::new(),
            from: Some(self.run.clone()),
            prompt: self.prompt.to_string(),
        }))
    }
}
