//! Prompts measured by themselves: one on a whole split, or any on any examples, as they are asked for.

use std::collections::HashMap;
use std::rc::Rc;

use indexmap::IndexMap;

use crate::journal::run_state::{Reused, RunState, SetKey};
use crate::journal::{Journal, Origin, RolloutEvent, StoreError};
use crate::reading::examples::Examples;
use crate::reading::metrics;
use crate::reading::summary::Failures;
use crate::search::arena::{Arena, Batch, Halt, Models, Phase, RunOptions};
use crate::search::optimize::RunError;
use crate::search::optimize::freeze_thresholds;
use crate::search::problem::Problem;
use crate::study::Study;
use crate::study::estimate::{Estimate, pass_hat};
use crate::study::ids::CandidateId;
use crate::study::score::{Limit, Limits};
use crate::study::usage::Usage;
use crate::study::workload::{Split, Workload};

/// What a prompt measured.
#[derive(Debug, Clone, PartialEq)]
pub struct Evaluation {
    /// The prompt's candidate.
    pub candidate: CandidateId,
    /// Estimates by metric, the study's objective and constraints first; empty unless the whole
    /// split was measured.
    pub estimates: IndexMap<String, Estimate>,
    /// pass^k of the objective for k = 1 to the study's repeats, where it is 0 or 1 in every rollout and there
    /// are several repeats; else empty.
    pub pass: Vec<f64>,
    /// The constraints, relative thresholds measured.
    pub limits: Limits,
    /// What was consumed, by earlier sessions over the same journal too.
    pub usage: Usage,
    /// Rollouts made, by earlier sessions over the same journal too.
    pub rollouts: u64,
    /// What was taken over from earlier runs.
    pub reused: Reused,
    /// What could not be measured, and counts as the worst value or is left out, if there is anything.
    pub failures: Option<Failures>,
    /// What stopped it before the split was measured.
    pub halt: Option<Halt>,
}

impl Evaluation {
    /// Whether every constraint is satisfied on the mean; `None` unless the split was measured.
    pub fn is_feasible(&self) -> Option<bool> {
        satisfies(&self.estimates, &self.limits)
    }
}

/// Whether every constraint is satisfied on the mean; `None` where one was not measured.
fn satisfies(estimates: &IndexMap<String, Estimate>, limits: &Limits) -> Option<bool> {
    if estimates.is_empty() {
        return None;
    }
    let is_satisfied = |(metric, limit): (&String, &Limit)| {
        let estimate = estimates.get(metric);
        estimate.map(|estimate| limit.is_satisfied(estimate.mean))
    };
    limits
        .iter()
        .map(is_satisfied)
        .try_fold(true, |all, satisfied| Some(all & satisfied?))
}

/// Measures one prompt on a split. Thresholds relative to the seed prompt are measured first, on
/// the optimisation split, unless the journal holds them.
///
/// # Errors
/// When it cannot begin, or the journal fails. A spent budget, an interruption and an effect that
/// failed for good are told by [`Evaluation::halt`].
pub async fn evaluate(
    problem: Problem,
    journal: Journal,
    models: Rc<dyn Models>,
    options: RunOptions,
    prompt: &str,
    split: Split,
) -> Result<Evaluation, RunError> {
    let repeats = problem.study().study.repeats;
    let arena = open(problem, journal, models, options)?;
    let candidate = CandidateId::of(prompt);
    let halt = match measure(&arena, prompt, &arena.whole(split)).await {
        Ok(()) => None,
        Err(Halt::Store(error)) => return Err(error.into()),
        Err(Halt::Replay(difference)) => return Err(RunError::Replay(difference)),
        Err(halt) => Some(halt),
    };
    let (estimates, limits) = match halt {
        None => (
            arena.estimates(candidate, &arena.whole(split)),
            arena.limits(None),
        ),
        Some(_) => (IndexMap::new(), arena.limits(None)),
    };
    let mut journal = arena.into_journal();
    let synced = journal.sync();
    synced.await?;
    let successes = match halt {
        None if repeats > 1 => successes(journal.state(), &candidate, split, repeats),
        _ => None,
    };
    let ledger = journal.state().ledger();
    Ok(Evaluation {
        candidate,
        estimates,
        pass: successes.map_or_else(Vec::new, |successes| pass_hat(&successes, repeats)),
        limits,
        usage: ledger.usage(),
        rollouts: ledger.rollouts(),
        reused: ledger.reused().clone(),
        failures: Failures::of(journal.state()),
        halt,
    })
}

/// How many of the first `repeats` rollouts of each example succeeded, by an objective that is 0 or 1 in all of
/// them; `None` where it is not.
fn successes(state: &RunState, candidate: &CandidateId, split: Split, repeats: u32) -> Option<Vec<u32>> {
    let objective = metrics::objective(state)?;
    let (candidate, workload) = (state.position(candidate)?, objective.workload);
    let row = state.rollouts().row(candidate, SetKey { workload, split })?;
    let succeeds = |example: usize, repeat: u32| {
        let value = row.values(example, repeat)?[objective.position];
        (value == 0.0 || value == 1.0).then_some(u32::from(value == 1.0))
    };
    let examples = Examples::whole(state, split);
    examples.places[usize::from(workload)]
        .iter()
        .map(|example| (0..repeats).map(|repeat| succeeds(*example, repeat)).sum())
        .collect()
}

/// Opens the arena over a journal that holds no search.
pub(super) fn open(
    problem: Problem,
    journal: Journal,
    models: Rc<dyn Models>,
    options: RunOptions,
) -> Result<Arena, RunError> {
    if !journal.state().rounds().is_empty() {
        return Err(StoreError(
            "this is the journal of a search; measure a prompt into a journal of its own".into(),
        )
        .into());
    }
    let arena = Arena::open(problem, journal, models, options)?;
    arena.enter(Phase::Evaluation);
    Ok(arena)
}

async fn measure(arena: &Arena, prompt: &str, batch: &Batch) -> Result<(), Halt> {
    freeze_thresholds(arena).await?;
    let candidate = arena.introduce(prompt, 0, Origin::Given, Vec::new())?;
    arena.measure(&[candidate], batch).await?;
    Ok(())
}

/// Measures prompts on examples as they are asked for, all into one journal: what is in it is not paid again.
pub struct Evaluator {
    arena: Arena,
}

/// What a prompt measured on some examples.
#[derive(Debug, Clone)]
pub struct Measured {
    /// The prompt's candidate.
    pub candidate: CandidateId,
    /// Every rollout, by example in the order of the split, then by repeat.
    pub rollouts: Vec<RolloutEvent>,
    /// Estimates over the examples by metric, the study's objective and constraints first, of metrics that are measured
    /// on any of them.
    pub estimates: IndexMap<String, Estimate>,
    /// Names of the examples that could not be measured and count for nobody, as the study's `failures` say.
    pub left_out: Vec<String>,
    /// The constraints, relative thresholds measured.
    pub limits: Limits,
}

impl Measured {
    /// Whether every constraint is satisfied on the mean over these examples; `None` where one is measured on none of them.
    pub fn is_feasible(&self) -> Option<bool> {
        satisfies(&self.estimates, &self.limits)
    }
}

/// No example of a split has this name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("there is no example {0:?} in this split")]
pub struct UnknownExample(pub String);

impl Evaluator {
    /// Opens a journal, or starts one.
    ///
    /// # Errors
    /// When it is the journal of a search or of another study, or cannot be written.
    pub fn open(
        problem: Problem,
        journal: Journal,
        models: Rc<dyn Models>,
        options: RunOptions,
    ) -> Result<Self, RunError> {
        Ok(Self {
            arena: open(problem, journal, models, options)?,
        })
    }

    /// The seed prompt.
    pub fn seed_prompt(&self) -> Rc<str> {
        self.arena.prompt(self.arena.seed())
    }

    /// What the workloads say of themselves.
    pub fn description(&self) -> String {
        self.arena.description()
    }

    /// The names of a split's examples, in order.
    pub fn examples(&self, split: Split) -> Vec<String> {
        self.places(split).into_iter().map(|(name, _)| name).collect()
    }

    /// The name of an example: its id, and `WORKLOAD/ID` where the study has several workloads.
    pub fn name(&self, workload: &str, id: &str) -> String {
        match self.arena.problem().borrow().workloads() {
            [_] => id.to_owned(),
            _ => format!("{workload}/{id}"),
        }
    }

    /// The examples of a split by name, with the places of the workload in the study and of the example in the split.
    fn places(&self, split: Split) -> Vec<(String, (usize, usize))> {
        let problem = self.arena.problem().borrow();
        let (places, workloads) = (problem.places(split), problem.workloads().iter());
        let of_workload = |(place, (workload, examples)): (usize, (&Rc<dyn Workload>, Vec<usize>))| {
            let name = |example: &usize| self.name(workload.name(), &workload.examples(split)[*example]);
            let named = examples.iter().map(|example| (name(example), (place, *example)));
            named.collect::<Vec<_>>()
        };
        workloads.zip(places).enumerate().flat_map(of_workload).collect()
    }

    /// The examples of these names, or the whole split.
    ///
    /// # Errors
    /// When the split has no example of a name.
    pub fn batch(&self, split: Split, names: Option<&[String]>) -> Result<Batch, UnknownExample> {
        let Some(names) = names else {
            return Ok(self.arena.whole(split));
        };
        let places: HashMap<String, (usize, usize)> = self.places(split).into_iter().collect();
        let place = |name: &String| {
            places
                .get(name)
                .ok_or_else(|| UnknownExample(name.clone()))
                .copied()
        };
        let chosen: Result<Vec<_>, _> = names.iter().map(place).collect();
        Ok(self.arena.chosen(split, chosen?))
    }

    /// The constraints; thresholds relative to the seed prompt are measured first, unless the journal holds them.
    ///
    /// # Errors
    /// When the budget, a person or a failure stops it; everything that was answered is journaled.
    pub async fn limits(&self) -> Result<Limits, Halt> {
        self.arena.enter(Phase::Evaluation);
        freeze_thresholds(&self.arena).await?;
        Ok(self.arena.limits(None))
    }

    /// Measures a prompt on a batch, as often as the study says.
    ///
    /// # Errors
    /// As [`Evaluator::limits`].
    pub async fn measure(&self, prompt: &str, batch: &Batch) -> Result<Measured, Halt> {
        // What stopped an earlier one says nothing of this one.
        self.arena.enter(Phase::Evaluation);
        measure(&self.arena, prompt, batch).await?;
        let candidate = CandidateId::of(prompt);
        let left_out = self.arena.left_out_of(batch);
        let mut places = self.places(batch.split());
        places.retain(|(_, place)| left_out.contains(place));
        Ok(Measured {
            candidate,
            left_out: places.into_iter().map(|(name, _)| name).collect(),
            rollouts: self.arena.rollouts(candidate, batch).await?,
            estimates: self.arena.estimates(candidate, batch),
            limits: self.arena.limits(None),
        })
    }

    /// Whether [`Evaluator::measure`] pays for nothing: all of a batch is in the journal, or was measured by earlier runs.
    pub fn is_measured(&self, prompt: &str, batch: &Batch) -> bool {
        self.arena.missing(&[CandidateId::of(prompt)], batch) == 0
    }

    /// The study, relative thresholds as far as they are measured.
    pub fn study(&self) -> Study {
        self.arena.problem().borrow().study().clone()
    }

    /// Reads what the journal says of the run so far.
    pub fn state<T>(&self, read: impl FnOnce(&RunState) -> T) -> T {
        read(self.arena.journal().borrow().state())
    }

    /// Writes everything out and gives the journal back.
    ///
    /// # Errors
    /// When it cannot be written.
    pub async fn close(self) -> Result<Journal, StoreError> {
        let mut journal = self.arena.into_journal();
        let synced = journal.sync();
        synced.await?;
        Ok(journal)
    }
}
