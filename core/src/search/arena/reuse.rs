//! Effects that earlier runs paid for.

use std::ops::Range;

use serde_json::json;

use super::offspring::RewriteTask;
use super::rollouts::Wanted;
use super::{Arena, Halt};
use crate::journal::run_state::SetKey;
use crate::journal::{CritiqueEvent, Event, RewriteEvent, RolloutEvent};
use crate::llm::{Message, Role};
use crate::study::canonical_hash;
use crate::study::ids::{CandidateId, Round};
use crate::study::workload::Split;

impl Arena {
    /// Takes over the rollouts that an earlier run made, which no budget bounds, and returns the others. An interrupted run
    /// takes over nothing.
    pub(super) fn take_over(&self, wanted: Vec<Wanted>) -> Result<Vec<Wanted>, Halt> {
        if !self.options.earlier.has_rollouts() || self.options.control.is_interrupted() {
            return Ok(wanted);
        }
        let mut left = Vec::with_capacity(wanted.len());
        for one in wanted {
            let Some(made) = self.made_before(one) else {
                left.push(one);
                continue;
            };
            let event = RolloutEvent {
                split: one.set.split,
                ..made.clone()
            };
            self.journal.borrow_mut().record(&Event::Rollout(event))?;
        }
        Ok(left)
    }

    /// How many repeats of these must be paid for, none of which the journal holds.
    pub(super) fn unpaid(
        &self,
        candidate: CandidateId,
        set: SetKey,
        example: usize,
        repeats: Range<u32>,
    ) -> u64 {
        if !self.options.earlier.has_rollouts() {
            return repeats.len() as u64;
        }
        let is_new = |repeat: &u32| {
            let wanted = Wanted {
                candidate,
                set,
                example,
                repeat: *repeat,
            };
            self.made_before(wanted).is_none()
        };
        repeats.filter(is_new).count() as u64
    }

    /// A rollout as an earlier run made it: for held-out examples none that a search may have chosen by, and for those kept
    /// for the test none at all.
    fn made_before(&self, wanted: Wanted) -> Option<&RolloutEvent> {
        let workload = usize::from(wanted.set.workload);
        let is_held_out = wanted.set.split == Split::Evaluate;
        let problem = self.problem.borrow();
        if is_held_out && problem.is_kept_for_the_test(workload, wanted.example) {
            return None;
        }
        let searched_on = match wanted.set.split {
            Split::Optimize => 0,
            Split::Evaluate => problem.workloads()[workload].examples(Split::Optimize).len(),
        };
        let input = self.inputs[workload].get(searched_on + wanted.example)?;
        let made = self
            .options
            .earlier
            .rollout(input, wanted.candidate, wanted.repeat)?;
        let fits = !is_held_out || made.split == Split::Evaluate;
        (fits && self.check_measurements(wanted, &made.measurements).is_ok()).then_some(made)
    }

    /// What names a call of critic or rewriter: who is asked, and the whole request. `None` of a rewriter that learns, whose
    /// answers depend on what it has learned, and where rollouts have no names.
    pub(super) fn input_of(&self, role: Role, messages: &[Message], seed: u64) -> Option<String> {
        let learns = role == Role::Rewriter && self.models.learner().is_some();
        if learns || self.inputs.iter().any(Vec::is_empty) {
            return None;
        }
        let who = self.problem.borrow().study().serving(role);
        let model = self.models.model(role);
        Some(canonical_hash(&json!({
            "who": who, "model": model.name(), "messages": messages, "seed": seed,
        })))
    }

    /// Takes over what an earlier run's critic said to the same request.
    pub(super) fn take_over_critique(
        &self,
        candidate: CandidateId,
        round: Round,
        input: Option<&str>,
    ) -> Result<Option<String>, Halt> {
        let Some(known) = input.and_then(|input| self.options.earlier.critique(input)) else {
            return Ok(None);
        };
        let event = CritiqueEvent {
            candidate,
            round,
            ..known.clone()
        };
        self.journal.borrow_mut().record(&Event::Critique(event))?;
        Ok(Some(known.feedback.clone()))
    }

    /// Takes over what became of the same request to an earlier run's rewriter.
    pub(super) fn take_over_rewrite(
        &self,
        task: RewriteTask,
        round: Round,
        input: Option<&str>,
    ) -> Result<Option<RewriteEvent>, Halt> {
        let RewriteTask {
            parent, index, draft, ..
        } = task;
        let Some((known, prompt)) = input.and_then(|input| self.options.earlier.rewrite(input)) else {
            return Ok(None);
        };
        if let Some(prompt) = prompt {
            self.find_or_add(prompt, round, task.edit.origin(), task.parents())?;
        }
        let event = RewriteEvent {
            round,
            parent,
            index,
            origin: task.edit.origin(),
            others: task.edit.others().to_vec(),
            draft,
            ..known.clone()
        };
        self.journal.borrow_mut().record(&Event::Rewrite(event.clone()))?;
        Ok(Some(event))
    }
}
