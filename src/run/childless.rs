//! Rewrites that gave no child.

use capo_core::ids::CandidateId;
use capo_core::run_state::RunState;

use super::rounds::{ScreenRound, on_screen};

/// A rewrite that gave no child.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Childless {
    /// The round on screen that asked for it.
    pub round: ScreenRound,
    /// What was to be rewritten.
    pub parent: CandidateId,
    /// Which of the parent's rewrites in that round, from 0.
    pub index: u32,
    /// Why there is no child, as a clause: "it is empty".
    pub reason: String,
}

/// All of a run, in the journal's order.
pub fn childless(state: &RunState) -> Vec<Childless> {
    let rewrites = state
        .rewrites()
        .filter(|(_, rewritten)| rewritten.child.is_none());
    rewrites
        .map(|((round, parent, index), rewritten)| Childless {
            round: on_screen(*round),
            parent: *parent,
            index: *index,
            reason: rewritten
                .reason
                .clone()
                .unwrap_or_else(|| "no reason is known".into()),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use capo_core::journal::Event;

    use super::*;
    use crate::run::fixture::{events, finished, fold};

    #[test]
    fn a_rewrite_without_a_child_keeps_its_reason_and_is_no_candidate() {
        let before = childless(&finished()).len();
        let mut events = events(|_| {}, None);
        let rewrite = events.iter_mut().find_map(|event| match event {
            Event::Rewrite(rewrite) if rewrite.child.is_some() => Some(rewrite),
            _ => None,
        });
        let rewrite = rewrite.unwrap();
        (rewrite.child, rewrite.reason) = (None, Some("it is empty".into()));
        let expected = Childless {
            round: 1,
            parent: rewrite.parent,
            index: rewrite.index,
            reason: "it is empty".into(),
        };
        let state = fold(&events);
        assert!(childless(&state).contains(&expected));
        assert_eq!(childless(&state).len(), before + 1);
        assert_eq!(state.candidates().len(), finished().candidates().len());
    }
}
