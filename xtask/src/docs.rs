//! `cargo xtask docs`: the pages of `docs/` that are generated from the code.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use clap::Args;

use crate::build::built;
use crate::command;
use crate::workspace::{NATIVE, SERVER, Workspace};

/// The example of the server's package that writes the pages into the directory
/// it is given.
const GENERATOR: &str = "generate_docs";

#[derive(Args)]
pub(crate) struct Arguments {
    /// Change nothing; fail when a page differs from what would be written
    #[arg(long)]
    check: bool,
}

pub(crate) fn run(workspace: &Workspace, arguments: &Arguments) -> Result<()> {
    if !has_generator(workspace) {
        println!("no page of this checkout is generated");
    } else if arguments.check {
        check(workspace)?;
    } else {
        generate(workspace, &workspace.root.join("docs"))?;
    }
    Ok(())
}

/// Whether this checkout generates any page.
pub(crate) fn has_generator(workspace: &Workspace) -> bool {
    workspace
        .package(SERVER)
        .is_some_and(|server| server.has_example(GENERATOR))
}

/// Compares `docs/` with what the generator writes.
///
/// # Errors
/// Names every page that is missing or differs.
pub(crate) fn check(workspace: &Workspace) -> Result<()> {
    let fresh = workspace.target.join("xtask-docs");
    if fresh.exists() {
        std::fs::remove_dir_all(&fresh).with_context(|| format!("cannot empty {}", fresh.display()))?;
    }
    generate(workspace, &fresh)?;
    let stale = stale(&fresh, &workspace.root.join("docs"))?;
    if !stale.is_empty() {
        let names: Vec<_> = stale
            .iter()
            .map(|page| format!("docs/{}", page.display()))
            .collect();
        bail!(
            "out of date: {}\nRun `cargo xtask docs` and commit what it writes.",
            names.join(", ")
        );
    }
    Ok(())
}

fn generate(workspace: &Workspace, into: &Path) -> Result<()> {
    std::fs::create_dir_all(into).with_context(|| format!("cannot create {}", into.display()))?;
    command::run(
        workspace
            .cargo()
            .arg("build")
            .args(NATIVE)
            .args(["--example", GENERATOR]),
    )?;
    let generator = built(workspace, "debug", &["examples", GENERATOR])?;
    command::run(Command::new(generator).current_dir(&workspace.root).arg(into))
}

/// The files below `fresh`, as relative paths, that `kept` lacks or holds with
/// other content. Files that only `kept` has are written by hand.
fn stale(fresh: &Path, kept: &Path) -> Result<Vec<PathBuf>> {
    let pages = files(fresh)?;
    if pages.is_empty() {
        bail!("the example `{GENERATOR}` wrote no page");
    }
    let mut stale = Vec::new();
    for page in pages {
        let relative = page.strip_prefix(fresh)?.to_owned();
        let expected = std::fs::read(&page).with_context(|| format!("cannot read {}", page.display()))?;
        if std::fs::read(kept.join(&relative)).ok() != Some(expected) {
            stale.push(relative);
        }
    }
    Ok(stale)
}

/// Every file below the directory, in order of path.
fn files(directory: &Path) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    let mut waiting = vec![directory.to_owned()];
    while let Some(next) = waiting.pop() {
        let entries = std::fs::read_dir(&next).with_context(|| format!("cannot list {}", next.display()))?;
        for entry in entries {
            let path = entry?.path();
            if path.is_dir() {
                waiting.push(path);
            } else {
                found.push(path);
            }
        }
    }
    found.sort();
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_missing_and_changed_pages_only() {
        let base = std::env::temp_dir().join(format!("xtask-docs-{}", std::process::id()));
        let (fresh, kept) = (base.join("fresh"), base.join("kept"));
        let write = |directory: &Path, name: &str, text: &str| {
            let path = directory.join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        std::fs::create_dir_all(&fresh).unwrap();
        assert!(stale(&fresh, &kept).is_err(), "an empty output is no success");

        for name in ["same.md", "changed.md", "deep/missing.md"] {
            write(&fresh, name, "new");
        }
        write(&kept, "same.md", "new");
        write(&kept, "changed.md", "old");
        write(&kept, "by-hand.md", "text");
        let names = stale(&fresh, &kept).unwrap();
        std::fs::remove_dir_all(&base).unwrap();
        assert_eq!(names, ["changed.md", "deep/missing.md"].map(PathBuf::from));
    }
}
