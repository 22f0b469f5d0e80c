//! `cargo xtask bench`: what the README and the documentation claim, measured.

mod browser;
mod desk;
mod ladder;
mod machine;
mod measure;
mod rollout;
mod web;

use std::path::PathBuf;

use anyhow::{Context, Result};
use clap::{Args, ValueEnum};

use crate::workspace::Workspace;

#[derive(Args)]
pub(crate) struct Arguments {
    #[arg(value_enum)]
    name: Option<Benchmark>,
    /// How many seeds `desk` compares
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u64).range(1..))]
    seeds: u64,
}

#[derive(Clone, Copy, ValueEnum)]
enum Benchmark {
    /// CPU time and memory per durable journaled rollout, when rollouts cost nothing
    Ladder,
    /// On how many seeds `capo` and fixed multipliers find a feasible help-desk prompt
    Desk,
    /// CPU time per simulated help-desk rollout, search and journal included
    Rollout,
    /// Size of the page's first load, and time until it can be used
    Web,
}

pub(crate) fn run(workspace: &Workspace, arguments: &Arguments) -> Result<()> {
    let Some(benchmark) = arguments.name else {
        list();
        return Ok(());
    };
    let scratch = Scratch::create(workspace)?;
    println!("{}", machine::describe(workspace));
    match benchmark {
        Benchmark::Ladder => ladder::run(workspace, &scratch),
        Benchmark::Desk => desk::run(workspace, &scratch, arguments.seeds),
        Benchmark::Rollout => rollout::run(workspace, &scratch),
        Benchmark::Web => web::run(workspace),
    }
}

fn list() {
    for benchmark in Benchmark::value_variants() {
        if let Some(value) = benchmark.to_possible_value() {
            let about = value.get_help().map(ToString::to_string);
            println!("{:<8} {}", value.get_name(), about.unwrap_or_default());
        }
    }
}

/// A directory for one run's journals, removed afterwards. It is below the
/// target directory because `/tmp` may be memory, which makes a journal cheap.
struct Scratch(PathBuf);

impl Scratch {
    fn create(workspace: &Workspace) -> Result<Self> {
        let name = format!("xtask-bench-{}", std::process::id());
        let path = workspace.target.join(name);
        std::fs::create_dir_all(&path).with_context(|| format!("cannot create {}", path.display()))?;
        Ok(Self(path))
    }

    fn file(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        if let Err(error) = std::fs::remove_dir_all(&self.0) {
            eprintln!("cannot remove {}: {error}", self.0.display());
        }
    }
}
