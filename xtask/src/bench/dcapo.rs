//! The learned rewriter, trained from random weights against the simulated world.

use std::process::Command;

use anyhow::Result;

use super::measure;
use crate::build;
use crate::scratch::Scratch;
use crate::workspace::Workspace;

const STUDY: &str = "studies/help-desk-dcapo.toml";

pub(super) fn run(workspace: &Workspace, scratch: &Scratch, seeds: u64) -> Result<()> {
    let capo = build::capo_with(workspace, &["train"])?;
    let mut command = Command::new(capo);
    command
        .current_dir(&workspace.root)
        .args(["experiment", "dcapo", "--study", STUDY])
        .args(["--seeds", &seeds.to_string()])
        .arg("--out")
        .arg(scratch.file("dcapo"));
    let measured = measure::run(&mut command, &[0])?;
    println!("{}", measured.output);
    println!(
        "{:.0} s, {:.0} s CPU, {:.0} MB peak memory",
        measured.wall.as_secs_f64(),
        measured.cpu.as_secs_f64(),
        measured.peak_memory as f64 / 1e6
    );
    Ok(())
}
