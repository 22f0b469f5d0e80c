//! `cargo xtask fuzz`: arbitrary calls of tools, studies, templates, journals and answers of providers.

use anyhow::Result;
use clap::Args;

use crate::command;
use crate::install::{Tool, Toolbox};
use crate::workspace::{FUZZ, Workspace, cargo_program};

/// Seconds after which one input counts as work without bounds. It takes milliseconds.
const MOST_SECONDS: u64 = 10;
/// Bytes that an input is drawn from; more draw no more calls or changes.
const MOST_BYTES: u64 = 2048;

/// The targets, in the order they are run.
const TARGETS: [&str; 5] = ["study", "template", "journal", "answer", "tau2"];

#[derive(Args)]
pub(crate) struct Arguments {
    /// Which, one after the other: all unless named
    #[arg(value_parser = TARGETS)]
    targets: Vec<String>,
    /// For how long each
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..=10_000))]
    minutes: u64,
}

pub(crate) fn run(workspace: &Workspace, arguments: &Arguments) -> Result<()> {
    let mut toolbox = Toolbox::open()?;
    toolbox.ensure(&Tool::Fuzz)?;
    let all = TARGETS.map(str::to_owned);
    let targets = if arguments.targets.is_empty() {
        &all[..]
    } else {
        &arguments.targets
    };
    targets.iter().try_for_each(|target| {
        command::run(
            toolbox
                .command(cargo_program())
                .current_dir(&workspace.root)
                // Sanitizers are unstable, and the toolchain that is there has them all the same.
                .env("RUSTC_BOOTSTRAP", "1")
                .args(["fuzz", "run"])
                .args(["--fuzz-dir", FUZZ, target, "--"])
                .arg(format!("-max_total_time={}", arguments.minutes * 60))
                .arg(format!("-timeout={MOST_SECONDS}"))
                .arg(format!("-max_len={MOST_BYTES}"))
                .arg("-print_final_stats=1"),
        )
    })
}
