//! `cargo xtask bench`: what the README and the documentation claim, measured.

mod dcapo;
mod desk;
mod feasible;
mod gpu;
mod ladder;
mod machine;
mod measure;
mod rewriter;
mod rollout;
mod server;
mod tau2;
mod web;

use std::path::PathBuf;

use anyhow::Result;
use clap::{Args, ValueEnum};

use crate::scratch::Scratch;
use crate::workspace::Workspace;

#[derive(Args)]
pub(crate) struct Arguments {
    #[arg(value_enum)]
    name: Option<Benchmark>,
    /// How many splits and seeds `desk` [default: 20] or `peers` [default: 40] and `feasible` [default: 200] compare, or `dcapo` trains on [default: 5]
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..))]
    seeds: Option<u64>,
    /// The folder data/tau2 of a checkout of tau2-bench, which `tau2`, `feasible`, and `desk` and `peers` on a study of tau2 play on
    #[arg(long)]
    data: Option<PathBuf>,
    /// A Python with torch, transformers and peft, which `rewriter` is timed beside
    #[arg(long)]
    python: Option<PathBuf>,
    /// How often `rewriter` and its peer take turns
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u64).range(1..))]
    turns: u64,
    #[command(flatten)]
    contest: desk::Contest,
}

#[derive(Clone, Copy, ValueEnum)]
enum Benchmark {
    /// CPU time and memory per durable journaled rollout, when rollouts cost nothing
    Ladder,
    /// What a small rewriter learns by SFT and GRPO against the simulated world, and how long that takes
    Dcapo,
    /// On how many seeds `capo` and fixed multipliers find a feasible help-desk prompt
    Desk,
    /// Whether what is handed over holds on fresh examples, with caution, certificates and other methods
    Feasible,
    /// What `capo` and GEPA find and hand over on the help desk, and after how much
    Peers,
    /// CPU time per simulated help-desk rollout, search and journal included
    Rollout,
    /// What the team server costs: answers under 50 runs and 500 watchers, memory, and what its proxy adds to a call
    Server,
    /// Tokens per second that the learned rewriter reads, writes and learns on the CPU, beside PyTorch's
    Rewriter,
    /// Packs parity and speed of the rewriter on CUDA into one archive, for a machine with a GPU and no Rust
    Gpu,
    /// Time of an environment, a tool call and a state hash of the tau2 domains, beside Python's, and memory
    Tau2,
    /// Size of the page's first load, times until it, a run and a journal can be used, and its longest tasks
    Web,
}

pub(crate) fn run(workspace: &Workspace, arguments: &Arguments) -> Result<()> {
    let Some(benchmark) = arguments.name else {
        list();
        return Ok(());
    };
    let scratch = Scratch::create(workspace)?;
    let data = arguments.data.as_deref();
    println!("{}", machine::describe(workspace));
    match benchmark {
        Benchmark::Ladder => ladder::run(workspace, &scratch),
        Benchmark::Dcapo => dcapo::run(workspace, &scratch, arguments.seeds.unwrap_or(5)),
        Benchmark::Desk => {
            let seeds = arguments.seeds.unwrap_or(20);
            desk::run(workspace, &scratch, seeds, &arguments.contest, data)
        }
        Benchmark::Peers => {
            let seeds = arguments.seeds.unwrap_or(40);
            desk::run_peers(workspace, &scratch, seeds, &arguments.contest, data)
        }
        Benchmark::Feasible => {
            let seeds = arguments.seeds.unwrap_or(200);
            feasible::run(workspace, &scratch, seeds, data)
        }
        Benchmark::Gpu => gpu::run(workspace, &scratch),
        Benchmark::Rollout => rollout::run(workspace, &scratch),
        Benchmark::Server => server::run(workspace),
        Benchmark::Rewriter => rewriter::run(workspace, arguments.python.as_deref(), arguments.turns),
        Benchmark::Tau2 => tau2::run(workspace, data),
        Benchmark::Web => web::run(workspace, &scratch),
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
