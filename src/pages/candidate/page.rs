//! State that the plates of the candidates page share.

use std::sync::Arc;

use capo_core::ids::CandidateId;
use capo_core::reading::metrics::{self, StudiedMetric};
use capo_core::reading::{in_force, lineage};
use capo_core::score::Limits;
use capo_core::workload::Split;
use indexmap::IndexMap;
use leptos::prelude::*;
use leptos_router::NavigateOptions;
use leptos_router::hooks::use_navigate;

use super::address::{Address, NOTHING, PARENT, SEED};
use crate::live::{Folded, Run};
use crate::run::childless::{Childless, childless};
use crate::run::heat::{self, Heat};
use crate::run::pool::Row;

/// The page: a run, its address, and what is read off both once for each change.
#[derive(Clone, Copy)]
pub(super) struct Page {
    pub run: Run,
    pub address: Memo<Address>,
    parts: Memo<Option<Arc<Parts>>>,
    /// The selected prompt; none when the run has none, or not the one its address names.
    pub selected: Memo<Option<CandidateId>>,
    /// The prompt that the selected one is compared with.
    pub other: Memo<Option<CandidateId>>,
    /// What the table of prompts and examples shows.
    pub table: Table,
    go: Callback<Address>,
}

/// A run's prompts as the plates see them.
#[derive(PartialEq)]
pub(super) struct Parts {
    /// In order of appearance.
    pub rows: IndexMap<CandidateId, Row>,
    /// Rewrites that gave no prompt.
    pub childless: Vec<Childless>,
    pub seed: Option<CandidateId>,
    pub best: Option<CandidateId>,
    /// The leading prompt of the last round, or the seed.
    pub leader: Option<CandidateId>,
    pub limits: Limits,
    /// Objective and constraints.
    pub metrics: Vec<StudiedMetric>,
    /// Everything that is measured.
    pub all: Vec<StudiedMetric>,
    /// Rounds that are complete.
    pub rounds: u32,
    pub finished: bool,
}

impl Parts {
    fn new(folded: &Folded) -> Option<Self> {
        let (state, seen) = (&folded.state, folded.overview()?);
        let rows = seen.pool.rows.iter();
        let mut rows: IndexMap<CandidateId, Row> = rows.map(|row| (row.candidate, row.clone())).collect();
        rows.sort_by_cached_key(|id, _| state.position(id));
        let seed = lineage::seed(state);
        let leader = state.rounds().last().and_then(|last| last.best.first().copied());
        Some(Self {
            rows,
            childless: childless(state),
            best: seen.map.best,
            leader: leader.or(seed),
            seed,
            limits: in_force::limits_now(state),
            metrics: metrics::of_study(state),
            all: metrics::all(state),
            rounds: state.rounds().len() as u32,
            finished: state.finished().is_some(),
        })
    }

    /// The prompt whose id begins so.
    pub(super) fn named(&self, beginning: &str) -> Option<CandidateId> {
        let named = |id: &&CandidateId| id.to_string().starts_with(beginning);
        self.rows.keys().find(named).copied()
    }

    fn selected(&self, address: &Address) -> Option<CandidateId> {
        match &address.candidate {
            Some(beginning) => self.named(beginning),
            None => self.best.or(self.leader),
        }
    }

    fn other(&self, address: &Address, selected: CandidateId) -> Option<CandidateId> {
        let row = self.rows.get(&selected)?;
        let other = match address.against.as_deref() {
            None | Some(PARENT) => row.parents.first().copied(),
            Some(SEED) => self.seed,
            Some(NOTHING) => None,
            Some(beginning) => self.named(beginning),
        };
        other.filter(|other| *other != selected)
    }
}

/// What the table of prompts and examples shows.
#[derive(Clone, Copy)]
pub(super) struct Table {
    /// Name of the metric; none for the objective.
    pub metric: RwSignal<Option<String>>,
    pub split: RwSignal<Split>,
    /// Every prompt, or those beside the selected one.
    pub everyone: RwSignal<bool>,
    heat: Memo<Option<Arc<Heat>>>,
}

impl Table {
    /// Reads something off the table.
    pub(super) fn read<T>(self, read: impl FnOnce(&Heat) -> T) -> Option<T> {
        self.heat.with(|heat| heat.as_deref().map(read))
    }
}

impl Page {
    pub(super) fn of(run: Run) -> Self {
        let address = Address::of_now();
        let parts = Memo::new(move |_| run.read(|folded| Parts::new(folded).map(Arc::new)));
        let read = move |read: &dyn Fn(&Parts) -> Option<CandidateId>| {
            parts.with(|parts| parts.as_deref().and_then(read))
        };
        let selected =
            Memo::new(move |_| address.with(|address| read(&|parts: &Parts| parts.selected(address))));
        let other = Memo::new(move |_| {
            let selected = selected.get()?;
            address.with(|address| read(&|parts: &Parts| parts.other(address, selected)))
        });
        pin(address, selected);
        let navigate = use_navigate();
        let go = Callback::new(move |address: Address| {
            let options = NavigateOptions {
                scroll: false,
                ..NavigateOptions::default()
            };
            navigate(&address.href(), options);
        });
        Self {
            run,
            address,
            parts,
            selected,
            other,
            table: table(run, address, selected),
            go,
        }
    }

    /// Reads something off the prompts, once there is a study.
    pub(super) fn read<T>(self, read: impl FnOnce(&Parts) -> T) -> Option<T> {
        self.parts.with(|parts| parts.as_deref().map(read))
    }

    /// Reads something off the row of the selected prompt.
    pub(super) fn row<T>(self, read: impl FnOnce(&Parts, &Row) -> T) -> Option<T> {
        let selected = self.selected.get()?;
        self.read(|parts| Some(read(parts, parts.rows.get(&selected)?)))
            .flatten()
    }

    /// Changes the address; the page stays where it is scrolled to.
    pub(super) fn go(self, change: impl FnOnce(&Address) -> Address) {
        self.go.run(self.address.with_untracked(change));
    }
}

/// Puts the prompt that an address without one means into it, so that a run that goes on does not
/// change what is being read, nor whose conversation is open.
fn pin(address: Memo<Address>, selected: Memo<Option<CandidateId>>) {
    let navigate = use_navigate();
    Effect::new(move |_| {
        let Some(selected) = selected.get() else { return };
        let pinned = address.with(|address| address.pinned(&selected.to_string()));
        if let Some(pinned) = pinned {
            let options = NavigateOptions {
                replace: true,
                scroll: false,
                ..NavigateOptions::default()
            };
            navigate(&pinned.href(), options);
        }
    });
}

fn table(run: Run, address: Memo<Address>, selected: Memo<Option<CandidateId>>) -> Table {
    let opened_with = address.with_untracked(|address| address.trace.as_ref().map(|trace| trace.split));
    let metric = RwSignal::new(None::<String>);
    let split = RwSignal::new(opened_with.unwrap_or(Split::Optimize));
    let everyone = RwSignal::new(false);
    let heat = Memo::new(move |_| {
        let selected = selected.get()?;
        run.read(|folded| {
            let state = &folded.state;
            let metric = match metric.get() {
                Some(name) => metrics::named(state, &name)?,
                None => metrics::objective(state)?,
            };
            let mut shown = if everyone.get() {
                state.candidates().map(|(id, _)| *id).collect()
            } else {
                heat::beside(state, selected)
            };
            if split.get() == Split::Evaluate {
                shown.retain(|id| {
                    capo_core::reading::measured::on_split(state, id, Split::Evaluate)
                        .examples
                        .done
                        > 0
                });
            }
            Some(Arc::new(Heat::new(state, &shown, &metric, split.get())))
        })
    });
    Table {
        metric,
        split,
        everyone,
        heat,
    }
}
