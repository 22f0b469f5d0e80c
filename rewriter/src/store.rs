//! Tensors written to safetensors files, one at a time.

use std::borrow::Cow;
#[cfg(unix)]
use std::fs::File;
use std::fs::OpenOptions;
use std::io;
use std::path::{Path, PathBuf};

use burn_tensor::backend::Backend;
use burn_tensor::{DType, Tensor};
use safetensors::{Dtype, View};
use serde::Serialize;

use crate::error::FileError;

/// A tensor on its way into a file; its bytes are fetched when their turn comes.
#[derive(Debug, Clone)]
pub struct Stored<B: Backend> {
    flat: Tensor<B, 1>,
    shape: Vec<usize>,
    number_type: Dtype,
}

impl<B: Backend> Stored<B> {
    /// A vector.
    pub fn vector(tensor: Tensor<B, 1>) -> Self {
        let shape = tensor.dims().to_vec();
        Self::of(tensor, shape)
    }

    /// A matrix.
    pub fn matrix(tensor: Tensor<B, 2>) -> Self {
        let shape = tensor.dims().to_vec();
        Self::of(tensor.flatten(0, 1), shape)
    }

    fn of(flat: Tensor<B, 1>, shape: Vec<usize>) -> Self {
        let number_type = match flat.dtype() {
            DType::F16 => Dtype::F16,
            DType::BF16 => Dtype::BF16,
            DType::F64 => Dtype::F64,
            _ => Dtype::F32,
        };
        Self {
            flat,
            shape,
            number_type,
        }
    }
}

impl<B: Backend> View for Stored<B> {
    fn dtype(&self) -> Dtype {
        self.number_type
    }

    fn shape(&self) -> &[usize] {
        &self.shape
    }

    fn data(&self) -> Cow<'_, [u8]> {
        Cow::Owned(self.flat.to_data().as_bytes().to_vec())
    }

    fn data_len(&self) -> usize {
        self.flat.dims()[0] * self.flat.dtype().size()
    }
}

/// Writes tensors and notes into a safetensors file, whole or not at all.
///
/// # Errors
///
/// The file cannot be written; what stood there before stays.
pub(crate) fn write_tensors<B: Backend>(
    path: &Path,
    tensors: Vec<(String, Stored<B>)>,
    notes: &[(&str, String)],
) -> Result<(), FileError> {
    let format = ("format".to_owned(), "pt".to_owned());
    let notes = notes
        .iter()
        .map(|(name, note)| ((*name).to_owned(), note.clone()));
    let notes = notes.chain([format]).collect();
    write_whole(path, |partial| {
        safetensors::serialize_to_file(tensors, Some(notes), partial)
            .map_err(|why| FileError::content(path, why))
    })
}

/// Writes a JSON file, whole or not at all.
///
/// # Errors
///
/// As [`write_tensors`].
pub(crate) fn write_json(path: &Path, content: &impl Serialize) -> Result<(), FileError> {
    let text = serde_json::to_string_pretty(content).map_err(|why| FileError::content(path, why))?;
    write_whole(path, |partial| {
        std::fs::write(partial, text + "\n").map_err(FileError::io(path))
    })
}

/// Has a file written beside its place, and moves it there when the disk holds all of it: a process or
/// machine that stops meanwhile leaves the file as it was before.
///
/// # Errors
///
/// Those of `write`, and [`FileError::Io`].
pub(crate) fn write_whole(
    path: &Path,
    write: impl FnOnce(&Path) -> Result<(), FileError>,
) -> Result<(), FileError> {
    let partial = partial_of(path);
    let written = write(&partial).and_then(|()| settle(&partial, path).map_err(FileError::io(path)));
    if written.is_err() {
        // The error that counts is the first one; there may be no partial file at all.
        let _ = std::fs::remove_file(&partial);
    }
    written
}

/// A name beside `path` that no other process writes.
fn partial_of(path: &Path) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{}.partial", std::process::id()));
    path.with_file_name(name)
}

fn settle(partial: &Path, path: &Path) -> io::Result<()> {
    OpenOptions::new().write(true).open(partial)?.sync_all()?;
    std::fs::rename(partial, path)?;
    // Only Unix lets a folder's entries be made durable.
    #[cfg(unix)]
    if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        File::open(folder)?.sync_all()?;
    }
    Ok(())
}

/// Makes a folder for a model, whose files must not be mixed with another's.
///
/// # Errors
///
/// The folder cannot be made, or holds anything.
pub(crate) fn make_empty_folder(folder: &Path) -> Result<(), FileError> {
    std::fs::create_dir_all(folder).map_err(FileError::io(folder))?;
    let mut there = std::fs::read_dir(folder).map_err(FileError::io(folder))?;
    if there.next().is_some() {
        return Err(FileError::content(
            folder,
            "the folder is not empty: choose a new one",
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::config::read_json;

    #[test]
    fn a_file_that_fails_to_be_written_stays_as_it_was() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("numbers.json");
        write_json(&path, &[1, 2]).expect("written");
        let failed = write_whole(&path, |partial| {
            std::fs::write(partial, "[1,").map_err(FileError::io(partial))?;
            Err(FileError::content(&path, "the disk is full"))
        });
        assert!(failed.is_err());
        assert_eq!(read_json(&path).expect("as it was"), json!([1, 2]));
        let files = std::fs::read_dir(folder.path()).expect("read").count();
        assert_eq!(files, 1, "the partial file is gone");
    }
}
