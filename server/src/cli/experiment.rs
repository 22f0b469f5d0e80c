//! `capo experiment`: the paper's studies.

#[cfg(feature = "train")]
mod learned;
#[cfg(feature = "train")]
mod transfer;

use std::collections::BTreeSet;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use capo_core::journal::{Fsync, Journal, MemoryJournal};
use capo_core::metric::MetricSpec;
use capo_core::study::Study;
use capo_models::forecast::Forecast;
use capo_models::prices::PriceTable;

use super::failure::{Ending, Failure, print};
use super::layout::{count, counted, dollars};
use super::{Outside, Prices};
use crate::experiment::fresh::{Next, Truths, is_simulated};
use crate::experiment::{
    DriveError, EXPERIMENTS, Experiment, ExperimentError, Progress, RunRecord, Runner, Runs, Seeds, Shipped,
    Table, Trial, TrialError, Variant, drive, find, fresh, theory, trials, write,
};
use crate::interrupt::Interrupts;
use crate::progress::LogFormat;
use crate::session::{Session, SessionError, StudyFile, block_on, open_journal};
use crate::stderr::warn;

/// Run one of the paper's studies over several seeds: tables, plots and every run's journal. What
/// is finished in the directory is not run again.
#[derive(Debug, Clone, clap::Args)]
#[command(after_help = catalogue())]
pub(crate) struct ExperimentArgs {
    /// Which experiment.
    #[arg(value_name = "NAME", value_parser = chosen)]
    experiment: Chosen,
    /// Study to vary [default: one of this program's own, which needs no key]; `transfer` takes it several times.
    #[arg(long, value_name = "FILE")]
    study: Vec<PathBuf>,
    /// Variants to run, by the keys in names of journals [default: all of the experiment's].
    #[arg(long, value_name = "KEY,…", value_delimiter = ',')]
    variants: Vec<String>,
    /// How many seeds, or which (0,3,7) [default: 5, of `theory` 100].
    #[arg(long, value_name = "N|LIST")]
    seeds: Option<Seeds>,
    /// Where journals, tables and plots go [default: runs/experiments/NAME].
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// All seeds search on the study's own split, instead of each on one that it draws.
    #[arg(long)]
    same_split: bool,
    /// Fresh rollouts of each returned prompt, where models are simulated, at least.
    #[arg(long, value_name = "N", default_value_t = fresh::ROLLOUTS, value_parser = clap::value_parser!(u32).range(1..))]
    fresh: u32,
    /// Runs leave no journals: what is interrupted begins anew. `dcapo` leaves its own all the same.
    #[arg(long)]
    no_journals: bool,
    /// Runs at once [default: one for each core if every model is simulated, else 1].
    #[arg(long, value_name = "N")]
    jobs: Option<NonZeroUsize>,
    /// Say what the runs will cost at most, and touch nothing.
    #[arg(long)]
    dry_run: bool,
    /// How progress is written to standard error; the fields of JSON: docs/log.md.
    #[arg(long, value_enum, default_value_t)]
    log: LogFormat,
    /// `transfer`: the rewriter, as for `capo rewriter serve`.
    #[arg(long, value_name = "REWRITER")]
    rewriter: Option<String>,
    /// `transfer`: sampling temperature of rewrites, 0 for the likeliest [default: 1].
    #[arg(long)]
    temperature: Option<f64>,
    /// `transfer`: longest rewrite in tokens [default: 1024].
    #[arg(long)]
    max_tokens: Option<u32>,
    /// `transfer`: the most rewrites drawn together, which need memory together [default: 64].
    #[arg(long)]
    max_batch: Option<usize>,
    #[command(flatten)]
    outside: Outside,
    #[command(flatten)]
    prices: Prices,
}

/// An experiment by name.
#[derive(Debug, Clone, Copy)]
enum Chosen {
    /// Runs of variants of a study.
    Varied(&'static Experiment),
    /// The learned rewriter.
    #[cfg(feature = "train")]
    Dcapo,
    /// A learned rewriter on other studies.
    #[cfg(feature = "train")]
    Transfer,
    /// The bound on the duality gap, which needs no study.
    Theory,
}

/// The names that only a program with the learned rewriter knows.
const DCAPO: &str = "dcapo";
const TRANSFER: &str = "transfer";

#[cfg(feature = "train")]
fn chosen(name: &str) -> Result<Chosen, ExperimentError> {
    match name {
        DCAPO => Ok(Chosen::Dcapo),
        TRANSFER => Ok(Chosen::Transfer),
        theory::NAME => Ok(Chosen::Theory),
        name => find(name).map(Chosen::Varied),
    }
}

#[cfg(not(feature = "train"))]
fn chosen(name: &str) -> Result<Chosen, String> {
    match name {
        DCAPO | TRANSFER => Err(
            "it needs the learned rewriter, which this `capo` was built without; \
             build it with: cargo build --release -p capo-server --features train"
                .into(),
        ),
        theory::NAME => Ok(Chosen::Theory),
        name => find(name).map(Chosen::Varied).map_err(|error| error.to_string()),
    }
}

fn catalogue() -> String {
    let line = |name: &str, title: &str| format!("  {name:<18}{title}");
    let mut lines = EXPERIMENTS
        .map(|experiment| line(experiment.name, experiment.title))
        .to_vec();
    lines.push(line(theory::NAME, theory::TITLE));
    let needs = if cfg!(feature = "train") {
        ""
    } else {
        " (not in this build)"
    };
    lines.push(line(DCAPO, &format!("The learned rewriter{needs}")));
    lines.push(line(
        TRANSFER,
        &format!("Zero-shot transfer of a rewriter{needs}"),
    ));
    format!("Experiments:\n{}", lines.join("\n"))
}

/// Runs the command.
pub(crate) fn run(args: &ExperimentArgs) -> Result<Ending, Failure> {
    args.log.take_effect();
    match args.experiment {
        Chosen::Varied(experiment) => {
            args.without_rewriter(experiment.name)?;
            run_varied(args, experiment)
        }
        #[cfg(feature = "train")]
        Chosen::Dcapo => {
            args.without_rewriter(DCAPO)?;
            args.without_variants(DCAPO)?;
            learned::run(args)
        }
        #[cfg(feature = "train")]
        Chosen::Transfer => {
            args.without_variants(TRANSFER)?;
            transfer::run(args)
        }
        Chosen::Theory => run_theory(args),
    }
}

fn run_theory(args: &ExperimentArgs) -> Result<Ending, Failure> {
    args.without_rewriter(theory::NAME)?;
    args.without_variants(theory::NAME)?;
    for (option, is_given) in [("--study", !args.study.is_empty()), ("--dry-run", args.dry_run)] {
        if is_given {
            return Err(Failure::usage(format!(
                "{option} is for experiments that run studies, and `{}` runs none; leave it out",
                theory::NAME
            )));
        }
    }
    let seeds = args.seeds.clone().unwrap_or(Seeds::first(theory::SEEDS));
    let searches = theory::run(&seeds);
    let page =
        theory::write(&args.out(theory::NAME), &searches).map_err(|error| Failure::new(error.to_string()))?;
    let tables = theory::report(&searches).tables;
    let text: Vec<String> = tables.iter().map(Table::markdown).collect();
    print(&format!(
        "{}\nTables and plots: {}\n",
        text.join("\n"),
        page.display()
    ))?;
    Ok(Ending::Done)
}

impl ExperimentArgs {
    /// The study to vary: the one that is named, else the experiment's own.
    fn base(&self, own: Shipped) -> Result<StudyFile, Failure> {
        match &self.study[..] {
            [] => Ok(own.read()?),
            [path] => Ok(self.outside.read(path)?),
            several => Err(Failure::usage(format!(
                "--study names {} studies, and only `{TRANSFER}` takes more than one",
                several.len()
            ))),
        }
    }

    /// Refuses what only a transfer takes.
    fn without_rewriter(&self, experiment: &str) -> Result<(), Failure> {
        let given = [
            ("--rewriter", self.rewriter.is_some()),
            ("--temperature", self.temperature.is_some()),
            ("--max-tokens", self.max_tokens.is_some()),
            ("--max-batch", self.max_batch.is_some()),
        ];
        match given.into_iter().find(|(_, is_given)| *is_given) {
            None => Ok(()),
            Some((option, _)) => Err(Failure::usage(format!(
                "{option} is for `{TRANSFER}`, and `{experiment}` takes none; leave it out"
            ))),
        }
    }

    /// Refuses what only variants of a study take.
    fn without_variants(&self, experiment: &str) -> Result<(), Failure> {
        if self.variants.is_empty() {
            return Ok(());
        }
        Err(Failure::usage(format!(
            "--variants is for experiments that vary a study, and `{experiment}` varies none; leave it out"
        )))
    }

    fn seeds(&self) -> Seeds {
        self.seeds.clone().unwrap_or_default()
    }

    fn out(&self, experiment: &str) -> PathBuf {
        let usual = || Path::new("runs/experiments").join(experiment);
        self.out.clone().unwrap_or_else(usual)
    }
}

fn run_varied(args: &ExperimentArgs, experiment: &'static Experiment) -> Result<Ending, Failure> {
    let base = args.base(experiment.study)?;
    let variants = experiment.variants_among(&base.study, &args.variants)?;
    let metrics = measured(&base, &variants)?;
    let out = args.out(experiment.name);
    let trials = trials(experiment.name, &variants, &args.seeds(), &out, args.same_split);
    let prices = args.prices.table()?;
    let file = |trial: &Trial| StudyFile {
        study: trial.study(),
        ..base.clone()
    };
    if args.dry_run {
        return forecast(&base.study.study.name, &file, &trials, &prices);
    }
    // What a seed draws may be impossible: that is said before the first run is paid for.
    let mut drawn = BTreeSet::new();
    for trial in trials.iter().filter(|trial| drawn.insert(trial.seed)) {
        file(trial).setup()?;
    }
    let jobs = args.jobs.unwrap_or_else(|| usual_jobs(&base.study));
    let Some(records) = run_trials(args, &trials, jobs, experiment.truth_of, &file, &prices)? else {
        return Ok(Ending::Stopped);
    };

    let runs = Runs {
        base: &base.study,
        variants: &variants,
        metrics: &metrics,
        records: &records,
    };
    let report = (experiment.report)(&runs);
    let page = write(&out, experiment, &runs, &report).map_err(|error| Failure::new(error.to_string()))?;
    let summary = report.tables.first().map(Table::markdown).unwrap_or_default();
    let left = if args.no_journals {
        "Tables and plots"
    } else {
        "Tables, plots and journals"
    };
    print(&format!("{summary}\n{left}: {}\n", page.display()))?;
    Ok(ending(&records))
}

/// The records of all trials; `None` when the person did not let them end.
fn run_trials(
    args: &ExperimentArgs,
    trials: &[Trial],
    jobs: NonZeroUsize,
    truth_of: Option<Next>,
    file: &FileOf,
    prices: &PriceTable,
) -> Result<Option<Vec<RunRecord>>, Failure> {
    let progress = Progress::new(trials.len());
    let interrupts = if args.no_journals {
        Interrupts::listen(|| warn("interrupted: runs under way end; once more to leave at once"))?
    } else {
        Interrupts::of_run("the same command again".into())?
    };
    let runner = SessionRunner {
        file,
        args,
        truth_of,
        truths: Truths::default(),
        prices,
        progress: &progress,
        interrupts,
    };
    let driven = drive(trials, jobs, &progress, &runner);
    progress.finish();
    match driven {
        Ok(records) => Ok(Some(records)),
        Err(DriveError::Interrupted { done, all }) => {
            let next = if args.no_journals {
                ", without journals: the same command begins them anew"
            } else {
                ". To go on, run the same command again"
            };
            warn(&format!("interrupted: {done} of {all} runs are finished{next}"));
            Ok(None)
        }
        Err(error @ DriveError::Failed { .. }) if !args.no_journals => Err(Failure::new(format!(
            "{error}\nIts journal is kept; run the same command again to go on."
        ))),
        Err(error) => Err(error.into()),
    }
}

/// How an experiment with a report ended; says which runs the budget cut.
fn ending(records: &[RunRecord]) -> Ending {
    let cut = records.iter().filter(|record| !record.complete).count();
    if cut > 0 {
        warn(&format!(
            "stopped: {cut} of {} by the budget, see the report. To finish them, raise [budget] in the study \
             and run the same command again",
            counted(records.len() as u64, "run"),
        ));
        return Ending::Stopped;
    }
    Ending::Done
}

/// What the workloads measure. Refuses a variant that its workload cannot serve before anything is
/// paid.
fn measured(base: &StudyFile, variants: &[Variant]) -> Result<Vec<MetricSpec>, SessionError> {
    for variant in variants {
        StudyFile {
            study: variant.study.clone(),
            ..base.clone()
        }
        .setup()?;
    }
    let problem = base.setup()?.problem;
    Ok(problem
        .workloads()
        .iter()
        .flat_map(|workload| workload.metrics())
        .cloned()
        .collect())
}

/// As many as there are cores when nobody is asked over a network and no agent of the user's own is
/// started; else one, for a provider's rate limits are better spent on one run at a time, and how
/// many runs somebody's agent bears only they know.
fn usual_jobs(study: &Study) -> NonZeroUsize {
    match std::thread::available_parallelism() {
        Ok(cores) if is_simulated(study) => cores,
        _ => NonZeroUsize::MIN,
    }
}

/// Tells the bounds of all runs together.
fn forecast(name: &str, file: &FileOf, trials: &[Trial], prices: &PriceTable) -> Result<Ending, Failure> {
    let (mut rollouts, mut calls, mut usd) = (Some(0), Some(0), Some(0.0));
    for trial in trials {
        let file = file(trial);
        let setup = file.setup()?;
        let one =
            Forecast::new(&setup.problem, &setup.specs, prices).map_err(|error| SessionError::Study {
                study: file.name.clone(),
                error,
            })?;
        rollouts = rollouts
            .zip(one.rollouts)
            .map(|(sum, more): (u64, u64)| sum + more);
        calls = calls.zip(one.calls).map(|(sum, more): (u64, u64)| sum + more);
        usd = usd.zip(one.usd).map(|(sum, more)| sum + more);
    }
    let bound = |bound: Option<u64>| bound.map_or_else(|| "no bound".to_owned(), count);
    let mut grid = capo_core::table::Table::default();
    grid.row(["runs".to_owned(), trials.len().to_string()]);
    grid.row(["rollouts".to_owned(), bound(rollouts)]);
    grid.row(["model calls".to_owned(), bound(calls)]);
    grid.row(["dollars".to_owned(), dollars(usd)]);
    print(&format!(
        "{}: at most, failed tries and what is paid already aside\n{}The budget of the study holds for each run.\n",
        name,
        grid.text(2)
    ))?;
    Ok(Ending::Done)
}

impl From<ExperimentError> for Failure {
    fn from(error: ExperimentError) -> Self {
        Self::usage(error.to_string())
    }
}

impl From<DriveError<TrialError>> for Failure {
    fn from(error: DriveError<TrialError>) -> Self {
        match error {
            // The session's own words and exit code; they name the file.
            DriveError::Run {
                error: TrialError::Session(error),
                journal,
                ..
            } => Self::of_run(error, &journal, "Choose another directory with --out"),
            DriveError::Journal(error) => error.into(),
            error => Self::new(error.to_string()),
        }
    }
}

/// The study file of a trial.
type FileOf<'a> = dyn Fn(&Trial) -> StudyFile + Sync + 'a;

/// Runs trials as `capo optimize` would.
struct SessionRunner<'a> {
    file: &'a FileOf<'a>,
    args: &'a ExperimentArgs,
    /// [`Experiment::truth_of`].
    truth_of: Option<Next>,
    truths: Truths,
    prices: &'a PriceTable,
    progress: &'a Progress,
    interrupts: Interrupts,
}

impl Runner for SessionRunner<'_> {
    type Error = TrialError;

    fn study_id(&self, trial: &Trial) -> Result<String, TrialError> {
        Ok((self.file)(trial).setup()?.problem.id())
    }

    fn run(&self, trial: &Trial) -> Result<Option<RunRecord>, TrialError> {
        let file = (self.file)(trial);
        let session = Session::new(&file, &file.keys(), self.prices.clone())?;
        let mut journal = if self.args.no_journals {
            Journal::create(Box::new(MemoryJournal::new()))
        } else {
            open_journal(&trial.journal, Fsync::default(), "--out")?
        };
        let wires = session.wires();
        wires.heed(&self.interrupts);
        let control = wires.control();
        session.tell(self.progress.of_waits());
        let (mut show, ender, asked) = (
            self.progress.observer(trial),
            control.clone(),
            self.interrupts.clone(),
        );
        journal.observe(Box::new(move |event, state| {
            // While models in this process answer at once, nothing else gets its turn.
            if asked.is_asked() {
                ender.interrupt();
            }
            show(event, state);
        }));
        let running = self.interrupts.carry_out(control, session.optimize(journal));
        let outcome = block_on(running).map_err(TrialError::Runtime)?.transpose()?;
        Ok(outcome.map(|outcome| {
            let record = trial.record(outcome.journal.state());
            record.expect("a run journals its end before it returns")
        }))
    }

    fn measure_fresh(&self, trial: &Trial, record: &mut RunRecord) -> Result<bool, TrialError> {
        let kept = fresh::kept_beside(&trial.journal);
        fresh::measure(
            &(self.file)(trial),
            record,
            self.args.fresh,
            self.truth_of,
            Some(&kept),
            &self.truths,
            Some(&self.interrupts),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shipped(name: &str) -> Study {
        let path = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("../studies")
            .join(name);
        StudyFile::read(&path).unwrap().study
    }

    #[test]
    fn only_what_stays_in_this_process_is_run_many_at_once() {
        let cores = std::thread::available_parallelism().unwrap();
        assert_eq!(usual_jobs(&shipped("help-desk.toml")), cores);
        assert_eq!(usual_jobs(&shipped("help-desk-openai.toml")), NonZeroUsize::MIN);
        let mut own = shipped("own-agent.toml");
        for model in own.models.values_mut() {
            *model = serde_json::json!({ "provider": "simulated" });
        }
        assert_eq!(usual_jobs(&own), NonZeroUsize::MIN, "somebody's agent");
    }
}
