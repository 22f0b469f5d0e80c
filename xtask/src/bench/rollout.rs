//! The cost of one simulated help-desk rollout: by itself, and within a whole run.

use std::io::{BufRead, BufReader};
use std::path::Path;

use anyhow::{Context, Result, ensure};
use serde::Deserialize;

use super::measure;
use crate::help_desk::{SEARCH_ENDED, STUDY, optimize};
use crate::scratch::Scratch;
use crate::workspace::{SERVER, Workspace};
use crate::{build, command};

pub(super) fn run(workspace: &Workspace, scratch: &Scratch) -> Result<()> {
    println!("by itself (aim: under 50 µs on a quiet core):");
    command::run(
        workspace
            .cargo()
            .args(["bench", "--quiet", "--package", SERVER, "--bench", "rollout"]),
    )?;
    let capo = build::capo(workspace)?;
    let journal = scratch.file("rollout.jsonl");
    let study = workspace.root.join(STUDY);
    let mut command = optimize(workspace, &capo, &study, 0, &journal);
    let measured = measure::run(&mut command, &SEARCH_ENDED)?;
    let rollouts = rollouts(&journal)?;
    ensure!(rollouts > 0, "{} holds no rollout", journal.display());
    let each = |seconds: f64| seconds * 1e6 / rollouts as f64;
    println!("{STUDY} with its critiques, rewrites and journal:");
    println!("{rollouts} rollouts, {:.1} s", measured.wall.as_secs_f64());
    println!("{:.0} µs CPU per rollout", each(measured.cpu.as_secs_f64()));
    println!("{:.0} µs wall per rollout", each(measured.wall.as_secs_f64()));
    println!("{:.1} MB peak memory", measured.peak_memory as f64 / 1e6);
    Ok(())
}

/// How many rollouts the journal holds, those of the held-out evaluation too.
fn rollouts(journal: &Path) -> Result<u64> {
    #[derive(Deserialize)]
    struct Line {
        event: String,
    }
    let file = std::fs::File::open(journal).with_context(|| format!("cannot read {}", journal.display()))?;
    let mut count = 0;
    for line in BufReader::new(file).lines() {
        let line: Line =
            serde_json::from_str(&line?).with_context(|| format!("{} is no journal", journal.display()))?;
        count += u64::from(line.event == "rollout");
    }
    Ok(count)
}
