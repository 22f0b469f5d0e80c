//! Identity of a run in its journal, and the study it is one of.

use serde_json::{Map, Value};

use super::event::{StudyEvent, WorkloadRecord};
use crate::study::{Study, hash};

impl StudyEvent {
    /// Whether the journal is one of the study with this id. A journal is asked for what it holds,
    /// not for the id it states: the first ones of schema 1 counted operational keys in.
    pub fn is_of(&self, id: &str) -> bool {
        self.study.id(&self.fingerprints()) == id
    }

    /// The same of a study that is another one only in whom it asks.
    pub fn under(self, study: Study) -> Self {
        Self {
            id: study.id(&self.fingerprints()),
            study,
            ..self
        }
    }

    /// Whether the id it states is the hash of what it holds.
    pub(crate) fn states_its_id(&self) -> bool {
        let fingerprints = self.fingerprints();
        let former = || hash(&self.study.former_identity(), &fingerprints);
        self.id == self.study.id(&fingerprints) || self.id == former()
    }

    fn fingerprints(&self) -> Map<String, Value> {
        let of =
            |(name, record): (&String, &WorkloadRecord)| (name.clone(), record.fingerprint.clone().into());
        self.workloads.iter().map(of).collect()
    }
}
