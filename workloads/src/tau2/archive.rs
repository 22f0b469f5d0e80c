//! The benchmark's data in a ZIP archive, whatever folder of it they lie in.
//!
//! Nothing is written anywhere: what is needed is found by the ends of the paths, and held in memory within bounds.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::io::{Cursor, Read, Seek};

use zip::ZipArchive;

use super::airline::Airline;
use super::folder::{self, Domain};
use super::retail::Retail;
use super::settings::DomainName;
use super::telecom::Telecom;
use crate::data::{Look, cut};
use crate::files::MemoryFiles;

/// Bytes of a file, unpacked: five times those of the largest one.
const MOST_FILE: u64 = 64 << 20;

/// Bytes of all of them.
const MOST: u64 = 128 << 20;

/// Entries of an archive; a checkout has some thousand.
const MOST_ENTRIES: usize = 1 << 16;

/// The file of the benchmark that somebody's path means.
pub fn wanted(path: &str) -> Option<&'static str> {
    let mut all = DomainName::ALL.into_iter().flat_map(folder::files).copied();
    all.find(|wanted| {
        let before = path.strip_suffix(wanted);
        before.is_some_and(|before| before.is_empty() || before.ends_with('/'))
    })
}

/// Takes what is needed out of an archive.
///
/// # Errors
/// What does not read, or is larger than the benchmark can be.
pub fn unpack(name: &str, archive: impl Read + Seek) -> Result<BTreeMap<&'static str, String>, String> {
    let wrong = |error: &dyn std::fmt::Display| format!("{name} does not read as a ZIP archive: {error}");
    let mut archive = ZipArchive::new(archive).map_err(|error| wrong(&error))?;
    let paths = archive.file_names().map(|path| path.map(Cow::into_owned));
    let mut paths: Vec<String> = paths.collect::<Result<_, _>>().map_err(|error| wrong(&error))?;
    // A checkout may hold copies in deeper folders.
    paths.sort_by_key(String::len);
    let (mut found, mut left) = (BTreeMap::new(), MOST);
    for path in paths {
        let Some(wanted) = wanted(&path).filter(|wanted| !found.contains_key(wanted)) else {
            continue;
        };
        let mut bytes = Vec::new();
        let most = left.min(MOST_FILE);
        // What the archive says of sizes is not to be relied on.
        let mut entry = archive
            .by_name(&path)
            .map_err(|error| wrong(&error))?
            .take(most + 1);
        let read = entry.read_to_end(&mut bytes);
        read.map_err(|error| format!("{name}, {path}: {error}"))?;
        left = left.checked_sub(bytes.len() as u64).filter(|_| bytes.len() as u64 <= most).ok_or_else(|| {
            format!("{name}, {path}: unpacked it is larger than the benchmark's data can be, and may be meant to fill a memory")
        })?;
        let text = String::from_utf8(bytes).map_err(|_| format!("{name}, {path}: is not UTF-8 text"))?;
        found.insert(wanted, text);
    }
    Ok(found)
}

/// The domains of which every file was found.
///
/// # Errors
/// What each of them lacks, where none has all.
pub fn complete(found: &BTreeMap<&'static str, String>) -> Result<Vec<DomainName>, String> {
    let lacking = |domain: DomainName| {
        folder::files(domain)
            .iter()
            .find(|path| !found.contains_key(*path))
    };
    let complete = DomainName::ALL
        .into_iter()
        .filter(|domain| lacking(*domain).is_none());
    let complete: Vec<DomainName> = complete.collect();
    if !complete.is_empty() {
        return Ok(complete);
    }
    if found.is_empty() {
        return Err(
            "There is nothing of the benchmark in it. Drop the folder data/tau2 of a checkout of tau2-bench, or a ZIP of it."
                .to_owned(),
        );
    }
    let lacks = DomainName::ALL.map(|domain| {
        format!(
            "{} lacks {}",
            domain.name(),
            lacking(domain).copied().unwrap_or_default()
        )
    });
    Err(format!("No domain is complete: {}.", lacks.join(", ")))
}

/// Reads the domains of an archive as their workloads do: its rows are their tasks.
///
/// # Errors
/// What is missing, does not read, or is larger than the benchmark can be.
pub fn look(name: &str, bytes: &[u8], most: usize) -> Result<Look, String> {
    // Each entry has a header of its own in the list of all, which is read whole.
    if bytes.windows(4).filter(|sign| sign == b"PK\x01\x02").count() > MOST_ENTRIES {
        return Err(format!(
            "{name} has more than {MOST_ENTRIES} entries; pack the folder data/tau2 alone"
        ));
    }
    let found = unpack(name, Cursor::new(bytes))?;
    let complete = complete(&found).map_err(|lacks| format!("{name}: {}", lacks.trim_end_matches('.')))?;
    let files = found.into_iter();
    let files = files.fold(MemoryFiles::new(), |files, (path, text)| {
        files.with(format!("{name}/{path}"), text)
    });
    let mut look = Look {
        columns: ["domain", "task", "wish"].map(str::to_owned).to_vec(),
        ..Look::default()
    };
    for domain in complete {
        let tasks = match domain {
            DomainName::Airline => tasks::<Airline>(&files, name),
            DomainName::Retail => tasks::<Retail>(&files, name),
            DomainName::Telecom => tasks::<Telecom>(&files, name),
        }?;
        look.count += tasks.len();
        let shown = tasks.into_iter().take(most.saturating_sub(look.first.len()));
        look.first
            .extend(shown.map(|(id, wish)| vec![domain.name().to_owned(), id, wish]));
    }
    Ok(look)
}

/// Each task of a domain by its id, with what the user wants.
fn tasks<W: Domain>(files: &MemoryFiles, root: &str) -> Result<Vec<(String, String)>, String> {
    let (_, tasks) = folder::read::<W>(files, root).map_err(|error| error.to_string())?;
    let shown = tasks
        .into_iter()
        .map(|task| (cut(&task.id), cut(&task.user_scenario.wish())));
    Ok(shown.collect())
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use zip::ZipWriter;
    use zip::write::SimpleFileOptions;

    use super::*;

    const TASKS: &str = r#"[{"id": "0", "user_scenario": {"instructions": "Cancel it."}}]"#;

    fn archive(entries: &[(&str, &[u8])]) -> Vec<u8> {
        let mut archive = ZipWriter::new(Cursor::new(Vec::new()));
        for (path, bytes) in entries {
            archive.start_file(*path, SimpleFileOptions::default()).unwrap();
            archive.write_all(bytes).unwrap();
        }
        archive.finish().unwrap().into_inner()
    }

    fn airline(before: &str, tasks: &[u8]) -> Vec<u8> {
        let db = include_bytes!("../../testdata/tau2/domains/airline/db.json");
        let paths = folder::files(DomainName::Airline)
            .iter()
            .map(|path| (format!("{before}{path}"), *path));
        let entries: Vec<(String, &[u8])> = paths
            .map(|(path, wanted)| match wanted.rsplit('/').next() {
                Some("db.json") => (path, &db[..]),
                Some("tasks.json") => (path, tasks),
                _ => (path, &b"{}"[..]),
            })
            .collect();
        let entries: Vec<(&str, &[u8])> = entries
            .iter()
            .map(|(path, bytes)| (path.as_str(), *bytes))
            .collect();
        archive(&entries)
    }

    #[test]
    fn files_are_found_wherever_the_benchmark_lies() {
        for path in [
            "domains/airline/db.json",
            "tau2-bench-main/data/tau2/domains/airline/db.json",
        ] {
            assert_eq!(wanted(path), Some("domains/airline/db.json"), "{path}");
        }
        for path in [
            "subdomains/airline/db.json",
            "domains/airline/db.json.bak",
            "domains/mock/db.json",
        ] {
            assert_eq!(wanted(path), None, "{path}");
        }
    }

    #[test]
    fn what_is_missing_is_named() {
        assert!(complete(&BTreeMap::new()).unwrap_err().contains("data/tau2"));
        let one = BTreeMap::from([("domains/airline/db.json", String::new())]);
        let message = complete(&one).unwrap_err();
        assert!(
            message.contains("airline lacks domains/airline/policy.md"),
            "{message}"
        );
        assert!(
            message.contains("retail lacks domains/retail/db.json"),
            "{message}"
        );
    }

    #[test]
    fn an_archive_shows_its_tasks_and_says_what_does_not_read() {
        for before in ["", "tau2-bench-main/data/tau2/", "../../../etc/", "/"] {
            let look = look("tau2.zip", &airline(before, TASKS.as_bytes()), 20).unwrap();
            assert_eq!(
                (look.count, look.first),
                (
                    1,
                    vec![["airline", "0", "Cancel it."].map(str::to_owned).to_vec()]
                )
            );
        }
        let error = look("tau2.zip", &airline("", b"[{]"), 20).unwrap_err();
        assert!(
            error.starts_with("tau2.zip/domains/airline/tasks.json: ") && error.contains("line 1"),
            "{error}"
        );
        let error = look("tau2.zip", b"PK no archive", 20).unwrap_err();
        assert!(error.contains("does not read as a ZIP archive"), "{error}");
    }

    #[test]
    fn an_archive_that_would_fill_the_memory_is_left_packed() {
        let zeros = vec![b'0'; MOST_FILE as usize + 1];
        let bomb = airline("", &zeros);
        assert!(bomb.len() < 1 << 20);
        let error = look("bomb.zip", &bomb, 20).unwrap_err();
        assert!(
            error.starts_with("bomb.zip, domains/airline/tasks.json: unpacked"),
            "{error}"
        );
        let many = b"PK\x01\x02".repeat(MOST_ENTRIES + 1);
        let error = look("many.zip", &many, 20).unwrap_err();
        assert!(error.contains("more than 65536 entries"), "{error}");
    }
}
