//! Reports of a run's worker, line by line into the fold.

use std::rc::Rc;

use capo_core::journal::{JournalError, Status, SteerEvent};
use capo_models::{Notice, Wait};
use gloo_timers::callback::Timeout;
use leptos::prelude::*;

use super::fold::Folded;
use super::opening::Journal;
use super::phase::{Ended, Pause, Phase, wait};
use super::run::{Inner, Run};
use super::steering;
use crate::keys::Keys;
use crate::storage::{Chunks, RunStatus};
use crate::worker::protocol::{Order, Report};

impl Run {
    /// Takes a report, at once or when the fold has caught up with the journal.
    pub(super) fn hear(self, report: Report) {
        let report = self.inner.try_update_value(|inner| match &mut inner.behind {
            Some(behind) => {
                behind.push(report);
                None
            }
            None => Some(report),
        });
        match report.flatten() {
            Some(Report::Opened {
                kept,
                unsaved,
                left_out,
            }) => {
                self.notes.update(|notes| notes.extend(left_out));
                if self.inner.with_value(|inner| inner.keep) {
                    self.refused.set(None);
                }
                self.level(Journal { kept, unsaved });
            }
            Some(Report::Busy) => self.phase.set(Phase::Running),
            Some(Report::Lines { first, lines }) => self.take(first, &lines),
            Some(Report::Study { line }) => self.refold(&line),
            Some(Report::Piloted) => self.record.update(|record| {
                if let Some(record) = record {
                    record.pilot = None;
                }
            }),
            Some(Report::Checked { status }) => self.record.update(|record| {
                if let Some(record) = record {
                    record.status = RunStatus::Ended(status);
                }
            }),
            Some(Report::Ended) => self.ended(),
            Some(Report::Failed { message }) => self.failed(message),
            Some(Report::Refused { reason }) => self.refuse(reason),
            Some(Report::Lost) => self.lose_stored(),
            Some(Report::Waits { notice }) => self.hear_of_wait(notice),
            Some(Report::Unsaved { chunks }) => self.answer(&chunks),
            // Answers to questions that a run does not ask.
            Some(
                Report::Forecast { .. }
                | Report::Importing(_)
                | Report::Imported { .. }
                | Report::Looked { .. }
                | Report::Written { .. }
                | Report::KeptBenchmark { .. }
                | Report::Duplicates { .. }
                | Report::Probed { .. },
            )
            | None => {}
        }
    }

    /// Notes who is waited for from now on, if anybody is.
    pub(super) fn wait_for(self, wait: Option<Wait>) {
        let now = js_sys::Date::now();
        self.inner.update_value(|inner| {
            inner.waits = wait.map(|wait| {
                let until = now + 1000.0 * wait.seconds;
                (wait, until)
            });
        });
    }

    /// Of several waits at once the last one is shown.
    fn hear_of_wait(self, notice: Notice) {
        match notice {
            Notice::Waiting(wait) => self.wait_for(Some(wait)),
            Notice::Answered { model, .. } => {
                let goes_on = |(wait, _): &(Wait, f64)| wait.model != model;
                self.inner
                    .update_value(|inner| inner.waits = inner.waits.take().filter(goes_on));
            }
            // No page hands batches in.
            Notice::Batch(_) => {}
        }
    }

    /// Its worker did not load or crashed, and takes what only its memory held along.
    pub(super) fn broke(self, reason: &str) {
        let kept = match self.refused.get_untracked() {
            Some(refused) if refused.is_lost => {
                "What was answered lay in its memory alone, since the site data were cleared, and is lost with it."
            }
            Some(_) => "What this browser did not store is lost; the rest is kept. Resume the run.",
            None => "Everything that was stored is kept. Resume the run.",
        };
        self.refused.set(None);
        self.inner.update_value(|inner| {
            inner.rest();
            // Its last lines may not have been written.
            inner.stale = true;
            inner.behind = None;
            inner.asked.clear();
        });
        self.part();
        self.phase.set(Phase::Failed(format!(
            "The worker of this run stopped ({reason}). {kept}"
        )));
        self.show();
    }

    /// The fold cannot go on: its worker, which could, is told to stop.
    pub(super) fn lose(self, message: String) {
        let works = self.inner.try_update_value(|inner| {
            inner.stale = true;
            inner.broken = Some(message);
            inner.worker.is_some()
        });
        if works != Some(true) {
            return;
        }
        self.tell(&Order::Interrupt {
            listed: RunStatus::Paused,
        });
        self.phase.set(Phase::Pausing);
    }

    fn take(self, first: u64, lines: &[String]) {
        let now = js_sys::Date::now();
        let at = Some(self.elapsed() / 1000.0);
        let taken = self
            .inner
            .try_update_value(|inner| inner.take(first, lines, |_| at));
        match taken {
            Some(Ok(steers)) => self.took(&steers, now),
            // One that is lost already says so once.
            Some(Err(_)) if self.inner.with_value(|inner| inner.broken.is_some()) => {}
            Some(Err(message)) => self.lose(message),
            None => {}
        }
    }

    /// Shows what was folded, and takes what a person changed by it out of what waits.
    pub(super) fn took(self, steers: &[SteerEvent], now: f64) {
        for steer in steers {
            self.pending.update(|pending| steering::settle(pending, steer));
        }
        self.refresh(now);
    }

    /// Thresholds relative to the seed prompt were frozen: folds everything so far once more, under
    /// the study as it is now.
    fn refold(self, study: &str) {
        let refolded = self.inner.try_update_value(|inner| {
            inner.folded = inner.folded.under(study)?;
            Ok::<(), JournalError>(())
        });
        if let Some(Err(error)) = refolded {
            self.lose(error.to_string());
        }
    }

    fn ended(self) {
        let broken = self.inner.try_update_value(|inner| {
            inner.rest();
            inner.broken.take()
        });
        if let Some(message) = broken.flatten() {
            self.phase.set(Phase::Failed(message));
        } else {
            self.rest_after(self.came_to(untrack(|| self.status())));
        }
        self.let_rest();
    }

    /// What this session came to, which ended so.
    fn came_to(self, status: Option<Status>) -> Ended {
        let pausing = self.phase.get_untracked() == Phase::Pausing;
        let why = self.inner.with_value(|inner| inner.why);
        let pilot = untrack(|| self.pilot().or_else(|| Some(self.check()?.examples)));
        self.peek(|folded| Ended {
            status,
            pausing: pausing.then_some(why),
            pilot,
            cut_off: folded.is_cut_off(),
            answered: folded.state.ledger().rollouts() > 0,
            online: window().navigator().on_line(),
        })
    }

    fn rest_after(self, ended: Ended) {
        let phase = ended.phase();
        self.phase.set(phase.clone());
        match phase {
            Phase::Paused(Pause::NoNetwork) if ended.online => self.go_on(Keys::new()),
            Phase::Paused(Pause::Unreachable) => self.try_later(),
            Phase::Paused(_) => {}
            _ => self.drop_pending(ended.status),
        }
    }

    /// Tries again to reach its models, later each time.
    fn try_later(self) {
        self.inner.update_value(|inner| {
            let again = move || {
                if self.phase.get_untracked() == Phase::Paused(Pause::Unreachable) {
                    self.go_on(Keys::new());
                }
            };
            inner.retry = Some(Timeout::new(wait(inner.tries), again));
            inner.tries += 1;
        });
    }

    /// No round comes any more that changes could wait for.
    pub(super) fn drop_pending(self, status: Option<Status>) {
        if self.pending.get_untracked().is_some() && status.is_some() {
            self.pending.set(None);
            self.notes.update(|notes| {
                notes.push(
                    "Changes that waited for the next round were not applied: the run ended first."
                        .to_owned(),
                );
            });
        }
    }

    fn failed(self, message: String) {
        let broken = self.inner.try_update_value(|inner| {
            inner.rest();
            inner.broken.take()
        });
        let message = broken.flatten().unwrap_or(message);
        // Of first rollouts that are made alone no line of the journal says how they ended.
        let is_unsaid =
            |folded: &Folded| folded.state.finished().is_none() && folded.ended_by(Some(&message)).is_some();
        let ended = self.came_to(self.peek(is_unsaid).then_some(Status::Failed));
        if ended.status.is_some() && matches!(ended.phase(), Phase::Paused(_)) {
            self.rest_after(ended);
            return self.let_rest();
        }
        let kept = match self.peek(Folded::lines) {
            0 => "",
            _ => untrack(|| self.what_is_kept()),
        };
        self.phase
            .set(Phase::Failed(format!("{message} {kept}").trim_end().to_owned()));
        self.let_rest();
    }

    /// Lets go of its worker, unless that holds what nobody else does.
    fn let_rest(self) {
        if !self.holds_unsaved() {
            // Whoever asked for what only its memory holds is told that this is nothing.
            self.answer(&Chunks::new());
            self.part();
        }
        self.inner.update_value(|inner| inner.waits = None);
        self.show();
    }

    fn answer(self, chunks: &Chunks) {
        let asked = self
            .inner
            .try_update_value(|inner| std::mem::take(&mut inner.asked));
        for asked in asked.into_iter().flatten() {
            // Who asked may have lost patience.
            let _ = asked.send(chunks.clone());
        }
    }

    /// Lets go of the worker, which ends.
    pub(super) fn part(self) {
        let worker = self.inner.try_update_value(|inner| inner.worker.take());
        if let Some(Some(worker)) = worker {
            // Not at once: this may be said by one of its own reports.
            Timeout::new(0, move || drop::<Rc<_>>(worker)).forget();
        }
    }
}

impl Inner {
    /// Folds lines that follow those known, and returns what a person changed by them.
    pub(super) fn take(
        &mut self,
        first: u64,
        lines: &[String],
        at: impl Fn(u64) -> Option<f64>,
    ) -> Result<Vec<SteerEvent>, String> {
        if first != self.folded.lines() {
            return Err(format!(
                "The page has {} lines of the journal where its worker goes on with line {}. Resume the run.",
                self.folded.lines(),
                first + 1
            ));
        }
        let rollouts = |folded: &Folded| folded.state.ledger().rollouts();
        let before = rollouts(&self.folded);
        let mut steers = Vec::new();
        for line in lines {
            let at = at(self.folded.lines());
            let steer = self.folded.take(line, at).map_err(|error| error.to_string())?;
            steers.extend(steer);
        }
        if rollouts(&self.folded) > before {
            self.tries = 0;
        }
        Ok(steers)
    }

    /// Stops the clock of this session.
    pub(super) fn rest(&mut self) {
        if let Some(began) = self.began.take() {
            self.elapsed += js_sys::Date::now() - began;
        }
    }
}
