//! The rounds of a run: how many there are to be, and which is under way.

use crate::journal::run_state::RunState;
use crate::study::Rounds;
use crate::study::ids::Round;

/// The number of rounds the study asks for; `None` when it goes on until the budget is spent.
pub fn planned(state: &RunState) -> Option<Round> {
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
