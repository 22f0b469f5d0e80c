//! Drives every variant over every seed.
//!
//! A trial (one variant under one seed) has a journal of its own in the output directory. A trial
//! whose journal says that it went its whole way, held-out examples included, is not run again; any other one is started or
//! resumed.

mod seeds;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use capo_core::journal::Status;
use capo_core::run_state::RunState;
use capo_core::study::Study;

use super::Variant;
use super::record::RunRecord;
use crate::recorded::RecordedRun;
use crate::session::SessionError;

pub use seeds::Seeds;

/// One run to be made.
#[derive(Debug, Clone)]
pub struct Trial<'a> {
    /// What is run.
    pub variant: &'a Variant,
    /// Under which seed.
    pub seed: u64,
    /// Where its journal lies.
    pub journal: PathBuf,
    /// Whether it searches on the study's own split instead of one that its seed draws.
    pub same_split: bool,
}

impl Trial<'_> {
    /// The study of this trial.
    pub fn study(&self) -> Study {
        let study = &self.variant.study;
        let mut study = if self.same_split {
            study.clone()
        } else {
            drawn(study, self.seed)
        };
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

/// A study in which a seed draws, where examples are drawn, which are searched on and which held out. Seed 0 has the
/// study's own.
pub fn drawn(study: &Study, seed: u64) -> Study {
    let mut study = study.clone();
    let kind = capo_workloads::of(&study.workload);
    if let Some(workload) = kind.and_then(|kind| (kind.drawn)(&study.workload, seed)) {
        study.workload = workload;
    }
    study
}

/// Every trial of the experiment of a name, seed by seed, so that an interrupted one has whole seeds.
pub fn trials<'a>(
    experiment: &str,
    variants: &'a [Variant],
    seeds: &Seeds,
    out: &Path,
    same_split: bool,
) -> Vec<Trial<'a>> {
    seeds
        .iter()
        .flat_map(|seed| {
            variants.iter().map(move |variant| {
                let file = format!("{experiment}-{}-seed-{seed}.journal.jsonl", variant.key);
                Trial {
                    variant,
                    seed,
                    journal: out.join("journals").join(file),
                    same_split,
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

    /// Carries the trial's study on over its journal until the run ends, and says how it did;
    /// `None` when the person did not let it end.
    ///
    /// # Errors
    /// When the run cannot begin, or its journal is of another study or fails.
    fn run(&self, trial: &Trial) -> Result<Option<RunRecord>, Self::Error>;

    /// Adds to the record of a run that went its whole way what its prompts measure on fresh examples, if there are any;
    /// `false` when the person interrupted that.
    ///
    /// # Errors
    /// When they cannot be measured.
    fn measure_fresh(&self, _trial: &Trial, _record: &mut RunRecord) -> Result<bool, Self::Error> {
        Ok(true)
    }
}

/// Why one run could not be carried on.
#[derive(Debug, thiserror::Error)]
pub enum TrialError {
    /// Its study, models or journal.
    #[error(transparent)]
    Session(#[from] SessionError),
    /// The system gives no event queue.
    #[error("the system gives no event queue: {0}")]
    Runtime(#[source] std::io::Error),
    /// A prompt could not be measured on fresh examples.
    #[error("the prompt could not be measured on fresh examples: {0}")]
    NotMeasured(String),
    /// What was measured on fresh examples cannot be kept.
    #[error("{}: {source}", path.display())]
    Fresh {
        /// The file that cannot be written.
        path: PathBuf,
        /// The operating system's error.
        source: std::io::Error,
    },
}

/// Why an experiment stopped before every trial was run.
#[derive(Debug, thiserror::Error)]
pub enum DriveError<E: std::error::Error> {
    /// A journal of an earlier run cannot be read; the error names it.
    #[error(transparent)]
    Journal(SessionError),
    /// A run could not begin or be carried on.
    #[error("{trial}: {error}")]
    Run {
        /// [`Trial::name`].
        trial: String,
        /// Its journal.
        journal: PathBuf,
        /// The error that this one passes on.
        error: E,
    },
    /// A run gave up.
    #[error("{trial}: the run failed: {reason}")]
    Failed {
        /// [`Trial::name`].
        trial: String,
        /// What its journal says.
        reason: String,
    },
    /// The person interrupted it.
    #[error("interrupted; {done} of {all} runs are finished")]
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
                Ok(None) => {
                    lock(&queue).clear();
                    lock(&failure).get_or_insert(DriveError::Interrupted {
                        done: 0,
                        all: trials.len(),
                    });
                }
                Ok(record) => lock(&records)[at] = record,
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

/// `None` when the person did not let it end.
fn one<R: Runner>(
    trial: &Trial,
    watch: &dyn Watch,
    runner: &R,
) -> Result<Option<RunRecord>, DriveError<R::Error>> {
    let failed = |error| DriveError::Run {
        trial: trial.name(),
        journal: trial.journal.clone(),
        error,
    };
    if let Some(recorded) = RecordedRun::read_begun(&trial.journal).map_err(DriveError::Journal)? {
        // The journal of another study is left to the run, which refuses it and names the differences.
        let same = recorded.study.is_of(&runner.study_id(trial).map_err(failed)?);
        let known = trial
            .record(&recorded.state)
            .filter(|record| same && record.complete);
        if let Some(mut record) = known {
            let measured = runner.measure_fresh(trial, &mut record).map_err(failed)?;
            watch.done(trial, false);
            return Ok(measured.then_some(record));
        }
    }
    watch.started(trial);
    let Some(mut record) = runner.run(trial).map_err(failed)? else {
        return Ok(None);
    };
    match record.status {
        Status::Failed => Err(DriveError::Failed {
            trial: trial.name(),
            reason: record.reason.unwrap_or_default(),
        }),
        Status::Stopped => Ok(None),
        _ => {
            let measured = !record.complete || runner.measure_fresh(trial, &mut record).map_err(failed)?;
            watch.done(trial, true);
            Ok(measured.then_some(record))
        }
    }
}

/// A lock that ignores poisoning: a worker that panicked takes the scope down with it anyway.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

fn into_inner<T>(mutex: Mutex<T>) -> T {
    mutex
        .into_inner()
        .unwrap_or_else(std::sync::PoisonError::into_inner)
}
