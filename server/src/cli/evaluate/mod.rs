//! `capo evaluate`: score prompts, or those that a program asks for.

mod bars;
mod junit;
mod others;
mod serve;
mod side_by_side;
mod trials;

use std::path::{Path, PathBuf};
use std::time::Instant;

use capo_core::arena::Halt;
use capo_core::control::Control;
use capo_core::estimate::Estimate;
use capo_core::evaluate::Evaluation;
use capo_core::ids::sha256_hex;
use capo_core::journal::{Fsync, Journal};
use capo_core::study::Study;
use capo_core::summary::{Failures, Saved, Spend};
use capo_core::workload::Split;
use clap::ValueEnum as _;
use indexmap::IndexMap;
use serde::Serialize;

use self::bars::{Bar, Bound, DemandArgs};
use self::trials::{Name, Trial, Tried};
use super::command_line::CommandLine;
use super::failure::{Ending, Failure, print, print_json};
use super::layout::{count, counted, dollars, estimate, number, signed, yes_no};
use super::report;
use super::reuse::ReuseArgs;
use super::watch::Watched;
use super::{OutputArgs, StudyArgument};
use crate::interrupt::Interrupts;
use crate::progress::{LogFormat, Progress};
use crate::recorded::RecordedRun;
use crate::session::{Session, SessionError, StudyFile, open_journal};
use crate::stderr::warn;
use capo_core::table::Table;

const EXIT_CODES: &str = "\
Exit codes: 0 measured, and every prompt keeps the thresholds of the study on these
examples and what --fail-under demands, 1 error, 2 measured, and one does not,
3 stopped by the budget or an interrupt (journal kept), 64 bad usage or study file.";

/// Score prompts on a study's examples, or the prompts that a program asks for.
#[derive(Debug, Clone, clap::Args)]
#[command(after_help = EXIT_CODES)]
pub(crate) struct EvaluateArgs {
    #[command(flatten)]
    study: StudyArgument,
    /// File with the prompt, UTF-8; one line break at its end is no part of it. Given several times, each prompt is
    /// compared with the first.
    #[arg(long, value_name = "FILE", required_unless_present = "serve")]
    prompt: Vec<PathBuf>,
    /// Other models: PROVIDER/MODEL for the agent, or a TOML file with tables such as `[models.agent]`; `study` for the
    /// study's own. Given several times, each prompt is measured under each.
    #[arg(long, conflicts_with = "serve")]
    model: Vec<String>,
    /// Which examples.
    #[arg(long, value_enum, default_value_t = SplitName::Evaluate)]
    split: SplitName,
    /// Journal that keeps the rollouts; none that is in it already is paid again, and several
    /// prompts may share it [default: runs/STUDY-SEED.evaluate-KEY.journal.jsonl for each, KEY from
    /// study, models and prompt].
    #[arg(long, value_name = "FILE")]
    journal: Option<PathBuf>,
    #[command(flatten)]
    demands: DemandArgs,
    #[command(flatten)]
    reuse: ReuseArgs,
    #[command(flatten)]
    output: OutputArgs,
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

/// The object of `--json` where one prompt is measured.
#[derive(Serialize)]
struct Scored<'a> {
    split: Split,
    candidate: String,
    /// Whether every constraint is satisfied on the mean; null unless all was measured.
    feasible: Option<bool>,
    objective: Option<f64>,
    constraints: IndexMap<&'a str, ConstraintReport>,
    /// What `--fail-under` demands, by metric.
    #[serde(skip_serializing_if = "IndexMap::is_empty")]
    fail_under: IndexMap<&'a str, DemandReport>,
    estimates: &'a IndexMap<String, Estimate>,
    /// pass^k of the objective for k = 1, 2, …; empty without repeats, or where it is not 0 or 1.
    pass: &'a [f64],
    /// Of everything in the journal.
    usage: Spend,
    /// What was taken over from earlier runs, which is no part of `usage`.
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

/// A demand and how a prompt does against it.
#[derive(Serialize)]
struct DemandReport {
    at_least: f64,
    mean: Option<f64>,
    satisfied: bool,
}

/// Runs the command.
pub(crate) fn run(args: &EvaluateArgs) -> Result<Ending, Failure> {
    args.output.log.take_effect();
    let file = args.study.read()?;
    if args.prompt.is_empty() {
        return run_served(args, &file);
    }
    let split = Split::from(args.split);
    let trials = trials::planned(args, &file, split)?;
    let first = trials.first().and_then(|trial| trial.built.as_ref());
    let demands = first.map(|session| {
        let read = file.read_files().chain(args.read_files());
        let journals = trials.iter().map(|trial| ("a journal", trial.journal.as_path()));
        args.demands.read(session.problem(), read.chain(journals))
    });
    let demands = demands.transpose()?.unwrap_or_default();
    let resume = resume_command(args);
    let interrupts = Interrupts::of_run(resume.to_string())?;
    let names: Vec<Name> = trials.iter().map(|trial| trial.name.clone()).collect();
    let is_alone = names.len() == 1;
    let study = &file.study;
    // In place of verdicts on what was there before.
    tell_build(args, study, &[], &names, None)?;
    let mut tried: Vec<Tried> = Vec::new();
    let mut missed: Option<(String, Result<Ending, Failure>)> = None;
    // What only one prompt's table tells needs no second look into its journal.
    let reads = !is_alone || args.demands.junit.is_some();
    for trial in trials {
        match measured(args, trial, &demands, reads, &interrupts) {
            Ok(Some(one)) => {
                let is_halted = one.evaluation.halt.is_some();
                tried.push(one);
                if is_halted {
                    break;
                }
            }
            Ok(None) => {
                warn(&format!(
                    "stopped at once: what was under way is in no account. What is finished is kept; to go on, run: {resume}"
                ));
                missed = Some(("stopped at once".to_owned(), Ok(Ending::Stopped)));
                break;
            }
            Err(failure) => {
                missed = Some((failure.message().to_owned(), Err(failure)));
                break;
            }
        }
    }
    tell(args, study, &tried, is_alone)?;
    let why = missed.as_ref().map(|(why, _)| why.as_str());
    tell_build(args, study, &tried, &names[tried.len()..], why)?;
    if let Some((_, ending)) = missed {
        return ending;
    }
    let halted = tried
        .iter()
        .find_map(|one| Some((one.evaluation.rollouts, one.evaluation.halt.as_ref()?)));
    Ok(match halted {
        None if tried.iter().any(Tried::is_broken) => Ending::Infeasible,
        None => Ending::Done,
        Some((kept, halt)) => stopped(
            halt,
            &format!("{} kept in the journal", counted(kept, "rollout")),
            &resume,
        ),
    })
}

/// Measures a prompt, and reads its journal where that is to be; `None` when its end was insisted on.
fn measured(
    args: &EvaluateArgs,
    mut trial: Trial,
    demands: &IndexMap<String, f64>,
    reads: bool,
    interrupts: &Interrupts,
) -> Result<Option<Tried>, Failure> {
    let session = trial.session(args)?;
    let Trial {
        name,
        prompt,
        others,
        journal,
        ..
    } = trial;
    let (split, begun) = (Split::from(args.split), Instant::now());
    let evaluation = carry_out(
        args.output.log,
        session,
        &journal,
        interrupts,
        async |session, journal, _| session.evaluate(journal, &prompt, split).await,
    )?;
    let Some(evaluation) = evaluation else {
        return Ok(None);
    };
    let seconds = begun.elapsed().as_secs_f64();
    let run = (reads && evaluation.halt.is_none()).then(|| RecordedRun::read(&journal));
    Ok(Some(Tried {
        bars: Bar::all(&evaluation, demands),
        run: run.transpose()?,
        name,
        others,
        journal,
        evaluation,
        seconds,
    }))
}

/// Says what was measured, and what is short of its demands.
fn tell(args: &EvaluateArgs, study: &Study, tried: &[Tried], is_alone: bool) -> Result<(), Failure> {
    let (objective, split) = (&study.objective.metric, Split::from(args.split));
    let whole = match tried.split_last() {
        Some((last, earlier)) if last.evaluation.halt.is_some() => earlier,
        _ => tried,
    };
    let alone = tried.first().filter(|_| is_alone);
    match (args.output.json, alone) {
        (true, Some(one)) => print_json(&scored(one, objective, split))?,
        (true, None) if !tried.is_empty() => {
            print_json(&side_by_side::object(tried, objective, split))?;
        }
        (false, Some(one)) if !whole.is_empty() => print(&table(one, objective))?,
        (false, None) if !whole.is_empty() => print(&side_by_side::table(whole, objective, split))?,
        _ => {}
    }
    for one in whole {
        // Of thresholds that are broken, the table tells.
        let is_told = |bar: &&Bar| bar.is_broken() && (bar.is_demanded() || bar.found.is_none());
        for bar in one.bars.iter().filter(is_told) {
            warn(&format!("{}: {}", one.name, bar.told()));
        }
    }
    Ok(())
}

/// Writes the verdicts for a build server, where they are asked for: also that `unmeasured` ones have none, and why the first of
/// them has none.
fn tell_build(
    args: &EvaluateArgs,
    study: &Study,
    tried: &[Tried],
    unmeasured: &[Name],
    why: Option<&str>,
) -> Result<(), Failure> {
    match &args.demands.junit {
        Some(path) => {
            let verdicts = junit::Verdicts {
                tried,
                unmeasured,
                why,
                split: Split::from(args.split),
            };
            verdicts.write(path, &study.study.name)
        }
        None => Ok(()),
    }
}

/// Measures what programs ask for, until it is interrupted.
fn run_served(args: &EvaluateArgs, file: &StudyFile) -> Result<Ending, Failure> {
    let mut session = Session::new(file, &file.keys(), args.output.prices.table()?)?;
    args.reuse.read_for(&mut session, file)?;
    let listening = args.serve.listen()?;
    let path = args.journal(&file.study, "");
    let resume = resume_command(args);
    let interrupts = Interrupts::of_run(resume.to_string())?;
    let halt = carry_out(
        args.output.log,
        session,
        &path,
        &interrupts,
        async |session, journal, control| {
            serve::serve(session.evaluator(journal)?, listening, &control).await
        },
    )?;
    Ok(match halt.flatten() {
        None => Ending::Done,
        Some(halt) => stopped(&halt, "what was answered is in the journal", &resume),
    })
}

/// Measures into the journal at `path`, watched by a person who may interrupt it. `None` when its end was insisted on.
pub(super) fn carry_out<T>(
    log: LogFormat,
    session: Session,
    path: &Path,
    interrupts: &Interrupts,
    measure: impl AsyncFnOnce(Session, Journal, Control) -> Result<T, SessionError>,
) -> Result<Option<T>, Failure> {
    let journal = open_journal(path, Fsync::Rounds, "--journal")?;
    let progress = Progress::of_evaluation(log);
    session.tell(progress.of_waits());
    let watched = Watched {
        path,
        interrupts,
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
    /// The files that it names to read, by what they are.
    fn read_files(&self) -> impl Iterator<Item = (&str, &Path)> {
        let prompts = self.prompt.iter().map(|path| ("a prompt", path.as_path()));
        let models = self.model.iter().map(|model| ("a model file", Path::new(model)));
        let journals = self.reuse.journals().iter();
        let journals = journals.map(|path| ("a journal", path.as_path()));
        prompts
            .chain(models)
            .chain(journals)
            .chain(self.output.prices.read_files())
    }

    /// Where the rollouts are kept. By default another place for every study, its models included, and every prompt, so
    /// that neither an edited study nor an earlier prompt's spending stands in the way; where `prompt` is empty it is one
    /// for the study.
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
    let prompts = args.prompt.iter();
    let line = prompts.fold(args.study.typed("evaluate"), |line, prompt| {
        line.path("prompt", Some(prompt.as_path()))
    });
    let models = args.model.iter();
    let line = models.fold(line, |line, model| line.option("model", Some(model)));
    let line = args.demands.typed(args.serve.typed(line));
    let line = line
        .option(
            "split",
            split.as_ref().map(clap::builder::PossibleValue::get_name),
        )
        .path("journal", args.journal.as_deref())
        .path("prices", args.output.prices.prices.as_deref())
        .flag("json", args.output.json)
        .option("log", (args.output.log == LogFormat::Json).then_some("json"));
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

fn scored<'a>(one: &'a Tried, objective: &str, split: Split) -> Scored<'a> {
    let evaluation = &one.evaluation;
    let mean = |metric: &str| evaluation.estimates.get(metric).map(|estimate| estimate.mean);
    let held = evaluation.limits.iter().map(|(metric, limit)| {
        let cost = mean(metric);
        let held = ConstraintReport {
            threshold: limit.threshold,
            cost,
            slack: cost.map(|cost| limit.threshold - cost),
            satisfied: cost.map(|cost| limit.is_satisfied(cost)),
        };
        (metric.as_str(), held)
    });
    let demanded = one.bars.iter().filter_map(|bar| match bar.bound {
        Bound::AtMost(_) => None,
        Bound::AtLeast(at_least) => Some((
            bar.metric.as_str(),
            DemandReport {
                at_least,
                mean: mean(&bar.metric),
                satisfied: !bar.is_broken(),
            },
        )),
    });
    Scored {
        split,
        candidate: evaluation.candidate.to_string(),
        feasible: evaluation.is_feasible(),
        objective: mean(objective),
        constraints: held.collect(),
        fail_under: demanded.collect(),
        estimates: &evaluation.estimates,
        pass: &evaluation.pass,
        usage: Spend::new(evaluation.rollouts, evaluation.usage.clone()),
        reused: Saved::of(&evaluation.reused),
        failures: evaluation.failures.as_ref(),
        journal: one.journal.display().to_string(),
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

/// Whether a prompt keeps the thresholds, in words.
fn verdict(evaluation: &Evaluation) -> &'static str {
    match evaluation.is_feasible() {
        Some(true) if evaluation.limits.is_empty() => "no constraints",
        Some(true) => "all constraints satisfied",
        Some(false) => "a constraint violated",
        None => "a constraint not measured",
    }
}

/// What all that lies in the journal took.
fn paid(one: &Tried) -> String {
    let total = one.evaluation.usage.total();
    format!(
        "Paid for all that is in {}: {}, {}, {} tokens in and {} out, {}\n",
        one.journal.display(),
        counted(one.evaluation.rollouts, "rollout"),
        counted(total.calls, "call"),
        count(total.input_tokens),
        count(total.output_tokens),
        match total.usd {
            Some(_) => dollars(total.usd),
            None => "price unknown".into(),
        },
    )
}

fn table(one: &Tried, objective: &str) -> String {
    let evaluation = &one.evaluation;
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
            limit.map_or_else(String::new, |limit| yes_no(limit.is_satisfied(value.mean))),
        ]);
    }
    let n = evaluation
        .estimates
        .get(objective)
        .map_or(0, |estimate| estimate.n as u64);
    format!(
        "Prompt {} on {}: {}\n{}{}{}{}{}",
        evaluation.candidate.short(),
        counted(n, "example"),
        verdict(evaluation),
        grid.text(2),
        all_of_k(&evaluation.pass, objective),
        report::failures(evaluation.failures.as_ref()),
        paid(one),
        report::reused(&evaluation.reused),
    )
}
