//! Files named on the command line and in studies.

use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use capo_workloads::files::{FileError, Files};

/// A text file that cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum TextError {
    /// The system refuses.
    #[error("{what} {} cannot be read: {source}", path.display())]
    Read {
        /// What the file was to hold, such as `study file`.
        what: &'static str,
        /// Which file.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// It is no UTF-8.
    #[error("{what} {} is not UTF-8 text (line {line}); save it as UTF-8", path.display())]
    NotUtf8 {
        /// What the file was to hold.
        what: &'static str,
        /// Which file.
        path: PathBuf,
        /// The first line that cannot be read, from 1.
        line: usize,
    },
}

/// The text of a file; `what` names it in errors.
///
/// # Errors
/// When it cannot be read or is no UTF-8.
pub fn read_text(what: &'static str, path: &Path) -> Result<String, TextError> {
    let bytes = std::fs::read(path).map_err(|source| TextError::Read {
        what,
        path: path.to_owned(),
        source,
    })?;
    String::from_utf8(bytes).map_err(|error| {
        let valid = &error.as_bytes()[..error.utf8_error().valid_up_to()];
        TextError::NotUtf8 {
            what,
            path: path.to_owned(),
            line: valid.split(|&byte| byte == b'\n').count(),
        }
    })
}

/// The prompt in a file: its text without the line break that editors put at the end.
///
/// # Errors
/// See [`read_text`].
pub fn read_prompt(path: &Path) -> Result<String, TextError> {
    let mut text = read_text("prompt file", path)?;
    if text.ends_with('\n') {
        text.pop();
        if text.ends_with('\r') {
            text.pop();
        }
    }
    Ok(text)
}

/// The files of a study: relative paths start at the study file's folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StudyFolder(PathBuf);

impl StudyFolder {
    /// The folder a study file lies in.
    pub fn of(study: &Path) -> Self {
        match study.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => Self(parent.to_owned()),
            _ => Self(PathBuf::from(".")),
        }
    }

    /// Where a path of the study leads.
    pub fn resolve(&self, path: &str) -> PathBuf {
        if self.0 == Path::new(".") {
            PathBuf::from(path)
        } else {
            self.0.join(path)
        }
    }
}

impl Files for StudyFolder {
    fn read(&self, path: &str) -> Result<Vec<u8>, FileError> {
        std::fs::read(self.resolve(path)).map_err(|error| match error.kind() {
            ErrorKind::NotFound => FileError::NotFound(path.to_owned()),
            _ => FileError::Unreadable {
                path: path.to_owned(),
                reason: error.to_string(),
            },
        })
    }

    fn directory(&self) -> Option<&Path> {
        Some(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_start_at_the_study_file() {
        let folder = StudyFolder::of(Path::new("studies/own/study.toml"));
        assert_eq!(folder.resolve("data.csv"), Path::new("studies/own/data.csv"));
        assert_eq!(folder.resolve("/data.csv"), Path::new("/data.csv"));
        assert_eq!(
            StudyFolder::of(Path::new("study.toml")).directory(),
            Some(Path::new("."))
        );
    }

    #[test]
    fn one_final_line_break_is_no_part_of_a_prompt() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("prompt.md");
        for (written, read) in [("a\nb\n", "a\nb"), ("a\r\n", "a"), ("a\n\n", "a\n"), ("a", "a")] {
            std::fs::write(&path, written).unwrap();
            assert_eq!(read_prompt(&path).unwrap(), read);
        }
    }

    #[test]
    fn a_text_in_another_encoding_is_refused_with_its_line() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("latin.md");
        std::fs::write(&path, b"fine\ncaf\xe9\n").unwrap();
        let message = read_prompt(&path).unwrap_err().to_string();
        assert!(
            message.contains("latin.md") && message.contains("line 2"),
            "{message}"
        );
    }
}
