//! What the team server costs under load.

use anyhow::Result;

use crate::command;
use crate::workspace::{SERVER, Workspace};

pub(super) fn run(workspace: &Workspace) -> Result<()> {
    println!("aims: p99 of reads under 100 ms, memory under 500 MB, less than 1 ms for the proxy:");
    command::run(
        workspace
            .cargo()
            .args(["bench", "--quiet", "--package", SERVER, "--bench", "team"]),
    )
}
