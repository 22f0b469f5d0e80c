//! Calls of one effect, counted and checked.

use std::cell::RefCell;
use std::pin::pin;

use futures::FutureExt;
use futures::future::{Either, LocalBoxFuture, select};

use super::Arena;
use crate::journal::PaidAnswer;
use crate::llm::{CallUsage, ChatRequest, ChatResponse, LlmError, Message, Role};
use crate::notice::Notice;
use crate::study::usage::{RoleUsage, Usage};
use crate::study::workload::Caller;

/// Makes the model calls of one effect and adds up what they consume.
pub(super) struct MeteredCaller<'a> {
    arena: &'a Arena,
    usage: RefCell<Usage>,
    /// What each failed try of an external agent consumed.
    failed_tries: RefCell<Vec<Usage>>,
    /// Of a rollout: what earlier tries paid for and this one has not asked for yet, and the answers of
    /// this one. An effect of one call keeps none.
    answers: Option<RefCell<Answers>>,
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
            answers: None,
        }
    }

    /// For a rollout, of which earlier tries paid for these answers.
    pub(super) fn with_paid(arena: &'a Arena, paid: Vec<PaidAnswer>) -> Self {
        Self {
            answers: Some(RefCell::new(Answers {
                paid,
                given: Vec::new(),
            })),
            ..Self::new(arena)
        }
    }

    /// What the calls so far consumed, failed ones included.
    pub(super) fn usage(&self) -> Usage {
        self.usage.borrow().clone()
    }

    /// What a rollout consumed whose external agent says that the last try consumed so much. Where it was answered,
    /// failed tries of unknown price cost as much as it did.
    pub(super) fn usage_with(&self, last: &Usage, answered: bool) -> Usage {
        self.arena.count_external(last);
        let mut usage = self.usage();
        usage.merge(last);
        for failed in self.failed_tries.borrow().iter() {
            for (role, mut share) in failed.iter() {
                if answered && share.usd.is_none() {
                    share.usd = last.role(role).usd;
                    self.arena.count_usd(share.usd);
                }
                usage.add(role, share);
            }
        }
        usage
    }

    /// The answers so far, in order, then those of earlier tries that were not asked for yet.
    pub(super) fn into_answers(self) -> Vec<PaidAnswer> {
        self.answers.map_or_else(Vec::new, |answers| {
            let Answers { paid, mut given } = answers.into_inner();
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
            let keeps = self.answers.is_some() && !model.keeps_turns();
            let asked = keeps.then(|| fingerprint(role, &request));
            let abandoned = self.arena.options.control.abandoned();
            let answer = match select(model.chat(request), pin!(abandoned)).await {
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
                            ..RoleUsage::from(failed)
                        };
                    }
                    share
                }
                // Nothing was sent, or by a model that asks nobody.
                Err(LlmError::Interrupted { usage }) if usage.is_nothing() => {
                    self.arena.return_call();
                    return answer;
                }
                Err(LlmError::Failed { usage, .. } | LlmError::Interrupted { usage }) => {
                    let mut share = RoleUsage::from(*usage);
                    // A failed call of unknown price consumed nothing that anybody could know of.
                    if usage.is_nothing() {
                        share.usd = share.usd.or(Some(0.0));
                    }
                    share
                }
                Err(LlmError::Budget(_)) => return answer,
            };
            let share = share.credible();
            self.arena.end_call(share);
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
