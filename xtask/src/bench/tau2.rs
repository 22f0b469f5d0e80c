//! The tau2 domains beside the benchmark's own Python environment.

use std::path::Path;

use anyhow::{Context, Result};

use crate::command;
use crate::workspace::Workspace;

pub(super) fn run(workspace: &Workspace, data: Option<&Path>) -> Result<()> {
    let data = data.context("name the folder data/tau2 of a checkout of tau2-bench with --data")?;
    let data = data
        .canonicalize()
        .with_context(|| format!("no folder {}", data.display()))?;
    command::run(
        workspace
            .cargo()
            .args([
                "bench",
                "--quiet",
                "--package",
                "capo-workloads",
                "--bench",
                "tau2",
                "--",
            ])
            .arg(data),
    )
}
