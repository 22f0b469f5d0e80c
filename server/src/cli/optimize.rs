//! `capo optimize`: run or resume a study.

use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::time::Instant;

use capo_core::arena::Halt;
use capo_core::journal::{FinishedEvent, Fsync, Journal, Status};
use capo_core::methods;
use capo_core::run_state::RunState;
use capo_core::summary::Summary;
use clap::ValueEnum as _;

use super::command_line::CommandLine;
use super::dry_run::Pilot;
use super::failure::{Ending, Failure, print, print_json};
use super::from::start_from;
use super::layout::counted;
use super::outcome::ending;
use super::place;
use super::reuse::ReuseArgs;
use super::runs::start::OnServer;
use super::runs::watch::Telling;
use super::watch::Watched;
use super::{Prices, StudyArgument, dry_run, report};
use crate::interrupt::Interrupts;
use crate::progress::{LogFormat, Progress};
use crate::session::{Session, SessionError, StudyFile, open_journal};
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
    /// File to write the returned prompt into, once there is one; replaced if it is there.
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    #[command(flatten)]
    reuse: ReuseArgs,
    /// Journals of earlier runs on the same workload, with other thresholds or models too: beside its own prompt the
    /// search starts from those that did best there by this study's thresholds, and measures them anew.
    #[arg(long, value_name = "JOURNAL", num_args = 1..)]
    from: Vec<PathBuf>,
    /// Say what the run will cost at most, and touch nothing; with rollouts in its journal also what it is expected to.
    #[arg(long, conflicts_with_all = ["reuse", "from"])]
    dry_run: bool,
    /// With --dry-run, make the first so many rollouts of the seed prompt, to say what the run is expected to cost. They
    /// are kept in its journal, and it pays for none of them again.
    #[arg(long, value_name = "N", requires = "dry_run", conflicts_with = "remote")]
    pilot: Option<NonZeroUsize>,
    #[command(flatten)]
    telling: Telling,
    /// When the disk is asked to keep what was written.
    #[arg(long, value_enum, default_value_t = FsyncPolicy::Rounds)]
    fsync: FsyncPolicy,
    #[command(flatten)]
    prices: Prices,
    #[command(flatten, next_help_heading = "On a team server")]
    on_server: OnServer,
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
    args.telling.log.take_effect();
    let file = args.study.read()?;
    let seed = file.study.study.seed;
    let path = args
        .journal
        .clone()
        .unwrap_or_else(|| args.study.default_journal(seed, "journal.jsonl"));
    if let Some(out) = &args.out {
        check_out(args, out, &path, &file)?;
    }
    if args.on_server.is_asked_for() && !args.dry_run {
        return args.on_server.run(&file, &args.study.study, args.telling);
    }
    let prices = args.prices.table()?;
    if args.dry_run {
        let place = (!args.on_server.is_asked_for()).then_some(path.as_path());
        let Some(rollouts) = args.pilot else {
            return dry_run::run(&file, &prices, place, None, args.telling.json);
        };
        let session = Session::new(&file, &file.keys(), prices.clone())?;
        let Some((pilot, ending)) = pilot(args, &path, session, rollouts.get())? else {
            return Ok(Ending::Stopped);
        };
        dry_run::run(&file, &prices, place, Some(pilot), args.telling.json)?;
        return Ok(ending);
    }

    // Everything that can be wrong with the study is found before the journal is touched.
    let mut session = Session::new(&file, &file.keys(), prices)?;
    args.reuse.read_for(&mut session, &file)?;
    start_from(&args.from, &mut session, &file)?;
    let resume = resume_command(args);
    let outcome = over_journal(args, &path, session, async |session: Session, journal| {
        session.optimize(journal).await
    })?;
    let Some(outcome) = outcome else {
        return Ok(Ending::Stopped);
    };

    let state = outcome.journal.state();
    if args.telling.json {
        print_json(&Summary::new(
            state,
            &outcome.finished,
            path.display().to_string(),
        ))?;
    } else {
        print(&report::result(state, &outcome.finished, &path.display()))?;
    }
    if let Some(out) = &args.out {
        write_prompt(out, state, &outcome.finished)?;
    }
    Ok(ending(state, &outcome.finished, &resume))
}

/// Opens the journal and carries out `run` over it, watched; `None` when it was dropped at once, which is said.
fn over_journal<T>(
    args: &OptimizeArgs,
    path: &Path,
    session: Session,
    run: impl AsyncFnOnce(Session, Journal) -> Result<T, SessionError>,
) -> Result<Option<T>, Failure> {
    let journal = open_journal(path, args.fsync.into(), "--journal")?;
    if journal
        .state()
        .study()
        .is_some_and(|study| study.is_of(&session.problem().id()))
    {
        warn(&known(journal.state(), path));
        if !args.from.is_empty() && !journal.state().is_before_search() {
            warn("--from adds nothing to a run that has begun: its journal holds what it started from");
        }
    }
    // Of a pilot the forecast says so.
    if let (None, None, Some(told)) = (
        args.pilot,
        journal.state().study(),
        methods::too_small(session.problem(), session.starts().len()),
    ) {
        warn(&told);
    }
    let resume = resume_command(args);
    let progress = Progress::of_search(args.telling.log);
    session.tell(progress.of_waits());
    let interrupts = Interrupts::of_run(resume.to_string())?;
    let watched = Watched {
        path,
        interrupts: &interrupts,
        way_out: "Choose another file with --journal",
        progress: &progress,
    };
    let wires = session.wires();
    let outcome = watched.carry_out(
        journal,
        &wires,
        |_, _| {},
        async |journal| run(session, journal).await,
    )?;
    if outcome.is_none() {
        warn(&format!(
            "stopped at once: what was under way is in no account. What is finished is kept; to go on, run: {resume}"
        ));
    }
    Ok(outcome)
}

/// Makes the first rollouts of the run and tells what they took, and how that ended; `None` when it was dropped at once.
fn pilot(
    args: &OptimizeArgs,
    path: &Path,
    session: Session,
    asked: usize,
) -> Result<Option<(Pilot, Ending)>, Failure> {
    let began = Instant::now();
    let piloted = over_journal(args, path, session, async |session: Session, journal| {
        session.pilot(journal, asked).await
    })?;
    let Some(piloted) = piloted else { return Ok(None) };
    let ending = match &piloted.halt {
        None => Ending::Done,
        Some(Halt::Failed { message, .. }) => {
            warn(&format!("error: {}", message.replace('\n', " ")));
            Status::Failed.into()
        }
        Some(halt) => {
            warn(&format!("stopped: {halt}"));
            Ending::Stopped
        }
    };
    if let Some(Halt::Failed { message, .. }) = &piloted.failure {
        let message = message.replace('\n', " ");
        warn(&format!(
            "not every rollout could be made; of the first, {message}"
        ));
    }
    let pilot = Pilot {
        asked: asked as u64,
        of: piloted.first as u64,
        rollouts: piloted.rollouts,
        calls: piloted.usage.calls,
        tokens: piloted.usage.tokens(),
        usd: piloted.usage.usd,
        seconds: began.elapsed().as_secs_f64(),
    };
    Ok(Some((pilot, ending)))
}

/// Refuses a place for the prompt as [`place::check`] does, and one that cannot be written to.
fn check_out(args: &OptimizeArgs, out: &Path, journal: &Path, file: &StudyFile) -> Result<(), Failure> {
    let journals = args.reuse.journals().iter().chain(&args.from);
    let journals = journals.map(PathBuf::as_path).chain([journal]);
    let journals = journals.map(|journal| ("a journal", journal));
    place::check(
        "--out",
        out,
        file.read_files().chain(args.prices.read_files()).chain(journals),
    )?;
    if args.dry_run {
        return Ok(());
    }
    place::try_out("--out", out)
}

/// Writes the returned prompt, so that what reads prompts reads the same.
fn write_prompt(out: &Path, state: &RunState, finished: &FinishedEvent) -> Result<(), Failure> {
    let best = finished.best.and_then(|best| state.candidate(&best));
    let Some(best) = best else {
        warn(&format!(
            "{} is not written: there is no prompt to return",
            out.display()
        ));
        return Ok(());
    };
    place::write(out, &format!("{}\n", best.prompt))
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

/// The command that resumes this run.
fn resume_command(args: &OptimizeArgs) -> CommandLine {
    let fsync = args.fsync.to_possible_value();
    let fsync = fsync.filter(|_| args.fsync != FsyncPolicy::Rounds);
    let line = args
        .study
        .typed("optimize")
        .path("journal", args.journal.as_deref())
        .path("out", args.out.as_deref())
        .option(
            "fsync",
            fsync.as_ref().map(clap::builder::PossibleValue::get_name),
        )
        .path("prices", args.prices.prices.as_deref())
        .flag("json", args.telling.json)
        .option("log", (args.telling.log == LogFormat::Json).then_some("json"));
    args.reuse.typed(line)
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
            "--reuse",
            "b.jsonl",
            "c.jsonl",
        ];
        let args = Line::try_parse_from(line).unwrap().args;
        assert_eq!(
            resume_command(&args).to_string(),
            "capo optimize 'my study.toml' --seed 4 --allow-outside --journal a.jsonl --fsync always --json --reuse b.jsonl \
             c.jsonl"
        );
        let args = Line::try_parse_from(["capo", "study.toml"]).unwrap().args;
        assert_eq!(resume_command(&args).to_string(), "capo optimize study.toml");
    }
}
