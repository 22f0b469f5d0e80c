//! Checking a journal against itself.
//!
//! Two independent checks: frozen thresholds and every `round` line's means, J and multipliers are
//! recomputed from the raw `rollout` lines; then the method itself is run again over the journal
//! with every door to the world shut, and must come to the same scores, feasibility, parents, pools,
//! multipliers and result. What ended a search that did not go its whole way (budget, person,
//! failure) no journal can prove.

mod arithmetic;
mod dual;
mod recorded;

use std::rc::Rc;

use crate::arena::{Arena, Halt, RunOptions};
use crate::control::Control;
use crate::journal::{FinishedEvent, Journal, JournalError, MemoryJournal, Status, parse_line};
use crate::methods::{self, Search};
use crate::optimize::{RunError, conclude, freeze_thresholds};

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
        /// From 1.
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
    let numbered = (0..).zip(&lines).map(Ok);
    let journal = Journal::open(Box::new(MemoryJournal::new()), numbered)?;
    let mut arithmetic = arithmetic::Arithmetic::default();
    for (number, line) in (1..).zip(&lines) {
        let event = parse_line(line.as_ref(), number)?;
        arithmetic
            .check(&event)
            .map_err(|what| Difference::Line { line: number, what })?;
    }
    arithmetic.end().map_err(|what| Difference::Line {
        line: lines.len(),
        what,
    })?;
    replay(journal, lines.len()).await
}

async fn replay(journal: Journal, lines: usize) -> Result<Verified, Difference> {
    let failed = |what: String| Difference::Replay(what);
    let state = journal.state();
    let study = state
        .study()
        .cloned()
        .ok_or_else(|| failed("the journal has no study".into()))?;
    let recorded: Option<Rc<FinishedEvent>> = state.finished().cloned();
    let rounds = state.rounds().len() as u32;
    let (candidates, rollouts) = (state.candidates().len(), state.rollouts().count());

    let problem = recorded::problem(&study).map_err(|error| failed(error.to_string()))?;
    if !study.states_its_id() {
        return Err(failed("the study's id is not the hash of its content".into()));
    }
    let method =
        methods::search(&study.study.study.method, &study.study.method).map_err(|e| failed(e.to_string()))?;
    // Every effect that is not in the journal halts an interrupted arena, so nothing is ever asked.
    let control = Control::new();
    control.interrupt();
    let options = RunOptions {
        control,
        ..RunOptions::default()
    };
    let arena = Arena::open(problem, journal, Rc::new(recorded::Nobody), options)?;
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
    if let Some(recorded) = &recorded {
        let is_unlearned =
            matches!(recorded.status, Status::Failed | Status::Stopped) && lesson_is_owed(&arena, &*method);
        // A session that a person or a failure ended measured nothing more.
        let halted = match recorded.status {
            Status::Stopped | Status::Failed if halt.is_some() || is_unlearned => Some(Halt::Interrupted),
            _ => halt.map(|_| Halt::Budget(String::new())),
        };
        let computed = conclude(&arena, &*method, halted.as_ref())
            .await
            .map_err(|error| match error {
                RunError::Replay(what) => failed(what),
                other => failed(other.to_string()),
            })?;
        compare_status(recorded.status, &computed, halted.is_some(), &arena).map_err(failed)?;
        compare_end(recorded, &computed).map_err(failed)?;
    }
    Ok(Verified {
        lines,
        candidates,
        rollouts,
        rounds,
        finished: recorded.is_some(),
    })
}

/// Whether the rewriter may still have to learn from the last round: a run can end before that.
fn lesson_is_owed(arena: &Arena, method: &dyn Search) -> bool {
    let journal = arena.journal().borrow();
    let last = journal.state().rounds().last();
    method.learns() && last.is_some_and(|last| journal.state().learned(last.round).is_none())
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
    let differs = |why: String| Err(format!("finished: the status is {recorded:?}, but {why}"));
    if halted && whole(recorded) {
        return differs("the search does not come to its end".into());
    }
    if !halted && recorded == Status::Budget {
        return differs("the search comes to its end".into());
    }
    if recorded == Status::Budget && arena.journal().borrow().state().budget().is_unlimited() {
        return differs("nothing bounds it".into());
    }
    // Nothing was left to measure, so nothing can have stopped it.
    if !halted && computed.reason.is_none() && recorded != computed.status {
        return differs(format!("computed {:?}", computed.status));
    }
    // The held-out evaluation is not whole: the status tells of the search.
    let feasible = computed
        .best
        .is_some_and(|best| computed.final_scores[&best].feasible);
    if whole(recorded) && (recorded == Status::Feasible) != feasible {
        return differs(format!("feasible is {feasible}"));
    }
    Ok(())
}

fn compare_end(recorded: &FinishedEvent, computed: &FinishedEvent) -> Result<(), String> {
    let differs =
        |what: &str, then: String, now: String| Err(format!("finished: {what} is {then}, computed {now}"));
    if recorded.best != computed.best {
        return differs(
            "best",
            format!("{:?}", recorded.best),
            format!("{:?}", computed.best),
        );
    }
    if recorded.multipliers != computed.multipliers {
        return differs(
            "multipliers",
            format!("{:?}", recorded.multipliers),
            format!("{:?}", computed.multipliers),
        );
    }
    for id in computed.final_scores.keys().chain(recorded.final_scores.keys()) {
        let (then, now) = (recorded.final_scores.get(id), computed.final_scores.get(id));
        if then != now {
            return differs(
                &format!("the score of {}", id.short()),
                format!("{then:?}"),
                format!("{now:?}"),
            );
        }
    }
    for (what, then, now) in [
        ("evaluation", &recorded.evaluation, &computed.evaluation),
        (
            "seed_evaluation",
            &recorded.seed_evaluation,
            &computed.seed_evaluation,
        ),
    ] {
        if then != now {
            return differs(what, format!("{then:?}"), format!("{now:?}"));
        }
    }
    if recorded.usage != computed.usage {
        return differs(
            "usage",
            format!("{:?}", recorded.usage),
            format!("{:?}", computed.usage),
        );
    }
    Ok(())
}
