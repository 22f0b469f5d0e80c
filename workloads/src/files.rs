//! Sources of data files.
//!
//! Workloads read files through [`Files`], so the same code runs natively, where the implementor
//! reads a disk, and in the browser, where a page holds the files a person chose.

use std::collections::BTreeMap;
use std::iter;
use std::path::{Component, Path};

use capo_core::ids::hex;
use sha2::{Digest, Sha256};

/// Reads the files a study names.
pub trait Files {
    /// The bytes of a file. `path` is as written in the study file; relative paths start at the
    /// study file's folder.
    ///
    /// # Errors
    /// When there is no such file or it cannot be read.
    fn read(&self, path: &str) -> Result<Vec<u8>, FileError>;

    /// The folder relative paths start at, which is also where a study's commands run; `None`
    /// where there is no disk.
    fn directory(&self) -> Option<&Path> {
        None
    }

    /// The value of a variable that a study names and the process lacks; none where nobody keeps such beside the study.
    fn variable(&self, _name: &str) -> Option<String> {
        None
    }
}

/// Why a file could not be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FileError {
    /// There is no such file.
    #[error("no file `{0}`; paths are relative to the study file's folder")]
    NotFound(String),
    /// The file lies outside the study's folder, and nobody allowed that.
    #[error(
        "`{path}` lies outside the study's folder {folder}, and a study may come from anybody; \
         put the file there, or allow it with --allow-outside"
    )]
    Outside {
        /// The path as written in the study file.
        path: String,
        /// The folder of the study file.
        folder: String,
    },
    /// The file is there but cannot be read.
    #[error("cannot read `{path}`: {reason}")]
    Unreadable {
        /// The path as written in the study file.
        path: String,
        /// What the system says.
        reason: String,
    },
}

/// Files held in memory, for tests and for the browser.
#[derive(Debug, Clone, Default)]
pub struct MemoryFiles {
    files: BTreeMap<String, Vec<u8>>,
}

impl MemoryFiles {
    /// No files.
    pub fn new() -> Self {
        Self::default()
    }

    /// The same files and one more, replacing one of the same path.
    #[must_use]
    pub fn with(mut self, path: impl Into<String>, content: impl Into<Vec<u8>>) -> Self {
        self.insert(path, content);
        self
    }

    /// Adds a file, replacing one of the same path.
    pub fn insert(&mut self, path: impl Into<String>, content: impl Into<Vec<u8>>) {
        self.files.insert(path.into(), content.into());
    }
}

impl Files for MemoryFiles {
    fn read(&self, path: &str) -> Result<Vec<u8>, FileError> {
        self.files
            .get(path)
            .cloned()
            .ok_or_else(|| FileError::NotFound(path.to_owned()))
    }
}

/// Reads files and remembers what it read, for [`capo_core::workload::Workload::fingerprint`].
pub(crate) struct Sources<'a> {
    files: &'a dyn Files,
    hash: Sha256,
    any: bool,
    /// Of what was read since a moment that the reader chose.
    part: Option<Sha256>,
}

impl<'a> Sources<'a> {
    pub(crate) fn new(files: &'a dyn Files) -> Self {
        Self {
            files,
            hash: Sha256::new(),
            any: false,
            part: None,
        }
    }

    /// From now on, what is read has a hash of its own, too.
    pub(crate) fn begin_part(&mut self) {
        self.part = Some(Sha256::new());
    }

    /// Lower-case hex SHA-256 of everything read since then; empty before.
    pub(crate) fn part(&self) -> String {
        let part = self.part.clone();
        part.map_or_else(String::new, |hash| hex(&hash.finalize()))
    }

    /// The bytes of a file; they become part of the fingerprint.
    pub(crate) fn read(&mut self, path: &str) -> Result<Vec<u8>, FileError> {
        let content = self.files.read(path)?;
        // The length keeps two files from being mistaken for one with the same bytes in a row.
        for hash in iter::once(&mut self.hash).chain(&mut self.part) {
            hash.update((content.len() as u64).to_le_bytes());
            hash.update(&content);
        }
        self.any = true;
        Ok(content)
    }

    /// Makes the part depend on a file below the study's folder, where there is one of this name; not the fingerprint.
    pub(crate) fn note(&mut self, path: &str) {
        let is_below = |part: Component<'_>| matches!(part, Component::Normal(_) | Component::CurDir);
        if Path::new(path).components().all(is_below)
            && let (Some(part), Ok(content)) = (&mut self.part, self.files.read(path))
        {
            part.update((content.len() as u64).to_le_bytes());
            part.update(&content);
        }
    }

    /// Those of the variables that lie beside the study, by name.
    pub(crate) fn variables<'n>(&self, names: impl IntoIterator<Item = &'n str>) -> BTreeMap<String, String> {
        let beside = |name: &str| Some((name.to_owned(), self.files.variable(name)?));
        names.into_iter().filter_map(beside).collect()
    }

    #[cfg(not(target_arch = "wasm32"))]
    pub(crate) fn directory(&self) -> Option<&'a Path> {
        self.files.directory()
    }

    /// Lower-case hex SHA-256 of everything read, in order; empty when nothing was.
    pub(crate) fn fingerprint(self) -> String {
        if self.any {
            hex(&self.hash.finalize())
        } else {
            String::new()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fingerprint_depends_on_every_byte_and_on_file_borders() {
        let print = |contents: &[&str]| {
            let files = contents
                .iter()
                .enumerate()
                .fold(MemoryFiles::new(), |files, (index, text)| {
                    files.with(index.to_string(), *text)
                });
            let mut sources = Sources::new(&files);
            for index in 0..contents.len() {
                sources.read(&index.to_string()).unwrap();
            }
            sources.fingerprint()
        };
        assert_eq!(print(&[]), "");
        assert_eq!(print(&["ab", "c"]), print(&["ab", "c"]));
        assert_ne!(print(&["ab", "c"]), print(&["a", "bc"]));
        assert_eq!(print(&["ab"]).len(), 64);
    }

    #[test]
    fn a_file_that_is_noted_is_of_the_part_alone() {
        let of = |path: &str, content: &str| {
            let files = MemoryFiles::new().with(path, content);
            let mut sources = Sources::new(&files);
            sources.begin_part();
            sources.note("nowhere.py");
            sources.note(path);
            (sources.part(), sources.fingerprint())
        };
        let (one, other) = (of("score.py", "1"), of("score.py", "2"));
        assert_ne!(one.0, other.0);
        assert_eq!((one.1.as_str(), other.1.as_str()), ("", ""));
        for outside in ["/bin/python3", "../score.py"] {
            assert_eq!(of(outside, "1"), of(outside, "2"));
        }
    }

    #[test]
    fn a_missing_file_is_named() {
        let error = MemoryFiles::new().read("data.csv").unwrap_err();
        assert!(error.to_string().contains("`data.csv`"), "{error}");
    }
}
