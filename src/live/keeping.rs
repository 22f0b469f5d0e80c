//! Mirrors in this browser of runs of the server, and which tab keeps them.

use capo_api::{RunDetail, RunShown};
use capo_core::study::{Format, Study};
use leptos::prelude::*;

use super::fold::Folded;
use super::phase::Phase;
use super::run::Run;
use crate::storage::lock::{self, NotHeld, RunLock};
use crate::storage::{NotKept, RunRecord, Storage, StorageError};
use crate::studies;
use crate::team::Team;

/// Where what comes is kept, if anywhere. Who keeps nothing leaves it to other tabs.
pub(super) struct Keeping {
    run: Run,
    pub(super) id: String,
    storage: Option<Storage>,
    lock: Option<RunLock>,
}

impl Keeping {
    pub(super) async fn of(run: Run) -> Self {
        let storage = Storage::open().await;
        if let Err(error) = &storage {
            run.refuse(error.to_string());
        }
        Self {
            run,
            id: run.id(),
            storage: storage.ok(),
            lock: None,
        }
    }

    /// Whether this tab keeps what comes: false when another one does.
    pub(super) async fn hold(&mut self) -> bool {
        if self.storage.is_none() {
            return true;
        }
        match lock::hold(&self.id).await {
            Ok(held) => self.lock = Some(held),
            Err(NotHeld::Busy) => return false,
            Err(NotHeld::Refused) => {}
        }
        true
    }

    /// Nothing is kept any more of what is closed meanwhile.
    fn storage(&self) -> Option<Storage> {
        self.storage.clone().filter(|_| !self.run.is_closed())
    }

    fn end(&mut self) {
        self.storage = None;
        self.lock = None;
    }

    fn refused(&mut self, why: &StorageError) {
        self.end();
        if !self.run.is_closed() {
            self.run.refuse(why.to_string());
        }
    }

    /// Shows what is kept, before the server is asked.
    pub(super) async fn read(&mut self) {
        let Some(storage) = self.storage() else { return };
        let (run, read) = (self.run, storage.run(&self.id).await);
        let Ok(Some(record)) = read else { return };
        if run.is_closed() {
            return;
        }
        run.set_study(record, <_>::default());
        let read = run.fold_stored(|read, of| run.phase.set(Phase::Opening(read, of)));
        if read.await.is_err() {
            // The server has all of it.
            self.drop_lines().await;
        } else if run.peek(Folded::lines) > 0 {
            run.stand(false);
            run.show();
        }
    }

    /// Forgets the lines that are known here, which are not those of the server's journal.
    pub(super) async fn drop_lines(&mut self) {
        self.run
            .inner
            .update_value(|inner| inner.folded = Folded::default());
        if let Some(storage) = self.storage()
            && let Err(error) = storage.cut_lines(&self.id, 0).await
        {
            self.refused(&error);
        }
    }

    /// Keeps what the server says of the run, and lets go of lines that are not of its journal.
    pub(super) async fn begin(&mut self, detail: &RunDetail) {
        let run = self.run;
        let known = run.record.with_untracked(|record| {
            let server = record.as_ref()?.server.as_ref()?;
            Some(server.revision)
        });
        let is_other = run.peek(Folded::lines) > detail.run.lines || known != Some(detail.run.revision);
        if run.peek(Folded::lines) > 0 && is_other {
            self.drop_lines().await;
        }
        if run.is_closed() {
            return;
        }
        let study = Study::parse(&detail.study, Format::Toml).ok();
        let about = study.as_ref().map(studies::about).unwrap_or_default();
        let change = |record: &mut RunRecord| {
            record.take_with_revision(&detail.run);
            record.study.clone_from(&detail.study);
            record.about.clone_from(&about);
        };
        let mut record = RunRecord::mirrored(&detail.run);
        change(&mut record);
        run.set_study(record.clone(), <_>::default());
        let Some(storage) = self.storage() else { return };
        let lines = run.peek(Folded::lines);
        let kept = async {
            // Beyond the lines that are known only such can lie that follow a missing one.
            storage.cut_lines(&self.id, lines).await?;
            if storage.change_run(&self.id, change).await?.is_none() && !run.is_closed() {
                storage.put_run(&record).await?;
            }
            match lines.checked_sub(1) {
                Some(last) => storage.slim_line(&self.id, last).await,
                None => Ok(Some(String::new())),
            }
        };
        match kept.await {
            Ok(last) if run.peek(|folded| last.as_deref() == Some(folded.last())) => run.refused.set(None),
            // What lies between was not kept, and nothing is that would follow it.
            Ok(_) => self.end(),
            Err(error) => self.refused(&error),
        }
    }

    /// Keeps lines that came, from this number on.
    pub(super) async fn lines(&mut self, first: u64, whole: &[String], slim: &[String]) {
        let Some(storage) = self.storage() else { return };
        match storage.add_lines(&self.id, first, whole, slim).await {
            Ok(()) => {}
            Err(NotKept::Refused(error)) => self.refused(&error),
            // Without locks another tab may keep the same lines.
            Err(NotKept::Taken) => self.end(),
        }
    }

    /// Keeps another first line.
    pub(super) async fn first_line(&mut self, line: &str) {
        if let Some(storage) = self.storage()
            && let Err(error) = storage.replace_first_line(&self.id, line).await
        {
            self.refused(&error);
        }
    }

    /// Keeps where the run stands.
    pub(super) async fn shown(&mut self, shown: &RunShown, team: Team) {
        let Some(storage) = self.storage() else { return };
        let kept = storage.change_run(&self.id, |record| record.take_with_revision(shown));
        match kept.await {
            Ok(Some(_)) => {}
            // Deleted in another tab, perhaps because somebody signed out there.
            Ok(None) => {
                self.end();
                team.find_out();
            }
            Err(error) => self.refused(&error),
        }
    }
}

/// Deletes what is kept here of a run that the server does not have any more.
pub(super) async fn forget_mirror(id: &str) {
    if let Ok(storage) = Storage::open().await {
        // One that stays is deleted when it is opened next.
        let _ = storage.delete_run(id).await;
    }
}
