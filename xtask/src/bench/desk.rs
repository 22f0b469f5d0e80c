//! Adaptive against fixed multipliers: on how many splits and seeds does the search end with a help-desk prompt inside
//! every threshold, on the tasks that it searched on, on held-out ones, and on fresh ones?

use std::path::{Path, PathBuf};
use std::process::Command;
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
    prompt: String,
    feasible: bool,
    objective: f64,
}

#[derive(Deserialize)]
struct Evaluation {
    all_sat: bool,
    success: Mean,
}

#[derive(Deserialize)]
struct Mean {
    mean: f64,
}

/// The part of `capo evaluate --json` that is compared.
#[derive(Deserialize)]
struct Fresh {
    feasible: bool,
    objective: f64,
}

/// What a search returned: whether it meets every threshold, and its success.
struct Returned {
    search: (bool, f64),
    held_out: (bool, f64),
    fresh: (bool, f64),
}

/// Where a returned prompt is measured.
const WHERE: [&str; 3] = ["search", "held-out", "fresh"];

/// How many tasks a returned prompt is measured on at last, which no search has seen.
const FRESH_TASKS: i64 = 1000;

/// Compares both on splits that each seed draws for itself.
pub(super) fn run(workspace: &Workspace, scratch: &Scratch, seeds: u64) -> Result<()> {
    let capo = build::capo(workspace)?;
    let path = workspace.root.join(STUDY);
    let adaptive =
        std::fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
    let fixed = fixed(&adaptive).with_context(|| format!("cannot change {STUDY}"))?;
    let variants = [("capo", adaptive), ("fixed", fixed)];
    let results = in_parallel(seeds * 2, |run| {
        let ((name, text), seed) = (&variants[(run % 2) as usize], run / 2);
        let file = |end: &str| scratch.file(&format!("desk-{name}-{seed}{end}"));
        let written = |end: &str, text: &str| -> Result<PathBuf> {
            let path = file(end);
            std::fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))?;
            Ok(path)
        };
        let removed = |path: &Path| {
            std::fs::remove_file(path).with_context(|| format!("cannot remove {}", path.display()))
        };
        let study = written(
            ".toml",
            &with_workload(
                text,
                &[("seed", seed.cast_signed()), ("skip", 114 * seed.cast_signed())],
            )?,
        )?;
        let journal = file(".jsonl");
        let searched = measure::run(
            &mut optimize(workspace, &capo, &study, seed, &journal),
            &SEARCH_ENDED,
        )?;
        // Some 25 MB each: hundreds of them would fill a disk.
        removed(&journal)?;
        let summary: Summary = serde_json::from_str(&searched.output)
            .context("`capo optimize --json` printed unexpected JSON")?;

        // Splits are drawn from 114 tasks each; half of the 285,000 are far from them.
        let stretch = 142_500 + (seed.cast_signed() % 142) * (FRESH_TASKS + 1);
        let tasks = [
            ("seed", seed.cast_signed()),
            ("skip", stretch),
            ("optimize", 1),
            ("evaluate", FRESH_TASKS),
        ];
        let study = written("-fresh.toml", &with_workload(text, &tasks)?)?;
        let prompt = written(".md", &summary.best.prompt)?;
        let mut evaluate = Command::new(&capo);
        evaluate.current_dir(&workspace.root).arg("evaluate").arg(study);
        evaluate
            .args(["--json", "--seed", &seed.to_string(), "--prompt"])
            .arg(prompt);
        evaluate.arg("--journal").arg(&journal);
        let measured = measure::run(&mut evaluate, &SEARCH_ENDED)?;
        removed(&journal)?;
        let fresh: Fresh = serde_json::from_str(&measured.output)
            .context("`capo evaluate --json` printed unexpected JSON")?;
        Ok(Returned {
            search: (summary.best.feasible, summary.best.objective),
            held_out: (summary.evaluation.all_sat, summary.evaluation.success.mean),
            fresh: (fresh.feasible, fresh.objective),
        })
    })?;
    print!(
        "{}",
        report(&variants.each_ref().map(|(name, _)| *name), &results)
    );
    Ok(())
}

/// Both ways, by where their prompts were measured. `results` has a pair for each seed.
fn report(names: &[&str; 2], results: &[Returned]) -> String {
    let seeds = results.len() / 2;
    let of = |returned: &Returned, place: usize| [returned.search, returned.held_out, returned.fresh][place];
    let row = |label: &str, cell: &dyn Fn(usize) -> String| {
        let [search, held_out, fresh] = [cell(0), cell(1), cell(2)];
        format!("{label:<22}{search:>16}{held_out:>16}{fresh:>16}\n")
    };
    let mut text = format!("{STUDY} on {seeds} splits and seeds\n\n");
    text += &row("", &|place| WHERE[place].to_owned());
    for (variant, name) in names.iter().enumerate() {
        let own = || results.iter().skip(variant).step_by(2);
        let met = |place| own().filter(|returned| of(returned, place).0).count();
        let mean = |place| estimate(own().map(|returned| of(returned, place).1));
        text += &row(&format!("{name}: all thresholds"), &|place| {
            format!("{} of {seeds}", met(place))
        });
        text += &row(&format!("{name}: success"), &mean);
    }
    let differences = |place: usize| {
        results
            .chunks(2)
            .map(move |pair| of(&pair[0], place).1 - of(&pair[1], place).1)
    };
    text += &row("difference, paired", &|place| estimate(differences(place)));
    text + "\n± is one standard error over splits and seeds.\n"
}

/// Mean ± standard error.
fn estimate(values: impl Iterator<Item = f64>) -> String {
    let values: Vec<f64> = values.collect();
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    format!("{mean:.3} ± {:.3}", (squares / (n - 1.0).max(1.0) / n).sqrt())
}

/// The study with these numbers in its workload.
fn with_workload(study: &str, numbers: &[(&str, i64)]) -> Result<String> {
    let mut study: toml::Table = toml::from_str(study)?;
    let Some(toml::Value::Table(workload)) = study.get_mut("workload") else {
        bail!("{STUDY} has no table `workload`");
    };
    for (key, number) in numbers {
        workload.insert((*key).to_owned(), (*number).into());
    }
    Ok(toml::to_string(&study)?)
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
    fn the_report_compares_pair_by_pair() {
        let returned = |success: f64, met: bool| Returned {
            search: (true, success),
            held_out: (met, success - 0.1),
            fresh: (false, success - 0.2),
        };
        let pairs = [
            returned(0.6, true),
            returned(0.5, false),
            returned(0.8, true),
            returned(0.5, true),
        ];
        let text = report(&["capo", "fixed"], &pairs);
        let squeezed: Vec<String> = text
            .lines()
            .map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "))
            .collect();
        assert!(
            squeezed.contains(&"capo: all thresholds 2 of 2 2 of 2 0 of 2".to_owned()),
            "{text}"
        );
        assert!(
            squeezed.contains(&"fixed: all thresholds 2 of 2 1 of 2 0 of 2".to_owned()),
            "{text}"
        );
        let difference = "difference, paired 0.200 ± 0.100 0.200 ± 0.100 0.200 ± 0.100";
        assert!(squeezed.contains(&difference.to_owned()), "{text}");
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
