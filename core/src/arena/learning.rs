//! A rewriter that learns while it searches.

use futures::future::LocalBoxFuture;
use indexmap::IndexMap;

use super::{Arena, Halt};
use crate::ids::{CandidateId, Round};
use crate::journal::{Event, LearnedEvent};
use crate::llm::LlmError;

/// What became of one rewrite.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Attempt {
    /// The seed that the rewrite was drawn with, see [`Arena::rewrite_seed`].
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
    pub attempts: Vec<Attempt>,
}

/// Changes a rewriter by what became of its rewrites.
pub trait Learner {
    /// Learns from the rewrites of a round and returns figures of the update by name.
    ///
    /// Called for each complete round in order, those of a replayed journal included: one that the rewriter has
    /// learned from already must change nothing, and give the figures it gave then.
    ///
    /// # Errors
    /// Why nothing was learned. The rewriter is then as it was before.
    fn learn<'a>(
        &'a self,
        round: Round,
        families: &'a [Family],
    ) -> LocalBoxFuture<'a, Result<IndexMap<String, f64>, LlmError>>;
}

impl Arena {
    /// Lets the rewriter learn from a complete round, if it learns at all, and journals the figures.
    ///
    /// # Errors
    /// When it could not learn, or the journal cannot be written.
    pub async fn learn(&self, round: Round, families: &[Family]) -> Result<(), Halt> {
        let Some(learner) = self.models.learner() else {
            return Ok(());
        };
        let figures = learner
            .learn(round, families)
            .await
            .map_err(|error| match error {
                LlmError::Failed { kind, message, .. } => Halt::Failed { kind, message },
                LlmError::Budget(reason) => Halt::Budget(reason),
            })?;
        if self.journal.borrow().state().learned(round).is_some() {
            return Ok(());
        }
        self.journal
            .borrow_mut()
            .record(&Event::Learned(LearnedEvent { round, figures }))?;
        let synced = self.journal.borrow_mut().sync();
        Ok(synced.await?)
    }
}
