//! `capo optimize`: run or resume a study.

use std::path::{Path, PathBuf};

use capo_core::journal::{FinishedEvent, Fsync, Status};
use capo_core::reading::examples::Examples;
use capo_core::reading::feasibility::Feasibility;
use capo_core::run_state::RunState;
use capo_core::summary::Summary;
use capo_core::workload::Split;
use capo_models::Environment;
use clap::ValueEnum as _;

use super::command_line::CommandLine;
use super::failure::{Ending, Failure, print, print_json};
use super::layout::counted;
use super::watch::Watched;
use super::{Prices, StudyArgument, dry_run, report};
use crate::progress::{LogFormat, Progress};
use crate::session::{Session, open_journal};
use crate::stderr::warn;

/// Search for the prompt that scores best inside every threshold; resumes a run that was stopped.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct OptimizeArgs {
    #[command(flatten)]
    study: StudyArgument,
    /// Journal of the run; an existing one is resumed and nothing in it is paid again
    /// [default: runs/STUDY-SEED.journal.jsonl].
    #[arg(long, value_name = "FILE")]
    journal: Option<PathBuf>,
    /// Say what the run will cost at most, and touch nothing.
    #[arg(long)]
    dry_run: bool,
    /// Print one JSON object instead of a summary.
    #[arg(long)]
    json: bool,
    /// How progress is written to standard error; the fields of JSON: docs/log.md.
    #[arg(long, value_enum, default_value_t)]
    log: LogFormat,
    /// When the disk is asked to keep what was written.
    #[arg(long, value_enum, default_value_t = FsyncPolicy::Rounds)]
    fsync: FsyncPolicy,
    #[command(flatten)]
    prices: Prices,
}

/// [`Fsync`] by its name on the command line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum FsyncPolicy {
    /// Never: a power cut may lose the last rollouts.
    Never,
    /// At round boundaries and at the end.
    Rounds,
    /// After every batch of answers.
    Always,
}

impl From<FsyncPolicy> for Fsync {
    fn from(policy: FsyncPolicy) -> Self {
        match policy {
            FsyncPolicy::Never => Self::Never,
            FsyncPolicy::Rounds => Self::Rounds,
            FsyncPolicy::Always => Self::Always,
        }
    }
}

/// Runs the command.
pub(crate) fn run(args: &OptimizeArgs) -> Result<Ending, Failure> {
    args.log.take_effect();
    let file = args.study.read()?;
    let seed = file.study.study.seed;
    let path = args
        .journal
        .clone()
        .unwrap_or_else(|| args.study.default_journal(seed, "journal.jsonl"));
    let prices = args.prices.table()?;
    if args.dry_run {
        return dry_run::run(&file, &prices, &path, args.json);
    }

    // Everything that can be wrong with the study is found before the journal is touched.
    let session = Session::new(&file, &Environment, prices)?;
    let journal = open_journal(&path, args.fsync.into(), "--journal")?;
    if journal
        .state()
        .study()
        .is_some_and(|study| study.is_of(&session.problem().id()))
    {
        warn(&known(journal.state(), &path));
    }

    let resume = resume_command(args);
    let progress = Progress::of_search(args.log);
    session.tell(progress.of_waits());
    let watched = Watched {
        path: &path,
        resume: &resume,
        way_out: "Choose another file with --journal",
        progress: &progress,
    };
    let outcome = watched.carry_out(
        journal,
        &session.wires(),
        |_, _| {},
        async |journal| session.optimize(journal).await,
    )?;
    let Some(outcome) = outcome else {
        warn(&format!(
            "stopped at once: what was under way is in no account. What is finished is kept; to go on, run: {resume}"
        ));
        return Ok(Ending::Stopped);
    };

    let state = outcome.journal.state();
    if args.json {
        print_json(&Summary::new(
            state,
            &outcome.finished,
            path.display().to_string(),
        ))?;
    } else {
        print(&report::result(state, &outcome.finished, &path))?;
    }
    Ok(ending(state, &outcome.finished, &resume))
}

/// How a search ended. Says on standard error why it ended early, and how to go on.
pub(super) fn ending(state: &RunState, finished: &FinishedEvent, resume: &CommandLine) -> Ending {
    let unmeasured = finished.evaluation.is_empty() && !Examples::whole(state, Split::Evaluate).is_empty();
    say_how_to_go_on(finished, unmeasured, resume);
    let feasibility = Feasibility::of(state, finished);
    match finished.status {
        Status::Feasible | Status::Infeasible if unmeasured => Ending::Stopped,
        Status::Feasible | Status::Infeasible if feasibility.holds() => Ending::Done,
        Status::Feasible => {
            warn(&format!("the best prompt {}", feasibility.words()));
            Ending::Infeasible
        }
        status => status.into(),
    }
}

/// What is paid already.
fn known(state: &RunState, path: &Path) -> String {
    let (rollouts, rounds) = (state.rollouts().count(), state.rounds().len() as u64);
    let paid = format!(
        "{} and {}",
        counted(rounds, "round"),
        counted(rollouts, "rollout")
    );
    match state.finished() {
        Some(finished) if matches!(finished.status, Status::Feasible | Status::Infeasible) => {
            format!("{} holds the finished run: {paid}", path.display())
        }
        _ => format!("resuming {}: {paid} are paid already", path.display()),
    }
}

/// Says why a run ended early and how to go on, on standard error. A search that ended by itself
/// has ended early all the same where its result is `unmeasured` on the held-out examples.
fn say_how_to_go_on(finished: &FinishedEvent, unmeasured: bool, resume: &CommandLine) {
    let reason = finished.reason.as_deref().unwrap_or("stopped").replace('\n', " ");
    let reason = reason.trim_end_matches('.');
    match finished.status {
        Status::Feasible | Status::Infeasible if unmeasured => {
            warn(&format!(
                "stopped: {reason}.\nThe search is done. To measure its result, raise [budget] and run: {resume}"
            ));
        }
        Status::Feasible | Status::Infeasible => {
            if finished.reason.is_some() {
                warn(&format!("warning: {reason}"));
            }
        }
        Status::Budget => {
            warn(&format!(
                "stopped: {reason}.\nTo go on, raise it under [budget] and run: {resume}"
            ));
        }
        Status::Stopped => warn(&format!("stopped: {reason}. To go on, run: {resume}")),
        Status::Failed => warn(&format!(
            "error: {reason}.\nEverything paid for is in the journal; to go on, run: {resume}"
        )),
    }
}

/// The command that resumes this run.
fn resume_command(args: &OptimizeArgs) -> CommandLine {
    let fsync = args.fsync.to_possible_value();
    let fsync = fsync.filter(|_| args.fsync != FsyncPolicy::Rounds);
    CommandLine::new("optimize", &args.study.study)
        .option("seed", args.study.seed)
        .flag("allow-outside", args.study.outside.allow_outside)
        .path("journal", args.journal.as_deref())
        .option(
            "fsync",
            fsync.as_ref().map(clap::builder::PossibleValue::get_name),
        )
        .path("prices", args.prices.prices.as_deref())
        .flag("json", args.json)
        .option("log", (args.log == LogFormat::Json).then_some("json"))
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;

    #[derive(clap::Parser)]
    struct Line {
        #[command(flatten)]
        args: OptimizeArgs,
    }

    #[test]
    fn the_way_to_resume_names_what_was_named() {
        let line = [
            "capo",
            "my study.toml",
            "--seed",
            "4",
            "--json",
            "--fsync",
            "always",
            "--allow-outside",
            "--journal",
            "a.jsonl",
        ];
        let args = Line::try_parse_from(line).unwrap().args;
        assert_eq!(
            resume_command(&args).to_string(),
            "capo optimize 'my study.toml' --seed 4 --allow-outside --journal a.jsonl --fsync always --json"
        );
        let args = Line::try_parse_from(["capo", "study.toml"]).unwrap().args;
        assert_eq!(resume_command(&args).to_string(), "capo optimize study.toml");
    }
}
