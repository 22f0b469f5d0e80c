//! Drives every variant over every seed.
//!
//! A trial (one variant under one seed) has a journal of its own in the output directory. A trial
//! whose journal says that it went its whole way is not run again; any other one is started or
//! resumed.

use std::collections::VecDeque;
use std::fmt;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Mutex;

use capo_core::journal::{Event, FileJournal, JournalError, Status};
use capo_core::run_state::RunState;
use capo_core::study::Study;

use super::output::complete;
use super::record::RunRecord;
use super::{Experiment, Variant};

/// Which seeds to run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Seeds(Vec<u64>);

impl Seeds {
    /// The seeds, in the order given, without repeats.
    pub fn iter(&self) -> impl Iterator<Item = u64> + '_ {
        self.0.iter().copied()
    }
}

impl Default for Seeds {
    fn default() -> Self {
        Self((0..5).collect())
    }
}

impl fmt::Display for Seeds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let texts: Vec<String> = self.iter().map(|seed| seed.to_string()).collect();
        f.write_str(&texts.join(","))
    }
}

impl FromStr for Seeds {
    type Err = String;

    /// `5` is how many, from 0 on; `0,3,7` is which; a single one is written with a comma: `7,`.
    fn from_str(text: &str) -> Result<Self, String> {
        let number = |part: &str| {
            part.trim().parse::<u64>().map_err(|_| {
                format!(
                    "`{}` is no seed; write how many (5) or which (0,3,7)",
                    part.trim()
                )
            })
        };
        let seeds = if text.contains(',') {
            let parts = text.split(',').filter(|part| !part.trim().is_empty());
            parts.map(number).collect::<Result<Vec<u64>, String>>()?
        } else {
            (0..number(text)?).collect()
        };
        let mut distinct = Vec::new();
        for seed in seeds {
            if !distinct.contains(&seed) {
                distinct.push(seed);
            }
        }
        if distinct.is_empty() {
            return Err("at least one seed is needed; write how many (5) or which (0,3,7)".into());
        }
        Ok(Self(distinct))
    }
}

/// One run to be made.
#[derive(Debug, Clone)]
pub struct Trial<'a> {
    /// What is run.
    pub variant: &'a Variant,
    /// Under which seed.
    pub seed: u64,
    /// Where its journal lies.
    pub journal: PathBuf,
}

impl Trial<'_> {
    /// The study of this trial.
    pub fn study(&self) -> Study {
        let mut study = self.variant.study.clone();
        study.study.seed = self.seed;
        study
    }

    /// What the fold of its journal says, once the run has ended.
    pub fn record(&self, state: &RunState) -> Option<RunRecord> {
        RunRecord::of(&self.variant.key, self.seed, state)
    }

    /// For people: variant and seed.
    pub fn name(&self) -> String {
        format!("{}, seed {}", self.variant.label, self.seed)
    }
}

/// Every trial of an experiment, seed by seed, so that an interrupted one has whole seeds.
pub fn trials<'a>(
    experiment: &Experiment,
    variants: &'a [Variant],
    seeds: &Seeds,
    out: &Path,
) -> Vec<Trial<'a>> {
    seeds
        .iter()
        .flat_map(|seed| {
            variants.iter().map(move |variant| {
                let file = format!("{}-{}-seed-{seed}.journal.jsonl", experiment.name, variant.key);
                Trial {
                    variant,
                    seed,
                    journal: out.join("journals").join(file),
                }
            })
        })
        .collect()
}

/// Carries trials out.
pub trait Runner: Sync {
    /// Why a trial cannot be carried out.
    type Error: std::error::Error + Send;

    /// The id of the trial's study, as its journal must state it: see
    /// [`capo_core::problem::Problem::id`].
    ///
    /// # Errors
    /// When the study or its data are wrong.
    fn study_id(&self, trial: &Trial) -> Result<String, Self::Error>;

    /// Carries the trial's study on over its journal until the run ends, and says how it did.
    ///
    /// # Errors
    /// When the run cannot begin, or its journal is of another study or fails.
    fn run(&self, trial: &Trial) -> Result<RunRecord, Self::Error>;
}

/// Why an experiment stopped before every trial was run.
#[derive(Debug, thiserror::Error)]
pub enum DriveError<E: std::error::Error> {
    /// A journal of an earlier run cannot be read.
    #[error("{}: {error}", path.display())]
    Journal {
        /// Which.
        path: PathBuf,
        /// What is wrong with it.
        error: JournalError,
    },
    /// A run could not begin or be carried on.
    #[error("{trial}: {error}")]
    Run {
        /// [`Trial::name`].
        trial: String,
        /// Why.
        error: E,
    },
    /// A run gave up.
    #[error("{trial}: the run failed: {reason}\nIts journal is kept; run the same command again to go on.")]
    Failed {
        /// [`Trial::name`].
        trial: String,
        /// What its journal says.
        reason: String,
    },
    /// The person interrupted it.
    #[error("interrupted; {done} of {all} runs are finished. Run the same command again to go on.")]
    Interrupted {
        /// Cells that went their whole way.
        done: usize,
        /// All trials.
        all: usize,
    },
}

/// Told how far an experiment is; called from several threads.
pub trait Watch: Sync {
    /// A trial is being run.
    fn started(&self, trial: &Trial);
    /// A trial has its record, fresh or from an earlier run.
    fn done(&self, trial: &Trial, fresh: bool);
}

/// Runs what is not finished, `jobs` trials at once, and returns the record of every trial in order.
///
/// # Errors
/// At the first trial that cannot be run, fails or is interrupted; trials under way end first.
pub fn drive<R: Runner>(
    trials: &[Trial],
    jobs: NonZeroUsize,
    watch: &dyn Watch,
    runner: &R,
) -> Result<Vec<RunRecord>, DriveError<R::Error>> {
    let queue: Mutex<VecDeque<usize>> = Mutex::new((0..trials.len()).collect());
    let records: Mutex<Vec<Option<RunRecord>>> = Mutex::new(vec![None; trials.len()]);
    let failure: Mutex<Option<DriveError<R::Error>>> = Mutex::new(None);
    let next = || lock(&queue).pop_front();
    let worker = || {
        while let Some(at) = next() {
            match one(&trials[at], watch, runner) {
                Ok(record) if record.status == Status::Stopped => {
                    lock(&queue).clear();
                    lock(&failure).get_or_insert(DriveError::Interrupted {
                        done: 0,
                        all: trials.len(),
                    });
                }
                Ok(record) => lock(&records)[at] = Some(record),
                Err(error) => {
                    lock(&queue).clear();
                    lock(&failure).get_or_insert(error);
                }
            }
        }
    };
    // Every worker has a thread of its own, so that it can have an async runtime of its own.
    std::thread::scope(|scope| {
        for _ in 0..jobs.get().min(trials.len()) {
            scope.spawn(worker);
        }
    });
    let records = into_inner(records);
    match into_inner(failure) {
        Some(DriveError::Interrupted { all, .. }) => Err(DriveError::Interrupted {
            done: records.iter().flatten().count(),
            all,
        }),
        Some(error) => Err(error),
        None => Ok(records.into_iter().flatten().collect()),
    }
}

fn one<R: Runner>(trial: &Trial, watch: &dyn Watch, runner: &R) -> Result<RunRecord, DriveError<R::Error>> {
    let failed = |error| DriveError::Run {
        trial: trial.name(),
        error,
    };
    if trial.journal.exists() {
        let known = finished(trial, &runner.study_id(trial).map_err(failed)?).map_err(|error| {
            DriveError::Journal {
                path: trial.journal.clone(),
                error,
            }
        })?;
        if let Some(record) = known.filter(|record| complete(record.status)) {
            watch.done(trial, false);
            return Ok(record);
        }
    }
    watch.started(trial);
    let record = runner.run(trial).map_err(failed)?;
    if record.status == Status::Failed {
        return Err(DriveError::Failed {
            trial: trial.name(),
            reason: record.reason.unwrap_or_default(),
        });
    }
    watch.done(trial, true);
    Ok(record)
}

/// The record of an earlier run; `None` when it has not ended, or the journal is of another study
/// (which running it will refuse, naming the differences).
fn finished(trial: &Trial, study_id: &str) -> Result<Option<RunRecord>, JournalError> {
    let mut state = RunState::default();
    FileJournal::read(&trial.journal, |line, event: Event| {
        state
            .apply(&event, line as u64)
            .map_err(|reason| JournalError::Line { line, reason })
    })?;
    let same = state.study().is_some_and(|event| event.id == study_id);
    Ok(if same { trial.record(&state) } else { None })
}

/// A lock that ignores poisoning: a worker that panicked takes the scope down with it anyway.
fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

fn into_inner<T>(mutex: Mutex<T>) -> T {
    mutex
        .into_inner()
        .unwrap_or_else(std::sync::PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::rc::Rc;
    use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

    use capo_core::arena::{Models, RunOptions};
    use capo_core::journal::Fsync;
    use capo_core::llm::{Llm, Role};
    use capo_core::metric::{MetricSpec, PROMPT_LENGTH, prompt_length};
    use capo_core::problem::Problem;
    use capo_core::usage::Usage;
    use capo_core::workload::{Rollout, RolloutContext, RolloutError, Split, Trace, Workload};
    use futures::FutureExt;
    use futures::future::LocalBoxFuture;

    use super::*;
    use crate::experiment::EXPERIMENTS;

    /// Three examples, solved by longer prompts more often; asks no model.
    struct Echo {
        metrics: Vec<MetricSpec>,
        examples: Vec<String>,
    }

    impl Workload for Echo {
        fn name(&self) -> &'static str {
            "echo"
        }

        fn metrics(&self) -> &[MetricSpec] {
            &self.metrics
        }

        fn examples(&self, split: Split) -> &[String] {
            match split {
                Split::Optimize => &self.examples[..2],
                Split::Evaluate => &self.examples[2..],
            }
        }

        fn fingerprint(&self) -> String {
            String::new()
        }

        fn description(&self) -> String {
            String::new()
        }

        fn max_calls(&self) -> Vec<(Role, u64)> {
            Vec::new()
        }

        fn rollout<'a>(
            &'a self,
            context: RolloutContext<'a>,
        ) -> LocalBoxFuture<'a, Result<Rollout, RolloutError>> {
            let length = prompt_length(context.prompt);
            let solved = if length > 0.1 { 1.0 } else { 0.0 };
            let measurements = [("success".to_owned(), solved), (PROMPT_LENGTH.to_owned(), length)].into();
            async move {
                Ok(Rollout {
                    measurements,
                    trace: Trace::default(),
                    external_usage: Usage::default(),
                })
            }
            .boxed_local()
        }
    }

    struct Nobody;

    impl Models for Nobody {
        fn model(&self, role: Role) -> Rc<dyn Llm> {
            unreachable!("the method `injected` asks no {role:?}")
        }
    }

    fn variants() -> Vec<Variant> {
        let study: Study = toml::from_str(
            r#"
            [study]
            name = "echo"
            method = "injected"

            [workload]
            kind = "echo"

            [prompt]
            text = "Answer."

            [objective]
            metric = "success"

            [[constraint]]
            metric = "prompt_length"
            threshold = 1.0

            [models]
            "#,
        )
        .unwrap();
        let study = study.checked().unwrap();
        let tight = |study: &mut Study| study.constraints[0].threshold = Some(0.01);
        vec![
            Variant::of(&study, "loose", "loose", |_| ()),
            Variant::of(&study, "tight", "tight", tight),
        ]
    }

    /// Runs trials on [`Echo`].
    struct Honest;

    fn problem(trial: &Trial) -> Result<Problem, capo_core::RunError> {
        let workload = Echo {
            metrics: vec![
                MetricSpec::objective("success", "Long enough."),
                MetricSpec::prompt_length(),
            ],
            examples: ["a", "b", "c"].map(String::from).into(),
        };
        Ok(Problem::new(trial.study(), vec![Rc::new(workload)])?)
    }

    impl Runner for Honest {
        type Error = capo_core::RunError;

        fn study_id(&self, trial: &Trial) -> Result<String, Self::Error> {
            Ok(problem(trial)?.id())
        }

        fn run(&self, trial: &Trial) -> Result<RunRecord, Self::Error> {
            std::fs::create_dir_all(trial.journal.parent().unwrap()).unwrap();
            let journal = FileJournal::open(&trial.journal, Fsync::Never)?;
            let running =
                capo_core::optimize(problem(trial)?, journal, Rc::new(Nobody), RunOptions::default());
            let outcome = running.now_or_never().expect("nothing to wait for")?;
            Ok(trial.record(outcome.journal.state()).expect("the run has ended"))
        }
    }

    /// Fails every run.
    struct Keyless;

    impl Runner for Keyless {
        type Error = std::io::Error;

        fn study_id(&self, trial: &Trial) -> Result<String, Self::Error> {
            Ok(problem(trial).unwrap().id())
        }

        fn run(&self, _: &Trial) -> Result<RunRecord, Self::Error> {
            Err(std::io::Error::other("no key"))
        }
    }

    #[derive(Default)]
    struct Counts {
        started: AtomicUsize,
        fresh: AtomicUsize,
        known: AtomicUsize,
    }

    impl Watch for Counts {
        fn started(&self, _: &Trial) {
            self.started.fetch_add(1, Relaxed);
        }

        fn done(&self, _: &Trial, fresh: bool) {
            if fresh { &self.fresh } else { &self.known }.fetch_add(1, Relaxed);
        }
    }

    fn jobs(jobs: usize) -> NonZeroUsize {
        NonZeroUsize::new(jobs).unwrap()
    }

    #[test]
    fn every_cell_is_run_once_and_never_again() {
        let out = tempfile::tempdir().unwrap();
        let variants = variants();
        let trials = trials(EXPERIMENTS[0], &variants, &"0,3,7".parse().unwrap(), out.path());
        let counts = Counts::default();
        let first = drive(&trials, jobs(3), &counts, &Honest).unwrap();
        assert_eq!((counts.fresh.load(Relaxed), counts.known.load(Relaxed)), (6, 0));
        let keys: Vec<(&str, u64)> = first
            .iter()
            .map(|record| (record.variant.as_str(), record.seed))
            .collect();
        assert_eq!(
            keys,
            [
                ("loose", 0),
                ("tight", 0),
                ("loose", 3),
                ("tight", 3),
                ("loose", 7),
                ("tight", 7)
            ]
        );
        assert_eq!(first[0].status, Status::Feasible);
        assert_eq!(first[1].status, Status::Infeasible);
        assert_eq!(first[0].evaluate.as_ref().unwrap().objective, 1.0);

        let counts = Counts::default();
        assert_eq!(drive(&trials, jobs(2), &counts, &Keyless).unwrap(), first);
        assert_eq!((counts.started.load(Relaxed), counts.known.load(Relaxed)), (0, 6));
    }

    #[test]
    fn a_run_cut_off_is_carried_on() {
        let out = tempfile::tempdir().unwrap();
        let variants = variants();
        let trials = trials(EXPERIMENTS[0], &variants[..1], &"1".parse().unwrap(), out.path());
        let whole = drive(&trials, jobs(1), &Counts::default(), &Honest).unwrap();
        let text = std::fs::read_to_string(&trials[0].journal).unwrap();
        let lines = text.lines().count();
        let torn: String = text
            .split_inclusive('\n')
            .take(lines - 2)
            .chain(["{\"event\":\"rol"])
            .collect();
        std::fs::write(&trials[0].journal, torn).unwrap();
        let counts = Counts::default();
        assert_eq!(drive(&trials, jobs(1), &counts, &Honest).unwrap(), whole);
        assert_eq!(counts.fresh.load(Relaxed), 1);
    }

    #[test]
    fn a_journal_of_another_study_is_refused() {
        let out = tempfile::tempdir().unwrap();
        let mut variants = variants();
        let seeds = "1".parse().unwrap();
        drive(
            &trials(EXPERIMENTS[0], &variants, &seeds, out.path()),
            jobs(1),
            &Counts::default(),
            &Honest,
        )
        .unwrap();
        variants[0].study.constraints[0].threshold = Some(2.0);
        let trials = trials(EXPERIMENTS[0], &variants, &seeds, out.path());
        let error = drive(&trials, jobs(1), &Counts::default(), &Honest)
            .unwrap_err()
            .to_string();
        assert!(
            error.starts_with("loose, seed 0: this journal belongs to another study"),
            "{error}"
        );
        assert!(error.contains("threshold: 1.0 → 2.0"), "{error}");
    }

    #[test]
    fn a_broken_journal_is_named() {
        let out = tempfile::tempdir().unwrap();
        let variants = variants();
        let trials = trials(EXPERIMENTS[0], &variants, &"1".parse().unwrap(), out.path());
        std::fs::create_dir_all(out.path().join("journals")).unwrap();
        std::fs::write(&trials[0].journal, "hello\n").unwrap();
        let error = drive(&trials, jobs(1), &Counts::default(), &Honest)
            .unwrap_err()
            .to_string();
        assert!(
            error.contains("beta-loose-seed-0.journal.jsonl: journal line 1: not a Capo journal"),
            "{error}"
        );
    }

    #[test]
    fn the_first_error_stops_what_has_not_begun() {
        let out = tempfile::tempdir().unwrap();
        let variants = variants();
        let trials = trials(EXPERIMENTS[0], &variants, &"3".parse().unwrap(), out.path());
        let counts = Counts::default();
        let error = drive(&trials, jobs(1), &counts, &Keyless)
            .unwrap_err()
            .to_string();
        assert_eq!(error, "loose, seed 0: no key");
        assert_eq!(counts.started.load(Relaxed), 1);
    }

    #[test]
    fn seeds_are_a_number_or_a_list() {
        let seeds = |text: &str| text.parse::<Seeds>().map(|seeds| seeds.0);
        assert_eq!(seeds("3").unwrap(), [0, 1, 2]);
        assert_eq!(seeds("7,").unwrap(), [7]);
        assert_eq!(seeds("5, 1,5").unwrap(), [5, 1]);
        assert!(seeds("0").unwrap_err().contains("at least one seed"));
        assert!(seeds(",").unwrap_err().contains("at least one seed"));
        assert_eq!(
            seeds("a").unwrap_err(),
            "`a` is no seed; write how many (5) or which (0,3,7)"
        );
    }
}
