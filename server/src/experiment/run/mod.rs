//! Drives every variant over every seed.
//!
//! A trial (one variant under one seed) has a journal of its own in the output directory. A trial
//! whose journal says that it went its whole way is not run again; any other one is started or
//! resumed.

mod seeds;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use capo_core::journal::{Event, FileJournal, JournalError, Status};
use capo_core::run_state::RunState;
use capo_core::study::Study;

use super::output::complete;
use super::record::RunRecord;
use super::{Experiment, Variant};

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
