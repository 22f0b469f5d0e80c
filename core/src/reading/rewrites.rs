//! Rewrites, parent → child, with J of both under the multipliers of their round.

use crate::journal::run_state::RunState;
use crate::journal::{LineId, Origin, RoundEvent};
use crate::study::ids::CandidateId;
use crate::study::score::Score;

/// A rewrite of a closed round that gave a child which was measured.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ScoredRewrite<'a> {
    /// The round: λ_t, what was retained.
    pub round: &'a RoundEvent,
    /// What was rewritten.
    pub parent: CandidateId,
    /// The earlier rewrite that this one was to improve on, and that the feedback was about.
    pub draft: Option<CandidateId>,
    /// What came out.
    pub child: CandidateId,
    /// The parent's score under λ_t.
    pub parent_score: &'a Score,
    /// The child's score under λ_t.
    pub child_score: &'a Score,
    /// The score of what the feedback was about: of the draft where there is one, else of the parent.
    pub evidence_score: &'a Score,
    /// The line of the rewrite.
    pub line: LineId,
}

impl ScoredRewrite<'_> {
    /// What the feedback was about.
    pub fn evidence(&self) -> CandidateId {
        self.draft.unwrap_or(self.parent)
    }

    /// ΔJ = J(child) − J(parent), both under λ_t.
    pub fn gain(&self) -> f64 {
        self.child_score.lagrangian - self.parent_score.lagrangian
    }
}

/// The rewrites of a run that were to make a parent better by the evidence on it.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Rewrites<'a> {
    /// Those whose child was measured in a closed round, in the journal's order.
    pub scored: Vec<ScoredRewrite<'a>>,
    /// How many gave no child.
    pub childless: usize,
    /// How many gave a child, or improved on one, that could not be run and was discarded, or that was turned down before
    /// it was measured on all examples of its round.
    pub discarded: usize,
    /// How many belong to a round that is not closed.
    pub unfinished: usize,
}

impl Rewrites<'_> {
    /// All of them together.
    pub fn len(&self) -> usize {
        self.scored.len() + self.childless + self.discarded + self.unfinished
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// A closed round that lacks the score of a prompt that was rewritten in it, or of what came out.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{reason}")]
pub struct MissingScore {
    /// The line of the rewrite.
    pub line: LineId,
    /// Which round, and which candidate.
    pub reason: String,
}

/// The rewrites of a run, as far as it has come.
///
/// # Errors
/// When a closed round has no score of a candidate that it must have measured.
pub fn rewrites(state: &RunState) -> Result<Rewrites<'_>, MissingScore> {
    let mut found = Rewrites::default();
    let by_evidence = state
        .rewrites()
        .filter(|(_, rewritten)| rewritten.origin == Origin::Rewrite);
    for ((round, parent, _), rewritten) in by_evidence {
        let Some(child) = rewritten.child else {
            found.childless += 1;
            continue;
        };
        let Some(round) = state.rounds().get(*round as usize) else {
            found.unfinished += 1;
            continue;
        };
        let is_discarded =
            |id: CandidateId| state.discarded().contains_key(&id) && !round.scores.contains_key(&id);
        let is_turned_down = !round.scores.contains_key(&child);
        if is_turned_down || is_discarded(*parent) || rewritten.draft.is_some_and(is_discarded) {
            found.discarded += 1;
            continue;
        }
        let score = |id: CandidateId| {
            round.scores.get(&id).ok_or_else(|| MissingScore {
                line: rewritten.line,
                reason: format!("round {} has no score of candidate {}", round.round, id.short()),
            })
        };
        found.scored.push(ScoredRewrite {
            round,
            parent: *parent,
            draft: rewritten.draft,
            child,
            parent_score: score(*parent)?,
            child_score: score(child)?,
            evidence_score: score(rewritten.draft.unwrap_or(*parent))?,
            line: rewritten.line,
        });
    }
    Ok(found)
}
