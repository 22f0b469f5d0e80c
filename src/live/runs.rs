//! All runs this tab has opened.

use std::collections::BTreeMap;

use gloo_timers::future::TimeoutFuture;
use leptos::prelude::*;
use wasm_bindgen::JsValue;
use wasm_bindgen_futures::spawn_local;

use super::importing;
use super::phase::Phase;
use super::run::Run;
use crate::keys::Keys;
use crate::storage::{Progress, RunRecord, RunStatus, Storage, Times};
use crate::worker::protocol::{DataFiles, HowFar, Order};

/// Milliseconds between two looks at whether a journal is read.
const LOOK_AGAIN: u32 = 30;

/// The runs this tab has opened, by id. They go on while a person looks at other pages.
#[derive(Clone, Copy)]
pub struct Runs {
    opened: StoredValue<BTreeMap<String, Run>, LocalStorage>,
    owner: StoredValue<Owner, LocalStorage>,
}

/// What a new run starts from.
pub struct NewRun {
    /// What people call it.
    pub name: String,
    /// The method's name.
    pub method: String,
    /// One line about who answers and what is measured.
    pub about: String,
    /// The metric that its study raises.
    pub objective: String,
    /// The study as TOML.
    pub study: String,
    /// The data files it names.
    pub files: DataFiles,
    /// The keys it needs.
    pub keys: Keys,
}

impl Default for Runs {
    fn default() -> Self {
        Self {
            opened: StoredValue::new_local(BTreeMap::new()),
            // Signals of a run outlive the page that asked for it first.
            owner: StoredValue::new_local(Owner::current().unwrap_or_default()),
        }
    }
}

impl Runs {
    /// The run of this id, its journal opened if it was not yet.
    pub fn get(self, id: &str) -> Run {
        if let Some(run) = self.opened.with_value(|opened| opened.get(id).copied()) {
            return run;
        }
        let run = self.make(id);
        run.phase.set(Phase::Opening(0, 0));
        spawn_local(async move {
            if let Err(message) = run.open().await {
                run.phase.set(Phase::Unreadable(message));
            }
            run.watch();
        });
        run
    }

    /// Begins a run and returns it.
    pub fn begin(self, new: NewRun) -> Run {
        let now = js_sys::Date::now();
        let id = fresh_id(now);
        let run = self.make(&id);
        let record = RunRecord {
            id: id.clone(),
            name: new.name,
            method: new.method,
            about: new.about,
            objective: new.objective,
            status: RunStatus::Running,
            study: new.study,
            created: now,
            touched: now,
            progress: Progress::default(),
            times: Times::default(),
        };
        run.set_study(record.clone(), new.files.clone());
        run.phase.set(Phase::Resting);
        // Asks the browser not to clear the runs when it needs room; it may decline.
        let _ = window().navigator().storage().persist();
        let keys = new.keys;
        let files = new.files;
        spawn_local(async move {
            if let Err(error) = keep(&record, &files).await {
                run.keep_in_memory(error);
            }
            run.start(keys);
            run.watch();
        });
        run
    }

    /// A new run that shares the journal of `from` up to the end of its round `round` on screen.
    ///
    /// # Errors
    /// When it cannot be kept, in words.
    pub async fn branch(self, from: Run, round: u32) -> Result<Run, String> {
        let id = fresh_id(js_sys::Date::now());
        let order = Order::Branch {
            from: from.id(),
            run: id,
            round,
        };
        importing::carry_out(&order, &JsValue::UNDEFINED, |_| {})
            .await
            .map(|id| self.get(&id))
    }

    /// Goes on with a run where its journal ends, once that is read, with those of `keys` that were
    /// typed for where its study sends them.
    pub fn resume(self, id: &str, keys: &Keys) -> Run {
        let run = self.get(id);
        let keys = keys.clone();
        spawn_local(async move {
            while matches!(run.phase.get_untracked(), Phase::Opening(..)) {
                TimeoutFuture::new(LOOK_AGAIN).await;
            }
            if !run.is_unreadable() {
                run.go_on(keys);
            }
        });
        run
    }

    /// The run of this id, if this tab has opened it.
    pub fn known(self, id: &str) -> Option<Run> {
        self.opened.with_value(|opened| opened.get(id).copied())
    }

    /// Keeps the journal in a file as a run; `progress` is told how far that is. When
    /// nobody waits for the answer any more, it is given up and nothing is kept.
    ///
    /// # Errors
    /// What is wrong with the file, or that it cannot be kept; nothing is kept then.
    pub async fn import(
        self,
        file: &web_sys::File,
        progress: impl Fn(HowFar) + 'static,
    ) -> Result<Run, String> {
        let id = fresh_id(js_sys::Date::now());
        let order = Order::Import {
            run: id.clone(),
            name: file.name(),
        };
        importing::from_file(&order, id, file, progress)
            .await
            .map(|id| self.get(&id))
    }

    fn make(self, id: &str) -> Run {
        let run = self.owner.with_value(|owner| owner.with(|| Run::new(id)));
        self.opened.update_value(|opened| {
            opened.insert(id.to_owned(), run);
        });
        run
    }

    /// Forgets a run that is deleted.
    pub fn forget(self, id: &str) {
        let run = self.opened.try_update_value(|opened| opened.remove(id));
        if let Some(run) = run.flatten() {
            run.discard();
        }
    }

    /// Every run this tab has opened.
    pub fn opened(self) -> Vec<Run> {
        self.opened
            .with_value(|opened| opened.values().copied().collect())
    }

    /// Runs going on in this tab.
    pub fn running(self) -> Vec<Run> {
        let mut runs = self.opened();
        runs.retain(Run::is_working);
        runs
    }

    /// Runs of which only the memory of this tab holds all answers.
    pub fn unsaved(self) -> Vec<Run> {
        let mut runs = self.opened();
        runs.retain(Run::holds_unsaved);
        runs
    }
}

async fn keep(record: &RunRecord, files: &DataFiles) -> Result<(), String> {
    let storage = Storage::open().await.map_err(|error| error.to_string())?;
    for (path, content) in files {
        let kept = storage.put_file(&record.id, path, content).await;
        kept.map_err(|error| error.to_string())?;
    }
    storage.put_run(record).await.map_err(|error| error.to_string())
}

/// A name for a run in addresses: its time and some chance, so that two tabs never make the same.
pub fn fresh_id(now: f64) -> String {
    let chance = (js_sys::Math::random() * f64::from(u32::MAX)) as u32;
    format!("{:x}{chance:08x}", now as u64)
}
