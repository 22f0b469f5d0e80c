//! Keeps the checkpoints of a training where data files lie, while the training goes on.

use std::time::Duration;

use capo_api::CheckpointShown;
use tokio::sync::watch;
use tokio::time::sleep;

use super::child::News;
use super::{Trainings, archive_name, objects};
use crate::files::{Files, FilesError};
use crate::http::Server;
use crate::store::{KeptCheckpoint, Lease, NotKept, StoreError, Training};

/// How often checkpoints are looked for, and the longest pause before what could not be kept is tried again.
const LOOK: Duration = Duration::from_secs(if cfg!(test) { 1 } else { 5 });
const MOST_PAUSE: Duration = Duration::from_mins(1);

/// How long the last ones may take once the training's process has ended, and how long once the server ends.
const PATIENCE: Duration = Duration::from_secs(if cfg!(test) { 3 } else { 300 });
const MOMENT: Duration = Duration::from_secs(6);

/// Keeps the checkpoints of a training under a lease.
pub(super) struct Keeper<'a> {
    pub(super) server: &'a Server,
    pub(super) trainings: &'a Trainings,
    pub(super) training: &'a Training,
    pub(super) lease: &'a Lease,
}

impl Keeper<'_> {
    /// Keeps checkpoints until `over` says that there come no more, and returns whether all are kept.
    pub(super) async fn keep(&self, over: watch::Receiver<bool>, news: watch::Receiver<News>) -> bool {
        let Ok(files) = self.server.files() else {
            return true;
        };
        let (mut is_over, mut told) = (over.clone(), news.clone());
        let patience = async {
            let _ = is_over.wait_for(|is_over| *is_over).await;
            sleep(PATIENCE).await;
        };
        let ending = async {
            let _ = told.wait_for(|news| news.ending || news.lost).await;
            sleep(MOMENT).await;
        };
        tokio::select! {
            are_kept = self.keep_trying(files, over, news) => are_kept,
            () = patience => false,
            () = ending => false,
        }
    }

    async fn keep_trying(
        &self,
        files: &Files,
        mut over: watch::Receiver<bool>,
        mut news: watch::Receiver<News>,
    ) -> bool {
        let mut pause = LOOK;
        loop {
            let is_over = *over.borrow();
            match self.look(files).await {
                Ok(()) if is_over => return true,
                Ok(()) => pause = LOOK,
                // Whoever looks after the training hears so, too.
                Err(NotKept::Lost) => return false,
                Err(NotKept::Store(error)) => {
                    tracing::warn!(training = self.training.id, %error, "a checkpoint could not be kept");
                    pause = MOST_PAUSE.min(pause * 2);
                    let is_stopped = news.borrow().stopped;
                    if is_over && is_stopped {
                        return false;
                    }
                }
            }
            tokio::select! {
                () = sleep(pause) => {}
                _ = over.wait_for(|is_over| *is_over), if !is_over => {}
                _ = news.wait_for(|news| news.stopped), if is_over => {}
            }
        }
    }

    /// Keeps the checkpoints that there are, and lets go of those that there are no more.
    async fn look(&self, files: &Files) -> Result<(), NotKept> {
        let there = self.there().await?;
        let kept = self.server.store().checkpoints(&self.training.id).await?;
        // A folder that is gone or empty says nothing of what was kept: a training removes no last checkpoint.
        if there.is_empty() || kept.iter().map(|one| &one.shown).eq(&there) {
            return Ok(());
        }
        for shown in &there {
            if kept.iter().any(|one| one.shown.step == shown.step) {
                continue;
            }
            match self.write(files, shown).await {
                Ok(written) => self.note(Some(&written), &there).await?,
                Err(error) => {
                    // Unless the training has removed it meanwhile.
                    if self.there().await?.iter().any(|one| one.step == shown.step) {
                        return Err(error.into());
                    }
                }
            }
        }
        self.note(None, &there).await
    }

    async fn there(&self) -> Result<Vec<CheckpointShown>, StoreError> {
        let there = self.trainings.checkpoints(&self.training.id).await;
        there.map_err(StoreError::Unreadable)
    }

    async fn note(&self, new: Option<&KeptCheckpoint>, there: &[CheckpointShown]) -> Result<(), NotKept> {
        let (store, now) = (self.server.store(), self.server.now());
        store.keep_checkpoints(self.lease, new, there, now).await
    }

    /// Writes a checkpoint as an object, the same one in each try.
    async fn write(&self, files: &Files, shown: &CheckpointShown) -> Result<KeptCheckpoint, StoreError> {
        let (id, step) = (&self.training.id, shown.step);
        let policy = self.trainings.policy(id, step).await;
        let policy = policy.map_err(StoreError::Unreadable)?;
        let (store, now) = (self.server.store(), self.server.now());
        let object = store
            .begin_checkpoint(self.lease, self.training, step, now)
            .await?;
        let writer = files.writer(&object, shown.bytes);
        let written = objects::write(writer, archive_name(id, step), policy).await;
        Ok(KeptCheckpoint {
            shown: shown.clone(),
            sha256: written.map_err(FilesError::from)?,
            object,
        })
    }
}
