//! The cost of the search itself: the rule ladder's agent and rewriter answer
//! at once, so all that is left is Capo's own work per rollout, journal included.

use std::process::Command;

use anyhow::{Context, Result, ensure};
use serde::Deserialize;

use super::measure;
use crate::build;
use crate::scratch::Scratch;
use crate::workspace::Workspace;

const ROLLOUTS: [u64; 2] = [10_000, 100_000];
/// The most CPU time that one durable journaled rollout may cost.
const MILLISECONDS_PER_ROLLOUT: f64 = 0.05;
/// The most memory at the smaller number of rollouts.
const MEGABYTES: f64 = 20.0;

/// The line of JSON that the example prints.
#[derive(Deserialize)]
struct Line {
    rollouts: u64,
    candidates: u64,
    best_objective: f64,
}

pub(super) fn run(workspace: &Workspace, scratch: &Scratch) -> Result<()> {
    let ladder = build::example(workspace, "capo-core", "ladder")?;
    println!(
        "{:>9} {:>10} {:>9} {:>15} {:>15} {:>10}",
        "rollouts", "candidates", "objective", "CPU ms/rollout", "wall ms/rollout", "peak MB"
    );
    let mut figures = Vec::new();
    for rollouts in ROLLOUTS {
        let measured = measure::run(
            Command::new(&ladder)
                .args(["--json", "--seed", "0", "--rollouts", &rollouts.to_string()])
                .arg("--journal")
                .arg(scratch.file(&format!("ladder-{rollouts}.jsonl"))),
            &[0],
        )?;
        let line: Line = serde_json::from_str(measured.output.trim())
            .context("the ladder printed no line of JSON with its figures")?;
        ensure!(
            line.rollouts == rollouts,
            "the ladder made {} rollouts for a budget of {rollouts}",
            line.rollouts
        );
        let each = |seconds: f64| seconds * 1e3 / rollouts as f64;
        let cpu = each(measured.cpu.as_secs_f64());
        let megabytes = measured.peak_memory as f64 / 1e6;
        println!(
            "{rollouts:>9} {:>10} {:>9.3} {cpu:>15.4} {:>15.4} {megabytes:>10.1}",
            line.candidates,
            line.best_objective,
            each(measured.wall.as_secs_f64()),
        );
        figures.push((cpu, megabytes));
    }
    let [(small, memory), (large, _)] = figures[..] else {
        unreachable!("one figure for each of two sizes")
    };
    println!();
    println!(
        "a rollout at {} costs {:.2} times one at {}",
        ROLLOUTS[1],
        large / small,
        ROLLOUTS[0]
    );
    let costliest = small.max(large);
    println!(
        "CPU per rollout: {costliest:.4} ms, limit {MILLISECONDS_PER_ROLLOUT} ms: {}",
        verdict(costliest <= MILLISECONDS_PER_ROLLOUT)
    );
    println!(
        "peak memory at {}: {memory:.1} MB, limit {MEGABYTES} MB: {}",
        ROLLOUTS[0],
        verdict(memory <= MEGABYTES)
    );
    Ok(())
}

fn verdict(kept: bool) -> &'static str {
    if kept { "kept" } else { "EXCEEDED" }
}
