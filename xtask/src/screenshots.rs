//! `cargo xtask screenshots`: the pictures of the page that the documentation shows.

use anyhow::Result;

use crate::build;
use crate::help_desk::{STUDY, write_journal};
use crate::page::Host;
use crate::scratch::Scratch;
use crate::workspace::Workspace;

/// Where the pictures go, below the workspace.
const DIRECTORY: &str = "docs/screenshots";

pub(crate) fn run(workspace: &Workspace) -> Result<()> {
    let scratch = Scratch::create(workspace)?;
    let other = scratch.file("other-seed.jsonl");
    let study = workspace.root.join(STUDY);
    write_journal(workspace, &build::capo(workspace)?, &study, 1, &other)?;
    let host = Host::start(workspace)?;
    let directory = workspace.root.join(DIRECTORY);
    host.drive(workspace, "screenshots", [&directory, &other])
}
