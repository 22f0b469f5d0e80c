//! Folders of trainings as objects: written as one archive, and taken apart on another machine.

use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use capo_core::ids::hex;
use object_store::buffered::BufWriter;
use sha2::{Digest as _, Sha256};
use tokio::runtime::Handle;
use tokio::task::spawn_blocking;
use tokio_util::io::{StreamReader, SyncIoBridge};

use crate::files::{Files, FilesError};
use crate::store::KeptCheckpoint;

/// Bytes of an archive that are passed on at once.
const AT_ONCE: usize = 64 << 10;

/// What passes through has its SHA-256 taken.
struct Hashed<T> {
    inner: T,
    hash: Sha256,
    is_broken: bool,
}

impl<T> Hashed<T> {
    fn of(inner: T) -> Self {
        Self {
            inner,
            hash: Sha256::new(),
            is_broken: false,
        }
    }

    fn sha256(self) -> String {
        hex(&self.hash.finalize())
    }
}

impl<T: Write> Write for Hashed<T> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        // An archive that is given up still writes its end, which an upload that failed does not take.
        if self.is_broken {
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        let written = self.inner.write(bytes).inspect_err(|_| self.is_broken = true)?;
        self.hash.update(&bytes[..written]);
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        // An object is there once it is whole.
        Ok(())
    }
}

impl<T: Read> Read for Hashed<T> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let read = self.inner.read(into)?;
        self.hash.update(&into[..read]);
        Ok(read)
    }
}

/// Writes files and folders into an object as one archive, each under its name there, and returns the archive's SHA-256. The
/// object is there whole or not at all.
///
/// # Errors
/// When one does not read, or the object is not taken.
pub(super) async fn write(object: BufWriter, members: Vec<(PathBuf, PathBuf)>) -> io::Result<String> {
    let mut object = SyncIoBridge::new(object);
    let written = spawn_blocking(move || match archive(&mut object, &members) {
        Ok(sha256) => object.shutdown().map(|()| sha256),
        Err(error) => {
            // What is left of it is deleted later.
            let _ = Handle::current().block_on(object.into_inner().abort());
            Err(error)
        }
    });
    written.await.map_err(io::Error::other)?
}

fn archive(object: &mut SyncIoBridge<BufWriter>, members: &[(PathBuf, PathBuf)]) -> io::Result<String> {
    let object = io::BufWriter::with_capacity(AT_ONCE, Hashed::of(object));
    let mut archive = tar::Builder::new(object);
    for (name, path) in members {
        if path.is_dir() {
            archive.append_dir_all(name, path)?;
        } else {
            // Of one size, whatever is appended meanwhile.
            let content = std::fs::read(path)?;
            let mut header = tar::Header::new_gnu();
            header.set_size(content.len() as u64);
            header.set_mode(0o600);
            archive.append_data(&mut header, name, content.as_slice())?;
        }
    }
    Ok(archive.into_inner()?.into_inner()?.sha256())
}

/// Takes an archive apart below a folder.
///
/// # Errors
/// When its object is missing or another one than was written, or the disk is full.
pub(super) async fn unpack(files: &Files, kept: &KeptCheckpoint, into: &Path) -> Result<(), FilesError> {
    let archive = SyncIoBridge::new(StreamReader::new(files.pieces(&kept.object).await?));
    let (kept, into) = (kept.clone(), into.to_owned());
    let unpacked = spawn_blocking(move || {
        let mut archive = Hashed::of(archive);
        tar::Archive::new(&mut archive).unpack(&into)?;
        // Behind the last member stands what counts for the hash alone.
        io::copy(&mut archive, &mut io::sink())?;
        if archive.sha256() == kept.sha256 {
            return Ok(());
        }
        Err(io::Error::other(format!(
            "{} is damaged: its SHA-256 is not {}",
            kept.object, kept.sha256
        )))
    });
    Ok(unpacked.await.map_err(io::Error::other)??)
}
