//! One prompt, measured on one split.

use std::rc::Rc;

use indexmap::IndexMap;

use crate::journal::run_state::{RunState, SetKey};
use crate::journal::{Journal, Origin, StoreError};
use crate::reading::examples::Examples;
use crate::reading::metrics;
use crate::reading::summary::Failures;
use crate::search::arena::{Arena, Halt, Models, Phase, RunOptions};
use crate::search::optimize::RunError;
use crate::search::optimize::freeze_thresholds;
use crate::search::problem::Problem;
use crate::study::estimate::{Estimate, pass_hat};
use crate::study::ids::CandidateId;
use crate::study::score::{Limit, Limits};
use crate::study::usage::Usage;
use crate::study::workload::Split;

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
    /// What could not be measured, and counts as the worst value or is left out, if there is anything.
    pub failures: Option<Failures>,
    /// What stopped it before the split was measured.
    pub halt: Option<Halt>,
}

impl Evaluation {
    /// Whether every constraint is satisfied on the mean; `None` unless the split was measured.
    pub fn is_feasible(&self) -> Option<bool> {
        if self.estimates.is_empty() {
            return None;
        }
        let admits = |(metric, limit): (&String, &Limit)| {
            self.estimates
                .get(metric)
                .map(|estimate| limit.admits(estimate.mean))
        };
        self.limits
            .iter()
            .map(admits)
            .try_fold(true, |all, admitted| Some(all & admitted?))
    }
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
    if !journal.state().rounds().is_empty() {
        return Err(StoreError(
            "this is the journal of a search; measure a prompt into a journal of its own".into(),
        )
        .into());
    }
    let repeats = problem.study().study.repeats;
    let arena = Arena::open(problem, journal, models, options)?;
    arena.enter(Phase::Evaluation);
    let candidate = CandidateId::of(prompt);
    let halt = match measure(&arena, prompt, split).await {
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

async fn measure(arena: &Arena, prompt: &str, split: Split) -> Result<(), Halt> {
    freeze_thresholds(arena).await?;
    let candidate = arena.introduce(prompt, 0, Origin::Given, Vec::new())?;
    arena.measure(&[candidate], &arena.whole(split)).await?;
    Ok(())
}
