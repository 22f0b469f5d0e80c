//! The children a rewriter makes of parents.

use std::rc::Rc;

use futures::future::join_all;
use serde_json::json;

use super::caller::MeteredCaller;
use super::measure::Batch;
use super::{Arena, Halt};
use crate::ids::{CandidateId, Round};
use crate::journal::{EffectName, Event, Origin, RewriteEvent};
use crate::llm::{AssistantMessage, ChatRequest, FailureKind, Message, Role};
use crate::run_state::Unusable;
use crate::score::{Limits, Multipliers};
use crate::templates::{Template, delimited_prompt};
use crate::usage::Usage;
use crate::workload::{Caller, RolloutError};

/// What critic and rewriter are told about the state of the search.
#[derive(Debug, Clone, Copy)]
pub struct Guidance<'a> {
    /// The round.
    pub round: Round,
    /// The examples of the round.
    pub batch: &'a Batch,
    /// The constraints in force.
    pub limits: &'a Limits,
    /// λ_t.
    pub multipliers: &'a Multipliers,
    /// Children of each parent.
    pub children: u32,
}

impl Arena {
    /// Asks for `guidance.children` rewrites of each parent and returns the candidates made, without
    /// repetition, parents in the order given. A rewrite that gives no child is journaled as such.
    ///
    /// # Errors
    /// When the budget, a person or a failure stops it; everything that was answered is journaled.
    pub async fn offspring(
        &self,
        parents: &[CandidateId],
        guidance: Guidance<'_>,
    ) -> Result<Vec<CandidateId>, Halt> {
        let families = join_all(
            parents
                .iter()
                .map(|&parent| self.rewrite_parent(parent, guidance)),
        );
        let families = self.flushing(families).await?;
        let mut children = Vec::new();
        let mut halt = None;
        for family in families {
            match family {
                Ok(family) => children.extend(family.into_iter().flatten()),
                // A child that stopped because another one failed says less than the failure.
                Err(stopped) => halt = halt.or(Some(stopped)),
            }
        }
        if let Some(halt) = self.halted.borrow_mut().take().or(halt) {
            return Err(halt);
        }
        for &child in &children {
            self.enlist(child);
        }
        let mut distinct: Vec<CandidateId> = Vec::with_capacity(children.len());
        for child in children {
            if !distinct.contains(&child) {
                distinct.push(child);
            }
        }
        Ok(distinct)
    }

    async fn rewrite_parent(
        &self,
        parent: CandidateId,
        guidance: Guidance<'_>,
    ) -> Result<Vec<Option<CandidateId>>, Halt> {
        let feedback = self.feedback(parent, guidance).await?;
        let children = (0..guidance.children).map(|index| self.rewrite(parent, index, &feedback, guidance));
        join_all(children).await.into_iter().collect()
    }

    /// One child p⁺ = W(p, ξ, λ), or none with the reason. An unusable answer is asked for once
    /// more.
    async fn rewrite(
        &self,
        parent: CandidateId,
        index: u32,
        feedback: &str,
        guidance: Guidance<'_>,
    ) -> Result<Option<CandidateId>, Halt> {
        if let Some(known) = self
            .journal
            .borrow()
            .state()
            .rewrite(guidance.round, parent, index)
        {
            return Ok(known.child);
        }
        self.may_start()?;
        let parent_prompt = self.prompt(parent);
        let (objective, constraints) = self.view(parent, guidance)?;
        let prompt_length = self.problem.borrow().characters_allowed(guidance.limits).map(|max_characters| {
            json!({ "max_characters": max_characters, "characters": parent_prompt.chars().count() })
        });
        let text = Template::Rewriter.render(json!({
            "description": self.description(),
            "prompt": &*parent_prompt,
            "objective": objective, "constraints": constraints, "prompt_length": prompt_length, "feedback": feedback,
            "variant": index + 1, "variants": guidance.children,
        }));
        let of = EffectName::Rewrite {
            round: guidance.round,
            parent,
            index,
        };
        let mut messages = vec![Message::user(text)];
        let mut attempt = 0;
        let unusable = self.journal.borrow().state().unusable(&of).cloned();
        if let Some(Unusable { answer, reason }) = unusable {
            // An earlier session got this far.
            messages.extend(once_more(answer, &reason));
            attempt = 1;
        }
        loop {
            let seed = self.seed_for("rewrite", guidance.round, parent, 2 * u64::from(index) + attempt);
            let (answer, usage) = self
                .ask(Role::Rewriter, messages.clone(), seed, of.clone(), "the rewrite")
                .await?;
            let reason = match delimited_prompt(answer.text()) {
                None => "it has no text between <prompt> and </prompt>",
                Some("") => "the text between <prompt> and </prompt> is empty",
                Some(text) if text == parent_prompt.trim() => "it is identical to the current prompt",
                Some(text) => {
                    let child = self.admit(text, guidance.round, Origin::Rewrite, vec![parent])?;
                    self.record_rewrite(parent, index, guidance.round, Some(child), None, usage)?;
                    return Ok(Some(child));
                }
            };
            if attempt == 1 {
                self.record_rewrite(parent, index, guidance.round, None, Some(reason.into()), usage)?;
                return Ok(None);
            }
            attempt += 1;
            let (kind, answer) = (FailureKind::Malformed, answer.text().to_owned());
            self.journal_failure(of.clone(), kind, reason.to_owned(), usage, Some(answer.clone()))?;
            messages.extend(once_more(answer, reason));
        }
    }

    fn record_rewrite(
        &self,
        parent: CandidateId,
        index: u32,
        round: Round,
        child: Option<CandidateId>,
        reason: Option<String>,
        usage: Usage,
    ) -> Result<(), Halt> {
        let event = RewriteEvent {
            round,
            parent,
            index,
            child,
            reason,
            usage,
        };
        Ok(self.journal.borrow_mut().record(&Event::Rewrite(event))?)
    }

    /// One call for critic or rewriter, tried again while tries are left.
    pub(super) async fn ask(
        &self,
        role: Role,
        messages: Vec<Message>,
        seed: u64,
        of: EffectName,
        what: &str,
    ) -> Result<(AssistantMessage, Usage), Halt> {
        let messages = Rc::new(messages);
        loop {
            self.may_start()?;
            let caller = MeteredCaller::new(self);
            let request = ChatRequest {
                messages: Rc::clone(&messages),
                seed: Some(seed),
                ..ChatRequest::default()
            };
            match caller.call(role, request).await {
                Ok(response) => return Ok((response.message, caller.usage())),
                Err(error) => {
                    self.record_failure(of.clone(), what, RolloutError::Llm(error), caller.usage())?;
                }
            }
        }
    }

    pub(super) fn seed_for(&self, purpose: &str, round: Round, parent: CandidateId, index: u64) -> u64 {
        self.streams
            .number(&format!("{purpose}/{parent}"), u64::from(round), index)
    }
}

/// An unusable answer, and what is wrong with it.
fn once_more(answer: String, reason: &str) -> [Message; 2] {
    let asked = Template::Retry.render(json!({ "reason": reason }));
    [Message::assistant(answer), Message::user(asked)]
}
