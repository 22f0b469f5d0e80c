//! Checkpoints as objects: each is one archive, written once, and unpacked on another machine.

use std::io;
use std::path::{Path, PathBuf};

use capo_core::ids::hex;
use object_store::buffered::BufWriter;
use sha2::{Digest as _, Sha256};
use tempfile::TempDir;
use tokio::io::{AsyncWriteExt as _, copy, duplex};
use tokio::task::spawn_blocking;
use tokio_util::io::{InspectReader, StreamReader, SyncIoBridge};

use crate::files::{Files, FilesError};
use crate::store::KeptCheckpoint;

/// Bytes of an archive that are passed on at once.
const AT_ONCE: usize = 64 << 10;

/// Writes a folder under a name into an object as an archive, and returns the archive's SHA-256. The object is there whole or
/// not at all.
///
/// # Errors
/// When the folder does not read, or the object is not taken.
pub(super) async fn write(mut object: BufWriter, name: String, folder: PathBuf) -> io::Result<String> {
    let (into, read) = duplex(AT_ONCE);
    let archived = spawn_blocking(move || {
        let into = io::BufWriter::with_capacity(AT_ONCE, SyncIoBridge::new(into));
        let mut archive = tar::Builder::new(into);
        archive.append_dir_all(name, &folder)?;
        archive.into_inner()?.into_inner()?;
        Ok::<_, io::Error>(())
    });
    let mut hash = Sha256::new();
    let copied = copy(
        &mut InspectReader::new(read, |bytes| hash.update(bytes)),
        &mut object,
    )
    .await;
    let archived = archived.await.map_err(io::Error::other)?;
    if let Err(error) = copied.and(archived) {
        // What is left of it is deleted later.
        let _ = object.abort().await;
        return Err(error);
    }
    object.shutdown().await?;
    Ok(hex(&hash.finalize()))
}

/// Unpacks the archive of a checkpoint into a new folder beside another one, which it becomes once it is whole.
///
/// # Errors
/// When its object is missing or another one than was written, or the disk is full: nothing is left of it then.
pub(super) async fn bring(files: &Files, kept: &KeptCheckpoint, into: &Path) -> Result<(), FilesError> {
    let archive = StreamReader::new(files.pieces(&kept.object).await?);
    let beside = into.parent().unwrap_or(into);
    std::fs::create_dir_all(beside)?;
    // Whoever has it last removes it.
    let new = TempDir::new_in(beside)?;
    let (mut passed_on, read) = duplex(AT_ONCE);
    let unpacked = spawn_blocking(move || {
        let mut read = SyncIoBridge::new(read);
        let unpacked = tar::Archive::new(&mut read).unpack(new.path());
        // Behind the last member stands what counts for the hash alone.
        io::copy(&mut read, &mut io::sink())?;
        unpacked.map(|()| new)
    });
    let mut hash = Sha256::new();
    let copied = copy(
        &mut InspectReader::new(archive, |bytes| hash.update(bytes)),
        &mut passed_on,
    )
    .await;
    drop(passed_on);
    let unpacked = unpacked.await.map_err(io::Error::other)?;
    copied?;
    if hex(&hash.finalize()) != kept.sha256 {
        let damage = format!("{} is damaged: its SHA-256 is not {}", kept.object, kept.sha256);
        return Err(io::Error::other(damage).into());
    }
    let new = unpacked?;
    match std::fs::rename(new.path(), into) {
        // Another one came first.
        Err(_) if into.is_dir() => Ok(()),
        renamed => Ok(renamed?),
    }
}
