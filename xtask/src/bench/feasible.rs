//! Whether what searches hand over holds on fresh examples, with caution, certificates and other methods.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};

use super::measure;
use crate::build;
use crate::scratch::Scratch;
use crate::workspace::Workspace;

/// The studies, and whether they read the data of tau2-bench.
const STUDIES: [(&str, bool); 5] = [
    ("help-desk", false),
    ("nine-constraints", false),
    ("airline-simulated", true),
    ("retail-simulated", true),
    ("telecom-simulated", true),
];

/// What is measured, in how many fresh rollouts of a prompt: what is handed over; of every prompt that was measured, what
/// rules for the final choice make of them.
const EXPERIMENTS: [(&str, u32); 2] = [("feasible", 5000), ("choice", 1000)];

pub(super) fn run(workspace: &Workspace, scratch: &Scratch, seeds: u64, data: Option<&Path>) -> Result<()> {
    let capo = build::capo(workspace)?;
    let data = data.map(|data| {
        data.canonicalize()
            .with_context(|| format!("no folder {}", data.display()))
    });
    let data = data.transpose()?;
    for (name, reads_data) in STUDIES {
        if reads_data && data.is_none() {
            println!(
                "{name}: not without the folder data/tau2 of a checkout of tau2-bench; name it with --data"
            );
            continue;
        }
        let study = workspace.root.join("studies").join(name).with_extension("toml");
        let text =
            std::fs::read_to_string(&study).with_context(|| format!("cannot read {}", study.display()))?;
        let mut study: toml::Table = toml::from_str(&text)?;
        if let (true, Some(data)) = (reads_data, &data) {
            let workload = study.get_mut("workload").and_then(toml::Value::as_table_mut);
            let workload = workload.with_context(|| format!("{name} has no workload"))?;
            workload.insert("data".to_owned(), data.display().to_string().into());
        }
        let path = scratch.file(&format!("{name}.toml"));
        std::fs::write(&path, toml::to_string(&study)?)?;
        for (experiment, fresh) in EXPERIMENTS {
            let mut command = Command::new(&capo);
            command
                .args(["experiment", experiment, "--allow-outside", "--study"])
                .arg(&path)
                .args(["--seeds", &seeds.to_string(), "--fresh", &fresh.to_string()])
                .arg("--out")
                .arg(scratch.file(&format!("{experiment}-{name}")));
            let measured = measure::run(&mut command, &[0])?;
            println!("{name}\n{}", measured.output);
        }
    }
    Ok(())
}
