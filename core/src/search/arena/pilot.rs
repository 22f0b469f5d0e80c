//! A few of the rollouts that a search begins with.

use super::measure::Batch;
use super::rollouts::{Wanted, place};
use super::{Arena, Halt};
use crate::journal::run_state::SetKey;
use crate::study::ids::CandidateId;

impl Arena {
    /// Makes the first rollouts of a candidate on a batch, at most so many, but for those that the journal holds: one of
    /// each example before any is repeated, the workloads in turn. Nothing is decided on those that fail, of which the
    /// first is told: the search asks for them again.
    ///
    /// # Errors
    /// As [`Arena::measure`].
    pub(crate) async fn measure_first(
        &self,
        candidate: CandidateId,
        batch: &Batch,
        most: usize,
    ) -> Result<Option<Halt>, Halt> {
        let repeats = self.search().repeats;
        let mut wanted = Vec::new();
        for (workload, examples) in (0..).zip(&batch.examples) {
            let set = SetKey {
                workload,
                split: batch.split,
            };
            for &example in examples {
                wanted.extend((0..repeats).map(|repeat| Wanted {
                    candidate,
                    set,
                    example,
                    repeat,
                }));
            }
        }
        wanted.sort_by_key(|one| (one.repeat, one.example, one.set));
        wanted.truncate(most);
        {
            let journal = self.journal.borrow();
            let (state, position) = (journal.state(), journal.state().position(&candidate));
            let position = position.unwrap_or(usize::MAX);
            let made = |one: &Wanted| {
                let line = state.rollouts().line(position, one.set, one.example, one.repeat);
                line.is_some()
            };
            wanted.retain(|one| !made(one));
        }
        let unmade = self.run_rollouts(self.heed_decisions(wanted)).await?;
        Ok(unmade.into_iter().next().map(|first| Halt::Failed {
            kind: first.kind,
            message: format!("{} failed: {}", place(&self.effect(first.wanted)), first.message),
        }))
    }
}
