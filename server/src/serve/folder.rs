//! The folder in which a team server keeps what is not in its database: one process at a time works in it.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Read as _, Seek as _, Write as _};
use std::path::{Path, PathBuf};

/// The folder, locked for as long as this lives.
#[derive(Debug)]
pub(crate) struct Folder {
    path: PathBuf,
    lock: File,
}

/// Why a folder cannot be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum FolderError {
    /// The system names none for programs' data.
    #[error("this system names no folder for data; name one with --data DIR")]
    None,
    /// It cannot be made or written.
    #[error("the data folder {}: {source}; name another with --data DIR", path.display())]
    Write { path: PathBuf, source: io::Error },
    /// Another process works in it.
    #[error("the data folder {} is in use by {holder}; stop that one, or name another folder with --data DIR", path.display())]
    Locked {
        path: PathBuf,
        /// Process and address of the other one.
        holder: String,
    },
}

impl Folder {
    /// Makes the folder unless it is there, for this account alone, and locks it. Without a path it is `capo` in the
    /// platform's folder for data, on Linux `$XDG_DATA_HOME` or `~/.local/share`.
    ///
    /// # Errors
    /// When there is none, it cannot be written, or another process works in it.
    pub(crate) fn open(path: Option<&Path>) -> Result<Self, FolderError> {
        let path = self::path(path)?;
        let refused = |source| FolderError::Write {
            path: path.clone(),
            source,
        };
        let file = path.join("lock");
        let mut lock = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(file)
            .map_err(refused)?;
        match lock.try_lock() {
            Ok(()) => {
                // Whoever had it before is gone.
                lock.set_len(0).map_err(refused)?;
                Ok(Self { path, lock })
            }
            Err(TryLockError::WouldBlock) => {
                let mut holder = String::new();
                let _ = lock.read_to_string(&mut holder);
                let holder = if holder.trim().is_empty() {
                    "another process".to_owned()
                } else {
                    holder.trim().to_owned()
                };
                Err(FolderError::Locked { path, holder })
            }
            Err(TryLockError::Error(source)) => Err(refused(source)),
        }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Notes who works in it, for whoever comes second.
    ///
    /// # Errors
    /// When it cannot be written.
    pub(crate) fn sign(&mut self, address: &str) -> io::Result<()> {
        self.lock.set_len(0)?;
        self.lock.rewind()?;
        write!(
            self.lock,
            "process {}, which serves on {address}",
            std::process::id()
        )?;
        self.lock.flush()
    }
}

/// The folder, made unless it is there: the one that is named, else the platform's.
///
/// # Errors
/// When there is none, or it cannot be made.
pub(crate) fn path(named: Option<&Path>) -> Result<PathBuf, FolderError> {
    let usual = || dirs::data_dir().map(|data| data.join("capo"));
    let path = named
        .map(Path::to_owned)
        .or_else(usual)
        .ok_or(FolderError::None)?;
    match make(&path) {
        Ok(()) => Ok(path),
        Err(source) => Err(FolderError::Write { path, source }),
    }
}

/// Makes a folder unless it is there, for this account alone.
///
/// # Errors
/// When it cannot be made.
#[cfg(unix)]
pub(super) fn make(path: &Path) -> io::Result<()> {
    use std::os::unix::fs::DirBuilderExt as _;
    fs::DirBuilder::new().recursive(true).mode(0o700).create(path)
}

/// Makes a folder unless it is there.
///
/// # Errors
/// When it cannot be made.
#[cfg(not(unix))]
pub(super) fn make(path: &Path) -> io::Result<()> {
    fs::create_dir_all(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_second_is_told_who_was_first() {
        let above = tempfile::tempdir().unwrap();
        let path = above.path().join("data").join("capo");
        let mut first = Folder::open(Some(&path)).unwrap();
        first.sign("127.0.0.1:8787").unwrap();
        let second = Folder::open(Some(&path)).unwrap_err().to_string();
        let holder = format!("process {}, which serves on 127.0.0.1:8787", std::process::id());
        assert!(second.contains(&holder) && second.contains("--data"), "{second}");
        drop(first);
        assert_eq!(Folder::open(Some(&path)).unwrap().path(), path);
    }

    #[cfg(unix)]
    #[test]
    fn it_is_nobody_elses() {
        use std::os::unix::fs::PermissionsExt as _;
        let above = tempfile::tempdir().unwrap();
        let folder = Folder::open(Some(&above.path().join("capo"))).unwrap();
        assert_eq!(
            fs::metadata(folder.path()).unwrap().permissions().mode() & 0o777,
            0o700
        );
        let file = above.path().join("file");
        fs::write(&file, "").unwrap();
        let refused = Folder::open(Some(&file)).unwrap_err();
        assert!(matches!(refused, FolderError::Write { .. }), "{refused}");
    }
}
