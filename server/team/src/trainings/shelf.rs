//! The folders of trainings on this machine, each brought from where its checkpoints are kept when another one has gone on with it.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use tokio::runtime::Handle;

use super::folder::{SEARCH_LOG, failed, lock};
use super::objects::unpack;
use super::{LOCK, Trainings};
use crate::files::{Files, FilesError};
use crate::store::{KeptCheckpoint, Store};

/// Names the objects that a folder came from or became, one a line.
const OBJECTS: &str = "objects";

/// How long another process may work in a folder that is to be brought, and how often that is looked at.
const PATIENCE: Duration = Duration::from_mins(1);
const LOOK: Duration = Duration::from_millis(500);

/// Where trainings lie on this machine, and where they come from.
#[derive(Debug, Clone)]
pub struct Shelf {
    pub(super) trainings: Trainings,
    store: Store,
    files: Option<Files>,
}

impl Shelf {
    /// Of the trainings that a database knows, whose checkpoints are kept in a place.
    pub fn new(trainings: Trainings, store: Store, files: Option<Files>) -> Self {
        Self {
            trainings,
            store,
            files,
        }
    }

    /// The folder of a training, with the checkpoints that are kept of it.
    ///
    /// # Errors
    /// In words, that it is missing, or why it cannot be brought.
    pub async fn folder(&self, training: &str) -> Result<PathBuf, String> {
        let folder = self.brought(training).await?;
        if folder.is_dir() {
            return Ok(folder);
        }
        Err(format!(
            "the folder of the training is not on this machine: {} is missing",
            folder.display()
        ))
    }

    /// The same for a thread that may wait, on the runtime of a handle.
    ///
    /// # Errors
    /// As [`Shelf::folder`].
    pub fn wait(&self, handle: &Handle, training: &str) -> Result<PathBuf, String> {
        let (shelf, training) = (self.clone(), training.to_owned());
        let (tell, told) = mpsc::channel();
        handle.spawn(async move {
            // Who waits waits for nothing else.
            let _ = tell.send(shelf.folder(&training).await);
        });
        told.recv().map_err(|_| "the server is ending".to_owned())?
    }

    /// The same where the folder may be missing, since nothing is kept of the training yet.
    pub(super) async fn brought(&self, training: &str) -> Result<PathBuf, String> {
        let folder = self.trainings.folder_of(training);
        if is_whole(&folder, &self.kept(training).await?) {
            return Ok(folder);
        }
        fs::create_dir_all(&folder).map_err(|error| failed(&folder, &error))?;
        let _held = alone(&folder).await?;
        let kept = self.kept(training).await?;
        if is_whole(&folder, &kept) {
            return Ok(folder);
        }
        // What a process came to that was taken for dead, before another one went on elsewhere.
        clear(&folder).map_err(|error| failed(&folder, &error))?;
        let files = self.files.as_ref().ok_or(FilesError::Nowhere);
        let files = files.map_err(|error| error.to_string())?;
        for one in &kept {
            let unpacked = unpack(files, one, &folder).await;
            unpacked.map_err(|error| error.to_string())?;
        }
        let known = self.store.training(training).await;
        if let Some(run) = known.map_err(|error| error.to_string())?.run {
            let path = folder.join(SEARCH_LOG);
            let text = self
                .store
                .journal(&run)
                .await
                .map_err(|error| error.to_string())?;
            fs::write(&path, text).map_err(|error| failed(&path, &error))?;
        }
        for one in &kept {
            note(&folder, &one.object).map_err(|error| failed(&folder, &error))?;
        }
        Ok(folder)
    }

    async fn kept(&self, training: &str) -> Result<Vec<KeptCheckpoint>, String> {
        let kept = self.store.checkpoints(training).await;
        kept.map_err(|error| error.to_string())
    }
}

/// Whether a folder has all that is kept of its training.
fn is_whole(folder: &Path, kept: &[KeptCheckpoint]) -> bool {
    // One that does not read has nothing.
    let has = fs::read_to_string(folder.join(OBJECTS)).unwrap_or_default();
    kept.iter()
        .all(|one| has.lines().any(|object| object == one.object))
}

/// Notes that a folder has what an object holds.
pub(super) fn note(folder: &Path, object: &str) -> io::Result<()> {
    let objects = File::options()
        .create(true)
        .append(true)
        .open(folder.join(OBJECTS));
    writeln!(objects?, "{object}")
}

/// Waits until no process works in a folder, and keeps others out.
async fn alone(folder: &Path) -> Result<File, String> {
    let began = Instant::now();
    loop {
        if let Some(held) = lock(folder)? {
            return Ok(held);
        }
        if began.elapsed() > PATIENCE {
            return Err(format!("another process still works in {}", folder.display()));
        }
        tokio::time::sleep(LOOK).await;
    }
}

/// Removes all that is in a folder but its lock; first what says that anything is there.
fn clear(folder: &Path) -> io::Result<()> {
    match fs::remove_file(folder.join(OBJECTS)) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    for entry in folder.read_dir()? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            fs::remove_dir_all(entry.path())?;
        } else if entry.file_name() != LOCK {
            fs::remove_file(entry.path())?;
        }
    }
    Ok(())
}
