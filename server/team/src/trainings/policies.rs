//! Learned policies on this machine: in their folders, or brought from where checkpoints are kept.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio::sync::Mutex;
use tokio::task::spawn_blocking;
use tokio::time::sleep;

use super::{Stopped, Trainings, archive_name, objects};
use crate::files::{Files, FilesError};
use crate::store::{KeptCheckpoint, Store};

/// Where archives are unpacked, each under its SHA-256, below the folder of trainings. They stay as they are.
const BROUGHT: &str = "rewriters";

/// How long one stays that is kept nowhere else any more.
const STAYS: Duration = Duration::from_hours(24);

/// How often it is asked whether what waits for an archive is to end.
const LOOK: Duration = Duration::from_millis(500);

/// One archive is brought at a time, so that those who need the same wait for it.
static BRINGING: Mutex<()> = Mutex::const_new(());

/// The policies that trainings came to, as this machine has them.
#[derive(Debug, Clone)]
pub struct Policies {
    trainings: Trainings,
    store: Store,
    files: Option<Files>,
}

impl Policies {
    /// Of the trainings that a database knows, whose checkpoints are kept in a place.
    pub fn new(trainings: Trainings, store: Store, files: Option<Files>) -> Self {
        Self {
            trainings,
            store,
            files,
        }
    }

    /// The folder of the policy that a training had come to by a step, or that counts.
    ///
    /// # Errors
    /// In words for members, why it is not here.
    pub async fn policy(&self, training: &str, step: Option<u64>) -> Result<PathBuf, String> {
        let mut kept = self.store.checkpoints(training).await.map_err(|error| {
            tracing::error!(training, %error, "what is kept of a training could not be read");
            "the database does not answer".to_owned()
        })?;
        kept.retain(|one| step.is_none_or(|step| one.shown.step == step));
        let counts = kept.iter().find(|one| one.shown.counts).or(kept.last());
        let Some(step) = counts.map(|one| one.shown.step).or(step) else {
            let folder = self.trainings.folder_of(training);
            let found = folder.is_dir().then_some(folder);
            return found.ok_or_else(|| "the folder of the training is not on this machine".to_owned());
        };
        match (self.trainings.policy(training, step).await, counts) {
            (Ok(policy), _) => Ok(policy),
            (Err(_), Some(kept)) => self.brought(training, kept).await,
            (Err(error), None) => {
                tracing::warn!(training, step, error, "a checkpoint is not here");
                Err(format!("the checkpoint of step {step} is not on this machine"))
            }
        }
    }

    /// The same for trainings whose policy counts, each by its id, until that is `stopped`.
    pub(crate) async fn of_all(
        self,
        trainings: Vec<String>,
        stopped: Stopped,
    ) -> BTreeMap<String, Result<PathBuf, String>> {
        let mut found = BTreeMap::new();
        for training in trainings {
            let stopping = async {
                while !stopped() {
                    sleep(LOOK).await;
                }
            };
            let policy = tokio::select! {
                policy = self.policy(&training, None) => policy,
                () = stopping => Err("it was stopped".to_owned()),
            };
            found.insert(training, policy);
        }
        found
    }

    async fn brought(&self, training: &str, kept: &KeptCheckpoint) -> Result<PathBuf, String> {
        let place = self.trainings.folder.join(BROUGHT);
        let folder = place.join(&kept.sha256);
        let policy = folder.join(archive_name(training, kept.shown.step));
        if policy.is_dir() {
            return Ok(policy);
        }
        let _alone = BRINGING.lock().await;
        // Another one may have brought it meanwhile.
        if policy.is_dir() {
            return Ok(policy);
        }
        let brought = match &self.files {
            Some(files) => objects::bring(files, kept, &folder).await,
            None => Err(FilesError::Nowhere),
        };
        if let Err(error) = brought {
            tracing::error!(training, %error, "a checkpoint could not be brought");
            return Err(
                "the place where checkpoints are kept does not hand this one out; the server's log says why"
                    .to_owned(),
            );
        }
        self.clear(place).await;
        Ok(policy)
    }

    /// Removes what was brought of checkpoints that are kept no more.
    async fn clear(&self, place: PathBuf) {
        let kept = match self.store.archives().await {
            Ok(kept) => kept,
            Err(error) => {
                tracing::warn!(%error, "archives that are kept no more stay unpacked");
                return;
            }
        };
        let cleared = spawn_blocking(move || {
            for entry in place.read_dir()?.flatten() {
                let name = entry.file_name();
                if kept.iter().all(|sha256| name != sha256.as_str()) && is_old(&entry.path()) {
                    std::fs::remove_dir_all(entry.path())?;
                }
            }
            Ok::<_, std::io::Error>(())
        });
        if let Ok(Err(error)) = cleared.await {
            tracing::warn!(%error, "archives that are kept no more stay unpacked");
        }
    }
}

fn is_old(path: &Path) -> bool {
    let modified = path.metadata().and_then(|metadata| metadata.modified());
    modified.is_ok_and(|at| at.elapsed().is_ok_and(|age| age > STAYS))
}
