//! Files named on the command line and in studies.

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Read as _, Write as _};
use std::path::{Path, PathBuf};

use capo_workloads::files::{FileError, Files};
use flate2::read::MultiGzDecoder;

use crate::dotenv::Variables;

/// A text file that cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum TextError {
    /// The system refuses.
    #[error("{what} {} cannot be read: {source}", path.display())]
    Read {
        /// What the file was to hold, such as `study file`.
        what: &'static str,
        /// Path of the file.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// A file that a study names.
    #[error("{what}: {error}")]
    OfStudy {
        /// What the file was to hold.
        what: &'static str,
        /// Why it cannot be read.
        error: FileError,
    },
    /// It is no UTF-8.
    #[error("{what} {} is not UTF-8 text (line {line}); save it as UTF-8", path.display())]
    NotUtf8 {
        /// What the file was to hold.
        what: &'static str,
        /// Path of the file.
        path: PathBuf,
        /// The first line that cannot be read, from 1.
        line: usize,
    },
    /// A line of a file of variables is none. What it holds is not told.
    #[error(
        "line {line} of {} is no variable and passed over; write NAME=value, a value with blanks in quotes",
        path.display()
    )]
    NoVariable {
        /// Path of the file.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
    },
}

/// Most bytes of a text that is read at once: a study, a prompt, prices, settings.
const MOST_TEXT: u64 = 16 << 20;

/// Most bytes of a prompt.
const MOST_PROMPT: u64 = 1 << 20;

/// Most bytes of a file of data, and of what gzip packed.
const MOST_DATA: u64 = 1 << 30;

/// The text of a file; `what` names it in errors.
///
/// # Errors
/// When it cannot be read, is a pipe or a device, is larger than 16 MiB or is no UTF-8.
pub fn read_text(what: &'static str, path: &Path) -> Result<String, TextError> {
    let file = expect_regular_or_open(path).and_then(|()| File::open(path));
    let bytes = file.and_then(|file| bounded(file, MOST_TEXT));
    decoded(what, path, bytes.map_err(|error| unreadable(what, path, error))?)
}

/// The whole lines of a file. What follows the last line break is left out: a line that is still
/// being written, or that a crash cut off, perhaps in the midst of a character.
///
/// # Errors
/// When it cannot be read, is no UTF-8, or is larger than 1 GiB once it is unpacked.
pub fn read_whole_lines(what: &'static str, path: &Path) -> Result<String, TextError> {
    let bytes = fs::read(path).and_then(unpacked);
    let mut bytes = bytes.map_err(|error| unreadable(what, path, error))?;
    let end = bytes.iter().rposition(|&byte| byte == b'\n');
    bytes.truncate(end.map_or(0, |end| end + 1));
    decoded(what, path, bytes)
}

/// What every file begins with that gzip packed.
const GZIP: [u8; 2] = [0x1f, 0x8b];

/// Whether gzip packed a file.
pub fn is_packed(path: &Path) -> bool {
    let mut start = [0; GZIP.len()];
    File::open(path)
        .and_then(|mut file| file.read_exact(&mut start))
        .is_ok()
        && start == GZIP
}

/// What gzip packed, as it was; anything else as it is.
fn unpacked(bytes: Vec<u8>) -> io::Result<Vec<u8>> {
    if !bytes.starts_with(&GZIP) {
        return Ok(bytes);
    }
    bounded(MultiGzDecoder::new(bytes.as_slice()), MOST_DATA)
}

fn unreadable(what: &'static str, path: &Path, source: io::Error) -> TextError {
    TextError::Read {
        what,
        path: path.to_owned(),
        source,
    }
}

/// All bytes of a file that has no more than `most`: some have no end.
fn bounded(file: impl io::Read, most: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    file.take(most + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > most {
        return Err(io::Error::other(format!("it is larger than {} MiB", most >> 20)));
    }
    Ok(bytes)
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

/// The prompt in a file: its text without the byte order mark and the line break that editors put at
/// its beginning and end.
///
/// # Errors
/// See [`read_text`].
pub fn read_prompt(path: &Path) -> Result<String, TextError> {
    read_text(PROMPT, path).map(prompt)
}

/// What a prompt's file is called in errors.
const PROMPT: &str = "prompt file";

/// The file of variables beside a study, and what it is called in errors.
pub(crate) const VARIABLES: [&str; 2] = [".env", "file of variables"];

/// The prompt that is a file's text: without the mark that some editors put at the beginning, and
/// without a line break at the end.
fn prompt(mut text: String) -> String {
    if text.starts_with('\u{feff}') {
        text.remove(0);
    }
    if text.ends_with('\n') {
        text.pop();
        if text.ends_with('\r') {
            text.pop();
        }
    }
    text
}

/// Puts a file in place whole or not at all, so that neither a full disk nor a crash leaves half
/// of it: writes beside it, asks the disk to keep that, and renames it. A file that was there is
/// replaced; what is no regular file (a pipe, a terminal), or opened by the shell, is added to as it is.
///
/// # Errors
/// What the system says; then nothing is left behind.
pub fn write_whole(path: &Path, contents: &[u8]) -> io::Result<()> {
    if is_open(path) || fs::metadata(path).is_ok_and(|there| !there.is_file()) {
        return OpenOptions::new().append(true).open(path)?.write_all(contents);
    }
    // Through a symbolic link, what it leads to is replaced, not the link.
    let path = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let mut beside = path.clone().into_os_string();
    beside.push(format!(".{}.new", std::process::id()));
    let beside = PathBuf::from(beside);
    let there = fs::metadata(&path).ok();
    let mut options = OpenOptions::new();
    // Whoever may not read what was there is not to read what takes its place, at no moment.
    #[cfg(unix)]
    if there.is_some() {
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    }
    let file = options.write(true).create_new(true).open(&beside)?;
    let put = |mut file: File| {
        if let Some(there) = &there {
            file.set_permissions(there.permissions())?;
        }
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
    let mut file = NewFile::beside(path)?;
    file.write(contents)?;
    file.put(path)
}

/// A file that is written beside its place and put there once it is whole. Dropped before, it leaves nothing behind.
#[derive(Debug)]
pub struct NewFile(tempfile::NamedTempFile);

impl NewFile {
    /// An empty file beside a path.
    ///
    /// # Errors
    /// What the system says.
    pub fn beside(path: &Path) -> io::Result<Self> {
        let folder = path.parent().filter(|parent| !parent.as_os_str().is_empty());
        let mut builder = tempfile::Builder::new();
        // As any other file: the umask takes from it what it takes from all.
        #[cfg(unix)]
        builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
        let file = builder
            .prefix(".capo-")
            .tempfile_in(folder.unwrap_or(Path::new(".")))?;
        Ok(Self(file))
    }

    /// The same with the permissions of another file.
    ///
    /// # Errors
    /// What the system says.
    pub fn like(other: &Path, path: &Path) -> io::Result<Self> {
        let file = Self::beside(path)?;
        let permissions = fs::metadata(other)?.permissions();
        file.0.as_file().set_permissions(permissions)?;
        Ok(file)
    }

    /// Adds to it.
    ///
    /// # Errors
    /// What the system says.
    pub fn write(&mut self, contents: &[u8]) -> io::Result<()> {
        self.0.write_all(contents)
    }

    /// Puts it in place, never in that of a file that is there, were it made this moment.
    ///
    /// # Errors
    /// What the system says; then nothing is left behind.
    pub fn put(self, path: &Path) -> io::Result<()> {
        self.0.as_file().sync_all()?;
        self.0.persist_noclobber(path).map_err(|error| error.error)?;
        Ok(())
    }
}

/// Which files a study may name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Reach {
    /// Those in its folder and below. Studies come from strangers as well, and what a file holds goes
    /// into the journal and to providers.
    #[default]
    Folder,
    /// Any, as `--allow-outside` says.
    Anywhere,
}

/// The files of a study: relative paths start at the study file's folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StudyFolder {
    path: PathBuf,
    reach: Reach,
}

impl StudyFolder {
    /// The folder a study file lies in.
    pub fn of(study: &Path, reach: Reach) -> Self {
        let path = match study.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => parent.to_owned(),
            _ => PathBuf::from("."),
        };
        Self { path, reach }
    }

    /// Where a path of the study leads.
    pub fn resolve(&self, path: &str) -> PathBuf {
        if self.path == Path::new(".") {
            PathBuf::from(path)
        } else {
            self.path.join(path)
        }
    }

    /// Where a file of the study is or will be written, if the study may name it.
    ///
    /// # Errors
    /// When it lies outside the folder, is the file of variables, or leads through a folder that is not there and back.
    pub fn place(&self, path: &str) -> Result<PathBuf, FileError> {
        let place = self.resolve(path);
        // What is not there yet is made, below what is.
        let mut there = place.as_path();
        let found = loop {
            match fs::canonicalize(there) {
                Err(error) if error.kind() == ErrorKind::NotFound && there.file_name().is_some() => {
                    let folder = there.parent().filter(|folder| !folder.as_os_str().is_empty());
                    there = folder.unwrap_or(Path::new("."));
                }
                found => break found.map_err(|error| refused(path, &error))?,
            }
        };
        self.allow(path, &found)?;
        self.refuse_variables(path, &found)?;
        Ok(place)
    }

    /// The prompt in a file of the study, as [`read_prompt`] reads it.
    ///
    /// # Errors
    /// As [`Files::read`], and when it is larger than 1 MiB or is no UTF-8.
    pub fn read_prompt(&self, path: &str) -> Result<String, TextError> {
        let bytes = self
            .bytes(path, MOST_PROMPT)
            .map_err(|error| TextError::OfStudy { what: PROMPT, error })?;
        decoded(PROMPT, &self.resolve(path), bytes).map(prompt)
    }

    /// The variables in a file `.env` beside the study, if there is one, and what of it does not read.
    pub fn variables(&self) -> (Variables, Vec<TextError>) {
        let [name, what] = VARIABLES;
        let path = self.resolve(name);
        let bytes = self
            .found(name)
            .and_then(|found| regular(name, &found, MOST_PROMPT));
        let text = match bytes {
            Ok(bytes) => decoded(what, &path, bytes),
            Err(FileError::NotFound(_)) => return (Variables::default(), Vec::new()),
            // Environments of Python are folders of this name.
            Err(_) if path.is_dir() => return (Variables::default(), Vec::new()),
            Err(error) => Err(TextError::OfStudy { what, error }),
        };
        match text {
            Ok(text) => {
                let (variables, wrong) = Variables::parse(&text);
                let told = wrong.into_iter().map(|line| TextError::NoVariable {
                    path: path.clone(),
                    line,
                });
                (variables, told.collect())
            }
            Err(error) => (Variables::default(), vec![error]),
        }
    }

    /// The bytes of a regular file that the study may name.
    fn bytes(&self, path: &str, most: u64) -> Result<Vec<u8>, FileError> {
        let found = self.found(path)?;
        self.refuse_variables(path, &found)?;
        regular(path, &found, most)
    }

    /// Where a path leads that may be read.
    fn found(&self, path: &str) -> Result<PathBuf, FileError> {
        // Links are followed first: one may lead out.
        let found = fs::canonicalize(self.resolve(path)).map_err(|error| refused(path, &error))?;
        self.allow(path, &found)?;
        Ok(found)
    }

    /// Refuses the file of variables: keys are in it, and what a study reads goes into journals and to providers.
    fn refuse_variables(&self, path: &str, found: &Path) -> Result<(), FileError> {
        let [name, what] = VARIABLES;
        if fs::canonicalize(self.path.join(name)).is_ok_and(|variables| variables == found) {
            let problem = format!("it is the {what}, which is no part of a study");
            return Err(refused(path, &io::Error::other(problem)));
        }
        Ok(())
    }

    /// Refuses what was found outside the folder.
    fn allow(&self, path: &str, found: &Path) -> Result<(), FileError> {
        let folder = fs::canonicalize(&self.path).map_err(|error| refused(path, &error))?;
        if self.reach == Reach::Folder && !found.starts_with(&folder) {
            return Err(FileError::Outside {
                path: path.to_owned(),
                folder: folder.display().to_string(),
            });
        }
        Ok(())
    }
}

/// The bytes of a regular file at a place that a path led to.
fn regular(path: &str, found: &Path, most: u64) -> Result<Vec<u8>, FileError> {
    let refused = |error| refused(path, &error);
    expect_regular(found)
        .and_then(|()| File::open(found))
        .and_then(|file| bounded(file, most))
        .map_err(refused)
}

/// Refuses a pipe, which waits for somebody at its other end, and a device, which has no end; asked before it is opened.
fn expect_regular(path: &Path) -> io::Result<()> {
    if fs::metadata(path)?.is_file() {
        Ok(())
    } else {
        Err(io::Error::other("it is not a regular file"))
    }
}

/// Where shells and programs find what they opened for a command, at whose other end somebody is; and what takes anything.
const OPEN: [&str; 5] = ["/dev/stdin", "/dev/stdout", "/dev/stderr", "/dev/fd", "/dev/null"];

/// Whether a path leads to what a process has open.
pub(crate) fn is_open(path: &Path) -> bool {
    let is_descriptor =
        || path.starts_with("/proc") && path.parent().is_some_and(|folder| folder.ends_with("fd"));
    OPEN.iter().any(|open| path.starts_with(open)) || is_descriptor()
}

/// Refuses what is named on the command line and is neither a regular file nor opened by the shell.
///
/// # Errors
/// That it is none, or what the system says.
pub fn expect_regular_or_open(path: &Path) -> io::Result<()> {
    if is_open(path) {
        Ok(())
    } else {
        expect_regular(path)
    }
}

fn refused(path: &str, error: &io::Error) -> FileError {
    match error.kind() {
        ErrorKind::NotFound => FileError::NotFound(path.to_owned()),
        _ => FileError::Unreadable {
            path: path.to_owned(),
            reason: error.to_string(),
        },
    }
}

impl Files for StudyFolder {
    fn read(&self, path: &str) -> Result<Vec<u8>, FileError> {
        self.bytes(path, MOST_DATA)
    }

    fn directory(&self) -> Option<&Path> {
        Some(&self.path)
    }

    /// Of a file that does not read, whoever looks for keys is told.
    fn variable(&self, name: &str) -> Option<String> {
        self.variables().0.kept(name).cloned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_start_at_the_study_file() {
        let folder = StudyFolder::of(Path::new("studies/own/study.toml"), Reach::Folder);
        assert_eq!(folder.resolve("data.csv"), Path::new("studies/own/data.csv"));
        assert_eq!(folder.resolve("/data.csv"), Path::new("/data.csv"));
        assert_eq!(
            StudyFolder::of(Path::new("study.toml"), Reach::Folder).directory(),
            Some(Path::new("."))
        );
    }

    #[test]
    fn one_final_line_break_is_no_part_of_a_prompt() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("prompt.md");
        let study = StudyFolder::of(&folder.path().join("study.toml"), Reach::Folder);
        for (written, read) in [
            ("a\nb\n", "a\nb"),
            ("a\r\n", "a"),
            ("a\n\n", "a\n"),
            ("a", "a"),
            ("\u{feff}a\u{feff}", "a\u{feff}"),
        ] {
            std::fs::write(&path, written).unwrap();
            assert_eq!(read_prompt(&path).unwrap(), read);
            assert_eq!(study.read_prompt("prompt.md").unwrap(), read);
        }
    }

    #[test]
    fn a_study_reads_its_own_folder_alone_unless_it_is_allowed_to() {
        let place = tempfile::tempdir().unwrap();
        let inside = place.path().join("study");
        std::fs::create_dir_all(inside.join("data")).unwrap();
        std::fs::write(place.path().join("secret"), "key").unwrap();
        std::fs::write(inside.join("data/rows.csv"), "q\n1\n").unwrap();
        #[cfg(unix)]
        {
            std::os::unix::fs::symlink("../secret", inside.join("link")).unwrap();
            std::os::unix::fs::symlink("data/rows.csv", inside.join("rows.csv")).unwrap();
        }
        let study = inside.join("study.toml");
        let (own, any) = (
            StudyFolder::of(&study, Reach::Folder),
            StudyFolder::of(&study, Reach::Anywhere),
        );
        let absolute = place.path().join("secret").display().to_string();
        let mut outside = vec!["../secret", "data/../../secret", &absolute];
        let mut within = vec!["data/rows.csv", "./data/../data/rows.csv"];
        if cfg!(unix) {
            outside.push("link");
            within.push("rows.csv");
        }
        for path in outside {
            assert_eq!(any.read(path).unwrap(), b"key");
            let message = own.read(path).unwrap_err().to_string();
            for named in [path, "study", "--allow-outside"] {
                assert!(message.contains(named), "{message}");
            }
            assert!(
                matches!(own.place(path), Err(FileError::Outside { .. })),
                "{path}"
            );
            let prompt = own.read_prompt(path).unwrap_err().to_string();
            assert!(
                prompt.starts_with("prompt file: ") && prompt.contains("--allow-outside"),
                "{prompt}"
            );
        }
        for path in within {
            assert_eq!(own.read(path).unwrap(), b"q\n1\n");
        }
        assert_eq!(own.place("data/new.json").unwrap(), inside.join("data/new.json"));
        assert_eq!(own.place("new/new.json").unwrap(), inside.join("new/new.json"));
        assert!(matches!(own.place("../new.json"), Err(FileError::Outside { .. })));
        own.place("new/../../new.json").unwrap_err();
        assert_eq!(own.read("gone"), Err(FileError::NotFound("gone".to_owned())));
    }

    #[test]
    fn the_file_of_variables_is_no_data() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join(".env"), "CAPO_A=secret\n").unwrap();
        std::fs::create_dir(folder.path().join("data")).unwrap();
        let absolute = folder.path().join(".env").display().to_string();
        let mut paths = vec![".env", "data/../.env", &absolute];
        #[cfg(unix)]
        std::os::unix::fs::symlink(".env", folder.path().join("rows.csv")).unwrap();
        if cfg!(unix) {
            paths.push("rows.csv");
        }
        for reach in [Reach::Folder, Reach::Anywhere] {
            let study = StudyFolder::of(&folder.path().join("study.toml"), reach);
            for path in &paths {
                let message = study.read(path).unwrap_err().to_string();
                assert!(message.contains("file of variables"), "{path}: {message}");
                study.read_prompt(path).unwrap_err();
                study.place(path).unwrap_err();
            }
            assert_eq!(study.variable("CAPO_A").as_deref(), Some("secret"));
        }
    }

    #[cfg(unix)]
    #[test]
    fn variables_that_lie_outside_are_told_and_not_read() {
        let place = tempfile::tempdir().unwrap();
        let inside = place.path().join("study");
        std::fs::create_dir(&inside).unwrap();
        std::fs::write(place.path().join("keys"), "CAPO_A=secret\n").unwrap();
        std::os::unix::fs::symlink("../keys", inside.join(".env")).unwrap();
        let read = |reach| StudyFolder::of(&inside.join("study.toml"), reach).variables();
        let (variables, problems) = read(Reach::Folder);
        assert_eq!((variables.kept("CAPO_A"), problems.len()), (None, 1));
        assert!(problems[0].to_string().contains("--allow-outside"));
        let (variables, problems) = read(Reach::Anywhere);
        assert!(variables.kept("CAPO_A").is_some() && problems.is_empty());
    }

    #[cfg(unix)]
    #[test]
    fn what_is_no_regular_file_or_has_no_end_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let study = StudyFolder::of(&folder.path().join("study.toml"), Reach::Anywhere);
        let pipe = folder.path().join("pipe");
        let made = std::process::Command::new("mkfifo").arg(&pipe).status();
        assert!(made.unwrap().success());
        for path in ["pipe", "/dev/zero", "."] {
            let message = study.read(path).unwrap_err().to_string();
            assert!(message.contains("it is not a regular file"), "{path}: {message}");
        }
        std::fs::write(
            folder.path().join("long.md"),
            vec![b'x'; (MOST_PROMPT + 1) as usize],
        )
        .unwrap();
        let message = study.read_prompt("long.md").unwrap_err().to_string();
        assert!(message.contains("larger than 1 MiB"), "{message}");
        for path in [pipe.as_path(), Path::new("/dev/zero")] {
            let message = read_text("study file", path).unwrap_err().to_string();
            assert!(message.contains("it is not a regular file"), "{message}");
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
    fn a_new_file_may_be_read_by_whom_any_other_may() {
        use std::os::unix::fs::PermissionsExt as _;
        let folder = tempfile::tempdir().unwrap();
        let mode = |name: &str| {
            let there = std::fs::metadata(folder.path().join(name)).unwrap();
            there.permissions().mode()
        };
        std::fs::write(folder.path().join("usual"), "").unwrap();
        write_new(&folder.path().join("branch"), b"").unwrap();
        assert_eq!(mode("branch"), mode("usual"));
        let own = folder.path().join("own");
        std::fs::write(&own, "").unwrap();
        std::fs::set_permissions(&own, std::fs::Permissions::from_mode(0o600)).unwrap();
        write_whole(&own, b"new").unwrap();
        assert_eq!(
            mode("own") & 0o777,
            0o600,
            "and one in the place of another by whom that might be"
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
