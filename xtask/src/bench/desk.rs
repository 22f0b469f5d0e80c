//! Adaptive against fixed multipliers: on how many seeds does the search end
//! with a help-desk prompt inside every threshold?

use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::{Context, Result, bail};
use serde::Deserialize;

use super::measure;
use crate::build;
use crate::help_desk::{SEARCH_ENDED, STUDY, optimize};
use crate::scratch::Scratch;
use crate::workspace::Workspace;

/// The part of `capo optimize --json` that is compared.
#[derive(Deserialize)]
struct Summary {
    best: Best,
    evaluation: Evaluation,
}

#[derive(Deserialize)]
struct Best {
    feasible: bool,
    objective: f64,
}

#[derive(Deserialize)]
struct Evaluation {
    all_sat: bool,
}

/// One way to set the multipliers, as a study file.
struct Variant {
    name: &'static str,
    study: PathBuf,
}

pub(super) fn run(workspace: &Workspace, scratch: &Scratch, seeds: u64) -> Result<()> {
    let capo = build::capo(workspace)?;
    let variants = [
        Variant {
            name: "capo",
            study: workspace.root.join(STUDY),
        },
        Variant {
            name: "fixed",
            study: write_fixed(workspace, scratch)?,
        },
    ];
    let runs = seeds * variants.len() as u64;
    let results = in_parallel(runs, |run| {
        let variant = &variants[(run % 2) as usize];
        let seed = run / 2;
        let journal = scratch.file(&format!("desk-{}-{seed}.jsonl", variant.name));
        let mut command = optimize(workspace, &capo, &variant.study, seed, &journal);
        let measured = measure::run(&mut command, &SEARCH_ENDED)?;
        // Some 25 MB each: hundreds of them would fill a disk.
        std::fs::remove_file(&journal).with_context(|| format!("cannot remove {}", journal.display()))?;
        serde_json::from_str::<Summary>(&measured.output)
            .context("`capo optimize --json` printed unexpected JSON")
    })?;

    println!("{STUDY}, feasible on the optimisation split (and held out: AllSat):\n");
    println!("{:>4}  {:<24} {:<24}", "seed", variants[0].name, variants[1].name);
    for (seed, pair) in results.chunks(2).enumerate() {
        let cells: Vec<_> = pair.iter().map(cell).collect();
        println!("{seed:>4}  {:<24} {:<24}", cells[0], cells[1]);
    }
    println!();
    for (index, variant) in variants.iter().enumerate() {
        let own = || results.iter().skip(index).step_by(2);
        println!(
            "{:<5} feasible on {} of {seeds} seeds, AllSat held out on {}, mean objective {:.3}",
            variant.name,
            own().filter(|summary| summary.best.feasible).count(),
            own().filter(|summary| summary.evaluation.all_sat).count(),
            own().map(|summary| summary.best.objective).sum::<f64>() / seeds as f64,
        );
    }
    Ok(())
}

fn cell(summary: &Summary) -> String {
    format!(
        "{:<10} {:.3} {}",
        if summary.best.feasible {
            "feasible"
        } else {
            "infeasible"
        },
        summary.best.objective,
        if summary.evaluation.all_sat { "AllSat" } else { "" },
    )
}

/// Writes the study with multipliers that stay at 1 and returns its path.
fn write_fixed(workspace: &Workspace, scratch: &Scratch) -> Result<PathBuf> {
    let path = workspace.root.join(STUDY);
    let text = std::fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
    let fixed = fixed(&text).with_context(|| format!("cannot change {STUDY}"))?;
    let written = scratch.file("help-desk-fixed.toml");
    std::fs::write(&written, fixed).with_context(|| format!("cannot write {}", written.display()))?;
    Ok(written)
}

/// The same study with fixed multipliers of 1.
///
/// # Errors
/// The text is no study, or names files relative to its own place, which a copy
/// elsewhere would not find.
fn fixed(study: &str) -> Result<String> {
    let mut study: toml::Table = toml::from_str(study)?;
    let table = |study: &mut toml::Table, name: &str| -> Result<toml::Table> {
        match study.remove(name) {
            None => Ok(toml::Table::new()),
            Some(toml::Value::Table(table)) => Ok(table),
            Some(_) => bail!("`{name}` is not a table"),
        }
    };
    let prompt = table(&mut study, "prompt")?;
    if prompt.contains_key("file") {
        bail!("its prompt must be in the study, not in a file beside it");
    }
    let mut method = table(&mut study, "method")?;
    method.insert("dual_step".to_owned(), "fixed".into());
    method.insert("lambda_init".to_owned(), 1.0.into());
    study.insert("prompt".to_owned(), prompt.into());
    study.insert("method".to_owned(), method.into());
    Ok(toml::to_string(&study)?)
}

/// Calls `work` with 0, 1, … `count - 1` on as many threads as there are cores
/// and returns the results in that order; after an error no further call starts.
fn in_parallel<T: Send>(count: u64, work: impl Fn(u64) -> Result<T> + Sync) -> Result<Vec<T>> {
    let next = AtomicU64::new(0);
    let done = Mutex::new(Vec::new());
    let threads = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                loop {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    if index >= count {
                        return;
                    }
                    let result = work(index);
                    if result.is_err() {
                        next.store(count, Ordering::Relaxed);
                    }
                    done.lock()
                        .unwrap_or_else(std::sync::PoisonError::into_inner)
                        .push((index, result));
                }
            });
        }
    });
    let mut done = done
        .into_inner()
        .unwrap_or_else(std::sync::PoisonError::into_inner);
    done.sort_by_key(|(index, _)| *index);
    done.into_iter().map(|(_, result)| result).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fixed_variant_differs_in_its_multipliers_alone() {
        let study = "
            [study]
            name = 'desk'
            [prompt]
            text = 'Be kind.'
            [[constraint]]
            metric = 'human_requests'
            threshold = 0.35
            [method]
            beta = 4.0
        ";
        let mut changed: toml::Table = toml::from_str(&fixed(study).unwrap()).unwrap();
        let method = changed["method"].as_table_mut().unwrap();
        assert_eq!(method.remove("dual_step"), Some("fixed".into()));
        assert_eq!(method.remove("lambda_init"), Some(1.0.into()));
        assert_eq!(changed, toml::from_str(study).unwrap());
    }

    #[test]
    fn a_prompt_beside_the_study_is_refused() {
        assert!(fixed("[prompt]\nfile = 'seed.md'").is_err());
        assert!(fixed("prompt = 3").is_err());
    }

    #[test]
    fn parallel_results_come_in_order_and_errors_stop_the_rest() {
        let squares = in_parallel(50, |number| Ok(number * number)).unwrap();
        assert_eq!(squares, (0..50).map(|number| number * number).collect::<Vec<_>>());

        let calls = AtomicU64::new(0);
        let outcome: Result<Vec<()>> = in_parallel(1_000_000, |_| {
            calls.fetch_add(1, Ordering::Relaxed);
            bail!("no")
        });
        assert!(outcome.is_err());
        assert!(calls.into_inner() < 1_000);
    }
}
