//! `capo optimize`: run or resume a study.

use std::path::{Path, PathBuf};

use capo_core::journal::{FinishedEvent, Fsync, Status};
use capo_core::run_state::RunState;
use capo_models::Environment;

use super::failure::{Ending, Failure, print, print_json, warn};
use super::layout::{counted, quoted};
use super::watch::watched;
use super::{Prices, StudyArgument, dry_run, report};
use crate::session::{Session, open_journal};
use crate::summary::Summary;

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
    let file = args.study.read()?;
    let seed = file.study.study.seed;
    let path = args
        .journal
        .clone()
        .unwrap_or_else(|| default_journal(&args.study.study, seed));
    let prices = args.prices.table()?;
    if args.dry_run {
        return dry_run::run(&file, &prices, &path, args.json);
    }

    // Everything that can be wrong with the study is found before the journal is touched.
    let session = Session::new(&file, &Environment, prices)?;
    let journal = open_journal(&path, args.fsync.into())?;
    if journal
        .state()
        .study()
        .is_some_and(|study| study.id == session.problem().id())
    {
        warn(&known(journal.state(), &path));
    }

    let outcome = watched(journal, async |journal, control| {
        session.optimize(journal, control).await
    })?;

    let state = outcome.journal.state();
    if args.json {
        print_json(&Summary::new(state, &outcome.finished, &path))?;
    } else {
        print(&report::result(state, &outcome.finished, &path))?;
    }
    say_how_to_go_on(&outcome.finished, &resume_command(args));
    Ok(outcome.finished.status.into())
}

/// Where a run is kept when nobody says.
fn default_journal(study: &Path, seed: u64) -> PathBuf {
    let stem = study
        .file_stem()
        .map_or_else(|| "study".into(), |stem| stem.to_string_lossy());
    Path::new("runs").join(format!("{stem}-{seed}.journal.jsonl"))
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

/// Says why a run ended early and how to go on, on standard error.
fn say_how_to_go_on(finished: &FinishedEvent, resume: &str) {
    let reason = finished.reason.as_deref().unwrap_or("stopped").replace('\n', " ");
    let reason = reason.trim_end_matches('.');
    match finished.status {
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
fn resume_command(args: &OptimizeArgs) -> String {
    let mut command = format!("capo optimize {}", quoted(&args.study.study.to_string_lossy()));
    if let Some(seed) = args.study.seed {
        command += &format!(" --seed {seed}");
    }
    if let Some(journal) = &args.journal {
        command += &format!(" --journal {}", quoted(&journal.to_string_lossy()));
    }
    if let Some(prices) = &args.prices.prices {
        command += &format!(" --prices {}", quoted(&prices.to_string_lossy()));
    }
    command
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
    fn runs_are_kept_by_study_and_seed() {
        assert_eq!(
            default_journal(Path::new("studies/help-desk.toml"), 3),
            Path::new("runs/help-desk-3.journal.jsonl")
        );
    }

    #[test]
    fn the_way_to_resume_names_what_was_named() {
        let line = [
            "capo",
            "my study.toml",
            "--seed",
            "4",
            "--json",
            "--journal",
            "a.jsonl",
        ];
        let args = Line::try_parse_from(line).unwrap().args;
        assert_eq!(
            resume_command(&args),
            "capo optimize 'my study.toml' --seed 4 --journal a.jsonl"
        );
    }
}
