//! Files named on the command line and in studies.

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Write as _};
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
    decoded(what, path, read_bytes(what, path)?)
}

/// The whole lines of a file. What follows the last line break is left out: a line that is still
/// being written, or that a crash cut off, perhaps in the midst of a character.
///
/// # Errors
/// See [`read_text`].
pub fn read_whole_lines(what: &'static str, path: &Path) -> Result<String, TextError> {
    let mut bytes = read_bytes(what, path)?;
    let end = bytes.iter().rposition(|&byte| byte == b'\n');
    bytes.truncate(end.map_or(0, |end| end + 1));
    decoded(what, path, bytes)
}

fn read_bytes(what: &'static str, path: &Path) -> Result<Vec<u8>, TextError> {
    fs::read(path).map_err(|source| TextError::Read {
        what,
        path: path.to_owned(),
        source,
    })
}

fn decoded(what: &'static str, path: &Path, bytes: Vec<u8>) -> Result<String, TextError> {
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

/// Puts a file in place whole or not at all, so that neither a full disk nor a crash leaves half
/// of it: writes beside it, asks the disk to keep that, and renames it. A file that was there is
/// replaced; what is no regular file (a pipe, a terminal) is written to as it is.
///
/// # Errors
/// What the system says; then nothing is left behind.
pub fn write_whole(path: &Path, contents: &[u8]) -> io::Result<()> {
    if fs::metadata(path).is_ok_and(|there| !there.is_file()) {
        return fs::write(path, contents);
    }
    // Through a symbolic link, what it leads to is replaced, not the link.
    let path = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let mut beside = path.clone().into_os_string();
    beside.push(format!(".{}.new", std::process::id()));
    let beside = PathBuf::from(beside);
    let file = OpenOptions::new().write(true).create_new(true).open(&beside)?;
    let put = |mut file: File| {
        file.write_all(contents)?;
        file.sync_all()?;
        fs::rename(&beside, &path)
    };
    put(file).inspect_err(|_| {
        // It may be gone already; the error that led here is the one to tell.
        let _ = fs::remove_file(&beside);
    })
}

/// Like [`write_whole`], and never in the place of a file that is there, were it made this moment.
///
/// # Errors
/// What the system says; then nothing is left behind.
pub fn write_new(path: &Path, contents: &[u8]) -> io::Result<()> {
    let folder = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    let mut beside = tempfile::Builder::new()
        .prefix(".capo-")
        .tempfile_in(folder.unwrap_or(Path::new(".")))?;
    beside.write_all(contents)?;
    beside.as_file().sync_all()?;
    beside.persist_noclobber(path).map_err(|error| error.error)?;
    Ok(())
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
        fs::read(self.resolve(path)).map_err(|error| match error.kind() {
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
    fn a_line_cut_in_the_midst_of_a_character_is_left_out() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("journal.jsonl");
        std::fs::write(&path, b"caf\xc3\xa9\ncaf\xc3").unwrap();
        assert_eq!(read_whole_lines("journal", &path).unwrap(), "café\n");
        std::fs::write(&path, b"caf\xc3").unwrap();
        assert_eq!(read_whole_lines("journal", &path).unwrap(), "");
        std::fs::write(&path, b"fine\ncaf\xe9\nfine\n").unwrap();
        let message = read_whole_lines("journal", &path).unwrap_err().to_string();
        assert!(message.contains("line 2"), "{message}");
    }

    #[test]
    fn a_file_is_replaced_whole_or_not_at_all() {
        let folder = tempfile::tempdir().unwrap();
        let names = || {
            let mut names: Vec<_> = std::fs::read_dir(folder.path())
                .unwrap()
                .map(|entry| entry.unwrap().file_name())
                .collect();
            names.sort();
            names
        };
        let path = folder.path().join("rows.csv");
        for text in ["first", "second"] {
            write_whole(&path, text.as_bytes()).unwrap();
            assert_eq!(std::fs::read_to_string(&path).unwrap(), text);
        }
        assert_eq!(names(), ["rows.csv"]);
        // A directory takes neither a write nor a rename onto it.
        std::fs::create_dir(folder.path().join("taken")).unwrap();
        write_whole(&folder.path().join("taken"), b"text").unwrap_err();
        assert_eq!(names(), ["rows.csv", "taken"], "nothing is left behind");
    }

    #[test]
    fn a_new_file_takes_no_other_files_place() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("branch.jsonl");
        write_new(&path, b"first").unwrap();
        assert_eq!(
            write_new(&path, b"second").unwrap_err().kind(),
            ErrorKind::AlreadyExists
        );
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "first");
        assert_eq!(
            std::fs::read_dir(folder.path()).unwrap().count(),
            1,
            "nothing is left behind"
        );
    }

    #[cfg(unix)]
    #[test]
    fn a_link_goes_on_leading_where_it_led() {
        let folder = tempfile::tempdir().unwrap();
        let (target, link) = (folder.path().join("target"), folder.path().join("link"));
        std::fs::write(&target, "old").unwrap();
        std::os::unix::fs::symlink(&target, &link).unwrap();
        write_whole(&link, b"new").unwrap();
        assert!(link.is_symlink());
        assert_eq!(std::fs::read_to_string(&target).unwrap(), "new");
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
