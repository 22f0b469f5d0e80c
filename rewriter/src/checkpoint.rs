//! A training kept on disk, so that it goes on after a crash as if there had been none.
//!
//! A folder of checkpoints holds one folder a checkpoint, `step-00000120`, and a lock file. A
//! checkpoint is written into a temporary folder beside the others, synchronised to disk and renamed:
//! whenever the process is killed, a checkpoint is there whole or not at all. What is saved is up to
//! the caller ([`Contents`]); this module adds `checkpoint.json`, which says what training it belongs
//! to, how far that got, and which files there are.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::ErrorKind;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::config::read_json;
use crate::error::FileError;
use crate::store::write_json;

mod contents;
mod manifest;

pub use contents::Contents;
pub use manifest::{Identity, Progress, RandomState};

use contents::{sync_folder, sync_tree};
pub(crate) use manifest::MANIFEST;
use manifest::Manifest;

/// What the names of checkpoints begin with; the step follows, in at least eight digits.
const STEP: &str = "step-";
/// What the names of temporary folders begin with.
const TEMPORARY: &str = ".capo-tmp-";
const LOCK: &str = ".lock";
/// Says which training a folder of checkpoints belongs to.
const IDENTITY: &str = "training.json";

/// Why a checkpoint cannot be written or read.
#[derive(Debug, thiserror::Error)]
pub enum CheckpointError {
    /// A file cannot be read or written.
    #[error(transparent)]
    File(#[from] FileError),
    /// Another process writes checkpoints here.
    #[error("{}: another training writes its checkpoints here; wait for it or choose another folder", .0.display())]
    Locked(PathBuf),
    /// A folder that is no checkpoint.
    #[error("{} is no checkpoint of Capo: move it away or choose another folder for the checkpoints", .0.display())]
    Foreign(PathBuf),
    /// A checkpoint is not whole.
    #[error("{} is damaged: {reason}; remove it to go on from the checkpoint before", .folder.display())]
    Damaged {
        /// The checkpoint.
        folder: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// A training that has not got to its first checkpoint.
    #[error("{} holds no checkpoint yet: let the training go on until it has written one", .0.display())]
    None(PathBuf),
    /// There is a checkpoint of this step already.
    #[error("{} is there already: resume from the latest checkpoint or choose another folder", .0.display())]
    Exists(PathBuf),
    /// The checkpoint belongs to another training.
    #[error(
        "{} belongs to another training (there → here): {}; choose another folder, or undo the change",
        .folder.display(), shortened(.differences)
    )]
    OtherTraining {
        /// The checkpoint.
        folder: PathBuf,
        /// `field: there → here`, the first few.
        differences: Vec<String>,
    },
    /// What is to be saved has an impossible name, or a merit that is no number.
    #[error("a checkpoint cannot hold {0}")]
    Content(String),
}

/// Differences that a message names.
const NAMED: usize = 3;

/// The first differences, and how many there are more.
fn shortened(differences: &[String]) -> String {
    let named = differences
        .iter()
        .take(NAMED)
        .cloned()
        .collect::<Vec<_>>()
        .join("; ");
    match differences.len().saturating_sub(NAMED) {
        0 => named,
        more => format!("{named}; and {more} more"),
    }
}

/// How many checkpoints are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Retention {
    /// The latest so many.
    pub last: NonZeroUsize,
    /// The best one too, by [`Progress::merit`].
    pub best: bool,
}

impl Default for Retention {
    fn default() -> Self {
        Self {
            last: NonZeroUsize::MIN.saturating_add(1),
            best: true,
        }
    }
}

impl Retention {
    /// Which of the checkpoints, in order of their steps, are to go.
    fn superfluous(self, checkpoints: Vec<Checkpoint>) -> impl Iterator<Item = Checkpoint> {
        let first_kept = checkpoints.len().saturating_sub(self.last.get());
        let best = self
            .best
            .then(|| best(&checkpoints).map(Checkpoint::step))
            .flatten();
        checkpoints
            .into_iter()
            .take(first_kept)
            .filter(move |checkpoint| Some(checkpoint.step()) != best)
    }
}

/// One checkpoint.
#[derive(Debug, Clone, PartialEq)]
pub struct Checkpoint {
    folder: PathBuf,
    manifest: Manifest,
}

impl Checkpoint {
    /// Reads what a checkpoint's folder says of itself and checks that its files are there, each of
    /// its size.
    ///
    /// # Errors
    ///
    /// [`CheckpointError::Damaged`] names what is missing or has another size.
    pub fn open(folder: &Path) -> Result<Self, CheckpointError> {
        let damaged = |reason: String| CheckpointError::Damaged {
            folder: folder.to_owned(),
            reason,
        };
        let manifest = Manifest::read(folder).map_err(damaged)?;
        if step_of(folder) != Some(manifest.progress.step) {
            return Err(damaged(format!(
                "it is of step {}, which its name denies",
                manifest.progress.step
            )));
        }
        Ok(Self {
            folder: folder.to_owned(),
            manifest,
        })
    }

    /// Where it lies.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Steps made before it was written.
    pub fn step(&self) -> u64 {
        self.manifest.progress.step
    }

    /// How far the training got.
    pub fn progress(&self) -> &Progress {
        &self.manifest.progress
    }

    /// Which training it belongs to.
    pub fn identity(&self) -> &Identity {
        &self.manifest.identity
    }

    /// Where the file or folder lies that was saved under a name.
    ///
    /// # Errors
    ///
    /// [`CheckpointError::Damaged`] when nothing was saved under it.
    pub fn path(&self, name: &str) -> Result<PathBuf, CheckpointError> {
        if self.manifest.has(name) {
            return Ok(self.folder.join(name));
        }
        Err(CheckpointError::Damaged {
            folder: self.folder.clone(),
            reason: format!("it has no `{name}`"),
        })
    }

    fn check_identity(&self, identity: &Identity) -> Result<(), CheckpointError> {
        check_same(&self.folder, self.identity(), identity)
    }
}

/// The checkpoints of a folder by step. Temporary folders that a killed process left are passed over.
///
/// # Errors
///
/// The folder does not read, holds a folder that is no checkpoint, or a damaged checkpoint.
pub fn list(folder: &Path) -> Result<Vec<Checkpoint>, CheckpointError> {
    let mut checkpoints = Vec::new();
    for path in folders_in(folder)? {
        if is_temporary(&path) {
            continue;
        }
        if step_of(&path).is_none() {
            return Err(CheckpointError::Foreign(path));
        }
        match Checkpoint::open(&path) {
            Ok(checkpoint) => checkpoints.push(checkpoint),
            // The training that writes here removed it in the meantime.
            Err(_) if !path.exists() => {}
            Err(why) => return Err(why),
        }
    }
    checkpoints.sort_by_key(Checkpoint::step);
    Ok(checkpoints)
}

/// The latest checkpoint of a folder, if there is one.
///
/// # Errors
///
/// As [`list`].
pub fn latest(folder: &Path) -> Result<Option<Checkpoint>, CheckpointError> {
    Ok(list(folder)?.pop())
}

/// The checkpoint of the highest merit, the earliest of equals; none when none has a merit.
pub fn best(checkpoints: &[Checkpoint]) -> Option<&Checkpoint> {
    let merit = |checkpoint: &Checkpoint| checkpoint.progress().merit.unwrap_or(f64::NEG_INFINITY);
    checkpoints
        .iter()
        .filter(|checkpoint| checkpoint.progress().merit.is_some())
        .rev()
        .max_by(|one, other| merit(one).total_cmp(&merit(other)))
}

/// The checkpoints of a training under way, which nobody else writes.
#[derive(Debug)]
pub struct Checkpoints {
    folder: PathBuf,
    identity: Identity,
    retention: Retention,
    /// Held as long as this lives.
    _lock: File,
}

impl Checkpoints {
    /// Opens a training's folder, which is made if it is not there, locks it, and removes what a
    /// killed process left half done.
    ///
    /// # Errors
    ///
    /// Another process has it open, it cannot be written, or what is in it is not this training's:
    /// [`CheckpointError::OtherTraining`] names the differences field by field.
    pub fn open(folder: &Path, identity: Identity, retention: Retention) -> Result<Self, CheckpointError> {
        fs::create_dir_all(folder).map_err(FileError::io(folder))?;
        let lock = lock(folder)?;
        let checkpoints = list(folder)?;
        checkpoints
            .iter()
            .try_for_each(|checkpoint| checkpoint.check_identity(&identity))?;
        let path = folder.join(IDENTITY);
        if path.exists() {
            let written = serde_json::from_value(read_json(&path)?);
            let written: Identity = written.map_err(|why| FileError::content(&path, why))?;
            check_same(folder, &written, &identity)?;
        }
        for path in folders_in(folder)?.iter().filter(|path| is_temporary(path)) {
            fs::remove_dir_all(path).map_err(FileError::io(path))?;
        }
        Ok(Self {
            folder: folder.to_owned(),
            identity,
            retention,
            _lock: lock,
        })
    }

    /// Writes down which training the folder belongs to, for one that keeps something before its first checkpoint.
    ///
    /// # Errors
    ///
    /// It cannot be written.
    pub fn hold(&self) -> Result<(), FileError> {
        write_json(&self.folder.join(IDENTITY), &self.identity)
    }

    /// Where they lie.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The checkpoint to go on from, if there is one.
    ///
    /// # Errors
    ///
    /// As [`list`].
    pub fn latest(&self) -> Result<Option<Checkpoint>, CheckpointError> {
        latest(&self.folder)
    }

    /// The best checkpoint, if any has a merit.
    ///
    /// # Errors
    ///
    /// As [`list`].
    pub fn best(&self) -> Result<Option<Checkpoint>, CheckpointError> {
        Ok(best(&list(&self.folder)?).cloned())
    }

    /// Writes a checkpoint, then removes those that need not be kept. It is on disk when this
    /// returns.
    ///
    /// # Errors
    ///
    /// A checkpoint of this step is there, or something cannot be written or removed. Whatever failed,
    /// the checkpoints that are there are whole.
    pub fn save(&self, progress: Progress, contents: Contents<'_>) -> Result<Checkpoint, CheckpointError> {
        if progress.merit.is_some_and(|merit| !merit.is_finite()) {
            return Err(CheckpointError::Content(
                "a merit that is no finite number".into(),
            ));
        }
        let name = format!("{STEP}{:08}", progress.step);
        let target = self.folder.join(&name);
        if target.exists() {
            return Err(CheckpointError::Exists(target));
        }
        let temporary = self.folder.join(format!("{TEMPORARY}{name}"));
        let written = self.write(&temporary, progress, contents).and_then(|manifest| {
            fs::rename(&temporary, &target).map_err(FileError::io(&target))?;
            sync_folder(&self.folder)?;
            Ok(manifest)
        });
        let manifest = written.inspect_err(|_| {
            // What cannot be removed now is passed over by readers and removed by the next training.
            let _ = fs::remove_dir_all(&temporary);
        })?;
        self.prune()?;
        Ok(Checkpoint {
            folder: target,
            manifest,
        })
    }

    fn write(
        &self,
        temporary: &Path,
        progress: Progress,
        contents: Contents<'_>,
    ) -> Result<Manifest, CheckpointError> {
        contents.check_names()?;
        fs::create_dir(temporary).map_err(FileError::io(temporary))?;
        contents.write(temporary)?;
        let manifest = Manifest::new(self.identity.clone(), progress, sync_tree(temporary)?);
        let path = temporary.join(MANIFEST);
        write_json(&path, &manifest)?;
        File::open(&path)
            .and_then(|file| file.sync_all())
            .map_err(FileError::io(&path))?;
        sync_folder(temporary)?;
        Ok(manifest)
    }

    fn prune(&self) -> Result<(), CheckpointError> {
        for checkpoint in self.retention.superfluous(list(&self.folder)?) {
            // Renamed first: a folder that is half removed must not look like a checkpoint.
            let temporary = self
                .folder
                .join(format!("{TEMPORARY}old-{STEP}{:08}", checkpoint.step()));
            fs::rename(checkpoint.folder(), &temporary).map_err(FileError::io(checkpoint.folder()))?;
            fs::remove_dir_all(&temporary).map_err(FileError::io(&temporary))?;
        }
        Ok(())
    }
}

fn check_same(folder: &Path, there: &Identity, here: &Identity) -> Result<(), CheckpointError> {
    let differences = there.differences(here);
    if differences.is_empty() {
        return Ok(());
    }
    Err(CheckpointError::OtherTraining {
        folder: folder.to_owned(),
        differences,
    })
}

fn lock(folder: &Path) -> Result<File, CheckpointError> {
    let path = folder.join(LOCK);
    let file = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(false)
        .open(&path)
        .map_err(FileError::io(&path))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(CheckpointError::Locked(folder.to_owned())),
        Err(TryLockError::Error(why)) => Err(FileError::io(&path)(why).into()),
    }
}

fn folders_in(folder: &Path) -> Result<Vec<PathBuf>, FileError> {
    let mut folders = Vec::new();
    for entry in fs::read_dir(folder).map_err(FileError::io(folder))? {
        let path = entry.map_err(FileError::io(folder))?.path();
        match fs::metadata(&path) {
            Ok(metadata) if metadata.is_dir() => folders.push(path),
            Ok(_) => {}
            // Removed in the meantime.
            Err(why) if why.kind() == ErrorKind::NotFound => {}
            Err(why) => return Err(FileError::io(&path)(why)),
        }
    }
    Ok(folders)
}

fn name_of(path: &Path) -> &str {
    path.file_name().and_then(|name| name.to_str()).unwrap_or("")
}

fn is_temporary(path: &Path) -> bool {
    name_of(path).starts_with(TEMPORARY)
}

/// The step in a checkpoint's name.
fn step_of(folder: &Path) -> Option<u64> {
    let digits = name_of(folder).strip_prefix(STEP)?;
    let step: u64 = digits.parse().ok()?;
    (format!("{step:08}") == digits).then_some(step)
}

#[cfg(test)]
mod tests;
