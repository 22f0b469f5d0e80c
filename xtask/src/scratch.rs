//! Where a task puts what it needs only for a while.

use std::path::PathBuf;

use anyhow::{Context, Result};

use crate::workspace::Workspace;

/// A directory for one task's journals, removed afterwards. It is below the
/// target directory because `/tmp` may be memory, which makes a journal cheap.
pub(crate) struct Scratch(PathBuf);

impl Scratch {
    /// An empty directory.
    ///
    /// # Errors
    /// It cannot be created.
    pub(crate) fn create(workspace: &Workspace) -> Result<Self> {
        let name = format!("xtask-{}", std::process::id());
        let path = workspace.target.join(name);
        std::fs::create_dir_all(&path).with_context(|| format!("cannot create {}", path.display()))?;
        Ok(Self(path))
    }

    /// The path of a file in it.
    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        if let Err(error) = std::fs::remove_dir_all(&self.0) {
            eprintln!("cannot remove {}: {error}", self.0.display());
        }
    }
}
