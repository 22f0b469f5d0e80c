//! Models that yield to the event loop.
//!
//! Simulated models answer at once. Where a search has the only thread, one over them would never give the event loop a
//! turn: nothing would be stored, shown or steered before its end.

use std::rc::Rc;

use capo_core::arena::Models;
use capo_core::batches::Batches;
use capo_core::llm::{AgentScript, ChatRequest, ChatResponse, Llm, LlmError, RewriteForm, Role};
use futures::FutureExt;
use futures::future::LocalBoxFuture;

/// Asked before each call: what to wait for, where a turn of the event loop is due.
pub type Turn = Rc<dyn Fn() -> Option<LocalBoxFuture<'static, ()>>>;

/// Models whose calls give the event loop a turn now and then.
pub struct Yielding<M> {
    models: M,
    turn: Turn,
}

impl<M: Models> Yielding<M> {
    /// These models.
    pub fn new(models: M, turn: Turn) -> Self {
        Self { models, turn }
    }
}

impl<M: Models> Models for Yielding<M> {
    fn model(&self, role: Role) -> Rc<dyn Llm> {
        Rc::new(YieldingModel {
            model: self.models.model(role),
            turn: Rc::clone(&self.turn),
        })
    }

    fn batches(&self) -> Option<Batches> {
        self.models.batches()
    }
}

struct YieldingModel {
    model: Rc<dyn Llm>,
    turn: Turn,
}

impl YieldingModel {
    /// Gives the event loop a turn when it is due.
    async fn give_way(&self) {
        if let Some(turn) = (self.turn)() {
            turn.await;
        }
    }
}

impl Llm for YieldingModel {
    fn name(&self) -> &str {
        self.model.name()
    }

    fn is_priced(&self) -> bool {
        self.model.is_priced()
    }

    fn rewrite_form(&self) -> RewriteForm {
        self.model.rewrite_form()
    }

    fn keeps_turns(&self) -> bool {
        self.model.keeps_turns()
    }

    fn chat(&self, request: ChatRequest) -> LocalBoxFuture<'_, Result<ChatResponse, LlmError>> {
        async move {
            self.give_way().await;
            self.model.chat(request).await
        }
        .boxed_local()
    }

    fn act<'a>(
        &'a self,
        request: ChatRequest,
        script: &'a dyn AgentScript,
    ) -> LocalBoxFuture<'a, Result<ChatResponse, LlmError>> {
        async move {
            self.give_way().await;
            self.model.act(request, script).await
        }
        .boxed_local()
    }
}
