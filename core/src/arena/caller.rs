//! Calls of one effect, counted and checked.

use std::cell::RefCell;

use futures::FutureExt;
use futures::future::LocalBoxFuture;

use super::Arena;
use crate::llm::{ChatRequest, ChatResponse, LlmError, Role};
use crate::usage::{RoleUsage, Usage};
use crate::workload::Caller;

/// Makes the model calls of one effect and adds up what they consume.
pub(super) struct MeteredCaller<'a> {
    arena: &'a Arena,
    usage: RefCell<Usage>,
}

impl<'a> MeteredCaller<'a> {
    pub(super) fn new(arena: &'a Arena) -> Self {
        Self {
            arena,
            usage: RefCell::default(),
        }
    }

    /// What the calls so far consumed, failed ones included.
    pub(super) fn usage(&self) -> Usage {
        self.usage.borrow().clone()
    }
}

impl Caller for MeteredCaller<'_> {
    fn call(&self, role: Role, request: ChatRequest) -> LocalBoxFuture<'_, Result<ChatResponse, LlmError>> {
        async move {
            let model = self.arena.models.model(role);
            self.arena.start_call(&*model).map_err(LlmError::Budget)?;
            let answer = model.chat(request).await;
            let share = match &answer {
                Ok(response) => {
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
                Err(LlmError::Failed { usage, .. }) => {
                    let mut share = RoleUsage::from(*usage);
                    // A failed call of unknown price consumed nothing that anybody could know of.
                    if (usage.input_tokens, usage.output_tokens) == (0, 0) {
                        share.usd = share.usd.or(Some(0.0));
                    }
                    share
                }
                Err(LlmError::Budget(_)) => return answer,
            };
            self.arena.end_call(share);
            self.usage.borrow_mut().add(role, share);
            answer
        }
        .boxed_local()
    }

    fn may_go_on(&self) -> Result<(), LlmError> {
        self.arena.may_go_on().map_err(LlmError::Budget)
    }
}
