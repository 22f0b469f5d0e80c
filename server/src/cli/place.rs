//! Places on the command line at which a file is written.

use std::fs::{self, File};
use std::io::{self, Read, Write as _};
#[cfg(unix)]
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};

use flate2::read::MultiGzDecoder;

use super::failure::{Failure, print_data};
use crate::files::{NewFile, is_open, is_packed, write_whole};

/// Where shells and programs find standard output and standard error, which may be files that are not to be replaced.
const STDOUT: [&str; 3] = ["/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"];
const STDERR: [&str; 3] = ["/dev/stderr", "/dev/fd/2", "/proc/self/fd/2"];

/// Refuses a place that nothing can be written to, that of a journal, and that of what the command reads, which `read` has by
/// what it is. To be asked before anything is paid for.
pub(super) fn check<'a>(
    option: &str,
    place: &Path,
    read: impl IntoIterator<Item = (&'a str, &'a Path)>,
) -> Result<(), Failure> {
    let folder = place.parent().filter(|folder| !folder.as_os_str().is_empty());
    let problem = if let Some(folder) = folder.filter(|folder| !folder.is_dir()) {
        format!("there is no folder {}; make it first", folder.display())
    } else if place.is_dir() {
        format!("{} is a folder", place.display())
    } else if let Some((what, _)) = read.into_iter().find(|(_, own)| is_of(own, place)) {
        format!("{} is not replaced: it is {what}", place.display())
    } else if is_journal(place) {
        format!("{} is not replaced: it is a journal", place.display())
    } else if takes_text(place) {
        return Ok(());
    } else {
        format!(
            "{} cannot be written: it is neither a file nor a terminal, and not open",
            place.display()
        )
    };
    Err(Failure::usage(format!("{option}: {problem}")))
}

/// Whether a place takes what is written to it. A pipe that nobody has open waits for a reader.
fn takes_text(place: &Path) -> bool {
    let Ok(there) = fs::metadata(place) else {
        return !is_open(place);
    };
    #[cfg(unix)]
    if there.file_type().is_char_device() {
        return true;
    }
    there.is_file() || is_open(place)
}

/// Whether a place is standard output.
pub(super) fn is_stdout(place: &Path) -> bool {
    STDOUT.iter().any(|stdout| place == Path::new(stdout))
}

/// Writes a text to a place, whole or not at all where that is a file.
pub(super) fn write(place: &Path, text: &str) -> Result<(), Failure> {
    if is_stdout(place) {
        return print_data(text);
    }
    let is_stderr = STDERR.iter().any(|stderr| place == Path::new(stderr));
    // A link may lead to what is there only now.
    if is_journal(place) {
        let problem = format!("{} is not replaced: it is a journal", place.display());
        return Err(Failure::new(problem));
    }
    let written = if is_stderr {
        io::stderr().write_all(text.as_bytes())
    } else {
        write_whole(place, text.as_bytes())
    };
    written.map_err(|error| Failure::new(format!("{} cannot be written: {error}", place.display())))
}

/// Refuses a place that cannot be written to, by a file beside it.
pub(super) fn try_out(option: &str, place: &Path) -> Result<(), Failure> {
    if place.exists() && (is_open(place) || !place.is_file()) {
        return Ok(());
    }
    NewFile::beside(&leads_to(place)).map(drop).map_err(|error| {
        let problem = format!("{option}: {} cannot be written: {error}", place.display());
        Failure::usage(problem)
    })
}

/// Whether a file begins as journals do, gzip having packed it or not: what was paid for is in it, and a run may be writing
/// to it.
pub(super) fn is_journal(path: &Path) -> bool {
    const START: &[u8] = br#"{"event":"study""#;
    let mut start = Vec::with_capacity(START.len());
    // Only a regular file may be looked into: reading from a pipe would take what others wait for.
    path.is_file()
        && File::open(path)
            .and_then(|file| {
                let file: Box<dyn Read> = if is_packed(path) {
                    Box::new(MultiGzDecoder::new(file))
                } else {
                    Box::new(file)
                };
                file.take(START.len() as u64).read_to_end(&mut start)
            })
            .is_ok_and(|_| start == START)
}

/// Whether a place is that of a file, be it through links of either kind, or of one that is in a folder.
fn is_of(own: &Path, place: &Path) -> bool {
    // A terminal may be what is read and what is written.
    if place.exists() && !place.is_file() {
        return false;
    }
    #[cfg(unix)]
    if let (Ok(own), Ok(place)) = (fs::metadata(own), fs::metadata(place))
        && (own.dev(), own.ino()) == (place.dev(), place.ino())
    {
        return true;
    }
    let (own, there) = (leads_to(own), leads_to(place));
    own == there || (own.is_dir() && there.exists() && there.starts_with(&own))
}

/// Where a path leads through links, also that of a file that is not there yet.
fn leads_to(path: &Path) -> PathBuf {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    fs::canonicalize(path).unwrap_or_else(|_| {
        match (
            fs::canonicalize(folder.unwrap_or(Path::new("."))),
            path.file_name(),
        ) {
            (Ok(folder), Some(name)) => folder.join(name),
            _ => path.to_owned(),
        }
    })
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn what_is_read_is_found_by_any_of_its_names() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        for name in ["rows.csv", "other.csv"] {
            fs::write(at(name), "").unwrap();
        }
        fs::create_dir(at("data")).unwrap();
        fs::write(at("data/tasks.json"), "").unwrap();
        fs::hard_link(at("rows.csv"), at("hard")).unwrap();
        std::os::unix::fs::symlink("rows.csv", at("soft")).unwrap();
        std::os::unix::fs::symlink("new", at("dangling")).unwrap();
        let refused = |place: &str| {
            let read = ["rows.csv", "data", "dangling"].map(|name| ("read", at(name)));
            let read = read.iter().map(|(what, path)| (*what, path.as_path()));
            check("--out", &at(place), read).is_err_and(|failure| failure.message().contains("it is read"))
        };
        for place in ["rows.csv", "hard", "soft", "data/tasks.json", "dangling"] {
            assert!(refused(place), "{place}");
        }
        for place in ["other.csv", "new.csv", "data/new.json"] {
            assert!(!refused(place), "{place}");
        }
        assert!(
            check(
                "--out",
                Path::new("/dev/null"),
                [("read", Path::new("/dev/null"))]
            )
            .is_ok()
        );
    }
}
