//! The master key, by which providers' keys are encrypted: a file, or a variable.

use std::ffi::OsString;
use std::fmt;
use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use capo_team::seal::{MasterKey, SealError};
use tempfile::NamedTempFile;

/// Its name in the data folder.
const NAME: &str = "master.key";

/// What a rotation leaves beside it until it is done.
const NEXT: &str = "next";

/// The variable that may hold a master key, as its file does.
const VARIABLE: &str = "CAPO_MASTER_KEY";

/// Where a master key is kept: in the file that is named, else in the variable, else in the data folder.
#[derive(Debug, Clone)]
pub(crate) enum MasterPlace {
    File(MasterFile),
    /// [`VARIABLE`], which holds this one.
    Variable(MasterKey),
}

/// The file of a master key.
#[derive(Debug, Clone)]
pub(crate) struct MasterFile(PathBuf);

/// Why there is no master key.
#[derive(Debug, thiserror::Error)]
pub(crate) enum MasterError {
    /// Its file cannot be read or written.
    #[error("the master key {}: {source}", path.display())]
    File { path: PathBuf, source: io::Error },
    /// It holds something else.
    #[error("the master key {}: {source}", path.display())]
    Key {
        path: PathBuf,
        /// What is wrong with it.
        source: SealError,
    },
    /// The variable holds something else.
    #[error("the variable {VARIABLE}: {0}; leave it unset where a file holds the key")]
    Variable(SealError),
    /// A file and the variable contradict each other.
    #[error(
        "--master-key-file {} and the variable {VARIABLE} do not hold the same master key; leave one of them out",
        .0.display()
    )]
    Two(PathBuf),
    /// The file that is named beside the variable is not there.
    #[error("--master-key-file {} is missing, and the variable {VARIABLE} is set; leave one of them out", .0.display())]
    Missing(PathBuf),
    /// A new one can be put into a file alone.
    #[error(
        "the variable {VARIABLE} is set, into which this command puts no new key: write what it holds into a file, unset it, \
         and name the file with --master-key-file FILE, where the new key stands afterwards"
    )]
    Rotation,
}

impl MasterPlace {
    /// The file that is named, else the variable, else the file in the data folder.
    ///
    /// # Errors
    /// When the variable holds no key, or another one than the file that is named, or that is missing.
    pub(crate) fn new(named: Option<&Path>, folder: &Path) -> Result<Self, MasterError> {
        let stated = Self::stated(named)?;
        Ok(stated.unwrap_or_else(|| Self::File(MasterFile::new(None, folder))))
    }

    /// The file that is named, else the variable; `None` where there is neither.
    ///
    /// # Errors
    /// As [`MasterPlace::new`].
    pub(crate) fn stated(named: Option<&Path>) -> Result<Option<Self>, MasterError> {
        Self::of(named, std::env::var_os(VARIABLE))
    }

    fn of(named: Option<&Path>, variable: Option<OsString>) -> Result<Option<Self>, MasterError> {
        // What is no text is no key, either.
        let held = held(variable).map(|held| MasterKey::parse(&held.to_string_lossy()));
        let held = held.transpose().map_err(MasterError::Variable)?;
        let Some(path) = named else {
            return Ok(held.map(Self::Variable));
        };
        let file = MasterFile(path.to_owned());
        if let Some(held) = held {
            match file.read()? {
                None => return Err(MasterError::Missing(path.to_owned())),
                Some(key) if !key.is_same(&held) => return Err(MasterError::Two(path.to_owned())),
                Some(_) => {}
            }
        }
        Ok(Some(Self::File(file)))
    }

    /// The key; `None` when there is no file.
    ///
    /// # Errors
    /// When the file cannot be read, or holds something else.
    pub(crate) fn read(&self) -> Result<Option<MasterKey>, MasterError> {
        match self {
            Self::File(file) => file.read(),
            Self::Variable(key) => Ok(Some(key.clone())),
        }
    }

    /// How it is taken away, in words.
    pub(crate) fn way_out(&self) -> &'static str {
        match self {
            Self::File(_) => "move that file away",
            Self::Variable(_) => "unset it",
        }
    }
}

impl fmt::Display for MasterPlace {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(MasterFile(path)) => write!(formatter, "{}", path.display()),
            Self::Variable(_) => write!(formatter, "the variable {VARIABLE}"),
        }
    }
}

impl MasterFile {
    /// The file that is named, or the one in the data folder.
    fn new(named: Option<&Path>, folder: &Path) -> Self {
        Self(named.map_or_else(|| folder.join(NAME), Path::to_owned))
    }

    /// The same, for a new key to be put into it.
    ///
    /// # Errors
    /// When the variable is set, which would hold the former one then.
    pub(crate) fn to_rotate(named: Option<&Path>, folder: &Path) -> Result<Self, MasterError> {
        match held(std::env::var_os(VARIABLE)) {
            Some(_) => Err(MasterError::Rotation),
            None => Ok(Self::new(named, folder)),
        }
    }

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

/// What a variable holds: nothing where it is blank, as compose files leave one that is not set.
fn held(variable: Option<OsString>) -> Option<OsString> {
    variable.filter(|held| !held.to_string_lossy().trim().is_empty())
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
    fn a_variable_comes_after_the_file_that_is_named_and_contradicts_none() {
        let folder = tempfile::tempdir().unwrap();
        let (one, other) = (MasterKey::new(), MasterKey::new());
        let variable = |text: &str| Some(OsString::from(text));
        assert!(MasterPlace::of(None, None).unwrap().is_none());
        let place = MasterPlace::of(None, variable(&format!("{}\n", one.reveal()))).unwrap();
        assert!(matches!(place, Some(MasterPlace::Variable(key)) if key.is_same(&one)));
        let path = folder.path().join("key");
        let both = |held: &MasterKey| MasterPlace::of(Some(&path), variable(&held.reveal()));
        assert!(
            matches!(both(&one), Err(MasterError::Missing(_))),
            "the file is not there"
        );
        MasterFile(path.clone()).keep(&one).unwrap();
        assert!(matches!(both(&one), Ok(Some(MasterPlace::File(_)))));
        let error = both(&other).unwrap_err().to_string();
        assert!(
            error.contains("--master-key-file") && error.contains(VARIABLE),
            "{error}"
        );
        for secret in [one, other] {
            assert!(!error.contains(&secret.reveal()));
        }
        for blank in ["", " \n"] {
            assert!(MasterPlace::of(None, variable(blank)).unwrap().is_none());
        }
        let error = MasterPlace::of(None, variable("not-a-key")).unwrap_err();
        let error = error.to_string();
        assert!(
            error.contains(VARIABLE) && !error.contains("not-a-key"),
            "{error}"
        );
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
