//! The runs kept in this browser, as the page holds them.

use std::collections::BTreeSet;
use std::time::Duration;

use leptos::leptos_dom::helpers::set_interval_with_handle;
use leptos::prelude::*;
use wasm_bindgen_futures::spawn_local;

use super::rows::{Row, State};
use crate::frame::imports::Imports;
use crate::live::{Run, Runs};
use crate::storage::{RunRecord, Storage, lock};

/// How often a list with a run that goes on is read anew.
const EVERY: Duration = Duration::from_millis(1500);

/// The list and what is selected in it. Clones are the same list.
#[derive(Clone, Copy)]
pub(super) struct Listed {
    runs: Runs,
    /// `None` until it is read.
    rows: RwSignal<Option<Result<Vec<Row>, String>>>,
    /// Names of runs that only a newer version of the page can read.
    pub(super) newer: RwSignal<Vec<String>>,
    /// Ids of selected runs.
    pub(super) selected: RwSignal<BTreeSet<String>>,
    /// What names are looked for.
    pub(super) looked_for: RwSignal<String>,
}

impl Listed {
    /// The list, kept up to date as long as the caller lives.
    pub(super) fn new() -> Self {
        let runs = expect_context::<Runs>();
        let imports = expect_context::<Imports>();
        let listed = Self {
            runs,
            rows: RwSignal::new(None),
            newer: RwSignal::new(Vec::new()),
            selected: RwSignal::new(BTreeSet::new()),
            looked_for: RwSignal::new(String::new()),
        };
        Effect::new(move |_| {
            imports.arrived();
            listed.refresh();
        });
        let goes_on = move || {
            let shown = listed.rows.with_untracked(|rows| {
                let rows = rows.iter().flatten().flatten();
                rows.filter(|row| matches!(row.state, State::Running | State::InAnotherTab))
                    .count()
            });
            shown > 0 || !runs.running().is_empty()
        };
        let tick = set_interval_with_handle(
            move || {
                if goes_on() {
                    listed.refresh();
                }
            },
            EVERY,
        );
        on_cleanup(move || {
            if let Ok(tick) = tick {
                tick.clear();
            }
        });
        listed
    }

    /// Reads the list anew.
    pub(super) fn refresh(self) {
        spawn_local(async move {
            let read = async { Storage::open().await?.runs().await };
            let read = read.await.map_err(|error| error.to_string());
            let running: BTreeSet<String> = self.runs.running().iter().map(Run::id).collect();
            let held = lock::held().await;
            let rows = read.map(|listed| -> Vec<Row> {
                self.newer.set(listed.newer);
                let rows = listed
                    .runs
                    .into_iter()
                    .map(|record| Row::new(record, &running, &held));
                rows.collect()
            });
            if let Ok(rows) = &rows {
                let kept: BTreeSet<&str> = rows.iter().map(|row| row.record.id.as_str()).collect();
                self.selected
                    .update(|selected| selected.retain(|id| kept.contains(id.as_str())));
            }
            self.rows.set(Some(rows));
        });
    }

    /// Rows, or why there are none; `None` until they are read.
    pub(super) fn rows(self) -> Option<Result<Vec<Row>, String>> {
        self.rows.get()
    }

    /// Every run.
    pub(super) fn all(self) -> Vec<RunRecord> {
        self.rows.with(|rows| {
            let rows = rows.iter().flatten().flatten();
            rows.map(|row| row.record.clone()).collect()
        })
    }

    /// Those that are selected, in the list's order.
    pub(super) fn chosen(self) -> Vec<RunRecord> {
        let selected = self.selected.get();
        let all = self.all().into_iter();
        all.filter(|record| selected.contains(&record.id)).collect()
    }

    /// One run.
    pub(super) fn record(self, id: &str) -> Option<RunRecord> {
        self.all().into_iter().find(|record| record.id == id)
    }

    /// How many there are.
    pub(super) fn count(self) -> usize {
        self.rows.with(|rows| rows.iter().flatten().flatten().count())
    }

    /// Whether there is none, or none is read yet.
    pub(super) fn is_empty(self) -> bool {
        self.count() == 0
    }
}
