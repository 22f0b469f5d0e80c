//! `cargo xtask test`: the gate every change passes.

mod guides;
mod packaging;
mod room;
pub(crate) mod shared_data;
mod skipped;
mod steps;

use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use clap::{Args, ValueEnum};

use crate::install::{Tool, Toolbox};
use crate::workspace::Workspace;
use steps::{Outcome, Step};

#[derive(Args, Default)]
pub(crate) struct Arguments {
    /// The inner loop: formatting, lints and native tests, nothing built for release
    #[arg(long, conflicts_with = "steps")]
    fast: bool,
    /// The gate, and what takes long or needs more than most machines have
    #[arg(long, conflicts_with_all = ["fast", "steps"])]
    all: bool,
    /// Only these steps, in the gate's order
    #[arg(value_enum)]
    steps: Vec<Step>,
}

/// Installs what the whole gate needs.
pub(crate) fn set_up(workspace: &Workspace) -> Result<()> {
    let mut toolbox = Toolbox::open()?;
    let gate = chosen(&Arguments::default());
    install(workspace, &mut toolbox, &gate)?;
    println!("everything that `cargo xtask test` needs is installed");
    Ok(())
}

/// Runs the steps one after the other and stops at the first that fails.
pub(crate) fn run(workspace: &Workspace, arguments: &Arguments) -> Result<()> {
    let mut toolbox = Toolbox::open()?;
    let steps = chosen(arguments);
    let mut report = Vec::new();

    let started = Instant::now();
    if arguments.fast {
        for tool in [Tool::Rustfmt, Tool::Clippy] {
            toolbox.ensure(&tool)?;
        }
    } else {
        if steps.contains(&Step::EndToEnd) {
            room::make(workspace)?;
        }
        install(workspace, &mut toolbox, &steps)?;
    }
    let gate = steps::Gate {
        has_nextest: toolbox.has(&Tool::Nextest),
        workspace,
        toolbox,
        is_ci: std::env::var_os("CI").is_some(),
        is_thorough: arguments.all,
    };
    report.push(("set-up".to_owned(), started.elapsed(), String::new()));

    for (index, step) in steps.iter().enumerate() {
        eprintln!("\n[{}/{}] {step}: {}", index + 1, steps.len(), step.about());
        let started = Instant::now();
        let skipped = skipped::file(workspace);
        skipped::forget(&skipped)?;
        let outcome = step
            .run(&gate)
            .with_context(|| format!("step `{step}` (again alone: cargo xtask test {step})"))?;
        let note = match outcome {
            Outcome::Passed => {
                let notes = [shared_data::note(*step, &workspace.root), skipped::note(&skipped)];
                notes.into_iter().flatten().collect::<Vec<_>>().join(", ")
            }
            Outcome::NothingToDo(why) => format!("nothing to do: {why}"),
        };
        eprintln!("{step}: {} {note}", seconds(started.elapsed()));
        report.push((step.to_string(), started.elapsed(), note));
    }
    print_report(&report);
    // Who names steps knows that there are others.
    let left_out = skipped::left_out(Step::value_variants(), &steps);
    if let Some(left_out) = left_out.filter(|_| arguments.steps.is_empty()) {
        println!("{left_out}");
    }
    Ok(())
}

fn chosen(arguments: &Arguments) -> Vec<Step> {
    let all = Step::value_variants().iter().copied();
    if arguments.fast {
        vec![Step::Format, Step::Imports, Step::Clippy, Step::Native]
    } else if arguments.steps.is_empty() {
        all.filter(|step| arguments.all || step.is_of_gate()).collect()
    } else {
        all.filter(|step| arguments.steps.contains(step)).collect()
    }
}

fn install(workspace: &Workspace, toolbox: &mut Toolbox, steps: &[Step]) -> Result<()> {
    let mut ready = Vec::new();
    for step in steps {
        for tool in step.tools(workspace)? {
            if !ready.contains(&tool) {
                toolbox.ensure(&tool)?;
                ready.push(tool);
            }
        }
    }
    Ok(())
}

fn print_report(report: &[(String, Duration, String)]) {
    println!();
    for (name, duration, note) in report {
        println!("{name:<12} {:>12}  {note}", seconds(*duration));
    }
    let total = report.iter().map(|(_, duration, _)| *duration).sum();
    println!("{:<12} {:>12}  passed", "all", seconds(total));
}

fn seconds(duration: Duration) -> String {
    let seconds = duration.as_secs_f64();
    if seconds < 60.0 {
        format!("{seconds:.1} s")
    } else {
        format!("{} min {:02} s", duration.as_secs() / 60, duration.as_secs() % 60)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_run_in_the_gates_order_once() {
        let steps = chosen(&Arguments {
            fast: false,
            all: false,
            steps: vec![Step::Docs, Step::Format, Step::Docs],
        });
        assert_eq!(steps, [Step::Format, Step::Docs]);
    }

    #[test]
    fn what_takes_long_is_run_when_asked_for() {
        let steps = |all| {
            chosen(&Arguments {
                fast: false,
                all,
                steps: Vec::new(),
            })
        };
        for long in [
            Step::Released,
            Step::Firefox,
            Step::Litellm,
            Step::Optimisers,
            Step::Schemathesis,
        ] {
            assert!(!steps(false).contains(&long));
        }
        assert_eq!(steps(true), Step::value_variants());
    }

    #[test]
    fn durations_are_read_at_a_glance() {
        assert_eq!(seconds(Duration::from_millis(3_140)), "3.1 s");
        assert_eq!(seconds(Duration::from_secs(187)), "3 min 07 s");
    }
}
