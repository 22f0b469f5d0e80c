//! Who comes from whom.

use capo_core::ids::CandidateId;
use capo_core::journal::Origin;
use capo_core::run_state::RunState;

use super::rounds::{ScreenRound, written_in};

/// A prompt in the tree of prompts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ancestry {
    /// Which prompt.
    pub candidate: CandidateId,
    /// The round on screen in which it was written; 0 for the seed.
    pub round: ScreenRound,
    /// What it was made from.
    pub parents: Vec<CandidateId>,
}

/// Every prompt with its parents, in order of appearance.
pub fn tree(state: &RunState) -> Vec<Ancestry> {
    state
        .candidates()
        .map(|(id, candidate)| Ancestry {
            candidate: *id,
            round: written_in(candidate),
            parents: candidate.parents.clone(),
        })
        .collect()
}

/// The prompt the search starts from.
pub fn seed(state: &RunState) -> Option<CandidateId> {
    let mut candidates = state.candidates();
    let (seed, _) = candidates.find(|(_, candidate)| candidate.origin == Origin::Seed)?;
    Some(*seed)
}

/// The course from the seed to a prompt, both included: first parents all the way.
pub fn course(state: &RunState, to: CandidateId) -> Vec<CandidateId> {
    let mut course = vec![to];
    let mut last = to;
    // A parent always stands above its child; a journal that says otherwise ends the course.
    while let Some(parent) = state
        .candidate(&last)
        .and_then(|candidate| candidate.parents.first().copied())
        .filter(|parent| state.position(parent) < state.position(&last))
    {
        course.push(parent);
        last = parent;
    }
    course.reverse();
    course
}

/// Everything a prompt descends from, itself not included, latest first.
pub fn ancestors(state: &RunState, of: CandidateId) -> Vec<CandidateId> {
    let mut found: Vec<CandidateId> = Vec::new();
    let mut open = vec![of];
    while let Some(next) = open.pop() {
        for parent in state
            .candidate(&next)
            .map_or(&[][..], |candidate| &candidate.parents)
        {
            if *parent != of && !found.contains(parent) {
                found.push(*parent);
                open.push(*parent);
            }
        }
    }
    found.sort_by_key(|id| std::cmp::Reverse(state.position(id)));
    found
}
