//! All runs this tab has opened.

use std::collections::BTreeMap;

use capo_api::{NewBranch, RunShown};
use capo_core::journal::SteerEvent;
use capo_core::reading::progress::{Progress, Times};
use capo_core::study::{Format, Study};
use futures::future::join_all;
use gloo_timers::future::TimeoutFuture;
use leptos::prelude::*;
use wasm_bindgen::JsValue;
use wasm_bindgen_futures::spawn_local;

use super::importing;
use super::keeping::forget_mirror;
use super::mirroring::{GONE, SIGNED_OUT};
use super::orders::title;
use super::phase::Phase;
use super::run::Run;
use crate::keys::Keys;
use crate::storage::{
    Check, Notes, RunList, RunRecord, RunStatus, Storage, StorageError, mirror_id, server_id,
};
use crate::studies::needs_network;
use crate::team::{Server, Standing, Team};
use crate::worker::protocol::{DataFiles, HowFar, Order};

/// Milliseconds between two looks at whether a journal is read.
const LOOK_AGAIN: u32 = 30;

/// Of runs that are begun in turn, those that work at once: each has a worker of its own.
const TOGETHER: usize = 2;

/// The runs this tab has opened, by id. They go on while a person looks at other pages.
#[derive(Clone, Copy)]
pub struct Runs {
    opened: StoredValue<BTreeMap<String, Run>, LocalStorage>,
    owner: StoredValue<Owner, LocalStorage>,
    team: Team,
    /// Rises when the mirrors that were kept are deleted.
    cleared: RwSignal<u32>,
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
    /// Make so many of its first rollouts alone, in this browser, and pause.
    pub pilot: Option<usize>,
    /// Measure this alone, in this browser, and search nothing.
    pub check: Option<Check>,
}

impl Runs {
    /// None yet. Whoever is signed out has no mirrors of the team's runs, in memory or kept; whoever signs in gets those
    /// that are open from the server.
    pub fn new(team: Team) -> Self {
        let runs = Self {
            opened: StoredValue::new_local(BTreeMap::new()),
            // Signals of a run outlive the page that asked for it first.
            owner: StoredValue::new_local(Owner::current().unwrap_or_default()),
            team,
            cleared: RwSignal::new(0),
        };
        let standing = team.standing();
        Effect::new(move |before: Option<Option<String>>| {
            let before = before.flatten();
            let member = match standing.get() {
                Standing::SignedIn(myself) => Some(myself.name),
                Standing::SignedOut | Standing::NotSetUp => None,
                Standing::Unknown | Standing::Unreached(_) | Standing::NoServer => return before,
            };
            if member.is_none() || before.is_some() && before != member {
                runs.close_mirrors();
            } else {
                runs.look_at_server();
            }
            member
        });
        runs
    }

    /// The server that runs may be on.
    pub fn team(self) -> Team {
        self.team
    }

    fn on_server(self) -> Vec<Run> {
        let mut runs = self.opened();
        runs.retain(Run::is_on_server);
        runs
    }

    /// Has the server asked, now, about its runs that are open here.
    pub fn look_at_server(self) {
        self.on_server().into_iter().for_each(Run::wake);
    }

    fn close_mirrors(self) {
        for run in self.on_server() {
            run.close(SIGNED_OUT);
        }
        spawn_local(async move {
            if let Ok(storage) = Storage::open().await {
                // What is left is deleted when the page is opened next.
                let _ = storage.delete_mirrors().await;
            }
            self.cleared.update(|cleared| *cleared += 1);
            // Whoever is signed in now finds nothing of another's.
            self.look_at_server();
        });
    }

    /// Tells a reactive caller when what this browser kept of the team's runs is deleted.
    pub fn cleared(self) {
        self.cleared.track();
    }

    /// The runs that this browser keeps; whoever is signed out has none of the team's.
    ///
    /// # Errors
    /// When the browser does not give them back.
    pub async fn kept(self) -> Result<RunList, StorageError> {
        let mut kept = Storage::open().await?.runs().await?;
        if matches!(self.team.standing_now(), Standing::SignedOut | Standing::NotSetUp) {
            kept.runs.retain(|record| record.server.is_none());
        }
        Ok(kept)
    }

    /// The run of this id, its journal opened if it was not yet.
    pub fn get(self, id: &str) -> Run {
        if let Some(run) = self.known(id) {
            return run;
        }
        let run = self.make(id);
        run.phase.set(Phase::Opening(0, 0));
        if run.is_on_server() {
            run.mirror(self.team);
            return run;
        }
        spawn_local(async move {
            if let Err(message) = run.open().await {
                run.phase.set(Phase::Unreadable(message));
            }
            run.watch();
        });
        run
    }

    /// The same, shown by the caller until that is cleaned up.
    pub fn show(self, id: &str) -> Run {
        let run = self.get(id);
        let viewer = run.shown_to();
        on_cleanup(move || drop(viewer));
        run
    }

    /// The run of a record, which is not opened for it.
    pub fn unopened(self, record: &RunRecord) -> Run {
        self.known(&record.id).unwrap_or_else(|| {
            let run = Run::new(&record.id);
            // Nobody looks at it.
            drop(run.be_on(self.team));
            run.record.set(Some(record.clone()));
            run
        })
    }

    /// Begins a run and returns it.
    pub fn begin(self, new: NewRun) -> Run {
        let (run, kept) = self.note(new, Phase::Resting);
        spawn_local(async move {
            let keys = kept.await;
            run.start(keys);
            run.watch();
        });
        run
    }

    /// Begins runs in this order, two at a time, and returns all of them. Each of the others is queued until one
    /// of those before it rests, unless somebody has paused or deleted it by then, and begins with what it may use of the
    /// `keys` that there are then.
    pub fn begin_in_turn(self, all: Vec<NewRun>, keys: impl Fn() -> Keys + 'static) -> Vec<Run> {
        let (runs, kept): (Vec<Run>, Vec<_>) = all
            .into_iter()
            .map(|new| self.note(new, Phase::Queued(None)))
            .unzip();
        let begun = runs.clone();
        spawn_local(async move {
            join_all(kept).await;
            for run in &begun {
                run.watch();
            }
            for run in &begun {
                while untrack(|| has_to_wait(*run, &begun)) {
                    TimeoutFuture::new(10 * LOOK_AGAIN).await;
                }
                if run.phase.get_untracked() == Phase::Queued(None) && !run.is_closed() {
                    run.start(run.allowed(&keys()));
                }
            }
        });
        runs
    }

    /// Notes a new run, with what keeps it in this browser and then gives its keys back.
    fn note(self, new: NewRun, phase: Phase) -> (Run, impl Future<Output = Keys>) {
        let now = js_sys::Date::now();
        let id = fresh_id(now);
        let run = self.make(&id);
        let record = RunRecord {
            id,
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
            pilot: new.pilot,
            check: new.check,
            server: None,
            notes: Notes::new(),
        };
        run.set_study(record.clone(), new.files.clone());
        run.phase.set(phase);
        // Asks the browser not to clear the runs when it needs room; it may decline.
        let _ = window().navigator().storage().persist();
        let kept = async move {
            if let Err(error) = keep(&record, &new.files).await {
                run.keep_in_memory(error);
            }
            new.keys
        };
        (run, kept)
    }

    /// A new run that shares the journal of `from` up to the end of its round `round` on screen.
    ///
    /// # Errors
    /// When it cannot be kept, in words.
    pub async fn branch(self, from: Run, round: u32) -> Result<Run, String> {
        if from.is_on_server() {
            let name = format!("{}, branched after round {round}", from.name());
            let new = NewBranch {
                name: title(&name)?,
                round,
                change: SteerEvent::default(),
                start: false,
            };
            let of = from.id();
            let of = server_id(&of).unwrap_or_default();
            let branched = async move |server: Server| server.branch_run(of, &new).await;
            return Ok(self.shown(&self.team.ask(branched).await?));
        }
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

    /// A run of the server that somebody made from here.
    pub fn shown(self, shown: &RunShown) -> Run {
        self.get(&mirror_id(&shown.id))
    }

    /// Goes on with a run where its journal ends, once that is read, with those of `keys` that were
    /// typed for where its study sends them.
    pub fn resume(self, id: &str, keys: &Keys) -> Run {
        let run = self.get(id);
        let (keys, viewer) = (keys.clone(), run.shown_to());
        spawn_local(async move {
            while matches!(run.phase.get_untracked(), Phase::Opening(..)) {
                TimeoutFuture::new(LOOK_AGAIN).await;
            }
            if !run.is_unreadable() {
                run.go_on(keys);
            }
            drop(viewer);
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

    /// Forgets a run that the server does not have any more, and says so where it is shown.
    pub async fn gone(self, id: &str) {
        if let Some(run) = self.known(id) {
            run.close(GONE);
        }
        forget_mirror(id).await;
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

/// Whether two of the runs that were begun with it keep their places, a key of one was refused and no other typed, or it
/// would ask models that are out of reach.
fn has_to_wait(run: Run, begun: &[Run]) -> bool {
    let others = || begun.iter().filter(|run| !run.is_closed());
    let working = others().filter(|run| run.phase.with(Phase::keeps_its_place));
    let is_offline = || {
        let study = Study::parse(&run.study(), Format::Toml);
        !window().navigator().on_line() && study.is_ok_and(|study| needs_network(&study))
    };
    working.count() >= TOGETHER || others().any(|run| run.refusal().is_some()) || is_offline()
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
