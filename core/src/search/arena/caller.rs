//! Calls of one effect, counted and checked.

use std::cell::{Cell, RefCell};
use std::pin::pin;
use std::rc::Rc;

use futures::FutureExt;
use futures::future::{Either, LocalBoxFuture, select};

use super::Arena;
use crate::journal::PaidAnswer;
use crate::llm::{AgentScript, CallUsage, ChatRequest, ChatResponse, LlmError, Message, Role};
use crate::notice::Notice;
use crate::study::usage::{RoleUsage, Usage};
use crate::study::workload::Caller;

/// Makes the model calls of one effect and adds up what they consume.
pub(super) struct MeteredCaller<'a> {
    arena: &'a Arena,
    usage: RefCell<Usage>,
    /// What each failed try of an external agent consumed.
    failed_tries: RefCell<Vec<Usage>>,
    /// Dollars that it has counted as under way.
    under_way_usd: Cell<f64>,
    /// Whether an answer has no price.
    is_unpriced: Cell<bool>,
    /// Of a rollout: what earlier tries paid for and this one has not asked for yet, and the answers of
    /// this one. An effect of one call keeps none.
    answers: Option<RefCell<Answers>>,
    /// Of a rollout: what a simulated agent follows.
    agent_script: Option<Rc<dyn AgentScript>>,
}

#[derive(Default)]
struct Answers {
    paid: Vec<PaidAnswer>,
    given: Vec<PaidAnswer>,
}

impl<'a> MeteredCaller<'a> {
    /// For an effect of one call.
    pub(super) fn new(arena: &'a Arena) -> Self {
        Self {
            arena,
            usage: RefCell::default(),
            failed_tries: RefCell::default(),
            under_way_usd: Cell::new(0.0),
            is_unpriced: Cell::new(false),
            answers: None,
            agent_script: None,
        }
    }

    /// For a rollout, of which earlier tries paid for these answers.
    pub(super) fn with_paid(
        arena: &'a Arena,
        paid: Vec<PaidAnswer>,
        agent_script: Option<Rc<dyn AgentScript>>,
    ) -> Self {
        let mut caller = Self::new(arena);
        caller.agent_script = agent_script;
        let given = Vec::new();
        caller.answers = Some(RefCell::new(Answers { paid, given }));
        caller
    }

    /// What the calls so far consumed, failed ones included.
    pub(super) fn usage(&self) -> Usage {
        self.usage.borrow().clone()
    }

    /// What a rollout consumed whose external agent says that the last try consumed so much, and how many tries of the
    /// agent that were. Where it was answered, failed tries of unknown price cost as much as it did.
    pub(super) fn usage_with(&self, last: &Usage, answered: bool) -> (Usage, u32) {
        self.arena.count_external(last);
        let mut usage = self.usage();
        usage.merge(last);
        let failed_tries = self.failed_tries.borrow();
        for failed in failed_tries.iter() {
            for (role, mut share) in failed.iter() {
                if answered {
                    share.usd = share.usd.or(last.role(role).usd);
                }
                usage.add(role, share);
            }
        }
        (usage, 1 + failed_tries.len() as u32)
    }

    /// Counts dollars as spent until what this effect consumed is journaled.
    fn count_usd(&self, usd: Option<f64>) {
        let (own, all) = (&self.under_way_usd, &self.arena.spending.under_way_usd);
        own.set(own.get() + usd.unwrap_or(0.0));
        all.set(all.get() + usd.unwrap_or(0.0));
    }

    /// Remembers that an answer has no price: under a budget of dollars no call is made any more.
    fn mark_unpriced(&self) {
        if !self.is_unpriced.replace(true) {
            let all = &self.arena.spending.under_way_unpriced;
            all.set(all.get() + 1);
        }
    }

    /// The answers so far, in order, then those of earlier tries that were not asked for yet.
    pub(super) fn into_answers(self) -> Vec<PaidAnswer> {
        self.answers.as_ref().map_or_else(Vec::new, |answers| {
            let Answers { paid, mut given } = answers.take();
            given.extend(paid);
            given
        })
    }

    /// The answer that an earlier try paid for, if there is one.
    fn paid(&self, role: Role, request: &ChatRequest) -> Option<ChatResponse> {
        let mut answers = self.answers.as_ref()?.borrow_mut();
        if answers.paid.is_empty() {
            return None;
        }
        let request = fingerprint(role, request);
        let is_this = |paid: &PaidAnswer| paid.role == role && paid.request == request;
        let Some(place) = answers.paid.iter().position(is_this) else {
            // The dialogue takes another course: what follows on the old one answers nothing of it.
            answers.paid.retain(|paid| paid.role != role);
            return None;
        };
        let paid = answers.paid.remove(place);
        let response = paid.response.clone();
        answers.given.push(paid);
        Some(response)
    }

    fn keep(&self, role: Role, request: String, response: &ChatResponse) {
        if let Some(answers) = &self.answers {
            answers.borrow_mut().given.push(PaidAnswer {
                role,
                request,
                response: response.clone(),
            });
        }
    }
}

/// What it consumed is journaled next, and counts from there.
impl Drop for MeteredCaller<'_> {
    fn drop(&mut self) {
        let spending = &self.arena.spending;
        let usd = &spending.under_way_usd;
        usd.set(usd.get() - self.under_way_usd.get());
        let unpriced = &spending.under_way_unpriced;
        unpriced.set(unpriced.get() - u32::from(self.is_unpriced.get()));
    }
}

impl Caller for MeteredCaller<'_> {
    fn call(&self, role: Role, request: ChatRequest) -> LocalBoxFuture<'_, Result<ChatResponse, LlmError>> {
        async move {
            let model = self.arena.models.model(role);
            if !model.keeps_turns()
                && let Some(paid) = self.paid(role, &request)
            {
                return Ok(paid);
            }
            self.arena.start_call(&*model)?;
            // Vectors are long, and cost next to nothing.
            let keeps = self.answers.is_some() && !model.keeps_turns() && role != Role::Embeddings;
            let asked = keeps.then(|| fingerprint(role, &request));
            let abandoned = self.arena.options.control.abandoned();
            let answering = match &self.agent_script {
                Some(script) if role == Role::Agent => model.act(request, &**script),
                _ => model.chat(request),
            };
            let answer = match select(answering, pin!(abandoned)).await {
                Either::Left((answer, _)) => answer,
                Either::Right(((), _)) => Err(LlmError::Interrupted {
                    usage: CallUsage::default(),
                }),
            };
            let share = match &answer {
                Ok(response) => {
                    if let Some(asked) = asked {
                        self.keep(role, asked, response);
                    }
                    let mut share = RoleUsage::from(response.usage);
                    if let Some(failed) = response.failed_tries {
                        // One call, however often it was tried; its seconds are the answer's.
                        share += RoleUsage {
                            calls: 0,
                            seconds: 0.0,
                            // Of unknown price, they cost as much as the one that was answered.
                            usd: failed.usd.or(share.usd),
                            ..RoleUsage::from(failed)
                        };
                    }
                    if share.credible().usd.is_none() {
                        self.mark_unpriced();
                    }
                    share
                }
                // Nothing was sent, or by a model that asks nobody.
                Err(LlmError::Interrupted { usage }) if usage.is_nothing() => {
                    self.arena.return_call();
                    return answer;
                }
                Err(LlmError::Failed { usage, .. } | LlmError::Interrupted { usage }) => {
                    RoleUsage::from(*usage)
                }
                Err(LlmError::Budget(_)) => return answer,
            };
            let share = share.credible();
            self.arena.count_tokens(share);
            self.count_usd(share.usd);
            self.usage.borrow_mut().add(role, share);
            answer
        }
        .boxed_local()
    }

    fn may_go_on(&self) -> Result<(), LlmError> {
        self.arena.may_go_on()
    }

    fn interrupted(&self) -> LocalBoxFuture<'_, ()> {
        self.arena.options.control.interrupted().boxed_local()
    }

    fn abandoned(&self) -> LocalBoxFuture<'_, ()> {
        self.arena.options.control.abandoned().boxed_local()
    }

    fn tell(&self, notice: &Notice) {
        if let Some(observer) = &self.arena.options.observer {
            observer(notice);
        }
    }

    fn consumed(&self, usage: &Usage) {
        self.arena.count_external(usage);
        self.count_usd(usage.total().usd);
        self.failed_tries.borrow_mut().push(usage.clone());
    }
}

/// What tells a request from the others of its rollout, as 16 hex digits: the number of its messages,
/// their length, the last one and the seed. Earlier messages follow from earlier answers, which were told
/// apart in the same way.
fn fingerprint(role: Role, request: &ChatRequest) -> String {
    let text = |message: &Message| match message {
        Message::System { content } | Message::User { content } | Message::Tool { content, .. } => {
            content.len()
        }
        Message::Assistant(answer) => answer.text().len(),
    };
    let length: usize = request.messages.iter().map(text).sum();
    let last = match request.messages.last() {
        Some(Message::System { content } | Message::User { content } | Message::Tool { content, .. }) => {
            content
        }
        Some(Message::Assistant(answer)) => answer.text(),
        None => "",
    };
    let numbers = [
        request.messages.len() as u64,
        length as u64,
        request.seed.unwrap_or(0),
    ];
    let bytes = role
        .name()
        .bytes()
        .chain(numbers.into_iter().flat_map(u64::to_le_bytes))
        .chain(last.bytes());
    // FNV-1a: quick, and the same in every version.
    let hash = bytes.fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    format!("{hash:016x}")
}
