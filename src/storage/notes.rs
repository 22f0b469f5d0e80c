//! What a person says of a run's held-out examples. It lies in the run's record, and is nothing of its journal.

use std::collections::BTreeMap;

use capo_core::ids::CandidateId;
use serde::{Deserialize, Serialize};

/// By example, of the workload that measures the objective.
pub type Notes = BTreeMap<String, Note>;

/// What is said of an example.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Note {
    /// In words.
    pub text: String,
    /// Of answers to it, by prompt: whether the thumb is up.
    pub thumbs: BTreeMap<CandidateId, bool>,
}

/// Changes what is said of an example; of white space alone nothing is kept.
pub fn change_note(notes: &mut Notes, example: &str, change: impl FnOnce(&mut Note)) {
    let note = notes.entry(example.to_owned()).or_default();
    change(note);
    if note.text.trim().is_empty() {
        note.text.clear();
    }
    if *note == Note::default() {
        notes.remove(example);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_said_reads_back_and_no_empty_note_is_kept() {
        let (mut notes, seed) = (Notes::new(), CandidateId::of("seed"));
        change_note(&mut notes, "e1", |note| note.text = "good".into());
        change_note(&mut notes, "e1", |note| _ = note.thumbs.insert(seed, true));
        let text = serde_json::to_string(&notes).unwrap();
        assert_eq!(serde_json::from_str::<Notes>(&text).unwrap(), notes);
        change_note(&mut notes, "e1", |note| note.text = " \n".into());
        assert_eq!(notes["e1"].text, "");
        change_note(&mut notes, "e1", |note| _ = note.thumbs.remove(&seed));
        assert_eq!(notes, Notes::new());
    }
}
