//! `capo compare`: runs side by side.

use std::path::PathBuf;

use capo_core::ids::CandidateId;
use capo_core::journal::{Origin, Status};
use capo_core::random::Streams;
use capo_core::statistics::{PairedDifference, RESAMPLES, fewest_examples, paired_difference};
use capo_core::summary::{all_sat, thresholds};
use capo_core::workload::Split;
use indexmap::IndexMap;
use serde::Serialize;

use super::failure::{Ending, Failure, print, print_json};
use super::layout::{Grid, NOTHING, count, dollars, number, signed, yes_no};
use super::report;
use crate::recorded::{RecordedRun, by_example, estimate};

/// Confidence of the intervals.
const CONFIDENCE: f64 = 0.95;

/// Put runs side by side, with paired differences on the held-out examples.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct CompareArgs {
    /// Journals of runs with the same held-out examples; the others are compared with the first.
    #[arg(value_name = "JOURNAL", required = true, num_args = 1..)]
    journals: Vec<PathBuf>,
    /// Print one JSON object instead of tables.
    #[arg(long)]
    json: bool,
}

/// The object of `--json`.
#[derive(Serialize)]
struct Comparison {
    runs: Vec<Run>,
    confidence: f64,
    differences: Vec<Difference>,
}

#[derive(Serialize)]
struct Run {
    journal: String,
    study: String,
    method: String,
    seed: u64,
    /// Null while the run has not ended.
    status: Option<Status>,
    rounds: usize,
    best: Option<String>,
    /// The returned prompt on each split; empty where it was not measured.
    optimize: Standing,
    evaluate: Standing,
    rollouts: u64,
    calls: u64,
    tokens: u64,
    usd: Option<f64>,
}

/// A prompt's means on one split.
#[derive(Serialize)]
struct Standing {
    means: IndexMap<String, f64>,
    /// Null where it was not measured.
    all_sat: Option<bool>,
}

/// The returned prompt of one run minus something else, on the same held-out examples.
#[derive(Serialize)]
struct Difference {
    journal: String,
    /// Another journal's best prompt, or the run's own seed prompt.
    minus: String,
    metrics: IndexMap<String, PairedDifference>,
}

/// Runs the command.
pub(crate) fn run(args: &CompareArgs) -> Result<Ending, Failure> {
    let runs: Vec<RecordedRun> = args
        .journals
        .iter()
        .map(|path| RecordedRun::read(path))
        .collect::<Result<_, _>>()?;
    let Some((first, others)) = runs.split_first() else {
        return Err(Failure::usage("name at least one journal"));
    };
    for other in others {
        same_examples(first, other)?;
    }
    let comparison = Comparison {
        runs: runs.iter().map(standing).collect(),
        confidence: CONFIDENCE,
        differences: differences(first, others),
    };
    if args.json {
        print_json(&comparison)?;
    } else {
        print(&render(&comparison, first))?;
    }
    Ok(Ending::Done)
}

/// Refuses runs whose held-out examples differ: their differences would mean nothing.
fn same_examples(first: &RecordedRun, other: &RecordedRun) -> Result<(), Failure> {
    let refuse = |what: String| {
        let (first, other) = (first.path.display(), other.path.display());
        Err(Failure::new(format!(
            "{first} and {other} cannot be compared: {what}"
        )))
    };
    let (here, there) = (&first.study.workloads, &other.study.workloads);
    for (name, record) in here {
        let Some(theirs) = there.get(name) else {
            return refuse(format!("only the first has the workload `{name}`"));
        };
        if record.evaluate != theirs.evaluate {
            let shared = record
                .evaluate
                .iter()
                .filter(|id| theirs.evaluate.contains(id))
                .count();
            return refuse(format!(
                "the held-out examples of `{name}` differ ({} and {}, {shared} of them shared)",
                record.evaluate.len(),
                theirs.evaluate.len()
            ));
        }
        if record.fingerprint != theirs.fingerprint {
            return refuse(format!("the data of `{name}` differ"));
        }
    }
    if let Some(name) = there.keys().find(|name| !here.contains_key(*name)) {
        return refuse(format!("only the second has the workload `{name}`"));
    }
    if first.study.study.objective != other.study.study.objective {
        return refuse(format!(
            "the objectives are `{}` and `{}`",
            first.study.study.objective.metric, other.study.study.objective.metric
        ));
    }
    Ok(())
}

fn best(run: &RecordedRun) -> Option<CandidateId> {
    run.state.finished()?.best
}

fn seed(run: &RecordedRun) -> Option<CandidateId> {
    let mut candidates = run.state.candidates();
    candidates
        .find(|(_, candidate)| candidate.origin == Origin::Seed)
        .map(|(id, _)| *id)
}

fn standing(run: &RecordedRun) -> Run {
    let limits = thresholds(&run.state);
    let on = |split| {
        let measured = |metric: &str| {
            Some((
                metric.to_owned(),
                estimate(&run.state, &best(run)?, metric, split)?.mean,
            ))
        };
        let means: IndexMap<String, f64> = report::metrics(&run.study).filter_map(measured).collect();
        let verdict = all_sat(&limits, |metric| means.get(metric).copied());
        Standing {
            all_sat: verdict.filter(|_| !means.is_empty()),
            means,
        }
    };
    let usage = run.state.ledger().usage().total();
    Run {
        journal: run.path.display().to_string(),
        study: run.study.study.study.name.clone(),
        method: run.study.study.study.method.clone(),
        seed: run.study.study.study.seed,
        status: run.state.finished().map(|finished| finished.status),
        rounds: run.state.rounds().len(),
        best: best(run).map(|id| id.to_string()),
        optimize: on(Split::Optimize),
        evaluate: on(Split::Evaluate),
        rollouts: run.state.ledger().rollouts(),
        calls: usage.calls,
        tokens: usage.input_tokens + usage.output_tokens,
        usd: usage.usd,
    }
}

/// The others' best prompts minus the first's, then every best prompt minus its own seed prompt.
fn differences(first: &RecordedRun, others: &[RecordedRun]) -> Vec<Difference> {
    let name = |run: &RecordedRun| run.path.display().to_string();
    let against_first = others.iter().map(|other| Difference {
        journal: name(other),
        minus: name(first),
        metrics: paired((other, best(other)), (first, best(first))),
    });
    let against_seed = std::iter::once(first).chain(others).map(|run| Difference {
        journal: name(run),
        minus: "its seed prompt".into(),
        metrics: paired((run, best(run)), (run, seed(run))),
    });
    against_first
        .chain(against_seed)
        .filter(|difference| !difference.metrics.is_empty())
        .collect()
}

/// Paired differences of two prompts on every studied metric that both were measured on.
fn paired(
    minuend: (&RecordedRun, Option<CandidateId>),
    subtrahend: (&RecordedRun, Option<CandidateId>),
) -> IndexMap<String, PairedDifference> {
    let values = |(run, candidate): (&RecordedRun, Option<CandidateId>), metric: &str| {
        by_example(&run.state, &candidate?, metric, Split::Evaluate)
    };
    // The same draws for every pair: a comparison does not depend on what else is compared.
    let streams = Streams::new(0);
    report::metrics(&subtrahend.0.study)
        .filter_map(|metric| {
            let (first, second) = (values(minuend, metric)?, values(subtrahend, metric)?);
            let mut stream = streams.stream("compare", 0, 0);
            let difference = paired_difference(&first, &second, CONFIDENCE, RESAMPLES, &mut stream)?;
            Some((metric.to_owned(), difference))
        })
        .collect()
}

fn render(comparison: &Comparison, first: &RecordedRun) -> String {
    let runs = &comparison.runs;
    let mut grid =
        Grid::new(std::iter::once(String::new()).chain((1..=runs.len()).map(|n| format!("run {n}"))));
    let mut row = |name: &str, value: &dyn Fn(&Run) -> String| {
        grid.row(std::iter::once(name.to_owned()).chain(runs.iter().map(value)));
    };
    row("study", &|run| run.study.clone());
    row("method", &|run| run.method.clone());
    row("seed", &|run| run.seed.to_string());
    row("ended", &|run| {
        run.status.map_or_else(|| "not yet".to_owned(), status_word)
    });
    row("rounds", &|run| run.rounds.to_string());
    for (title, split) in [
        ("search", (|run| &run.optimize) as fn(&Run) -> &Standing),
        ("held out", |run| &run.evaluate),
    ] {
        for metric in report::metrics(&first.study) {
            row(&format!("{title}: {metric}"), &|run| {
                split(run)
                    .means
                    .get(metric)
                    .map_or_else(|| NOTHING.to_owned(), |mean| number(*mean))
            });
        }
        row(&format!("{title}: all satisfied"), &|run| {
            split(run).all_sat.map_or_else(|| NOTHING.to_owned(), yes_no)
        });
    }
    row("rollouts", &|run| count(run.rollouts));
    row("calls", &|run| count(run.calls));
    row("tokens", &|run| count(run.tokens));
    row("dollars", &|run| dollars(run.usd));
    let mut text = String::new();
    for (number, run) in runs.iter().enumerate() {
        text += &format!("run {}: {}\n", number + 1, run.journal);
    }
    text += &format!("\n{}", grid.render(0));
    text + &render_differences(comparison)
}

fn status_word(status: Status) -> String {
    match status {
        Status::Feasible => "feasible",
        Status::Infeasible => "infeasible",
        Status::Budget => "budget",
        Status::Stopped => "stopped",
        Status::Failed => "failed",
    }
    .into()
}

fn render_differences(comparison: &Comparison) -> String {
    let number_of = |journal: &str| comparison.runs.iter().position(|run| run.journal == journal);
    let named = |journal: &str| {
        number_of(journal).map_or_else(|| journal.to_owned(), |index| format!("run {}", index + 1))
    };
    if comparison.differences.is_empty() {
        return "\nNo best prompt was measured on held-out examples, so there are no differences.\n".into();
    }
    let mut text = format!(
        "\nBest prompts on the same held-out examples, difference by example with its {:.0} % interval\n\
         (* where the interval leaves zero out, and there are at least {} examples)\n",
        100.0 * comparison.confidence,
        fewest_examples(comparison.confidence),
    );
    for difference in &comparison.differences {
        text += &format!(
            "{} minus {}\n",
            named(&difference.journal),
            named(&difference.minus)
        );
        let mut grid = Grid::default();
        for (metric, found) in &difference.metrics {
            grid.row([
                metric.clone(),
                signed(found.mean),
                found.interval.map_or_else(
                    || NOTHING.to_owned(),
                    |interval| format!("[{}, {}]", signed(interval.low), signed(interval.high)),
                ),
                format!("n = {}", found.n),
                if found.is_clear() { "*" } else { "" }.to_owned(),
            ]);
        }
        text += &grid.render(2);
    }
    text
}
