//! Room on the disk of the target folder, which several checkouts may share and cargo never empties.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::command;
use crate::workspace::Workspace;

/// Bytes free below which Chromium stores nothing for a page, and the end-to-end tests of a page without a network
/// fail; with what building adds.
const WANTED: u64 = 15 << 30;

/// Deletes what cargo can make again, the cheapest first, until there is room.
///
/// # Errors
/// There is too little all the same, or the system does not say how much there is.
pub(super) fn make(workspace: &Workspace) -> Result<()> {
    fs::create_dir_all(&workspace.target)
        .with_context(|| format!("cannot create {}", workspace.target.display()))?;
    if free(&workspace.target)? >= WANTED {
        return Ok(());
    }
    for path in incremental(&workspace.target) {
        eprintln!("little room on the disk: removing {}", path.display());
        fs::remove_dir_all(&path).with_context(|| format!("cannot remove {}", path.display()))?;
    }
    if free(&workspace.target)? < WANTED {
        // Of every checkout that shares the folder; the dependencies, which take longest, stay.
        command::run(workspace.cargo().args(["clean", "--locked", "--workspace"]))?;
    }
    let free = free(&workspace.target)?;
    if free < WANTED {
        bail!(
            "{} GB are free on the disk of {}, and the gate needs {}: remove something, that folder, too, which is \
             built again",
            free >> 30,
            workspace.target.display(),
            WANTED >> 30
        );
    }
    Ok(())
}

/// Where rustc keeps what it compiles a crate anew from: `PROFILE/incremental` and `TARGET/PROFILE/incremental`.
fn incremental(target: &Path) -> Vec<PathBuf> {
    let folders = |path: &Path| -> Vec<PathBuf> {
        let entries = fs::read_dir(path).into_iter().flatten().flatten();
        entries
            .map(|entry| entry.path())
            .filter(|path| path.is_dir())
            .collect()
    };
    let profiles = folders(target);
    let below = profiles.iter().flat_map(|profile| folders(profile));
    let (mut found, deeper): (Vec<_>, Vec<_>) = below.partition(|path| path.ends_with("incremental"));
    found.extend(
        deeper
            .iter()
            .map(|path| path.join("incremental"))
            .filter(|path| path.is_dir()),
    );
    found
}

/// Bytes that who runs this may still write to the disk of a folder.
fn free(folder: &Path) -> Result<u64> {
    let printed = command::output(
        Command::new("df")
            .args(["--block-size=1", "--output=avail"])
            .arg(folder),
    )?;
    let bytes = printed.lines().last().map(|line| line.trim().parse());
    bytes
        .and_then(Result::ok)
        .with_context(|| format!("`df` printed no number of bytes: {printed}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_rustc_keeps_between_builds_is_found_and_nothing_else() {
        let target = tempfile::tempdir().unwrap();
        let kept = ["debug/incremental", "wasm32-unknown-unknown/web/incremental"];
        for path in ["debug/deps/incremental-1", "release/build"].iter().chain(&kept) {
            fs::create_dir_all(target.path().join(path)).unwrap();
        }
        let mut found = incremental(target.path());
        found.sort();
        assert_eq!(found, kept.map(|path| target.path().join(path)));
    }

    #[test]
    fn a_disk_says_what_is_free() {
        let here = tempfile::tempdir().unwrap();
        assert!(free(here.path()).unwrap() > 0);
        assert!(free(&here.path().join("absent")).is_err());
    }
}
