//! `capo compare`: runs side by side.

use std::path::PathBuf;

use capo_core::certificate::Verdict;
use capo_core::ids::CandidateId;
use capo_core::journal::Status;
use capo_core::reading::comparison::{
    CONFIDENCE, PromptOf, comparable, differences as differences_of, searched_alike,
};
use capo_core::reading::feasibility::{Feasibility, all_sat};
use capo_core::reading::{in_force, measured};
use capo_core::statistics::PairedDifference;
use capo_core::workload::Split;
use indexmap::IndexMap;
use serde::Serialize;

use super::failure::{Ending, Failure, print, print_json};
use super::layout::{NOTHING, count, counted, dollars, fitted, number, signed, yes_no};
use super::report;
use crate::recorded::RecordedRun;
use capo_core::table::Table;

/// Put runs, or prompts that `capo evaluate` measured, side by side, with paired differences on the
/// same examples.
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
    /// Whether `capo evaluate` made the journal, and no search.
    evaluation: bool,
    rounds: usize,
    /// The returned prompt, or the one that was measured.
    best: Option<String>,
    /// That prompt on each split; empty where it was not measured.
    optimize: Standing,
    evaluate: Standing,
    /// What the test on examples kept for it says; null where none was made.
    certified: Option<Verdict>,
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

/// The prompt of one run minus something else, on the same examples.
#[derive(Serialize)]
struct Difference {
    /// Place among the runs, from 1.
    run: usize,
    journal: String,
    /// Another journal's prompt, or the run's own seed prompt.
    minus: String,
    /// Place of the other run, from 1; null for the seed prompt.
    minus_run: Option<usize>,
    /// The held-out examples where both were measured on them, else those of the search.
    split: Split,
    metrics: IndexMap<String, PairedDifference>,
    /// How many of those examples are not compared, since one of the two runs left them out.
    dropped: usize,
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
        comparable(&first.state, &other.state).map_err(|why| {
            let (first, other) = (first.path.display(), other.path.display());
            Failure::new(format!("{first} and {other} cannot be compared: {why}"))
        })?;
    }
    let subjects: Vec<Subject> = runs.iter().flat_map(subjects).collect();
    let comparison = Comparison {
        runs: subjects.iter().map(standing).collect(),
        confidence: CONFIDENCE,
        differences: differences(&subjects),
    };
    if args.json {
        print_json(&comparison)?;
    } else {
        print(&render(&comparison, first))?;
    }
    Ok(Ending::Done)
}

/// A prompt that is compared.
#[derive(Clone, Copy)]
struct Subject<'a> {
    run: &'a RecordedRun,
    candidate: Option<CandidateId>,
    is_evaluation: bool,
}

impl<'a> Subject<'a> {
    fn prompt(&self) -> Option<PromptOf<'a>> {
        Some(PromptOf {
            state: &self.run.state,
            candidate: self.candidate?,
        })
    }
}

/// What a search returned, or each prompt that was measured alone.
fn subjects(run: &RecordedRun) -> Vec<Subject<'_>> {
    let subject = |candidate, is_evaluation| Subject {
        run,
        candidate,
        is_evaluation,
    };
    let evaluated = measured::evaluated(&run.state);
    if evaluated.is_empty() {
        let best = run.state.finished().and_then(|finished| finished.best);
        return vec![subject(best, false)];
    }
    evaluated.into_iter().map(|id| subject(Some(id), true)).collect()
}

fn standing(subject: &Subject) -> Run {
    let run = subject.run;
    let limits = in_force::thresholds(&run.state, None);
    let on = |split| {
        let measured = |metric: &str| {
            Some((
                metric.to_owned(),
                measured::estimate(&run.state, &subject.candidate?, metric, split)?.mean,
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
        evaluation: subject.is_evaluation,
        rounds: run.state.rounds().len(),
        best: subject.candidate.map(|id| id.to_string()),
        optimize: on(Split::Optimize),
        evaluate: on(Split::Evaluate),
        certified: run
            .state
            .finished()
            .and_then(|finished| Feasibility::of(&run.state, finished).certified),
        rollouts: run.state.ledger().rollouts(),
        calls: usage.calls,
        tokens: usage.tokens(),
        usd: usage.usd,
    }
}

/// The others' prompts minus the first's, then every prompt minus its own seed prompt.
fn differences(subjects: &[Subject]) -> Vec<Difference> {
    let name = |subject: &Subject| subject.run.path.display().to_string();
    let others = subjects.iter().enumerate().skip(1);
    let against_first = others.filter_map(|(place, other)| {
        let first = &subjects[0];
        let (split, metrics, dropped) = paired(other, first.prompt()?)?;
        Some(Difference {
            run: place + 1,
            journal: name(other),
            minus: name(first),
            minus_run: Some(1),
            split,
            metrics,
            dropped,
        })
    });
    let against_seed = subjects.iter().enumerate().filter_map(|(place, subject)| {
        let seed = PromptOf::seed(&subject.run.state)?;
        // A prompt measured alone may be the seed prompt itself.
        if subject.is_evaluation && Some(seed.candidate) == subject.candidate {
            return None;
        }
        let (split, metrics, dropped) = paired(subject, seed)?;
        Some(Difference {
            run: place + 1,
            journal: name(subject),
            minus: "its seed prompt".into(),
            minus_run: None,
            split,
            metrics,
            dropped,
        })
    });
    against_first.chain(against_seed).collect()
}

/// Paired differences of two prompts on every studied metric, on the first split that both were
/// measured on, and how many of its examples only one of them has; `None` where there is none.
fn paired(
    minuend: &Subject,
    subtrahend: PromptOf<'_>,
) -> Option<(Split, IndexMap<String, PairedDifference>, usize)> {
    let prompt = minuend.prompt()?;
    let on = |split| {
        let found = differences_of(prompt, subtrahend, split);
        let metrics = found.metrics.into_iter();
        let metrics: IndexMap<_, _> = metrics
            .map(|found| (found.metric.spec.name, found.paired))
            .collect();
        (!metrics.is_empty()).then_some((split, metrics, found.dropped))
    };
    // Only the held-out examples are known to be the same in every journal.
    on(Split::Evaluate).or_else(|| {
        let alike = minuend.is_evaluation && searched_alike(prompt.state, subtrahend.state);
        alike.then(|| on(Split::Optimize)).flatten()
    })
}

fn render(comparison: &Comparison, first: &RecordedRun) -> String {
    let runs = &comparison.runs;
    let mut grid =
        Table::new(std::iter::once(String::new()).chain((1..=runs.len()).map(|n| format!("run {n}"))));
    let mut row = |name: &str, value: &dyn Fn(&Run) -> String| {
        grid.row(std::iter::once(name.to_owned()).chain(runs.iter().map(value)));
    };
    row("study", &|run| run.study.clone());
    row("method", &|run| run.method.clone());
    row("seed", &|run| run.seed.to_string());
    row("ended", &|run| match run.status {
        _ if run.evaluation => "evaluation".to_owned(),
        None => "not yet".to_owned(),
        Some(status) => status_word(status),
    });
    row("rounds", &|run| run.rounds.to_string());
    row("prompt", &|run| {
        let short = |id: &String| id.chars().take(8).collect();
        run.best.as_ref().map_or_else(|| NOTHING.to_owned(), short)
    });
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
    if runs.iter().any(|run| run.certified.is_some()) {
        row("certified", &|run| {
            run.certified.map_or(NOTHING, report::word).to_owned()
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
    text += &format!("\n{}", fitted(&grid, 0));
    text + &render_differences(comparison)
}

fn status_word(status: Status) -> String {
    match status {
        Status::Feasible => "feasible on search",
        Status::Infeasible => "infeasible on search",
        Status::Budget => "budget",
        Status::Stopped => "stopped",
        Status::Failed => "failed",
    }
    .into()
}

fn render_differences(comparison: &Comparison) -> String {
    if comparison.differences.is_empty() {
        return "\nNo two prompts were measured on the same examples, so there are no differences.\n".into();
    }
    let on = |split: Split| {
        let on_it = |difference: &Difference| difference.split == split;
        comparison.differences.iter().any(on_it)
    };
    let examples = match (on(Split::Evaluate), on(Split::Optimize)) {
        (true, false) => "held-out examples",
        (false, true) => "examples of the search",
        _ => "examples, held-out ones where not told otherwise",
    };
    let mut text = format!(
        "\nPrompts on the same {examples}, difference by example with its {:.0} % interval\n{}",
        100.0 * comparison.confidence,
        report::star(comparison.confidence),
    );
    for difference in &comparison.differences {
        let minus = difference
            .minus_run
            .map_or_else(|| difference.minus.clone(), |place| format!("run {place}"));
        let on_others = if on(Split::Evaluate) && difference.split == Split::Optimize {
            ", on the examples of the search"
        } else {
            ""
        };
        let without = match difference.dropped {
            0 => String::new(),
            dropped => format!(
                ", without {} that one of them left out",
                counted(dropped as u64, "example")
            ),
        };
        text += &format!("run {} minus {minus}{on_others}{without}\n", difference.run);
        let mut grid = Table::default();
        for (metric, found) in &difference.metrics {
            grid.row([
                metric.clone(),
                signed(found.mean),
                report::interval(found.interval, signed),
                format!("n = {}", found.n),
                if found.is_clear() { "*" } else { "" }.to_owned(),
            ]);
        }
        text += &fitted(&grid, 2);
    }
    text
}
