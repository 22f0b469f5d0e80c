//! Journals on their way from files into this browser.

use std::collections::BTreeMap;

use futures::stream::{AbortHandle, Abortable, Aborted};
use leptos::prelude::*;
use wasm_bindgen_futures::spawn_local;

use crate::live::{Run, Runs};
use crate::worker::protocol::HowFar;

/// Journals being read, whichever page a file was dropped on, and why some could not be.
#[derive(Clone, Copy)]
pub struct Imports {
    readings: RwSignal<Vec<Reading>>,
    troubles: RwSignal<Vec<Trouble>>,
    arrived: RwSignal<u32>,
    cancels: StoredValue<BTreeMap<u32, AbortHandle>, LocalStorage>,
    last: StoredValue<u32>,
}

/// A journal being read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reading {
    /// Tells it from others.
    pub id: u32,
    /// Name of the file.
    pub name: String,
    /// How far that is.
    pub how_far: HowFar,
}

/// A journal that could not be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trouble {
    /// Tells it from others.
    pub id: u32,
    /// What happened.
    pub what: String,
    /// What was kept and what to do.
    pub then: String,
}

impl Default for Imports {
    fn default() -> Self {
        Self {
            readings: RwSignal::new(Vec::new()),
            troubles: RwSignal::new(Vec::new()),
            arrived: RwSignal::new(0),
            cancels: StoredValue::new_local(BTreeMap::new()),
            last: StoredValue::new(0),
        }
    }
}

impl Imports {
    /// Journals being read; a reactive caller is told of progress.
    pub fn readings(self) -> Vec<Reading> {
        self.readings.get()
    }

    /// Journals that could not be read, until somebody dismisses them.
    pub fn troubles(self) -> Vec<Trouble> {
        self.troubles.get()
    }

    /// How many were read so far; rises when the list of runs has a new one.
    pub fn arrived(self) -> u32 {
        self.arrived.get()
    }

    /// Reads a journal and keeps it as a run; `open` is called with it unless others are still being
    /// read, which a person would then lose sight of.
    pub fn read(self, runs: Runs, file: web_sys::File, open: impl FnOnce(Run) + 'static) {
        let id = self.last.try_update_value(|last| {
            *last += 1;
            *last
        });
        let id = id.unwrap_or_default();
        let name = file.name();
        let (cancel, registration) = AbortHandle::new_pair();
        self.cancels.update_value(|cancels| {
            cancels.insert(id, cancel);
        });
        self.readings.update(|readings| {
            readings.push(Reading {
                id,
                name,
                how_far: HowFar::default(),
            });
        });
        spawn_local(async move {
            let import = runs.import(&file, move |how_far| self.progress(id, how_far));
            let imported = Abortable::new(import, registration).await;
            self.cancels.update_value(|cancels| {
                cancels.remove(&id);
            });
            self.readings
                .update(|readings| readings.retain(|reading| reading.id != id));
            match imported {
                Ok(Ok(run)) => {
                    self.arrived.update(|arrived| *arrived += 1);
                    if self.readings.with_untracked(Vec::is_empty) {
                        open(run);
                    }
                }
                Ok(Err(message)) => {
                    let (what, then) = in_two(&message);
                    self.troubles
                        .update(|troubles| troubles.push(Trouble { id, what, then }));
                }
                Err(Aborted) => {}
            }
        });
    }

    /// Gives up reading a journal; nothing of it is kept.
    pub fn cancel(self, id: u32) {
        self.cancels.with_value(|cancels| {
            if let Some(cancel) = cancels.get(&id) {
                cancel.abort();
            }
        });
    }

    /// Takes a message away that was read.
    pub fn dismiss(self, id: u32) {
        self.troubles
            .update(|troubles| troubles.retain(|trouble| trouble.id != id));
    }

    fn progress(self, id: u32, how_far: HowFar) {
        self.readings.update(|readings| {
            if let Some(reading) = readings.iter_mut().find(|reading| reading.id == id) {
                reading.how_far = how_far;
            }
        });
    }
}

/// What happened, and the rest of the message: what was kept and what to do.
fn in_two(message: &str) -> (String, String) {
    match message.find(" Nothing was imported") {
        Some(end) => (message[..end].to_owned(), message[end + 1..].to_owned()),
        None => (message.to_owned(), "Nothing was imported.".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::in_two;

    #[test]
    fn a_message_says_what_happened_first() {
        let message = "a.jsonl, line 3: not JSON. Nothing was imported and the file is unchanged.";
        let (what, then) = in_two(message);
        assert_eq!(what, "a.jsonl, line 3: not JSON.");
        assert_eq!(then, "Nothing was imported and the file is unchanged.");
        assert_eq!(in_two("It is empty.").1, "Nothing was imported.");
    }
}
