//! Activity of a run at this moment.

use capo_core::reading::measured::Progress;
use capo_core::reading::phase::Phase;
use capo_core::run_state::RunState;

use super::outcome::ended;
use super::rounds::{self, ScreenRound, on_screen, under_way};

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
            phase: Phase::of(state),
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
            Phase::HeldOut => "measuring the best prompts on held-out examples".to_owned(),
            Phase::Ended(status) => ended(status).to_owned(),
        }
    }
}
