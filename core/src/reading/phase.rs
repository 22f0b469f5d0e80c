//! The phase of a run: what it is doing at this moment.

use crate::journal::Status;
use crate::journal::run_state::RunState;
use crate::reading::examples::Examples;
use crate::reading::measured::{self, Progress};
use crate::reading::{lineage, rounds};
use crate::study::workload::Split;

/// What a run is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// The journal is empty.
    Empty,
    /// The seed prompt is being measured.
    Seed(Progress),
    /// The critic and the rewriter work on the children of a round; so many are written.
    Writing(usize),
    /// The children of a round are being measured.
    Evaluating {
        /// Which of them, from 1.
        child: usize,
        /// How many there are.
        of: usize,
        /// How far it has come.
        examples: Progress,
    },
    /// The rounds are over: the best prompt and the seed are measured on held-out examples.
    HeldOut,
    /// It has ended.
    Ended(Status),
}

impl Phase {
    /// What a run is doing.
    pub fn of(state: &RunState) -> Self {
        if let Some(finished) = state.finished() {
            return Self::Ended(finished.status);
        }
        let Some(seed) = lineage::seed(state) else {
            return Self::Empty;
        };
        let Some(open) = rounds::under_way(state) else {
            return Self::HeldOut;
        };
        let examples = Examples::of_round(state, open);
        if state.rounds().is_empty() {
            // Relative thresholds have the seed measured on the whole split, whatever a round's batch.
            let relative = state.study().is_some_and(|event| {
                let mut constraints = event.study.constraints.iter();
                constraints.any(|constraint| constraint.relative_to_seed.is_some())
            });
            let whole = relative.then(|| Examples::whole(state, Split::Optimize));
            let progress = measured::progress(state, &seed, whole.as_ref().unwrap_or(&examples));
            if !progress.is_whole() {
                return Self::Seed(progress);
            }
        }
        let children: Vec<Progress> = state
            .candidates()
            .filter(|(id, candidate)| **id != seed && candidate.round == open)
            .map(|(id, _)| measured::progress(state, id, &examples))
            .collect();
        let measured = children.iter().filter(|progress| progress.is_whole()).count();
        let open = children.iter().filter(|progress| !progress.is_whole());
        match (open.max_by_key(|progress| progress.done), children.last()) {
            (Some(progress), _) if measured > 0 || progress.done > 0 => Self::Evaluating {
                child: measured + 1,
                of: children.len(),
                examples: *progress,
            },
            // The last rollout is in, and the round is about to close.
            (None, Some(last)) => Self::Evaluating {
                child: measured,
                of: children.len(),
                examples: *last,
            },
            _ => Self::Writing(children.len()),
        }
    }
}
