//! Checking a journal against itself.
//!
//! Two independent checks: frozen thresholds and every `round` line's means, J and multipliers are
//! recomputed from the raw `rollout` lines; then the method itself is run again over the journal
//! with every door to the world shut, and must come to the same scores, feasibility, parents, pools,
//! multipliers and result. What ended a search that did not go its whole way (budget, person,
//! failure) no journal can prove.

mod arithmetic;
mod close;
mod dual;
mod provenance;
mod recorded;
mod reused;
mod worst;

use std::rc::Rc;

use crate::journal::{self, FinishedEvent, Journal, JournalError, MemoryJournal, Status, parse_line};
use crate::search::arena::{Arena, Halt, RunOptions};
use crate::search::methods::{self, Search};
use crate::search::optimize::{RunError, conclude, freeze_thresholds};
use crate::study::Rounds;
use crate::study::ids::Round;

/// What was checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Verified {
    /// Lines read.
    pub lines: usize,
    /// Candidates, each the hash of its prompt.
    pub candidates: usize,
    /// Rollouts.
    pub rollouts: u64,
    /// Rounds recomputed and replayed.
    pub rounds: u32,
    /// Whether the journal ends with a result, and that was recomputed too.
    pub finished: bool,
}

/// The first difference found.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Difference {
    /// A line that cannot be right.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// A number that does not follow from the lines above it.
    #[error("journal line {line}: {what}")]
    Line {
        /// Number of the line, from 1.
        line: usize,
        /// What is written and what follows.
        what: String,
    },
    /// The method comes to something else.
    #[error("{0}")]
    Replay(String),
}

/// Verifies a journal given as its lines.
///
/// ```
/// # mod tiny { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/tiny/mod.rs")); }
/// # use std::rc::Rc;
/// # use capo_core::{arena::RunOptions, journal::{Journal, MemoryJournal}, optimize};
/// # use futures::executor::block_on;
/// use capo_core::verify;
///
/// # let store = MemoryJournal::new();
/// # let journal = Journal::create(Box::new(store.clone()));
/// # block_on(optimize(tiny::problem(tiny::STUDY).unwrap(), journal, Rc::new(tiny::Tiny), RunOptions::default())).unwrap();
/// # let mut lines = store.lines().to_vec();
/// let verified = block_on(verify(&lines))?;
/// assert!(verified.finished && verified.rounds == 2);
///
/// let round = lines.iter_mut().find(|line| line.starts_with(r#"{"event":"round""#)).unwrap();
/// *round = round.replace(r#""objective":0.5"#, r#""objective":0.9"#);
/// let difference = block_on(verify(&lines)).unwrap_err();
/// assert!(difference.to_string().ends_with("is 0.9, its rollouts give 0.5"));
/// # Ok::<(), capo_core::Difference>(())
/// ```
///
/// # Errors
/// The first difference.
pub async fn verify<L: AsRef<str>>(lines: impl IntoIterator<Item = L>) -> Result<Verified, Difference> {
    let lines: Vec<L> = lines.into_iter().collect();
    if lines.is_empty() {
        return Err(Difference::Replay("the journal is empty".into()));
    }
    let open = || Journal::open(Box::new(MemoryJournal::new()), (0..).zip(&lines).map(Ok));
    let journal = open()?;
    let rounds = journal.state().rounds().len() as Round;
    let mut arithmetic = arithmetic::Arithmetic::default();
    let mut provenance = provenance::Provenance::default();
    let mut reused = reused::Reused::default();
    let mut worst = worst::Worst::default();
    for (number, line) in (1..).zip(&lines) {
        let event = parse_line(line.as_ref(), number)?;
        provenance
            .check(&event)
            .and_then(|()| reused.check(&event))
            .and_then(|()| worst.check(&event))
            .and_then(|()| arithmetic.check(&event))
            .map_err(|what| Difference::Line { line: number, what })?;
    }
    arithmetic.end().map_err(|what| Difference::Line {
        line: lines.len(),
        what,
    })?;
    let replayed = match replay(journal, lines.len(), None).await {
        Ok(Some(verified)) => return Ok(verified),
        Ok(None) => Difference::Replay(format!("the line of round {rounds} is missing")),
        Err(difference) => difference,
    };
    // What a round lacked when the budget halted it may have been measured for the final choice afterwards: then nothing
    // of that round was known to who chose.
    let halted = replay(open()?, lines.len(), Some(rounds)).await;
    halted.ok().flatten().ok_or(replayed)
}

/// Runs the method again over a journal, through at most so many rounds; none where it goes further than a journal
/// with a result.
async fn replay(journal: Journal, lines: usize, most: Option<Round>) -> Result<Option<Verified>, Difference> {
    let failed = |what: String| Difference::Replay(what);
    let state = journal.state();
    let study = state
        .study()
        .cloned()
        .ok_or_else(|| failed("the journal has no study".into()))?;
    let recorded: Option<Rc<FinishedEvent>> = state.finished().cloned();
    let rounds = state.rounds().len() as u32;
    let counted_as_worst = state.failed_rollouts().len() as u64;
    let rollouts = state.rollouts().count() - counted_as_worst;
    let candidates = state.candidates().len();

    // Its budget and what becomes of failures may have changed since it began.
    let mut permitted = (*study).clone();
    permitted.study.budget = state.budget();
    permitted.study.failures = state.failures_in_force();
    let problem = recorded::problem(&permitted).map_err(|error| failed(error.to_string()))?;
    if !study.states_its_id() {
        return Err(failed("the study's id is not the hash of its content".into()));
    }
    let method =
        methods::search(&study.study.study.method, &study.study.method).map_err(|e| failed(e.to_string()))?;
    let arena = Arena::open(problem, journal, Rc::new(recorded::Nobody), RunOptions::default())?;
    arena.only_replay(most);
    let ended = match freeze_thresholds(&arena).await {
        Ok(()) => method.search(&arena).await,
        Err(halt) => Err(halt),
    };
    let halt = match ended {
        Ok(()) => None,
        Err(Halt::Replay(what)) => return Err(failed(what)),
        Err(halt) => Some(halt),
    };
    if arena.rounds_closed() < rounds {
        return Err(failed(format!(
            "round {} cannot be replayed: a rollout, critique or rewrite that it needs is not in the journal",
            arena.rounds_closed()
        )));
    }
    if recorded.is_some() && arena.rounds_closed() > rounds {
        return Ok(None);
    }
    if let Some(recorded) = &recorded {
        let mut differs = None;
        for halt in ends(recorded.status, halt.as_ref(), &arena, &*method) {
            let computed = conclude(&arena, &*method, halt.as_ref())
                .await
                .map_err(|error| match error {
                    RunError::Replay(what) => failed(what),
                    other => failed(other.to_string()),
                })?;
            let compared = compare_status(recorded.status, &computed, halt.is_some(), &arena)
                .and_then(|()| compare_end(recorded, &computed));
            match compared {
                Ok(()) => {
                    differs = None;
                    break;
                }
                Err(what) => differs = Some(what),
            }
        }
        if let Some(what) = differs {
            return Err(failed(what));
        }
    }
    Ok(Some(Verified {
        lines,
        candidates,
        rollouts,
        rounds,
        finished: recorded.is_some(),
    }))
}

/// How a run of this status can have ended, given where its replay halted: the first that the result
/// follows from is right. A session that a person or a failure ended measured nothing more. A whole
/// search may have ended before its rewriter had learned from the last round.
fn ends(status: Status, halt: Option<&Halt>, arena: &Arena, method: &dyn Search) -> Vec<Option<Halt>> {
    let by_person_or_failure = matches!(status, Status::Stopped | Status::Failed);
    match halt {
        Some(_) if by_person_or_failure => vec![Some(Halt::Interrupted)],
        Some(_) => vec![Some(Halt::Budget(String::new()))],
        None if by_person_or_failure && update_is_owed(arena, method) => vec![Some(Halt::Interrupted), None],
        None => vec![None],
    }
}

/// Whether the rewriter may still have to learn from the last round.
fn update_is_owed(arena: &Arena, method: &dyn Search) -> bool {
    let journal = arena.journal().borrow();
    let last = journal.state().rounds().last();
    method.learns() && last.is_some_and(|last| journal.state().learned(last.round).is_none())
}

fn name(status: Status) -> &'static str {
    match status {
        Status::Feasible => "feasible",
        Status::Infeasible => "infeasible",
        Status::Budget => "budget",
        Status::Stopped => "stopped",
        Status::Failed => "failed",
    }
}

/// Whether a run that replays like this can have ended so. `halted`: the search stops where the
/// journal ends.
fn compare_status(
    recorded: Status,
    computed: &FinishedEvent,
    halted: bool,
    arena: &Arena,
) -> Result<(), String> {
    let whole = |status| matches!(status, Status::Feasible | Status::Infeasible);
    let differs = |why: String| Err(format!("finished: the status is {}, but {why}", name(recorded)));
    if halted && whole(recorded) && recorded != computed.status {
        return differs("the search does not come to its end".into());
    }
    if !halted && recorded == Status::Budget {
        return differs("the search comes to its end".into());
    }
    if recorded == Status::Budget && arena.journal().borrow().state().budget().is_unlimited() {
        return differs("nothing bounds it".into());
    }
    // Nothing was left to measure, so nothing can have stopped it. A search until the budget is spent
    // measures as long as there is some.
    let is_open = matches!(arena.search().rounds, Rounds::Open(_));
    if !halted && !is_open && computed.reason.is_none() && recorded != computed.status {
        return differs(format!("it should be {}", name(computed.status)));
    }
    // The held-out evaluation is not whole: the status tells of the search.
    let feasible = computed
        .best
        .is_some_and(|best| computed.final_scores[&best].feasible);
    if whole(recorded) && (recorded == Status::Feasible) != feasible {
        let is = if feasible { "is" } else { "is not" };
        return differs(format!("the returned prompt {is} feasible"));
    }
    Ok(())
}

fn compare_end(recorded: &FinishedEvent, computed: &FinishedEvent) -> Result<(), String> {
    // How it ended is compared apart from this; what ended it no journal can prove.
    let computed = FinishedEvent {
        status: recorded.status,
        reason: recorded.reason.clone(),
        ..computed.clone()
    };
    match journal::difference(recorded, &computed) {
        None => Ok(()),
        Some(difference) => Err(format!("finished: {difference}")),
    }
}
