//! Rounds as screens count them.

use capo_core::ids::Round;
use capo_core::journal::Origin;

pub use capo_core::reading::rounds::{planned, under_way};
use capo_core::run_state::Candidate;

/// A round on screen: 0 is the seed prompt, *r* is what was known after the journal's round *r* − 1.
pub type ScreenRound = u32;

/// The journal's round as screens count it.
pub fn on_screen(round: Round) -> ScreenRound {
    round + 1
}

/// The round on screen in which a prompt was written; 0 for those that the search starts from.
pub fn written_in(candidate: &Candidate) -> ScreenRound {
    match candidate.origin {
        Origin::Seed | Origin::From => 0,
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
