//! Models that yield to the event loop.
//!
//! Simulated models answer at once. A search over them would never give the worker's event loop a
//! turn: nothing would be stored, shown or steered before its end.

use std::cell::Cell;
use std::rc::Rc;
use std::time::Duration;

use capo_core::arena::Models;
use capo_core::llm::{AgentScript, ChatRequest, ChatResponse, Llm, LlmError, RewriteForm, Role};
use futures::FutureExt;
use futures::future::LocalBoxFuture;
use web_time::Instant;

/// How long a worker computes before it looks at its messages.
const SLICE: Duration = Duration::from_millis(40);

/// Models whose calls give the event loop a turn now and then.
pub(super) struct Yielding<M> {
    models: M,
    last: Rc<Cell<Instant>>,
}

impl<M: Models> Yielding<M> {
    pub(super) fn new(models: M) -> Self {
        Self {
            models,
            last: Rc::new(Cell::new(Instant::now())),
        }
    }
}

impl<M: Models> Models for Yielding<M> {
    fn model(&self, role: Role) -> Rc<dyn Llm> {
        Rc::new(YieldingModel {
            model: self.models.model(role),
            last: Rc::clone(&self.last),
        })
    }
}

struct YieldingModel {
    model: Rc<dyn Llm>,
    last: Rc<Cell<Instant>>,
}

impl YieldingModel {
    /// Gives the event loop a turn when it is due.
    async fn give_way(&self) {
        if self.last.get().elapsed() >= SLICE {
            gloo_timers::future::sleep(Duration::ZERO).await;
            self.last.set(Instant::now());
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
