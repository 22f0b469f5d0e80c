//! One run as this tab knows it.

use std::rc::Rc;

use capo_core::journal::SteerEvent;
use capo_core::study::{Format, Study};
use futures::channel::oneshot;
use futures::future::{Either, select};
use gloo_timers::callback::Timeout;
use gloo_timers::future::TimeoutFuture;
use leptos::prelude::*;

use super::fold::Folded;
use super::sending;
use super::worker::WorkerHandle;
use crate::keys::{Destination, Keys};
use crate::storage::{RunRecord, Storage, StorageError};
use crate::worker::protocol::{DataFiles, Order, Report};

/// Screens change at most this often while a run goes on, in milliseconds.
const REFRESH: f64 = 250.0;

/// A worker that gives no answer for so long, in milliseconds, is taken to have ended.
const PATIENCE: u32 = 5_000;

/// Lines folded between two looks at the clock when a journal is opened.
const AT_ONCE: usize = 64;

/// What a run is doing in this tab.
#[derive(Debug, Clone, PartialEq)]
pub enum Phase {
    /// Its journal is being read: chunks read, chunks in all.
    Opening(usize, usize),
    /// Nothing: it ended, was interrupted, or was never started here.
    Resting,
    /// It runs.
    Running,
    /// It was told to start nothing new.
    Pausing,
    /// A person paused it, or the network went away.
    Paused(Pause),
    /// It cannot go on.
    Failed(String),
}

/// Why a run is paused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pause {
    /// Somebody pressed the button.
    Asked,
    /// It goes on when the network is back.
    NoNetwork,
    /// Somebody pressed stop: the same, but nobody expects it to go on.
    Stopped,
}

/// A run. Clones are the same run.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Run {
    inner: StoredValue<Inner, LocalStorage>,
    /// Rises when there is something new to show.
    version: RwSignal<u64>,
    /// What it is doing here.
    pub phase: RwSignal<Phase>,
    /// What the list of runs keeps of it.
    pub record: RwSignal<Option<RunRecord>>,
    /// What the browser said when it kept no more.
    pub refused: RwSignal<Option<String>>,
    /// Changes that wait for the next round, and the round they wait for.
    pub pending: RwSignal<Option<SteerEvent>>,
}

/// Whole lines of a journal, with the number of the first of each chunk.
type Chunks = Vec<(u64, Vec<String>)>;

struct Inner {
    id: String,
    folded: Folded,
    /// Lines until the first round closes, in case the study is replaced before.
    early: Vec<String>,
    worker: Option<Rc<WorkerHandle>>,
    /// Whole study as TOML, its data files and the keys it runs with.
    study: String,
    files: DataFiles,
    keys: Keys,
    keep: bool,
    why: Pause,
    shown: f64,
    refresh: Option<Timeout>,
    /// Who waits for the lines that only the worker's memory holds.
    asked: Vec<oneshot::Sender<Chunks>>,
    /// Milliseconds of running before this session of it, and when this one began.
    began: Option<f64>,
    elapsed: f64,
    /// Rounds that were closed when it first ran in this tab.
    inherited: Option<usize>,
}

impl Run {
    /// A run of this id about which nothing is known yet. Lives as long as the page.
    pub fn new(id: &str) -> Self {
        Self::made(id, true)
    }

    /// A run of a study that nobody wants to keep: it ends with its last owner's tab.
    pub fn unkept(study: &str) -> Self {
        let run = Self::made("unkept", false);
        run.inner.update_value(|inner| study.clone_into(&mut inner.study));
        run
    }

    fn made(id: &str, keep: bool) -> Self {
        Self {
            inner: StoredValue::new_local(Inner {
                id: id.to_owned(),
                folded: Folded::default(),
                early: Vec::new(),
                worker: None,
                study: String::new(),
                files: DataFiles::new(),
                keys: Keys::new(),
                keep,
                why: Pause::Asked,
                shown: 0.0,
                refresh: None,
                asked: Vec::new(),
                began: None,
                elapsed: 0.0,
                inherited: None,
            }),
            version: RwSignal::new(0),
            phase: RwSignal::new(Phase::Resting),
            record: RwSignal::new(None),
            refused: RwSignal::new(None),
            pending: RwSignal::new(None),
        }
    }

    /// Its id.
    pub fn id(&self) -> String {
        self.inner.with_value(|inner| inner.id.clone())
    }

    /// Reads something off the fold; a reactive caller is told when it may have changed.
    pub fn read<T>(&self, read: impl FnOnce(&Folded) -> T) -> T {
        self.version.track();
        self.inner.with_value(|inner| read(&inner.folded))
    }

    /// Like [`Run::read`] without telling the caller of changes.
    pub fn peek<T>(&self, read: impl FnOnce(&Folded) -> T) -> T {
        self.inner.with_value(|inner| read(&inner.folded))
    }

    /// Of `keys` those that its study may use, see [`sending::allowed`].
    pub fn allowed(&self, keys: &Keys) -> Keys {
        let Ok(study) = Study::parse(&self.study(), Format::Toml) else {
            return Keys::new();
        };
        sending::allowed(&study, keys)
    }

    /// Where its study sends keys that neither it nor `keys` has.
    pub fn wanted(&self, keys: &Keys) -> Vec<Destination> {
        let Ok(study) = Study::parse(&self.study(), Format::Toml) else {
            return Vec::new();
        };
        let had = self.inner.with_value(|inner| inner.keys.clone());
        let mut wanted: Vec<Destination> = study
            .models
            .values()
            .flat_map(sending::destinations)
            .filter(|to| had.of(to).is_none() && keys.of(to).is_none())
            .collect();
        wanted.sort();
        wanted.dedup();
        wanted
    }

    /// The study it was started with, as TOML.
    pub fn study(&self) -> String {
        self.inner.with_value(|inner| inner.study.clone())
    }

    /// Rounds closed while it ran in this tab, of `closed` in all.
    pub fn rounds_here(&self, closed: usize) -> usize {
        let inherited = self.inner.with_value(|inner| inner.inherited);
        inherited.map_or(0, |inherited| closed.saturating_sub(inherited))
    }

    /// Milliseconds it has run in this tab.
    pub fn elapsed(&self) -> f64 {
        self.inner
            .with_value(|inner| inner.elapsed + inner.began.map_or(0.0, |began| js_sys::Date::now() - began))
    }

    /// Reads its journal from this browser, in slices that leave the page responsive.
    ///
    /// # Errors
    /// When there is no such run or its journal does not read.
    pub async fn open(self) -> Result<(), String> {
        let id = self.id();
        let failed = |error: StorageError| error.to_string();
        let storage = Storage::open().await.map_err(failed)?;
        let record = storage.run(&id).await.map_err(failed)?;
        let record = record
            .ok_or("This browser has no such run. It may have been deleted, or belong to another browser.")?;
        let files = storage.files(&id).await.map_err(failed)?;
        self.inner.update_value(|inner| {
            inner.study.clone_from(&record.study);
            inner.files = files;
        });
        self.record.set(Some(record));
        self.reread(&storage).await
    }

    async fn reread(self, storage: &Storage) -> Result<(), String> {
        let chunks = storage
            .slim_chunks(&self.id())
            .await
            .map_err(|error| error.to_string())?;
        let mut since = 0;
        for (index, chunk) in chunks.iter().enumerate() {
            for line in chunk.lines() {
                let taken = self.inner.try_update_value(|inner| {
                    if inner.folded.state.rounds().is_empty() {
                        inner.early.push(line.to_owned());
                    }
                    inner.folded.take(line, None)
                });
                taken.unwrap_or(Ok(())).map_err(|error| error.to_string())?;
                since += 1;
                if since >= AT_ONCE {
                    since = 0;
                    self.phase.set(Phase::Opening(index, chunks.len()));
                    TimeoutFuture::new(0).await;
                }
            }
        }
        self.phase.set(Phase::Resting);
        self.show();
        Ok(())
    }

    /// Names what it runs with, before it is started for the first time.
    pub fn set_study(&self, record: RunRecord, files: DataFiles) {
        self.inner.update_value(|inner| {
            inner.study.clone_from(&record.study);
            inner.files = files;
        });
        self.record.set(Some(record));
    }

    /// Starts it, or goes on where its journal ends, with these keys and those it had.
    pub fn start(self, keys: Keys) {
        if matches!(self.phase.get_untracked(), Phase::Running | Phase::Pausing) {
            return;
        }
        let worker = self.inner.with_value(|inner| inner.worker.clone());
        let worker = match worker.map_or_else(|| WorkerHandle::new(move |report| self.hear(report)), Ok) {
            Ok(worker) => worker,
            Err(message) => return self.phase.set(Phase::Failed(message)),
        };
        let order = self.inner.try_update_value(|inner| {
            inner.worker = Some(Rc::clone(&worker));
            inner.keys.extend(keys);
            inner.began = Some(js_sys::Date::now());
            let closed = inner.folded.state.rounds().len();
            inner.inherited.get_or_insert(closed);
            Order::Run {
                run: inner.id.clone(),
                study: inner.study.clone(),
                files: inner.files.clone(),
                keys: inner.keys.clone(),
                keep: inner.keep,
            }
        });
        if let Some(order) = order {
            worker.tell(&order);
        }
        self.phase.set(Phase::Running);
    }

    /// Starts nothing new; what is under way is finished and counted.
    pub fn pause(self, why: Pause) {
        if self.phase.get_untracked() != Phase::Running {
            return;
        }
        self.inner.update_value(|inner| inner.why = why);
        self.tell(&Order::Interrupt);
        self.phase.set(Phase::Pausing);
    }

    /// Changes thresholds or multipliers from the next round on.
    pub fn steer(self, change: SteerEvent) {
        self.tell(&Order::Steer {
            change: change.clone(),
        });
        self.pending.update(|pending| {
            let pending = pending.get_or_insert_default();
            if let Some(thresholds) = change.thresholds {
                pending.thresholds.get_or_insert_default().extend(thresholds);
            }
            if let Some(multipliers) = change.multipliers {
                pending.multipliers.get_or_insert_default().extend(multipliers);
            }
        });
    }

    /// Ends its worker at once, whatever it is doing. Only for runs that are not kept.
    pub fn discard(self) {
        self.inner.update_value(|inner| inner.worker = None);
    }

    /// Whole lines that only the memory of its worker holds, with the number (from 0) of the first of
    /// each chunk: none without a worker, those on their way into storage, or all since the browser
    /// refused to store more.
    pub async fn unsaved(self) -> Vec<(u64, Vec<String>)> {
        let (sender, receiver) = oneshot::channel();
        let worker = self.inner.try_update_value(|inner| {
            inner.asked.push(sender);
            inner.worker.clone()
        });
        let Some(worker) = worker.flatten() else {
            return Chunks::new();
        };
        worker.tell(&Order::Unsaved);
        match select(receiver, TimeoutFuture::new(PATIENCE)).await {
            Either::Left((Ok(chunks), _)) => chunks,
            Either::Left((Err(_), _)) | Either::Right(_) => Chunks::new(),
        }
    }

    fn tell(&self, order: &Order) {
        self.inner.with_value(|inner| {
            if let Some(worker) = &inner.worker {
                worker.tell(order);
            }
        });
    }

    fn hear(self, report: Report) {
        match report {
            Report::Lines { first, lines } => self.take(first, &lines),
            Report::Study { line } => self.refold(line),
            Report::Ended => {
                let why = self.rest();
                let pausing = self.phase.get_untracked() == Phase::Pausing;
                self.phase.set(if pausing {
                    Phase::Paused(why)
                } else {
                    Phase::Resting
                });
                self.show();
            }
            Report::Failed { message } => {
                self.rest();
                self.phase.set(Phase::Failed(message));
                self.show();
            }
            Report::Refused { reason } => self.refused.set(Some(reason)),
            Report::Unsaved { chunks } => {
                let asked = self
                    .inner
                    .try_update_value(|inner| std::mem::take(&mut inner.asked));
                for asked in asked.into_iter().flatten() {
                    // Who asked may have lost patience.
                    let _ = asked.send(chunks.clone());
                }
            }
            // Answers to questions that a run does not ask.
            Report::Forecast { .. }
            | Report::Importing { .. }
            | Report::Imported { .. }
            | Report::Probed { .. } => {}
        }
    }

    /// Thresholds relative to the seed prompt were frozen: folds everything so far once more, under
    /// the study as it is now.
    fn refold(&self, study: String) {
        let refolded = self.inner.try_update_value(|inner| {
            let mut lines = std::mem::take(&mut inner.early);
            if let Some(first) = lines.first_mut() {
                *first = study;
            }
            inner.folded = Folded::default();
            let folded = lines.iter().try_for_each(|line| inner.folded.take(line, None));
            inner.early = lines;
            folded
        });
        if let Some(Err(error)) = refolded {
            self.phase.set(Phase::Failed(error.to_string()));
        }
    }

    fn rest(&self) -> Pause {
        let rested = self.inner.try_update_value(|inner| {
            if let Some(began) = inner.began.take() {
                inner.elapsed += js_sys::Date::now() - began;
            }
            inner.why
        });
        rested.unwrap_or(Pause::Asked)
    }

    fn take(&self, first: u64, lines: &[String]) {
        let now = js_sys::Date::now();
        let at = Some(self.elapsed() / 1000.0);
        let rounds = |folded: &Folded| folded.state.rounds().len();
        let taken = self.inner.try_update_value(|inner| {
            let before = rounds(&inner.folded);
            // A worker that starts anew may send lines again that this tab knows.
            let known = inner.folded.lines().saturating_sub(first) as usize;
            for line in lines.iter().skip(known) {
                inner.folded.take(line, at)?;
                if before == 0 {
                    inner.early.push(line.clone());
                }
            }
            Ok::<bool, capo_core::journal::JournalError>(rounds(&inner.folded) > before)
        });
        match taken {
            Some(Ok(round_closed)) => {
                if round_closed {
                    self.pending.set(None);
                }
                self.refresh(now);
            }
            Some(Err(error)) => self.phase.set(Phase::Failed(error.to_string())),
            None => {}
        }
    }

    /// Shows what is new, now or a little later.
    fn refresh(self, now: f64) {
        self.inner.update_value(|inner| {
            if inner.refresh.is_none() {
                let wait = (inner.shown + REFRESH - now).max(0.0);
                inner.refresh = Some(Timeout::new(wait as u32, move || self.show()));
            }
        });
    }

    fn show(self) {
        self.inner.update_value(|inner| {
            inner.shown = js_sys::Date::now();
            inner.refresh = None;
        });
        self.version.update(|version| *version += 1);
    }
}
