//! The beginning of a run, by which one can tell what the whole of it will take.

use std::rc::Rc;

use crate::journal::Journal;
use crate::search::arena::{Arena, Halt, Models, RunOptions};
use crate::search::methods;
use crate::search::optimize::{self, RunError, thresholds_are_relative};
use crate::search::problem::Problem;
use crate::study::usage::RoleUsage;
use crate::study::workload::Split;

/// The beginning of a run.
pub struct Piloted {
    /// The run. It has not ended.
    pub journal: Journal,
    /// How many rollouts of the seed prompt the search begins with: there are no more of them to pilot.
    pub first: usize,
    /// How many were made now.
    pub rollouts: u64,
    /// What was consumed now, all roles together.
    pub usage: RoleUsage,
    /// What stopped it before all were made, or why none was.
    pub halt: Option<Halt>,
    /// Why the first of those failed that could not be made beside others.
    pub failure: Option<Halt>,
}

/// Makes the rollouts of the seed prompt that a run begins with, at most so many, and leaves the run there. Those that
/// its journal holds count among them and are not paid for again; [`crate::optimize()`] over the same journal pays for
/// none of them.
///
/// # Errors
/// As [`crate::optimize()`].
pub async fn pilot(
    problem: Problem,
    journal: Journal,
    models: Rc<dyn Models>,
    options: RunOptions,
    rollouts: usize,
) -> Result<Piloted, RunError> {
    let method = methods::search(&problem.study().study.method, &problem.study().method)?;
    let arena = Arena::open(problem, journal, models, options)?;
    arena.expect_finalists(optimize::finalists(&arena, &*method));
    let batch = if thresholds_are_relative(&arena) {
        arena.whole(Split::Optimize)
    } else {
        arena.batch(0)
    };
    let spent = || {
        let journal = arena.journal().borrow();
        let ledger = journal.state().ledger();
        (ledger.rollouts(), ledger.usage().total())
    };
    let (made_before, before) = spent();
    let mut failure = None;
    let mut halt = match arena.measure_first(arena.seed(), &batch, rollouts).await {
        Ok(first) => {
            failure = first;
            None
        }
        Err(Halt::Store(error)) => return Err(error.into()),
        Err(Halt::Replay(difference)) => return Err(RunError::Replay(difference)),
        Err(halt) => Some(halt),
    };
    let (made, after) = spent();
    if made == made_before {
        halt = halt.or(failure.take());
    }
    let first = batch.len() * arena.search().repeats as usize;
    let mut journal = arena.into_journal();
    let synced = journal.sync();
    synced.await?;
    Ok(Piloted {
        journal,
        first,
        rollouts: made - made_before,
        usage: RoleUsage {
            calls: after.calls - before.calls,
            input_tokens: after.input_tokens - before.input_tokens,
            output_tokens: after.output_tokens - before.output_tokens,
            usd: after.usd.zip(before.usd).map(|(after, before)| after - before),
            seconds: after.seconds - before.seconds,
        },
        halt,
        failure,
    })
}
