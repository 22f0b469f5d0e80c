//! The contents of a checkpoint: what is saved, and how it gets to the disk.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::path::{Component, Path};

use super::CheckpointError;
use super::manifest::MANIFEST;
use crate::error::FileError;

type Write<'a> = Box<dyn FnOnce(&Path) -> Result<(), FileError> + 'a>;

/// What a checkpoint holds: by name, what writes a file or a folder at the path given to it.
#[derive(Default)]
pub struct Contents<'a>(Vec<(String, Write<'a>)>);

impl<'a> Contents<'a> {
    /// Nothing yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a file or folder. `write` is called once, with the path at which nothing is yet.
    pub fn with(
        mut self,
        name: impl Into<String>,
        write: impl FnOnce(&Path) -> Result<(), FileError> + 'a,
    ) -> Self {
        self.0.push((name.into(), Box::new(write)));
        self
    }

    /// # Errors
    ///
    /// A name that is no plain file name, is taken by the manifest, or comes twice.
    pub(super) fn check_names(&self) -> Result<(), CheckpointError> {
        let mut seen = BTreeSet::new();
        for (name, _) in &self.0 {
            let mut components = Path::new(name).components();
            let is_plain =
                matches!(components.next(), Some(Component::Normal(only)) if only == name.as_str());
            if !is_plain || name == MANIFEST || !seen.insert(name) {
                return Err(CheckpointError::Content(format!(
                    "`{name}`: names are different plain file names other than {MANIFEST}"
                )));
            }
        }
        Ok(())
    }

    pub(super) fn write(self, folder: &Path) -> Result<(), CheckpointError> {
        for (name, write) in self.0 {
            let path = folder.join(&name);
            write(&path)?;
            if !path.exists() {
                return Err(CheckpointError::Content(format!(
                    "`{name}`: nothing was written to it"
                )));
            }
        }
        Ok(())
    }
}

impl std::fmt::Debug for Contents<'_> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_list()
            .entries(self.0.iter().map(|(name, _)| name))
            .finish()
    }
}

/// Synchronises everything below a folder to disk, and tells the sizes of its files by path.
pub(super) fn sync_tree(folder: &Path) -> Result<BTreeMap<String, u64>, FileError> {
    let mut files = BTreeMap::new();
    for entry in fs::read_dir(folder).map_err(FileError::io(folder))? {
        let entry = entry.map_err(FileError::io(folder))?;
        let path = entry.path();
        let name = entry
            .file_name()
            .into_string()
            .map_err(|_| FileError::content(&path, "the name is not UTF-8"))?;
        if path.is_dir() {
            let below = sync_tree(&path)?;
            files.extend(
                below
                    .into_iter()
                    .map(|(rest, size)| (format!("{name}/{rest}"), size)),
            );
        } else {
            let file = File::open(&path).map_err(FileError::io(&path))?;
            file.sync_all().map_err(FileError::io(&path))?;
            files.insert(name, file.metadata().map_err(FileError::io(&path))?.len());
        }
    }
    sync_folder(folder)?;
    Ok(files)
}

/// Synchronises the entries of a folder to disk.
pub(super) fn sync_folder(folder: &Path) -> Result<(), FileError> {
    // Other systems neither need this nor allow it.
    if cfg!(unix) {
        File::open(folder)
            .and_then(|folder| folder.sync_all())
            .map_err(FileError::io(folder))?;
    }
    Ok(())
}
