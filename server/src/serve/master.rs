//! The file with the key by which providers' keys are encrypted.

use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use capo_team::seal::{MasterKey, SealError};
use tempfile::NamedTempFile;

/// Its name in the data folder.
const NAME: &str = "master.key";

/// What a rotation leaves beside it until it is done.
const NEXT: &str = "next";

/// Where a master key is kept: in the file that is named, else in the data folder.
#[derive(Debug, Clone)]
pub(crate) struct MasterFile(PathBuf);

/// Why there is no master key.
#[derive(Debug, thiserror::Error)]
pub(crate) enum MasterError {
    /// Its file cannot be read or written.
    #[error("the master key {}: {source}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// It holds something else.
    #[error("the master key {}: {source}", path.display())]
    Key {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        source: SealError,
    },
}

impl MasterFile {
    /// The file that is named, or the one in the data folder.
    pub(crate) fn new(named: Option<&Path>, folder: &Path) -> Self {
        Self(named.map_or_else(|| folder.join(NAME), Path::to_owned))
    }

    /// The file.
    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    /// The key; `None` when there is no file.
    ///
    /// # Errors
    /// When the file cannot be read, or holds something else.
    pub(crate) fn read(&self) -> Result<Option<MasterKey>, MasterError> {
        read(&self.0)
    }

    /// Writes a first key, for this account alone.
    ///
    /// # Errors
    /// When there is a file already, or it cannot be written.
    pub(crate) fn create(&self) -> Result<MasterKey, MasterError> {
        let key = MasterKey::new();
        write(&self.0, &key, false)?;
        Ok(key)
    }

    /// Writes a key that was kept elsewhere, for this account alone.
    ///
    /// # Errors
    /// When there is a file already, or it cannot be written.
    pub(crate) fn keep(&self, key: &MasterKey) -> Result<(), MasterError> {
        write(&self.0, key, false)
    }

    /// Writes the key that is to follow beside the present one; [`MasterFile::replace`] puts it in its place. A rotation
    /// that was broken off is taken up again with the same.
    ///
    /// # Errors
    /// When it cannot be read or written.
    pub(crate) fn prepare(&self) -> Result<MasterKey, MasterError> {
        let next = self.next();
        if let Ok(Some(key)) = read(&next) {
            return Ok(key);
        }
        let key = MasterKey::new();
        write(&next, &key, true)?;
        Ok(key)
    }

    /// Puts the key that was prepared in place of the present one.
    ///
    /// # Errors
    /// When it cannot be moved.
    pub(crate) fn replace(&self) -> Result<(), MasterError> {
        let renamed = fs::rename(self.next(), &self.0);
        let renamed = renamed.and_then(|()| sync(self.0.parent().unwrap_or(Path::new("."))));
        renamed.map_err(|source| of_file(&self.0, source))
    }

    /// The key that a rotation had prepared when it was broken off, if there is one.
    ///
    /// # Errors
    /// When it cannot be read.
    pub(crate) fn prepared(&self) -> Result<Option<MasterKey>, MasterError> {
        read(&self.next())
    }

    fn next(&self) -> PathBuf {
        let mut name = self.0.clone().into_os_string();
        name.push(".");
        name.push(NEXT);
        name.into()
    }
}

fn of_file(path: &Path, source: io::Error) -> MasterError {
    MasterError::File {
        path: path.to_owned(),
        source,
    }
}

fn read(path: &Path) -> Result<Option<MasterKey>, MasterError> {
    let text = match fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(of_file(path, error)),
    };
    let key = MasterKey::parse(&text);
    key.map(Some).map_err(|source| MasterError::Key {
        path: path.to_owned(),
        source,
    })
}

/// Writes a key whole or not at all, for this account alone; over an existing file only if that is said.
fn write(path: &Path, key: &MasterKey, is_over: bool) -> Result<(), MasterError> {
    let refused = |source| of_file(path, source);
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    let folder = folder.unwrap_or(Path::new("."));
    let mut file = NamedTempFile::new_in(folder).map_err(refused)?;
    writeln!(file, "{}", key.reveal()).map_err(refused)?;
    file.as_file().sync_all().map_err(refused)?;
    let kept = if is_over {
        file.persist(path)
    } else {
        file.persist_noclobber(path)
    };
    kept.map_err(|error| refused(error.error))?;
    sync(folder).map_err(refused)
}

/// Makes sure that a name in a folder survives a power failure, before the database says what depends on it.
#[cfg(unix)]
pub(super) fn sync(folder: &Path) -> io::Result<()> {
    fs::File::open(folder)?.sync_all()
}

#[cfg(not(unix))]
pub(super) fn sync(_: &Path) -> io::Result<()> {
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_made_once_and_read_again() {
        let folder = tempfile::tempdir().unwrap();
        let file = MasterFile::new(None, folder.path());
        assert!(file.read().unwrap().is_none());
        let key = file.create().unwrap();
        assert_eq!(file.read().unwrap().unwrap().reveal(), key.reveal());
        assert!(
            matches!(file.create(), Err(MasterError::File { .. })),
            "never written over"
        );
        fs::write(file.path(), "no key").unwrap();
        let error = file.read().unwrap_err().to_string();
        assert!(error.contains("64 hexadecimal digits"), "{error}");
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt as _;
            assert_eq!(
                fs::metadata(file.path()).unwrap().permissions().mode() & 0o777,
                0o600
            );
        }
    }

    #[test]
    fn a_rotation_that_was_broken_off_goes_on_with_the_same_key() {
        let folder = tempfile::tempdir().unwrap();
        let file = MasterFile::new(None, folder.path());
        file.create().unwrap();
        // What is no key was torn, and nothing depends on it yet.
        fs::write(folder.path().join("master.key.next"), "").unwrap();
        let next = file.prepare().unwrap();
        assert_eq!(file.prepare().unwrap().reveal(), next.reveal());
        assert_eq!(file.prepared().unwrap().unwrap().reveal(), next.reveal());
        file.replace().unwrap();
        assert_eq!(file.read().unwrap().unwrap().reveal(), next.reveal());
        assert!(file.prepared().unwrap().is_none());
    }
}
