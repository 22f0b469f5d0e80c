//! Rounds as screens count them.

use capo_core::ids::Round;
use capo_core::journal::Origin;
use capo_core::run_state::{Candidate, RunState};
use capo_core::study::Rounds;

/// A round on screen: 0 is the seed prompt, *r* is what was known after the journal's round *r* − 1.
pub type ScreenRound = u32;

/// The journal's round as screens count it.
pub fn on_screen(round: Round) -> ScreenRound {
    round + 1
}

/// The round on screen in which a prompt was written; 0 for the seed.
pub fn written_in(candidate: &Candidate) -> ScreenRound {
    match candidate.origin {
        Origin::Seed => 0,
        _ => on_screen(candidate.round),
    }
}

/// A round's name on an axis: "seed", "1", "2".
pub fn name(round: ScreenRound) -> String {
    match round {
        0 => "seed".to_owned(),
        round => round.to_string(),
    }
}

/// The number of rounds the study asks for; `None` when it goes on until the budget is spent.
pub fn planned(state: &RunState) -> Option<ScreenRound> {
    match state.study()?.study.study.rounds {
        Rounds::Count(rounds) => Some(rounds),
        Rounds::Open(_) => None,
    }
}

/// The journal's round that is under way: none once the run has ended or all rounds are closed.
pub fn under_way(state: &RunState) -> Option<Round> {
    let closed = state.rounds().len() as Round;
    let over = state.finished().is_some() || planned(state).is_some_and(|planned| closed >= planned);
    (state.study().is_some() && !over).then_some(closed)
}
