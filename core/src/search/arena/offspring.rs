//! The children a rewriter makes of parents.

use std::collections::HashMap;
use std::rc::Rc;
use std::slice;

use futures::future::join_all;
use indexmap::IndexMap;
use serde_json::{Value, json};

use super::caller::MeteredCaller;
use super::measure::Batch;
use super::rollouts::Left;
use super::{Arena, Halt};
use crate::journal::run_state::Unusable;
use crate::journal::{DiscardEvent, EffectName, Event, Origin, RewriteEvent};
use crate::llm::{ChatRequest, ChatResponse, FailureKind, Finish, LlmError, Message, RewriteForm, Role};
use crate::search::templates::{RewriteFacts, Template, delimited_prompt};
use crate::study::ids::{CandidateId, Round};
use crate::study::score::{Limits, Multipliers};
use crate::study::usage::Usage;
use crate::study::workload::Caller;

/// What critic and rewriter are told about the state of the search.
#[derive(Debug, Clone, Copy)]
pub struct Guidance<'a> {
    /// The round.
    pub round: Round,
    /// The examples of the round.
    pub batch: &'a Batch,
    /// Those of them whose failures are shown.
    pub shown: &'a Batch,
    /// The constraints in force.
    pub limits: &'a Limits,
    /// Multipliers λ_t of the round.
    pub multipliers: &'a Multipliers,
    /// Children of each parent.
    pub children: u32,
}

/// What is asked of the rewriter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Edit {
    /// The parent made better, by the evidence on it.
    Improve,
    /// What is good in the parent and in another prompt.
    Merge(CandidateId),
    /// The parent and another prompt combined, and the outcome changed.
    Cross(CandidateId),
    /// The parent in other words.
    Paraphrase,
    /// The parent combined with a third prompt that was changed where the first two differ.
    Differ([CandidateId; 3]),
}

impl Edit {
    /// What is combined with the parent.
    pub(super) fn others(&self) -> &[CandidateId] {
        match self {
            Self::Improve | Self::Paraphrase => &[],
            Self::Merge(other) | Self::Cross(other) => slice::from_ref(other),
            Self::Differ(others) => others,
        }
    }

    pub(super) fn origin(self) -> Origin {
        match self {
            Self::Improve => Origin::Rewrite,
            Self::Paraphrase => Origin::Paraphrase,
            Self::Merge(_) | Self::Cross(_) | Self::Differ(_) => Origin::Crossover,
        }
    }
}

/// A rewrite that is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct RewriteTask {
    /// p, which is rewritten.
    pub parent: CandidateId,
    /// Which of the parent's children of the round, from 0.
    pub index: u32,
    /// An earlier child of the parent, which is to be improved on: numbers and feedback are about it.
    pub draft: Option<CandidateId>,
    /// Whether feedback is withheld.
    pub blind: bool,
    /// What is asked for; all but an improvement does without feedback.
    pub edit: Edit,
}

impl RewriteTask {
    /// A rewrite of a parent by the evidence on it.
    pub fn of(parent: CandidateId, index: u32) -> Self {
        Self {
            parent,
            index,
            draft: None,
            blind: false,
            edit: Edit::Improve,
        }
    }

    /// Another edit of a parent, without evidence.
    pub fn edit(parent: CandidateId, index: u32, edit: Edit) -> Self {
        Self {
            blind: true,
            edit,
            ..Self::of(parent, index)
        }
    }

    /// What the child is made of.
    pub(crate) fn parents(&self) -> Vec<CandidateId> {
        [&[self.parent][..], self.edit.others()].concat()
    }

    /// The candidate that numbers and feedback are about.
    fn evidence(self) -> CandidateId {
        self.draft.unwrap_or(self.parent)
    }
}

/// A request that exceeds the model's context.
struct NoRoom {
    message: String,
    usage: Usage,
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
        let tasks: Vec<RewriteTask> = parents
            .iter()
            .flat_map(|&parent| (0..guidance.children).map(move |index| RewriteTask::of(parent, index)))
            .collect();
        let mut distinct: Vec<CandidateId> = Vec::with_capacity(tasks.len());
        for child in self.rewrites(&tasks, guidance).await?.into_iter().flatten() {
            if !distinct.contains(&child) {
                distinct.push(child);
            }
        }
        Ok(distinct)
    }

    /// Makes rewrites and returns the child of each, or none for one that gave none and is journaled as such. Tasks
    /// about the same evidence share its feedback.
    ///
    /// # Errors
    /// When the budget, a person or a failure stops it; everything that was answered is journaled.
    pub async fn rewrites(
        &self,
        tasks: &[RewriteTask],
        guidance: Guidance<'_>,
    ) -> Result<Vec<Option<CandidateId>>, Halt> {
        let mut families: IndexMap<(CandidateId, bool), Vec<RewriteTask>> = IndexMap::new();
        for task in tasks {
            families
                .entry((task.evidence(), task.blind))
                .or_default()
                .push(*task);
        }
        let families = join_all(
            families
                .into_values()
                .map(|family| self.rewrite_family(family, guidance)),
        );
        let families = self.flushing(families).await?;
        let mut children = HashMap::new();
        let mut halt = None;
        for family in families {
            match family {
                Ok(family) => children.extend(family),
                // A child that stopped because another one failed says less than the failure.
                Err(stopped) => halt = halt.or(Some(stopped)),
            }
        }
        if let Some(halt) = self.halted.borrow_mut().take().or(halt) {
            return Err(halt);
        }
        let children: Vec<_> = tasks.iter().map(|task| children[task]).collect();
        for &child in children.iter().flatten() {
            self.enlist(child);
        }
        Ok(children)
    }

    async fn rewrite_family(
        &self,
        family: Vec<RewriteTask>,
        guidance: Guidance<'_>,
    ) -> Result<Vec<(RewriteTask, Option<CandidateId>)>, Halt> {
        let feedback = match family.first() {
            Some(first) if !first.blind => self.feedback(first.evidence(), guidance).await?,
            _ => String::new(),
        };
        let children = family.into_iter().map(|task| {
            let feedback = feedback.as_str();
            async move { Ok((task, self.rewrite(task, feedback, guidance).await?)) }
        });
        join_all(children).await.into_iter().collect()
    }

    /// One child p⁺ = W(p, ξ, λ) in place of a step along ∇_p J (`eq:lagrangian_gradient`), or none with the reason. An instructed rewriter whose answer cannot be used is
    /// asked once more; a parent that the rewriter's context has no room for gets no child.
    async fn rewrite(
        &self,
        task: RewriteTask,
        feedback: &str,
        guidance: Guidance<'_>,
    ) -> Result<Option<CandidateId>, Halt> {
        let RewriteTask { parent, index, .. } = task;
        if let Some(known) = self
            .journal
            .borrow()
            .state()
            .rewrite(guidance.round, parent, index)
        {
            let asked = (task.edit.origin(), task.edit.others(), task.draft);
            if (known.origin, &*known.others, known.draft) != asked {
                return Err(Halt::Replay(format!(
                    "the journal's rewrite {index} of candidate {} in round {} is another one than was asked for: origin, \
                     other parents or draft differ",
                    parent.short(),
                    guidance.round
                )));
            }
            return Ok(known.child);
        }
        self.may_start()?;
        // What a rewriter learned is to improve.
        let form = if task.edit == Edit::Improve {
            self.models.model(Role::Rewriter).rewrite_form()
        } else {
            RewriteForm::Instructed
        };
        let of = EffectName::Rewrite {
            round: guidance.round,
            parent,
            index,
        };
        let mut messages = vec![Message::user(self.rewrite_text(task, form, feedback, guidance)?)];
        let input = self.input_of(Role::Rewriter, &messages, self.rewrite_seed(guidance.round, task));
        if let Some(known) = self.take_over_rewrite(task, guidance.round, input.as_deref())? {
            return Ok(known.child);
        }
        let mut attempt = 0;
        let unusable = self.journal.borrow().state().unusable(&of).cloned();
        if let Some(Unusable { answer, reason }) = unusable {
            // An earlier session got this far.
            messages.extend(once_more(answer, &reason));
            attempt = 1;
        }
        loop {
            let seed = self.seed_for("rewrite", guidance.round, parent, 2 * u64::from(index) + attempt);
            let asked = self.ask_within(Role::Rewriter, messages.clone(), seed, of.clone(), "the rewrite");
            let (answer, usage) = match asked.await? {
                Ok(answered) => answered,
                Err(NoRoom { message, usage }) => {
                    self.record_rewrite(task, guidance.round, Err(message), usage, input)?;
                    return Ok(None);
                }
            };
            let reason = match usable(form, &answer, &self.prompt(parent)) {
                Ok(text) => {
                    let child = self.find_or_add(text, guidance.round, task.edit.origin(), task.parents())?;
                    self.record_rewrite(task, guidance.round, Ok(child), usage, input)?;
                    return Ok(Some(child));
                }
                Err(reason) => reason,
            };
            if attempt == 1 || form == RewriteForm::Learned {
                self.record_rewrite(task, guidance.round, Err(reason.into()), usage, input)?;
                return Ok(None);
            }
            attempt += 1;
            let (kind, answer) = (FailureKind::Malformed, answer.message.text().to_owned());
            let left = Left::Unusable(answer.clone());
            self.journal_failure(of.clone(), kind, reason.to_owned(), usage, left)?;
            messages.extend(once_more(answer, reason));
        }
    }

    fn rewrite_text(
        &self,
        task: RewriteTask,
        form: RewriteForm,
        feedback: &str,
        guidance: Guidance<'_>,
    ) -> Result<String, Halt> {
        if task.edit != Edit::Improve {
            return self.edit_text(task, guidance);
        }
        let (objective, constraints) = self.view(task.evidence(), guidance)?;
        let prompt = self.prompt(task.parent);
        let draft = task.draft.map(|draft| self.prompt(draft));
        if form == RewriteForm::Learned {
            let facts = RewriteFacts {
                objective,
                constraints: constraints.into_iter().map(Into::into).collect(),
                prompt: prompt.to_string(),
                draft: draft.map(|draft| draft.to_string()),
                feedback: feedback.to_owned(),
            };
            return Ok(facts.text());
        }
        let prompt_length = self.problem.borrow().characters_allowed(guidance.limits).map(
            |max_characters| json!({ "max_characters": max_characters, "characters": prompt.chars().count() }),
        );
        Ok(Template::Rewriter.render(json!({
            "description": self.description(),
            "prompt": &*prompt,
            "draft": draft.as_deref(),
            "objective": objective, "constraints": constraints, "prompt_length": prompt_length, "feedback": feedback,
            "discarded": self.discarded_children(task.parent),
            "variant": task.index % guidance.children + 1, "variants": guidance.children,
        })))
    }

    /// Of what is combined it is told what it measured; what is paraphrased need not have been measured.
    fn edit_text(&self, task: RewriteTask, guidance: Guidance<'_>) -> Result<String, Halt> {
        let description = self.description();
        if task.edit == Edit::Paraphrase {
            let prompt = self.prompt(task.parent);
            return Ok(Template::Paraphrase.render(json!({ "description": description, "prompt": &*prompt })));
        }
        let parent = |id: &CandidateId| -> Result<Value, Halt> {
            let (objective, constraints) = self.view(*id, guidance)?;
            let prompt = self.prompt(*id);
            Ok(json!({ "prompt": &*prompt, "objective": objective, "constraints": constraints }))
        };
        let parents = task.parents().iter().map(parent).collect::<Result<Vec<_>, _>>()?;
        let template = match task.edit {
            Edit::Differ(_) => Template::Differ,
            _ => Template::Combine,
        };
        Ok(template.render(json!({
            "description": description, "parents": parents, "changes": matches!(task.edit, Edit::Cross(_)),
        })))
    }

    /// Rewrites of a parent that could not be run, with the reason.
    fn discarded_children(&self, parent: CandidateId) -> Vec<Value> {
        let journal = self.journal.borrow();
        let state = journal.state();
        let child = |(id, event): (&CandidateId, &DiscardEvent)| {
            let child = state
                .candidate(id)
                .filter(|child| child.parents.contains(&parent))?;
            Some(json!({ "characters": child.characters, "reason": event.reason }))
        };
        // The journal of an earlier session may hold what its end decided.
        let discarded = state.discarded().iter().filter(|(id, _)| self.is_discarded(**id));
        discarded.filter_map(child).collect()
    }

    /// The seed that a task's first answer is drawn with: names it wherever answers are kept.
    pub fn rewrite_seed(&self, round: Round, task: RewriteTask) -> u64 {
        self.seed_for("rewrite", round, task.parent, 2 * u64::from(task.index))
    }

    fn record_rewrite(
        &self,
        task: RewriteTask,
        round: Round,
        outcome: Result<CandidateId, String>,
        usage: Usage,
        input: Option<String>,
    ) -> Result<(), Halt> {
        let (child, reason) = match outcome {
            Ok(child) => (Some(child), None),
            Err(reason) => (None, Some(reason)),
        };
        let event = RewriteEvent {
            round,
            parent: task.parent,
            index: task.index,
            origin: task.edit.origin(),
            others: task.edit.others().to_vec(),
            draft: task.draft,
            child,
            reason,
            usage,
            input,
            reused_from: None,
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
    ) -> Result<(ChatResponse, Usage), Halt> {
        let asked = self.ask_within(role, messages, seed, of.clone(), what);
        match asked.await? {
            Ok(answered) => Ok(answered),
            Err(NoRoom { message, usage }) => {
                let kind = FailureKind::ContextLength;
                self.journal_failure(of, kind, message.clone(), usage, Left::Nothing)?;
                Err(self.failed(kind, what, &message))
            }
        }
    }

    /// As [`ask`](Self::ask), but that the model has no room for the request stops nothing.
    async fn ask_within(
        &self,
        role: Role,
        messages: Vec<Message>,
        seed: u64,
        of: EffectName,
        what: &str,
    ) -> Result<Result<(ChatResponse, Usage), NoRoom>, Halt> {
        let messages = Rc::new(messages);
        loop {
            self.may_start()?;
            let caller = MeteredCaller::new(self);
            let request = ChatRequest {
                messages: Rc::clone(&messages),
                seed: Some(seed),
                ..ChatRequest::default()
            };
            let usage = || caller.usage();
            match caller.call(role, request).await {
                Ok(response) => return Ok(Ok((response, usage()))),
                Err(LlmError::Failed {
                    kind: FailureKind::ContextLength,
                    message,
                    ..
                }) => {
                    return Ok(Err(NoRoom {
                        message,
                        usage: usage(),
                    }));
                }
                Err(error) => {
                    self.record_failure(of.clone(), what, error, usage())?;
                }
            }
        }
    }

    pub(super) fn seed_for(&self, purpose: &str, round: Round, parent: CandidateId, index: u64) -> u64 {
        self.streams
            .number(&format!("{purpose}/{parent}"), u64::from(round), index)
    }
}

/// The new prompt in an answer, or why there is none.
fn usable<'a>(form: RewriteForm, answer: &'a ChatResponse, prompt: &str) -> Result<&'a str, &'static str> {
    let text = answer.message.text();
    let text = match form {
        RewriteForm::Instructed => match delimited_prompt(text) {
            None => return Err("it has no text between <prompt> and </prompt>"),
            Some("") => return Err("the text between <prompt> and </prompt> is empty"),
            Some(text) => text,
        },
        // Its end is the answer's.
        RewriteForm::Learned if matches!(answer.finish, Finish::Length | Finish::Filter) => {
            return Err("it was cut off before its end");
        }
        RewriteForm::Learned => without_thoughts(text.trim()).ok_or("it ends before its thoughts do")?,
    };
    match text {
        "" => Err("it is empty"),
        text if text == prompt.trim() => Err("it is identical to the current prompt"),
        text => Ok(text),
    }
}

/// What follows the thoughts of a model that thinks aloud, which some servers leave in the answer.
fn without_thoughts(answer: &str) -> Option<&str> {
    match answer.strip_prefix("<think>") {
        Some(thoughts) => Some(thoughts.split_once("</think>")?.1.trim()),
        None => Some(answer),
    }
}

/// An unusable answer, and what is wrong with it.
fn once_more(answer: String, reason: &str) -> [Message; 2] {
    let asked = Template::Retry.render(json!({ "reason": reason }));
    [Message::assistant(answer), Message::user(asked)]
}
