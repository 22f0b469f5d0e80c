//! Keeps what a training comes to where other machines find it, while it goes on.

use std::path::PathBuf;
use std::time::Duration;

use capo_api::CheckpointShown;
use tokio::sync::watch;
use tokio::time::{Instant, sleep, timeout};

use super::child::News;
use super::folder::TRAINING_LOG;
use super::input::INPUT;
use super::shelf::note;
use super::{Trainings, objects};
use crate::files::{Files, FilesError};
use crate::http::Server;
use crate::store::{KeptCheckpoint, Lease, NotKept, StoreError, Training};

/// How often checkpoints are looked for, and what could not be kept is tried again.
const LOOK: Duration = Duration::from_secs(if cfg!(test) { 1 } else { 5 });

/// How long that is tried once the process has ended, and how long once the server ends.
pub(super) const PATIENCE: Duration = Duration::from_mins(10);
const MOMENT: Duration = Duration::from_secs(6);

/// How far what a training came to is kept.
pub(super) enum Kept {
    All,
    /// The server ends, or another process has the training.
    Partly,
    /// Its place did not take it, for this reason.
    Refused(String),
}

/// Keeps the checkpoints of a training under a lease.
pub(super) struct Keeper<'a> {
    pub(super) server: &'a Server,
    pub(super) trainings: &'a Trainings,
    pub(super) training: &'a Training,
    pub(super) lease: &'a Lease,
}

impl Keeper<'_> {
    /// Keeps checkpoints until the log, which counts its `copies`, is no more and all are kept.
    pub(super) async fn keep(&self, copies: watch::Receiver<u64>, mut news: watch::Receiver<News>) -> Kept {
        let Ok(files) = self.server.files() else {
            return Kept::All;
        };
        let ended = async {
            let told = news.wait_for(|news| news.ending || news.lost);
            let ends = told.await.is_ok_and(|told| !told.lost);
            if ends {
                sleep(MOMENT).await;
            }
        };
        tokio::select! {
            kept = self.keep_trying(files, copies) => kept,
            () = ended => Kept::Partly,
        }
    }

    async fn keep_trying(&self, files: &Files, mut copies: watch::Receiver<u64>) -> Kept {
        let (mut is_behind, mut over_since) = (false, None);
        loop {
            let is_over = copies.has_changed().is_err();
            match self.look(files, &mut copies).await {
                Ok(()) => {
                    if std::mem::take(&mut is_behind) {
                        tracing::info!(training = self.training.id, "its checkpoints are kept again");
                    }
                    if is_over {
                        return Kept::All;
                    }
                }
                // Whoever looks after the training hears so, too.
                Err(NotKept::Lost) => std::future::pending().await,
                Err(NotKept::Store(error)) => {
                    if !std::mem::replace(&mut is_behind, true) {
                        tracing::warn!(
                            training = self.training.id, %error,
                            "a checkpoint could not be kept; the training goes on, and it is tried again"
                        );
                    }
                    if is_over && over_since.get_or_insert_with(Instant::now).elapsed() > PATIENCE {
                        return Kept::Refused(error.to_string());
                    }
                }
            }
            if is_over {
                sleep(LOOK).await;
            } else {
                let until_over = async { while copies.changed().await.is_ok() {} };
                // Either way it looks again.
                let _ = timeout(LOOK, until_over).await;
            }
        }
    }

    /// Keeps the checkpoints that there are, and lets go of those that there are no more.
    async fn look(&self, files: &Files, copies: &mut watch::Receiver<u64>) -> Result<(), NotKept> {
        let folder = self.trainings.folder_of(&self.training.id);
        let there = self.trainings.checkpoints(&self.training.id).await;
        let there = there.map_err(StoreError::Unreadable)?;
        let kept = self.server.store().checkpoints(&self.training.id).await?;
        if kept.iter().all(|one| one.shown.is_some()) {
            let input = vec![(PathBuf::from(INPUT), folder.join(INPUT))];
            let input = self.write(files, None, input).await?;
            self.note(Some(&input), &there).await?;
        }
        let shown = || kept.iter().filter_map(|one| one.shown.as_ref());
        if shown().eq(&there) {
            return Ok(());
        }
        // What was told up to them is in the database then: a copy has begun and ended since.
        copies.mark_unchanged();
        for _ in 0..2 {
            if copies.changed().await.is_err() {
                break;
            }
        }
        let is_new = |one: &&CheckpointShown| shown().all(|kept| kept.step != one.step);
        let new: Vec<_> = there.iter().filter(is_new).collect();
        for one in new {
            let policy = self.trainings.trainer.policy(&folder, one.step);
            let Some(checkpoint) = policy.ok().and_then(|policy| policy.parent().map(PathBuf::from)) else {
                continue;
            };
            let name = checkpoint.strip_prefix(&folder).unwrap_or(checkpoint.as_path());
            let mut members = vec![(name.to_owned(), checkpoint.clone())];
            let log = folder.join(TRAINING_LOG);
            if log.exists() {
                members.push((PathBuf::from(TRAINING_LOG), log));
            }
            match self.write(files, Some(one.clone()), members).await {
                // The training has removed it meanwhile.
                Err(_) if !checkpoint.is_dir() => {}
                written => self.note(Some(&written?), &there).await?,
            }
        }
        self.note(None, &there).await
    }

    async fn note(&self, new: Option<&KeptCheckpoint>, there: &[CheckpointShown]) -> Result<(), NotKept> {
        let (store, now) = (self.server.store(), self.server.now());
        store.keep_checkpoints(self.lease, new, there, now).await
    }

    async fn write(
        &self,
        files: &Files,
        shown: Option<CheckpointShown>,
        members: Vec<(PathBuf, PathBuf)>,
    ) -> Result<KeptCheckpoint, NotKept> {
        let (store, now) = (self.server.store(), self.server.now());
        let object = store.begin_checkpoint(self.training, now).await?;
        let written = objects::write(files.writer(&object), members).await;
        let noted = written.and_then(|sha256| {
            note(&self.trainings.folder_of(&self.training.id), &object)?;
            Ok(sha256)
        });
        Ok(KeptCheckpoint {
            shown,
            sha256: noted.map_err(|error| StoreError::from(FilesError::from(error)))?,
            object,
        })
    }
}
