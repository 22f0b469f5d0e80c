//! A rewriter that learns while it searches.

use futures::future::LocalBoxFuture;
use indexmap::IndexMap;

use super::{Arena, Halt};
use crate::journal::{Event, LearnedEvent};
use crate::llm::FailureKind;
use crate::study::ids::{CandidateId, Round};

/// What became of one rewrite.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RewriteOutcome {
    /// The seed that the first answer was drawn with, see [`Arena::rewrite_seed`].
    pub seed: u64,
    /// 1 for a rewrite by the evidence on the parent, d for one by the evidence on the rewrite of depth d − 1.
    pub depth: u32,
    /// The child with its J under λ_t, unless the answer gave none.
    pub child: Option<(CandidateId, f64)>,
}

/// The rewrites of one parent in one round, all measured on the same examples.
#[derive(Debug, Clone, PartialEq)]
pub struct Family {
    /// What was rewritten.
    pub parent: CandidateId,
    /// Its J under λ_t.
    pub lagrangian: f64,
    /// The rewrites by depth, siblings of one depth together.
    pub attempts: Vec<RewriteOutcome>,
}

/// Why nothing was learned.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LearnError {
    /// It is not possible: the reason, for people.
    #[error("{0}")]
    Failed(String),
    /// A person interrupted the run before the update was whole.
    #[error("interrupted")]
    Interrupted,
}

/// Changes a rewriter by what became of its rewrites.
pub trait Learner {
    /// Learns from the rewrites of a round and returns figures of the update by name, all of them finite.
    ///
    /// Called for each complete round in order, those of a replayed journal included: one that the rewriter has
    /// learned from already must change nothing, and give the figures it gave then.
    ///
    /// # Errors
    /// Why nothing was learned. The rewriter is then as it was before, and asked again when the run goes on.
    fn learn<'a>(
        &'a self,
        round: Round,
        families: &'a [Family],
    ) -> LocalBoxFuture<'a, Result<IndexMap<String, f64>, LearnError>>;
}

impl Arena {
    /// Lets the rewriter learn from a complete round, if it learns at all, and journals the figures.
    ///
    /// # Errors
    /// When the run was interrupted before or meanwhile, it could not learn, or the journal cannot be written.
    pub async fn learn(&self, round: Round, families: &[Family]) -> Result<(), Halt> {
        let Some(learner) = self.models.learner() else {
            return Ok(());
        };
        let (is_learned, is_last) = {
            let journal = self.journal.borrow();
            let state = journal.state();
            (
                state.learned(round).is_some(),
                state.rounds().len() as Round == round + 1,
            )
        };
        if !is_learned && self.options.control.is_interrupted() {
            return Err(Halt::Interrupted);
        }
        let learned = learner.learn(round, families).await;
        let figures = learned.and_then(finite).map_err(|why| {
            if is_last && !is_learned && why == LearnError::Interrupted {
                return Halt::Interrupted;
            }
            let message = format!("the rewriter could not learn from round {round}: {why}");
            if is_last && !is_learned {
                let kind = FailureKind::Provider;
                Halt::Failed { kind, message }
            } else {
                // What the journal says of later rounds came of a rewriter that had learned.
                Halt::Replay(message)
            }
        })?;
        if is_learned {
            return Ok(());
        }
        self.journal
            .borrow_mut()
            .record(&Event::Learned(LearnedEvent { round, figures }))?;
        let synced = self.journal.borrow_mut().sync();
        Ok(synced.await?)
    }
}

/// JSON has no other numbers.
fn finite(figures: IndexMap<String, f64>) -> Result<IndexMap<String, f64>, LearnError> {
    match figures.iter().find(|(_, figure)| !figure.is_finite()) {
        Some((name, figure)) => Err(LearnError::Failed(format!("its figure `{name}` is {figure}"))),
        None => Ok(figures),
    }
}
