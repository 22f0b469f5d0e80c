//! Whether what searches hand over holds on fresh examples, with caution, certificates and other methods.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};

use super::desk::studies::{is_help_desk, play_on, read};
use super::measure;
use crate::build;
use crate::scratch::Scratch;
use crate::workspace::Workspace;

const STUDIES: [&str; 5] = [
    "help-desk",
    "nine-constraints",
    "airline-simulated",
    "retail-simulated",
    "telecom-simulated",
];

/// What is measured, in how many fresh rollouts of a prompt: what is handed over; of every prompt that was measured, what
/// rules for the final choice make of them.
const EXPERIMENTS: [(&str, u32); 2] = [("feasible", 5000), ("choice", 1000)];

/// Of an experiment that ended, with or without runs that the budget cut, which its report tells.
const ENDED: [i32; 2] = [0, 3];

pub(super) fn run(workspace: &Workspace, scratch: &Scratch, seeds: u64, data: Option<&Path>) -> Result<()> {
    let capo = build::capo(workspace)?;
    let mut studies = Vec::new();
    for name in STUDIES {
        let mut study = read(&workspace.root.join("studies").join(name).with_extension("toml"))?;
        match data {
            _ if is_help_desk(&study) => {}
            Some(data) => play_on(&mut study, data)?,
            None => {
                println!(
                    "{name}: not without the folder data/tau2 of a checkout of tau2-bench; name it with --data"
                );
                continue;
            }
        }
        let path = scratch.file(&format!("{name}.toml"));
        std::fs::write(&path, toml::to_string(&study)?)
            .with_context(|| format!("cannot write {}", path.display()))?;
        studies.push((name, path));
    }
    for (name, path) in &studies {
        for (experiment, fresh) in EXPERIMENTS {
            let mut command = Command::new(&capo);
            command
                // Journals of thousands of runs, some 34 MB each, would fill a disk.
                .args([
                    "experiment",
                    experiment,
                    "--allow-outside",
                    "--no-journals",
                    "--study",
                ])
                .arg(path)
                .args(["--seeds", &seeds.to_string(), "--fresh", &fresh.to_string()])
                .arg("--out")
                .arg(scratch.file(&format!("{experiment}-{name}")));
            let measured = measure::run(&mut command, &ENDED)?;
            println!(
                "{name}, {:.0} s of CPU\n{}",
                measured.cpu.as_secs_f64(),
                measured.output
            );
        }
    }
    Ok(())
}
