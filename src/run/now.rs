//! What a run is doing at this moment.

use capo_core::journal::Status;
use capo_core::run_state::RunState;
use capo_core::workload::Split;

use super::in_force::Examples;
use super::lineage;
use super::measured::{self, Progress};
use super::outcome::ended;
use super::rounds::{self, ScreenRound, on_screen, under_way, written_in};

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

/// What a run is doing, and in which round.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Now {
    /// The round on screen under way, or the last one.
    pub round: ScreenRound,
    /// The rounds the study plans; `None` when it goes on until the budget is spent.
    pub planned: Option<ScreenRound>,
    /// What it is doing.
    pub phase: Phase,
}

impl Now {
    /// What a run is doing.
    pub fn new(state: &RunState) -> Self {
        Self {
            round: under_way(state).map_or(state.rounds().len() as ScreenRound, on_screen),
            planned: rounds::planned(state),
            phase: phase(state),
        }
    }

    /// "Round 5 of 6".
    pub fn round_words(&self) -> String {
        match self.planned {
            Some(planned) => format!("Round {} of {planned}", self.round),
            None => format!("Round {}", self.round),
        }
    }

    /// "evaluating child 5 of 8, example 31 of 74".
    pub fn phase_words(&self) -> String {
        let example = |progress: Progress| {
            let current = (progress.done + 1).min(progress.of);
            format!("example {current} of {}", progress.of)
        };
        match self.phase {
            Phase::Empty => "not begun".to_owned(),
            Phase::Seed(examples) => format!("evaluating the seed prompt, {}", example(examples)),
            Phase::Writing(0) => "writing children".to_owned(),
            Phase::Writing(written) => format!("writing children, {written} so far"),
            Phase::Evaluating { child, of, examples } => {
                format!("evaluating child {child} of {of}, {}", example(examples))
            }
            Phase::HeldOut => "measuring the best prompt on held-out examples".to_owned(),
            Phase::Ended(status) => ended(status).to_owned(),
        }
    }
}

fn phase(state: &RunState) -> Phase {
    if let Some(finished) = state.finished() {
        return Phase::Ended(finished.status);
    }
    let Some(seed) = lineage::seed(state) else {
        return Phase::Empty;
    };
    let Some(open) = under_way(state) else {
        return Phase::HeldOut;
    };
    if state.rounds().is_empty() {
        // Relative thresholds have the seed measured on the whole split, whatever a round's batch.
        let examples = Examples::of_round(state, open);
        let relative = state.study().is_some_and(|event| {
            let mut constraints = event.study.constraints.iter();
            constraints.any(|constraint| constraint.relative_to_seed.is_some())
        });
        let wanted = if relative {
            Examples::whole(state, Split::Optimize)
        } else {
            examples
        };
        let progress = measured::progress(state, &seed, &wanted);
        if !progress.is_whole() {
            return Phase::Seed(progress);
        }
    }
    let examples = Examples::of_round(state, open);
    let children: Vec<Progress> = state
        .candidates()
        .filter(|(_, candidate)| written_in(candidate) == on_screen(open))
        .map(|(id, _)| measured::progress(state, id, &examples))
        .collect();
    let measured = children.iter().filter(|progress| progress.is_whole()).count();
    let open = children.iter().filter(|progress| !progress.is_whole());
    match (open.max_by_key(|progress| progress.done), children.last()) {
        (Some(progress), _) if measured > 0 || progress.done > 0 => Phase::Evaluating {
            child: measured + 1,
            of: children.len(),
            examples: *progress,
        },
        // The last rollout is in, and the round is about to close.
        (None, Some(last)) => Phase::Evaluating {
            child: measured,
            of: children.len(),
            examples: *last,
        },
        _ => Phase::Writing(children.len()),
    }
}
