//! `capo evaluate`: score one prompt, or those that a program asks for.

mod serve;

use std::path::{Path, PathBuf};

use capo_core::arena::Halt;
use capo_core::control::Control;
use capo_core::estimate::Estimate;
use capo_core::evaluate::Evaluation;
use capo_core::ids::sha256_hex;
use capo_core::journal::{Fsync, Journal};
use capo_core::study::Study;
use capo_core::summary::{Failures, Saved, Spend};
use capo_core::workload::Split;
use capo_models::Environment;
use clap::ValueEnum as _;
use indexmap::IndexMap;
use serde::Serialize;

use super::command_line::CommandLine;
use super::failure::{Ending, Failure, print, print_json};
use super::layout::{count, counted, dollars, estimate, number, signed, yes_no};
use super::report;
use super::reuse::ReuseArgs;
use super::watch::Watched;
use super::{StudyArgument, Told};
use crate::files::read_prompt;
use crate::progress::{LogFormat, Progress};
use crate::session::{Session, SessionError, StudyFile, open_journal};
use crate::stderr::warn;
use capo_core::table::Table;

/// Score a prompt on a study's examples, or the prompts that a program asks for.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct EvaluateArgs {
    #[command(flatten)]
    study: StudyArgument,
    /// File with the prompt, UTF-8; one line break at its end is no part of it.
    #[arg(long, value_name = "FILE", required_unless_present = "serve")]
    prompt: Option<PathBuf>,
    /// Which examples.
    #[arg(long, value_enum, default_value_t = SplitName::Evaluate)]
    split: SplitName,
    /// Journal that keeps the rollouts; none that is in it already is paid again, and several
    /// prompts may share it [default: runs/STUDY-SEED.evaluate-KEY.journal.jsonl, KEY from study and
    /// prompt].
    #[arg(long, value_name = "FILE")]
    journal: Option<PathBuf>,
    #[command(flatten)]
    reuse: ReuseArgs,
    #[command(flatten)]
    told: Told,
    #[command(flatten)]
    serve: serve::ServeArgs,
}

/// [`Split`] by its name on the command line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum SplitName {
    /// Those the search uses.
    Optimize,
    /// The held-out ones.
    Evaluate,
}

impl From<SplitName> for Split {
    fn from(name: SplitName) -> Self {
        match name {
            SplitName::Optimize => Self::Optimize,
            SplitName::Evaluate => Self::Evaluate,
        }
    }
}

/// The object of `--json`.
#[derive(Serialize)]
struct Scored<'a> {
    split: Split,
    candidate: String,
    /// Whether every constraint is satisfied on the mean; null unless all was measured.
    feasible: Option<bool>,
    objective: Option<f64>,
    constraints: IndexMap<&'a str, ConstraintReport>,
    estimates: &'a IndexMap<String, Estimate>,
    /// pass^k of the objective for k = 1, 2, …; empty without repeats, or where it is not 0 or 1.
    pass: &'a [f64],
    /// Of everything in the journal.
    usage: Spend,
    /// What of it was taken over from earlier runs, and is no part of `usage`.
    #[serde(skip_serializing_if = "Option::is_none")]
    reused: Option<Saved>,
    #[serde(skip_serializing_if = "Option::is_none")]
    failures: Option<&'a Failures>,
    journal: String,
}

/// A constraint and how a prompt does against it.
#[derive(Serialize)]
struct ConstraintReport {
    threshold: f64,
    cost: Option<f64>,
    slack: Option<f64>,
    satisfied: Option<bool>,
}

/// Runs the command.
pub(crate) fn run(args: &EvaluateArgs) -> Result<Ending, Failure> {
    args.told.log.take_effect();
    let file = args.study.read()?;
    let Some(path) = &args.prompt else {
        return run_served(args, &file);
    };
    let prompt = read_prompt(path)?;
    if prompt.trim().is_empty() {
        return Err(Failure::usage(format!("{}: the prompt is empty", path.display())));
    }
    let split = Split::from(args.split);
    let mut session = Session::new(&file, &Environment, args.told.prices.table()?)?;
    if session
        .problem()
        .workloads()
        .iter()
        .all(|workload| workload.examples(split).is_empty())
    {
        return Err(Failure::usage(format!(
            "{} has no held-out examples; use --split optimize",
            file.name
        )));
    }
    args.reuse.read_for(&mut session, &file)?;
    let path = args.journal(&file.study, &prompt);
    let resume = resume_command(args);
    let evaluation = carry_out(
        args.told.log,
        session,
        &path,
        &resume,
        async |session, journal, _| session.evaluate(journal, &prompt, split).await,
    )?;
    let Some(evaluation) = evaluation else {
        warn(&format!(
            "stopped at once: what was under way is in no account. What is finished is kept; to go on, run: {resume}"
        ));
        return Ok(Ending::Stopped);
    };

    let objective = &file.study.objective.metric;
    if args.told.json {
        print_json(&scored(&evaluation, objective, split, &path))?;
    } else if evaluation.halt.is_none() {
        print(&table(&evaluation, objective, &path))?;
    }
    let kept = evaluation.rollouts;
    Ok(match &evaluation.halt {
        None if evaluation.is_feasible() == Some(false) => Ending::Infeasible,
        None => Ending::Done,
        Some(halt) => stopped(
            halt,
            &format!("{} kept in the journal", counted(kept, "rollout")),
            &resume,
        ),
    })
}

/// Measures what programs ask for, until it is interrupted.
fn run_served(args: &EvaluateArgs, file: &StudyFile) -> Result<Ending, Failure> {
    let mut session = Session::new(file, &Environment, args.told.prices.table()?)?;
    args.reuse.read_for(&mut session, file)?;
    let listening = args.serve.listen()?;
    let path = args.journal(&file.study, "");
    let resume = resume_command(args);
    let halt = carry_out(
        args.told.log,
        session,
        &path,
        &resume,
        async |session, journal, control| {
            serve::serve(session.evaluator(journal)?, listening, &control).await
        },
    )?;
    Ok(match halt.flatten() {
        None => Ending::Done,
        Some(halt) => stopped(&halt, "what was answered is in the journal", &resume),
    })
}

/// Measures into the journal at `path`, watched by a person. `None` when its end was insisted on.
pub(super) fn carry_out<T>(
    log: LogFormat,
    session: Session,
    path: &Path,
    resume: &CommandLine,
    measure: impl AsyncFnOnce(Session, Journal, Control) -> Result<T, SessionError>,
) -> Result<Option<T>, Failure> {
    let journal = open_journal(path, Fsync::Rounds, "--journal")?;
    let progress = Progress::of_evaluation(log);
    session.tell(progress.of_waits());
    let watched = Watched {
        path,
        resume,
        way_out: "Choose another file with --journal",
        progress: &progress,
    };
    let wires = session.wires();
    watched.carry_out(
        journal,
        &wires,
        |_, _| {},
        async |journal| measure(session, journal, wires.control()).await,
    )
}

impl EvaluateArgs {
    /// Where the rollouts are kept. By default another place for every study and every prompt, so that neither an
    /// edited study nor an earlier prompt's spending stands in the way; what is served has one for the study.
    fn journal(&self, study: &Study, prompt: &str) -> PathBuf {
        let default = || {
            let key = sha256_hex(format!("{}{prompt}", study.identity()));
            let ending = format!("evaluate-{}.journal.jsonl", &key[..8]);
            self.study.default_journal(study.study.seed, &ending)
        };
        self.journal.clone().unwrap_or_else(default)
    }
}

/// The command that measures what is still to be measured.
fn resume_command(args: &EvaluateArgs) -> CommandLine {
    let split = args.split.to_possible_value();
    let split = split.filter(|_| args.split != SplitName::Evaluate);
    let line = CommandLine::new("evaluate", &args.study.study)
        .option("seed", args.study.seed)
        .flag("allow-outside", args.study.outside.allow_outside)
        .path("prompt", args.prompt.as_deref());
    let line = args.serve.typed(line);
    let line = line
        .option(
            "split",
            split.as_ref().map(clap::builder::PossibleValue::get_name),
        )
        .path("journal", args.journal.as_deref())
        .path("prices", args.told.prices.prices.as_deref())
        .flag("json", args.told.json)
        .option("log", (args.told.log == LogFormat::Json).then_some("json"));
    args.reuse.typed(line)
}

/// Says what stopped a measurement, what is `kept`, and how to go on.
pub(super) fn stopped(halt: &Halt, kept: &str, resume: &CommandLine) -> Ending {
    let why = halt.to_string().replace('\n', " ");
    let (what, first, ending) = match halt {
        Halt::Budget(_) => ("stopped", "raise it under [budget] and ", Ending::Stopped),
        Halt::Interrupted => ("stopped", "", Ending::Stopped),
        _ => ("error", "", Ending::Failed),
    };
    warn(&format!("{what}: {why}; {kept}\nTo go on, {first}run: {resume}"));
    ending
}

fn scored<'a>(evaluation: &'a Evaluation, objective: &str, split: Split, journal: &Path) -> Scored<'a> {
    let mean = |metric: &str| evaluation.estimates.get(metric).map(|estimate| estimate.mean);
    let held = evaluation.limits.iter().map(|(metric, limit)| {
        let cost = mean(metric);
        let held = ConstraintReport {
            threshold: limit.threshold,
            cost,
            slack: cost.map(|cost| limit.threshold - cost),
            satisfied: cost.map(|cost| limit.admits(cost)),
        };
        (metric.as_str(), held)
    });
    Scored {
        split,
        candidate: evaluation.candidate.to_string(),
        feasible: evaluation.is_feasible(),
        objective: mean(objective),
        constraints: held.collect(),
        estimates: &evaluation.estimates,
        pass: &evaluation.pass,
        usage: Spend::new(evaluation.rollouts, evaluation.usage.clone()),
        reused: Saved::of(&evaluation.reused),
        failures: evaluation.failures.as_ref(),
        journal: journal.display().to_string(),
    }
}

/// pass^k in a line, where there is more than one repeat.
fn all_of_k(pass: &[f64], objective: &str) -> String {
    if pass.is_empty() {
        return String::new();
    }
    let each = (1..)
        .zip(pass)
        .map(|(k, pass)| format!("{} (k = {k})", number(*pass)));
    format!(
        "pass^k, k repeats of an example all with {objective} 1: {}\n",
        each.collect::<Vec<_>>().join(", ")
    )
}

fn table(evaluation: &Evaluation, objective: &str, journal: &Path) -> String {
    let mut grid = Table::new(["", "at most", "measured", "slack", "satisfied"]);
    for (metric, value) in &evaluation.estimates {
        let limit = evaluation.limits.get(metric);
        grid.row([
            if metric == objective {
                format!("{metric} (objective)")
            } else {
                metric.clone()
            },
            limit.map_or_else(String::new, |limit| number(limit.threshold)),
            estimate(value),
            limit.map_or_else(String::new, |limit| signed(limit.threshold - value.mean)),
            limit.map_or_else(String::new, |limit| yes_no(limit.admits(value.mean))),
        ]);
    }
    let n = evaluation
        .estimates
        .get(objective)
        .map_or(0, |estimate| estimate.n as u64);
    let verdict = match evaluation.is_feasible() {
        Some(true) if evaluation.limits.is_empty() => "no constraints",
        Some(true) => "all constraints satisfied",
        _ => "a constraint violated",
    };
    let total = evaluation.usage.total();
    format!(
        "Prompt {} on {}: {verdict}\n{}{}{}Paid for all that is in {}: {}, {}, {} tokens in and {} out, {}\n{}",
        evaluation.candidate.short(),
        counted(n, "example"),
        grid.text(2),
        all_of_k(&evaluation.pass, objective),
        report::failures(evaluation.failures.as_ref()),
        journal.display(),
        counted(evaluation.rollouts, "rollout"),
        counted(total.calls, "call"),
        count(total.input_tokens),
        count(total.output_tokens),
        match total.usd {
            Some(_) => dollars(total.usd),
            None => "price unknown".into(),
        },
        report::reused(&evaluation.reused),
    )
}
