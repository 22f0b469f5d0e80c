//! Lineage: parents and ancestors of prompts, the seed.

use crate::journal::Origin;
use crate::journal::run_state::RunState;
use crate::study::ids::CandidateId;

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
