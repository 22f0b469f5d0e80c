//! What the page costs: its first load, what a run does to it, and a long journal.

use std::path::PathBuf;

use anyhow::{Context, Result, ensure};

use crate::build;
use crate::help_desk::{STUDY, write_journal};
use crate::page::Host;
use crate::scratch::Scratch;
use crate::workspace::Workspace;

/// The budget of the built-in study, and one for a search of more than 5,000 rollouts.
const SHIPPED: &str = "rollouts = 3000";
const LONGER: &str = "rollouts = 5400";

pub(super) fn run(workspace: &Workspace, scratch: &Scratch) -> Result<()> {
    let long = long_journal(workspace, scratch)?;
    let host = Host::start(workspace)?;
    host.drive(workspace, "bench", [&host.directory, &long])
}

/// Writes a journal of more than 5,000 rollouts.
fn long_journal(workspace: &Workspace, scratch: &Scratch) -> Result<PathBuf> {
    let path = workspace.root.join(STUDY);
    let mut study =
        std::fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
    ensure!(study.contains(SHIPPED), "{STUDY} has no line `{SHIPPED}`");
    study = study.replace(SHIPPED, LONGER);
    let longer = scratch.file("long.toml");
    std::fs::write(&longer, study).with_context(|| format!("cannot write {}", longer.display()))?;
    let journal = scratch.file("long.jsonl");
    write_journal(workspace, &build::capo(workspace)?, &longer, 0, &journal)?;
    Ok(journal)
}
