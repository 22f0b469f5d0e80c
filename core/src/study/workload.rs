//! Workloads: what a prompt is measured on.
//!
//! A [`Workload`] holds examples and knows how to run one of them under a candidate prompt. It
//! never sees other candidates, thresholds or multipliers, and reaches models only through the
//! [`RolloutContext`] it is given, where every call is counted and checked against the budget.

use std::rc::Rc;

use futures::FutureExt;
use futures::future::{LocalBoxFuture, pending};
use serde::{Deserialize, Serialize};

use crate::llm::{
    AgentScript, AssistantMessage, ChatRequest, ChatResponse, FailureKind, LlmError, Message, Role,
};
use crate::notice::Notice;
use crate::study::metric::{Measurements, MetricSpec};
use crate::study::usage::Usage;

/// Which part of a workload's examples.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Split {
    /// Seen by search, critic and rewriter.
    Optimize,
    /// Held out: only the final evaluation touches it.
    Evaluate,
}

/// Makes model calls on behalf of one rollout.
pub trait Caller {
    /// Asks the model that serves `role`.
    fn call(&self, role: Role, request: ChatRequest) -> LocalBoxFuture<'_, Result<ChatResponse, LlmError>>;

    /// Whether a rollout that waits may go on. Callers without a budget always say so.
    ///
    /// # Errors
    /// [`LlmError::Interrupted`] once the run was interrupted, [`LlmError::Budget`] once its budget
    /// is spent.
    fn may_go_on(&self) -> Result<(), LlmError> {
        Ok(())
    }

    /// Resolves once the run was interrupted: what waits to try something again waits for this
    /// beside it. Callers that nobody interrupts never resolve it.
    fn interrupted(&self) -> LocalBoxFuture<'_, ()> {
        pending().boxed_local()
    }

    /// Resolves once what is under way is not waited for any longer, some moments after
    /// [`interrupted`](Self::interrupted).
    fn abandoned(&self) -> LocalBoxFuture<'_, ()> {
        pending().boxed_local()
    }

    /// Tells whoever watches that a rollout waits for an agent, or waits no longer.
    fn tell(&self, _notice: &Notice) {}

    /// Counts what a rollout under way has consumed outside [`Caller::call`], such as in a try that
    /// failed and is repeated. It stands in no [`Rollout::external_usage`] then.
    fn consumed(&self, _usage: &Usage) {}
}

/// One rollout to be made: a candidate prompt on an example, for the `repeat`-th time.
#[derive(Clone, Copy)]
pub struct RolloutContext<'a> {
    /// The candidate system prompt.
    pub prompt: &'a str,
    /// One of [`Workload::examples`].
    pub example: &'a str,
    /// 0 for the first rollout of this prompt on this example.
    pub repeat: u32,
    /// Drawn from (study seed, workload, example, repeat), the same for every candidate: common
    /// random numbers. [`RolloutContext::chat`] derives each call's seed from it.
    pub seed: u64,
    /// Reaches the models.
    pub caller: &'a dyn Caller,
}

impl RolloutContext<'_> {
    /// Asks the model of a role, seeded by this rollout's seed unless the request names one.
    ///
    /// # Errors
    /// When the model fails or the budget is spent; a workload passes this on with `?`.
    pub async fn chat(&self, role: Role, mut request: ChatRequest) -> Result<ChatResponse, RolloutError> {
        request.seed.get_or_insert(self.seed);
        Ok(self.caller.call(role, request).await?)
    }
}

/// What happened in a rollout, for people and for the critic.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Trace {
    /// The conversation as the agent saw it, without the candidate prompt's system message.
    pub messages: Vec<Message>,
    /// The workload's own account of the outcome in plain words, for the critic: what was
    /// expected, what is wrong. Empty when there is nothing to say.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub outcome: String,
    /// Further structure for screens (reward breakdown, state differences); `null` when absent.
    #[serde(default, skip_serializing_if = "serde_json::Value::is_null")]
    pub details: serde_json::Value,
}

impl Trace {
    /// The text of the last assistant message, or the empty string.
    pub fn answer(&self) -> &str {
        self.messages
            .iter()
            .rev()
            .find_map(|message| match message {
                Message::Assistant(answer) => Some(answer),
                _ => None,
            })
            .map(AssistantMessage::text)
            .unwrap_or_default()
    }
}

/// A finished rollout.
#[derive(Debug, Clone, PartialEq)]
pub struct Rollout {
    /// A value for every metric of [`Workload::metrics`]; the arena refuses NaN, infinite and
    /// missing ones.
    pub measurements: Measurements,
    /// What happened.
    pub trace: Trace,
    /// What was consumed outside [`RolloutContext::chat`] (an external agent's own calls).
    pub external_usage: Usage,
}

/// Why a rollout gave no measurements. What a study makes of it, its `[failures]` say.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum RolloutError {
    /// A model gave no answer.
    #[error(transparent)]
    Llm(#[from] LlmError),
    /// A tool, command or endpoint of the workload failed.
    #[error("{message}")]
    Failed {
        /// What kind of failure.
        kind: FailureKind,
        /// What went wrong, where, and what to do; redacted.
        message: String,
        /// Whether the same rollout may succeed later.
        retryable: bool,
        /// What was consumed all the same outside [`RolloutContext::chat`]; see
        /// [`Rollout::external_usage`].
        usage: Usage,
        /// Whether what models answered in the rollout still holds: the next try asks only for what follows it.
        keeps_answers: bool,
    },
}

impl RolloutError {
    /// A failure of the workload's own.
    pub fn failed(kind: FailureKind, retryable: bool, message: impl Into<String>) -> Self {
        Self::Failed {
            kind,
            message: message.into(),
            retryable,
            usage: Usage::default(),
            keeps_answers: false,
        }
    }

    /// The same failure, of a rollout that had consumed something outside
    /// [`RolloutContext::chat`].
    #[must_use]
    pub fn after(mut self, consumed: Usage) -> Self {
        if let Self::Failed { usage, .. } = &mut self {
            *usage = consumed;
        }
        self
    }

    /// The same failure, of something that only looked at what models had answered.
    #[must_use]
    pub fn keeping_answers(mut self) -> Self {
        if let Self::Failed { keeps_answers, .. } = &mut self {
            *keeps_answers = true;
        }
        self
    }
}

/// Examples and how to run them.
///
/// A whole workload, with models that serve it and a study about it:
///
/// ```
#[doc = include_str!("../../tests/tiny/mod.rs")]
/// ```
pub trait Workload {
    /// Name in the journal, unique within a study, such as `desk` or `table`.
    fn name(&self) -> &str;

    /// Every metric a rollout measures, [`crate::study::metric::PROMPT_LENGTH`] among them.
    fn metrics(&self) -> &[MetricSpec];

    /// Ids of the examples of a split, unique over both splits, in a fixed order.
    fn examples(&self, split: Split) -> &[String];

    /// Lower-case hex SHA-256 of everything outside the study file that rollouts depend on (data
    /// files, schemas); the empty string when there is nothing.
    fn fingerprint(&self) -> String;

    /// Everything that a rollout on an example depends on beside prompt, repeat and the models that are asked, what is
    /// measured and how included: for each of [`Workload::examples`] in their order, as text of any form. Equal texts, the
    /// same rollout. `None` where the workload cannot say; no other run takes anything over from its runs then.
    fn contents(&self, _split: Split) -> Option<Vec<String>> {
        None
    }

    /// Whether a measurement is of dollars, and so depends on what models cost; no other run takes anything over from its
    /// runs then.
    fn measures_dollars(&self) -> bool {
        false
    }

    /// What a rewriter should know about the deployment, in one paragraph: what the prompt is for
    /// and what is put around it. No example, no answer.
    fn description(&self) -> String;

    /// The most model calls one rollout can make, by role, for the estimate before a run.
    fn max_calls(&self) -> Vec<(Role, u64)>;

    /// Whether the run may make a rollout again that failed. Calls of models are tried again or not by themselves.
    fn tries_again(&self) -> bool {
        true
    }

    /// What a simulated agent follows on an example; none where it finds its way by itself. Whoever else is the agent
    /// takes no notice of it ([`crate::llm::Llm::act`]).
    fn agent_script(&self, _example: &str) -> Option<Rc<dyn AgentScript>> {
        None
    }

    /// Runs one example under one candidate prompt.
    fn rollout<'a>(
        &'a self,
        context: RolloutContext<'a>,
    ) -> LocalBoxFuture<'a, Result<Rollout, RolloutError>>;
}
