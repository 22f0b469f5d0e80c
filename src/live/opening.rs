//! A run's journal on its way from this browser into the fold.

use capo_core::journal::Status;
use gloo_timers::future::TimeoutFuture;
use leptos::prelude::*;
use wasm_bindgen_futures::spawn_local;

use super::fold::Folded;
use super::phase::{Pause, Phase};
use super::run::{Inherited, Run};
use crate::storage::{RunRecord, RunStatus, Storage, StorageError, lock};
use crate::worker::torn;

/// Lines folded between two looks at the clock when a journal is read.
const AT_ONCE: usize = 64;

/// A journal as its worker opened it.
pub(super) struct Journal {
    /// Lines of it that this browser keeps.
    pub(super) kept: u64,
    /// Those after them without their traces, which only the worker's memory holds.
    pub(super) unsaved: Vec<String>,
}

impl Journal {
    /// Line `number`, from 0.
    async fn line(&self, run: &str, number: u64) -> Result<Option<String>, StorageError> {
        match number.checked_sub(self.kept) {
            Some(beyond) => Ok(self.unsaved.get(beyond as usize).cloned()),
            None => Storage::open().await?.slim_line(run, number).await,
        }
    }
}

/// What a run does on which no tab works, as the list of runs and its journal say. A journal says neither that a run was
/// only paused, nor anything of first rollouts made alone, or of a run that never began.
fn phase_of(listed: Option<RunStatus>, ended: Option<Status>) -> Phase {
    match (listed, ended) {
        (Some(RunStatus::Paused), None | Some(Status::Stopped)) => Phase::Paused(Pause::Asked),
        (Some(RunStatus::Ended(Status::Stopped)), None) => Phase::Paused(Pause::Stopped),
        _ => Phase::Resting,
    }
}

impl Run {
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
        self.set_study(record, files);
        self.fold_stored(|read, of| self.phase.set(Phase::Opening(read, of)))
            .await?;
        // One that another tab works on is never shown as interrupted.
        let elsewhere = lock::held().await.contains(&id);
        self.phase.set(if elsewhere {
            Phase::InAnotherTab
        } else {
            self.left_as()
        });
        self.show();
        Ok(())
    }

    /// What a run does on which no tab works, by what is kept of it.
    pub(super) fn left_as(self) -> Phase {
        let listed = |record: &Option<RunRecord>| record.as_ref().map(|record| record.status);
        let ended = self.peek(|folded| Some(folded.state.finished()?.status));
        phase_of(self.record.with_untracked(listed), ended)
    }

    /// Folds what this browser keeps beyond the fold; `progress` is told chunks read and chunks in all.
    pub(super) async fn fold_stored(self, progress: impl Fn(usize, usize)) -> Result<(), String> {
        let storage = Storage::open().await.map_err(|error| error.to_string())?;
        let begin = self.peek(Folded::lines);
        let stored = storage.slim_lines(&self.id(), begin).await;
        let stored = stored.map_err(|error| error.to_string())?;
        if self.is_closed() {
            return Ok(());
        }
        let (mut number, mut since) = (stored.first, 0);
        for (index, chunk) in stored.chunks.iter().enumerate() {
            for line in chunk.lines() {
                number += 1;
                // Somebody else may have folded it between two slices, or have begun anew.
                match self.peek(Folded::lines) + 1 {
                    next if number < next => continue,
                    next if number > next => return Ok(()),
                    _ => {}
                }
                self.fold(line)?;
                since += 1;
                if since >= AT_ONCE {
                    since = 0;
                    progress(index, stored.chunks.len());
                    TimeoutFuture::new(0).await;
                }
            }
        }
        let words = torn(stored.end);
        // What a mirror lacks comes from the server.
        if stored.torn && !self.is_on_server() && !self.notes.with_untracked(|notes| notes.contains(&words)) {
            self.notes.update(|notes| notes.push(words));
        }
        Ok(())
    }

    /// When lines came that were not written in this tab, in seconds since the run began.
    pub(super) fn times(self) -> impl Fn(u64) -> Option<f64> {
        // What came elsewhere a moment ago is in no record yet.
        let elsewhere = self.phase.get_untracked() == Phase::InAnotherTab
            || self.is_on_server() && self.inner.with_value(|inner| inner.began.is_some());
        let now = elsewhere.then(|| self.elapsed() / 1000.0);
        move |line: u64| {
            let of = |record: &Option<RunRecord>| {
                let times = &record.as_ref()?.times;
                let is_noted = times.last_line().is_some_and(|last| line <= last);
                now.filter(|_| !is_noted).or_else(|| times.of(line))
            };
            self.record.with_untracked(of)
        }
    }

    fn fold(self, line: &str) -> Result<(), String> {
        let at = self.times();
        let taken = self.inner.try_update_value(|inner| {
            let at = at(inner.folded.lines());
            inner.folded.take(line, at)
        });
        taken
            .unwrap_or(Ok(None))
            .map(|_| ())
            .map_err(|error| error.to_string())
    }

    /// Makes the fold say what the journal says that its worker opened: another tab may have gone on
    /// with the run since it was read here. What the worker reports meanwhile waits.
    pub(super) fn level(self, journal: Journal) {
        let stale = self.inner.try_update_value(|inner| {
            inner.behind = Some(Vec::new());
            std::mem::take(&mut inner.stale)
        });
        spawn_local(async move {
            let leveled = self.catch_up(&journal, stale.unwrap_or_default()).await;
            if let Err(message) = leveled {
                self.lose(message);
            }
            self.show();
            let behind = self.inner.try_update_value(|inner| inner.behind.take());
            for report in behind.flatten().into_iter().flatten() {
                self.hear(report);
            }
        });
    }

    async fn catch_up(self, journal: &Journal, stale: bool) -> Result<(), String> {
        let before = self.peek(Folded::consumed);
        let begins = self
            .is_beginning_of(journal)
            .await
            .map_err(|error| error.to_string())?;
        if stale || !begins {
            self.inner.update_value(|inner| inner.folded = Folded::default());
        }
        if self.peek(Folded::lines) < journal.kept {
            self.fold_stored(|_, _| {}).await?;
        }
        let known = self.peek(Folded::lines).saturating_sub(journal.kept);
        for line in journal.unsaved.iter().skip(known as usize) {
            self.fold(line)?;
        }
        self.inner.update_value(|inner| {
            let consumed = inner.folded.consumed();
            if inner.inherited.is_none() || consumed != before {
                inner.inherited = Some(Inherited {
                    rounds: inner.folded.state.rounds().len(),
                    consumed,
                    elapsed: inner.elapsed,
                });
            }
            inner.folded.goes_on(Some(inner.elapsed / 1000.0));
        });
        if self.peek(Folded::lines) == journal.kept + journal.unsaved.len() as u64 {
            return Ok(());
        }
        Err(
            "The page did not find all lines of the journal that its worker found. Resume the run."
                .to_owned(),
        )
    }

    /// Whether the journal goes on from where the fold ends.
    async fn is_beginning_of(self, journal: &Journal) -> Result<bool, StorageError> {
        let lines = self.peek(Folded::lines);
        if lines == 0 {
            return Ok(true);
        }
        if lines > journal.kept + journal.unsaved.len() as u64 {
            return Ok(false);
        }
        let id = self.id();
        let (first, last) = (journal.line(&id, 0).await?, journal.line(&id, lines - 1).await?);
        Ok(self.peek(|folded| first.as_deref() == folded.first() && last.as_deref() == Some(folded.last())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_that_was_paused_or_stopped_is_so_after_a_reload() {
        let paused = Some(RunStatus::Paused);
        assert_eq!(
            phase_of(paused, Some(Status::Stopped)),
            Phase::Paused(Pause::Asked)
        );
        assert_eq!(phase_of(paused, None), Phase::Paused(Pause::Asked));
        assert_eq!(phase_of(paused, Some(Status::Budget)), Phase::Resting);
        let stopped = Some(RunStatus::Ended(Status::Stopped));
        assert_eq!(phase_of(stopped, None), Phase::Paused(Pause::Stopped));
        assert_eq!(phase_of(stopped, Some(Status::Stopped)), Phase::Resting);
        assert_eq!(phase_of(Some(RunStatus::Running), None), Phase::Resting);
    }
}
