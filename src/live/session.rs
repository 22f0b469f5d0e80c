//! Control of a run from the page: start, pause, resume, stop, steer.

use std::rc::Rc;

use capo_api::RunOrder;
use capo_core::journal::{Status, SteerEvent};
use futures::channel::oneshot;
use futures::future::{Either, select};
use gloo_timers::future::TimeoutFuture;
use leptos::prelude::*;
use wasm_bindgen_futures::spawn_local;

use super::orders::Ordered;
use super::phase::{Pause, Phase};
use super::run::Run;
use super::steering;
use super::worker::WorkerHandle;
use crate::keys::Keys;
use crate::storage::{Chunks, RunRecord, RunStatus, Storage};
use crate::worker::protocol::Order;

/// A worker that gives no answer for so long, in milliseconds, is taken to be stuck.
const PATIENCE: u32 = 5_000;

impl Run {
    /// Starts it, or goes on where its journal ends, with these keys and those it had.
    pub fn start(self, keys: Keys) {
        if self.is_working() || matches!(self.phase.get_untracked(), Phase::Opening(..)) {
            return;
        }
        let worker = self.inner.with_value(|inner| inner.worker.clone());
        let start = || WorkerHandle::new(move |report| self.hear(report), move |reason| self.broke(&reason));
        let worker = match worker.map_or_else(start, Ok) {
            Ok(worker) => worker,
            Err(message) => return self.phase.set(Phase::Failed(message)),
        };
        self.notes.set(Vec::new());
        let (pilot, check) = untrack(|| (self.pilot(), self.check()));
        let order = self.inner.try_update_value(|inner| {
            inner.worker = Some(Rc::clone(&worker));
            inner.keys.extend(keys);
            inner.began = Some(js_sys::Date::now());
            inner.retry = None;
            inner.broken = None;
            inner.why = Pause::Asked;
            Order::Run {
                run: inner.id.clone(),
                study: inner.study.clone(),
                files: inner.files.clone(),
                keys: inner.keys.clone(),
                keep: inner.keep,
                known: inner.folded.lines(),
                elapsed: inner.elapsed / 1000.0,
                pilot,
                check,
            }
        });
        if let Some(order) = order {
            worker.tell(&order);
        }
        // What waited when it was paused waits still.
        if let Some(change) = self.pending.get_untracked() {
            worker.tell(&Order::Steer { change });
        }
        self.phase.set(Phase::Running);
    }

    /// Goes on where its journal ends, under its record as it is now, with those of `keys` that its
    /// study may use and those it had.
    pub fn go_on(self, keys: Keys) {
        if self.is_on_server() {
            return self.order(Ordered::Course, RunOrder::Resume { study: None });
        }
        spawn_local(async move {
            match self.renew().await {
                Ok(()) => {
                    if let Some(study) = self.name_keys(&keys)
                        && let Ok(storage) = Storage::open().await
                    {
                        // A browser that keeps nothing any more is heard of from the worker.
                        let _ = storage
                            .change_run(&self.id(), |record| record.study = study)
                            .await;
                    }
                    self.start(self.allowed(&keys));
                }
                Err(message) => self.phase.set(Phase::Failed(message)),
            }
        });
    }

    /// Takes over what another tab changed in its record, and notes that it goes on, so that it counts
    /// as interrupted when this tab is closed.
    async fn renew(self) -> Result<(), String> {
        if self.inner.with_value(|inner| inner.keep)
            // A browser that keeps nothing any more is heard of from the worker.
            && let Ok(storage) = Storage::open().await
            && let Ok(record) = storage
                .change_run(&self.id(), |record| {
                    record.status = RunStatus::Running;
                    record.touched = js_sys::Date::now();
                })
                .await
        {
            let record = record.ok_or("This run is not in this browser any more: it was deleted.")?;
            let files = storage
                .files(&record.id)
                .await
                .map_err(|error| error.to_string())?;
            self.set_study(record, files);
        }
        if !self.study().is_empty() {
            return Ok(());
        }
        let study = self.peek(|folded| folded.state.study().map(|started| started.study.to_toml()));
        let why = match study {
            Some(Err(error)) => format!("its study cannot be written as a study file ({error})"),
            Some(Ok(_)) | None => "its study is not in this browser".to_owned(),
        };
        Err(format!("This run can be looked at, but not resumed here: {why}."))
    }

    /// Starts nothing new; what is under way is finished and counted. One that pauses can be stopped all the same.
    pub fn pause(self, why: Pause) {
        let stops = why == Pause::Stopped && self.phase.get_untracked() == Phase::Pausing;
        if self.is_on_server() {
            let order = if why == Pause::Stopped {
                RunOrder::Stop
            } else {
                RunOrder::Pause
            };
            return self.order(Ordered::Course, order);
        }
        let listed = match why {
            Pause::Stopped => RunStatus::Ended(Status::Stopped),
            Pause::Asked | Pause::NoNetwork | Pause::Unreachable => RunStatus::Paused,
        };
        if self.phase.get_untracked() == Phase::Queued(None) {
            // Nothing of it has begun, and whoever begins runs in turn passes it over.
            self.phase.set(Phase::Paused(why));
            return self.list_as(listed);
        }
        if self.phase.get_untracked() != Phase::Running && !stops {
            return;
        }
        self.inner.update_value(|inner| inner.why = why);
        self.tell(&Order::Interrupt { listed });
        self.phase.set(Phase::Pausing);
    }

    fn list_as(self, status: RunStatus) {
        let change = move |record: &mut RunRecord| record.status = status;
        self.record
            .update(|record| record.as_mut().into_iter().for_each(change));
        spawn_local(async move {
            if let Ok(storage) = Storage::open().await {
                // In a browser that keeps nothing it is in no list.
                let _ = storage.change_run(&self.id(), change).await;
            }
        });
    }

    /// Stays paused when its models can be reached again.
    pub fn wait_no_more(self) {
        self.inner.update_value(|inner| inner.retry = None);
        self.phase.set(Phase::Paused(Pause::Asked));
    }

    /// Changes thresholds or multipliers from the next round on.
    pub fn steer(self, change: SteerEvent) {
        let waited = self.pending.get_untracked();
        self.pending
            .update(|pending| steering::ask(pending, change.clone()));
        if self.is_on_server() {
            self.order_change(RunOrder::Steer { change }, waited);
        } else {
            self.tell(&Order::Steer { change });
        }
    }

    /// Takes back what waits for the next round.
    pub fn withdraw(self) {
        let Some(change) = self.pending.get_untracked() else {
            return;
        };
        self.pending.set(None);
        if self.is_on_server() {
            self.order_change(
                RunOrder::Withdraw {
                    change: change.clone(),
                },
                Some(change),
            );
        } else {
            self.tell(&Order::Withdraw { change });
        }
    }

    /// Ends its worker at once, whatever it is doing. Only for runs that are not kept or are gone.
    pub fn discard(self) {
        self.inner.update_value(|inner| {
            inner.worker = None;
            inner.retry = None;
            inner.server = None;
            inner.closed = true;
        });
    }

    /// Whole lines that only the memory of its worker holds: none without a worker, those on their way
    /// into storage, or all since the browser refused to store more.
    ///
    /// # Errors
    /// When the worker does not say.
    pub async fn unsaved(self) -> Result<Chunks, String> {
        let (sender, receiver) = oneshot::channel();
        let worker = self.inner.try_update_value(|inner| {
            let worker = inner.worker.clone()?;
            inner.asked.push(sender);
            Some(worker)
        });
        let Some(worker) = worker.flatten() else {
            return Ok(Chunks::new());
        };
        worker.tell(&Order::Unsaved);
        match select(receiver, TimeoutFuture::new(PATIENCE)).await {
            Either::Left((Ok(chunks), _)) => Ok(chunks),
            Either::Left((Err(_), _)) | Either::Right(_) => Err(
                "The worker of this run does not say which answers only it holds. Try again in a moment."
                    .to_owned(),
            ),
        }
    }

    pub(super) fn tell(&self, order: &Order) {
        self.inner.with_value(|inner| {
            if let Some(worker) = &inner.worker {
                worker.tell(order);
            }
        });
    }
}
