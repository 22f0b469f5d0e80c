//! The runs kept in this browser and those of the team, as the page holds them.

use std::collections::BTreeSet;
use std::time::Duration;

use leptos::leptos_dom::helpers::set_interval_with_handle;
use leptos::prelude::*;
use wasm_bindgen_futures::spawn_local;

use super::on_server::{OnServer, merged};
use super::rows::{Row, State};
use crate::frame::imports::Imports;
use crate::live::{Run, Runs};
use crate::storage::{RunList, RunRecord, Storage, lock};
use crate::team::{Server, Standing, Team};

/// How often a list with a run that goes on is read anew.
const EVERY: Duration = Duration::from_millis(1500);

/// The server is asked every so many times.
const ASKED: u32 = 3;

/// The list and what is selected in it. Clones are the same list.
#[derive(Clone, Copy)]
pub(super) struct Listed {
    runs: Runs,
    team: Team,
    /// What the server lists, and why it does not.
    on_server: RwSignal<OnServer>,
    pub(super) refused: RwSignal<Option<String>>,
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
        let team = expect_context::<Team>();
        let listed = Self {
            runs,
            team,
            on_server: RwSignal::new(OnServer::default()),
            refused: RwSignal::new(None),
            rows: RwSignal::new(None),
            newer: RwSignal::new(Vec::new()),
            selected: RwSignal::new(BTreeSet::new()),
            looked_for: RwSignal::new(String::new()),
        };
        Effect::new(move |_| {
            imports.arrived();
            listed.refresh();
        });
        let standing = team.standing();
        Effect::new(move |_| {
            team.changes();
            // Read, not only tracked: a memo that nobody reads knows of no change.
            let is_in = standing.with(|standing| matches!(standing, Standing::SignedIn(_)));
            listed.ask_server(is_in);
        });
        let goes_on = move |states: &[State]| {
            listed.rows.with_untracked(|rows| {
                let mut rows = rows.iter().flatten().flatten();
                rows.any(|row| states.contains(&row.state))
            })
        };
        let ticks = StoredValue::new(0_u32);
        let tick = set_interval_with_handle(
            move || {
                ticks.update_value(|ticks| *ticks = ticks.wrapping_add(1));
                if ticks.get_value().is_multiple_of(ASKED) && goes_on(&[State::OnServer, State::Queued]) {
                    listed.ask_server(true);
                } else if goes_on(&[State::Running, State::InAnotherTab]) || !runs.running().is_empty() {
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

    /// Asks the server for what it lists first, if somebody `is_in`, signed in to one.
    fn ask_server(self, is_in: bool) {
        if is_in {
            self.take_page(None, OnServer::take_first);
        } else {
            self.on_server.set(OnServer::default());
            self.refresh();
        }
    }

    /// Asks the server for the next page.
    pub(super) fn ask_more(self) {
        let more = self.on_server.with_untracked(|listed| listed.more.clone());
        if more.is_some() {
            self.take_page(more, OnServer::take_next);
        }
    }

    fn take_page(self, before: Option<String>, take: fn(&mut OnServer, capo_api::RunPage)) {
        spawn_local(async move {
            let asked = self
                .team
                .ask(async |server: Server| server.runs(None, before.as_deref()).await);
            match asked.await {
                Ok(page) => {
                    // The page may be left by then.
                    let _ = self.refused.try_set(None);
                    let _ = self.on_server.try_update(|listed| take(listed, page));
                }
                Err(why) => {
                    let _ = self.refused.try_set(Some(why));
                }
            }
            self.refresh();
        });
    }

    /// Whether the server has more to list.
    pub(super) fn has_more(self) -> bool {
        self.on_server.with(|listed| listed.more.is_some())
    }

    /// Reads the list anew.
    pub(super) fn refresh(self) {
        spawn_local(async move {
            let read = async { Storage::open().await?.runs().await };
            let read = read.await.map_err(|error| error.to_string());
            let Some(there) = self.on_server.try_with_untracked(OnServer::records) else {
                return;
            };
            let read = match read {
                // A browser that keeps nothing shows those of the team all the same.
                Err(_) if !there.is_empty() => Ok(RunList::default()),
                read => read,
            };
            let running: BTreeSet<String> = self.runs.running().iter().map(Run::id).collect();
            let held = lock::held().await;
            let rows = read.map(|listed| -> Vec<Row> {
                self.newer.set(listed.newer);
                let rows = merged(listed.runs, there)
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

    /// How many of them this browser keeps.
    pub(super) fn kept(self) -> usize {
        self.rows.with(|rows| {
            let rows = rows.iter().flatten().flatten();
            rows.filter(|row| row.is_kept()).count()
        })
    }

    /// Whether there is none, or none is read yet.
    pub(super) fn is_empty(self) -> bool {
        self.count() == 0
    }
}
