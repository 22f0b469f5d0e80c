//! A server's database as one file, and back.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use capo_team::seal::{MasterKey, SealError};
use capo_team::store::{back_up, make_ready};
use capo_team::{Files, StoreError};
use tempfile::{NamedTempFile, TempPath};

use super::ServeError;
use super::folder::{self, Folder};
use super::master::{MasterPlace, sync};

/// The database in a data folder.
const NAME: &str = "capo.db";

/// Why there is no backup, or nothing is restored.
#[derive(Debug, thiserror::Error)]
pub(crate) enum BackupError {
    /// PostgreSQL has its own programs for this.
    #[error("the database is PostgreSQL's, which has its own program for this: {0}")]
    Postgres(&'static str),
    /// There is nothing to back up.
    #[error("there is no database {}; name the server's folder with --data DIR", .0.display())]
    NoDatabase(PathBuf),
    /// The backup would take another file's place.
    #[error("{} is there already; name a new file", .0.display())]
    There(PathBuf),
    /// A database would be lost.
    #[error(
        "there is a database already, {}; restore into a new folder with --data DIR, or move that file and those beside it away",
        .0.display()
    )]
    Occupied(PathBuf),
    /// The master key that is there opens none of the backup's keys.
    #[error(
        "{place} holds another master key than the one of the backup, whose providers' keys could not be used; put the key of \
         its time there, or {}",
        place.way_out()
    )]
    OtherMaster { place: MasterPlace },
    /// What the backup holds as a master key is none.
    #[error("the master key in the backup: {0}")]
    Master(#[from] SealError),
    /// The backup cannot be used.
    #[error("the backup {}: {source}", path.display())]
    Unusable {
        path: PathBuf,
        /// What is wrong with it.
        source: StoreError,
    },
    /// A file cannot be read or written.
    #[error("{}: {source}", path.display())]
    File { path: PathBuf, source: io::Error },
}

/// What a server's keys need beside its database.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Key {
    /// The master key is there.
    There,
    /// It is to be put into this file.
    Missing(PathBuf),
}

/// Copies the database into a new file, with what data files hold unless that lies in a bucket, whole or not at all, whether a
/// server works on it or not.
///
/// # Errors
/// When there is none, the file is there already, or the disk fails.
pub(crate) async fn write_backup(
    database: Option<&str>,
    folder: Option<&Path>,
    files: Option<&str>,
    master: Option<&Path>,
    with_master: bool,
    file: &Path,
) -> Result<(), ServeError> {
    let postgres = r#"pg_dump --format=custom --file=FILE "$CAPO_DATABASE""#;
    let folder = folder::path(folder)?;
    let database = sqlite(database, &folder, postgres)?;
    if !database.is_file() {
        return Err(BackupError::NoDatabase(database).into());
    }
    let master = if with_master {
        let place = MasterPlace::new(master, &folder)?;
        Some(place.read()?.ok_or(ServeError::NoMaster(place))?)
    } else {
        None
    };
    let files = match files {
        Some(place) if Files::is_bucket(place) => None,
        place => Some(super::files(place, &folder).await?),
    };
    let copy = beside(file)?;
    back_up(&database, &copy, files.as_ref(), master.as_ref()).await?;
    put(copy, file)?;
    Ok(())
}

/// Makes a backup the database of a folder in which there is none and no server works. Says whether the master key is
/// there. Who was signed in or had a token is not any more, unless these are to be kept.
///
/// # Errors
/// When there is a database already, a server works in the folder, the backup is damaged or a newer version's, or the master
/// key that is there is another one than the backup's.
pub(crate) async fn restore_backup(
    database: Option<&str>,
    folder: Option<&Path>,
    master: Option<&Path>,
    keeps_tokens: bool,
    file: &Path,
) -> Result<Key, ServeError> {
    let postgres = r#"pg_restore --dbname="$CAPO_DATABASE" FILE"#;
    sqlite(database, Path::new(""), postgres)?;
    let folder = Folder::open(folder)?;
    let database = sqlite(database, folder.path(), postgres)?;
    for end in ["", "-wal", "-shm", "-journal"] {
        let mut name = database.clone().into_os_string();
        name.push(end);
        if fs::symlink_metadata(&name).is_ok() {
            return Err(BackupError::Occupied(name.into()).into());
        }
    }
    let mut source = File::open(file).map_err(|source| of_file(file, source))?;
    let copy = beside(&database)?;
    let mut into = File::create(&copy).map_err(|source| of_file(&copy, source))?;
    io::copy(&mut source, &mut into).map_err(|source| of_file(&database, source))?;
    drop(into);
    let place = MasterPlace::new(master, folder.path())?;
    let there = place.read()?;
    let held = make_ready(&copy, there.as_ref(), keeps_tokens).await;
    let held = held.map_err(|error| match error {
        StoreError::OtherMasterKey => BackupError::OtherMaster { place: place.clone() },
        source => BackupError::Unusable {
            path: file.to_owned(),
            source,
        },
    })?;
    let key = match (&place, held) {
        (MasterPlace::File(file), Some(held)) if there.is_none() => {
            file.keep(&MasterKey::parse(&held).map_err(BackupError::Master)?)?;
            Key::There
        }
        (MasterPlace::File(file), None) if there.is_none() => Key::Missing(file.path().to_owned()),
        _ => Key::There,
    };
    put(copy, &database)?;
    Ok(key)
}

/// The file of a SQLite database; what to do instead for another one.
fn sqlite(database: Option<&str>, folder: &Path, postgres: &'static str) -> Result<PathBuf, BackupError> {
    match database.map(|url| url.split_once(':').unwrap_or((url, ""))) {
        None => Ok(folder.join(NAME)),
        Some(("sqlite", path)) => Ok(path.strip_prefix("//").unwrap_or(path).into()),
        Some(_) => Err(BackupError::Postgres(postgres)),
    }
}

/// An empty file for this account alone, beside one that is not there yet.
fn beside(file: &Path) -> Result<TempPath, BackupError> {
    if fs::symlink_metadata(file).is_ok() {
        return Err(BackupError::There(file.to_owned()));
    }
    let made = NamedTempFile::with_prefix_in(".capo-", parent(file));
    Ok(made.map_err(|source| of_file(file, source))?.into_temp_path())
}

fn put(copy: TempPath, file: &Path) -> Result<(), BackupError> {
    let kept = File::open(&copy).and_then(|copy| copy.sync_all());
    kept.map_err(|source| of_file(file, source))?;
    copy.persist_noclobber(file)
        .map_err(|error| of_file(file, error.error))?;
    sync(parent(file)).map_err(|source| of_file(file, source))
}

fn parent(file: &Path) -> &Path {
    let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty());
    folder.unwrap_or(Path::new("."))
}

fn of_file(path: &Path, source: io::Error) -> BackupError {
    BackupError::File {
        path: path.to_owned(),
        source,
    }
}
