//! The simulated models, which run in this process and can take real time.

use std::rc::Rc;
use std::time::Duration;

use capo_core::control::Control;
use capo_core::llm::{AgentScript, CallUsage, ChatRequest, ChatResponse, Llm, LlmError};
use capo_world::simulated::Simulated;
use futures::future::LocalBoxFuture;

use super::{Access, Plan, Provider};
use crate::conversation::portable_seed;
use crate::limiter::Limiter;
use crate::prices::{Cached, Price};
use crate::time;

pub(super) const PROVIDER: Provider = Provider {
    model: Some("sim-medium"),
    ..Provider::in_process("simulated", "Simulated")
};

pub(super) const ACCESS: Access = Access::InProcess(|plan| Ok(Rc::new(Paced::new(plan)?)));

/// A simulated model at a study's pace and price.
struct Paced<M> {
    name: String,
    model: M,
    latency: f64,
    limiter: Limiter,
    /// What the study says tokens cost, in place of the model's own simulated dollars.
    price: Option<Price>,
    control: Control,
}

impl Paced<Simulated> {
    fn new(plan: Plan<'_>) -> Result<Self, String> {
        let model = Simulated::new(plan.model, plan.seed).map_err(|error| error.to_string())?;
        Ok(Self {
            name: plan.name,
            model,
            latency: plan.latency,
            limiter: plan.limiter,
            price: plan.price,
            control: plan.control,
        })
    }
}

impl<M: Llm> Paced<M> {
    async fn answer(
        &self,
        mut request: ChatRequest,
        script: Option<&dyn AgentScript>,
    ) -> Result<ChatResponse, LlmError> {
        // The same model behind an HTTP endpoint gets no longer seed: one run, either way.
        request.seed = request.seed.map(portable_seed);
        let mut answer = match script {
            Some(script) => self.model.act(request, script).await?,
            None => self.model.chat(request).await?,
        };
        let usage = &mut answer.usage;
        if let Some(price) = self.price {
            usage.usd = Some(price.of(usage.input_tokens, Cached::default(), usage.output_tokens));
        }
        if self.latency > 0.0 {
            // A turn is only worth waiting for when answers take time.
            let asked = async {
                let permit = self.limiter.acquire().await;
                time::sleep(Duration::from_secs_f64(usage.seconds * self.latency)).await;
                permit.succeeded();
            };
            // An answer that nobody waits for costs nothing here.
            let waited = time::unless(self.control.interrupted(), asked).await;
            let usage = CallUsage {
                usd: Some(0.0),
                ..CallUsage::default()
            };
            waited.ok_or(LlmError::Interrupted { usage })?;
        }
        Ok(answer)
    }
}

impl<M: Llm> Llm for Paced<M> {
    fn name(&self) -> &str {
        &self.name
    }

    fn chat(&self, request: ChatRequest) -> LocalBoxFuture<'_, Result<ChatResponse, LlmError>> {
        Box::pin(self.answer(request, None))
    }

    fn act<'a>(
        &'a self,
        request: ChatRequest,
        script: &'a dyn AgentScript,
    ) -> LocalBoxFuture<'a, Result<ChatResponse, LlmError>> {
        Box::pin(self.answer(request, Some(script)))
    }
}

#[cfg(test)]
mod tests {
    use capo_core::llm::{AssistantMessage, CallUsage, Finish, Message};
    use futures::executor::block_on;

    use super::*;

    struct Fixed;

    impl Llm for Fixed {
        fn name(&self) -> &'static str {
            "fixed"
        }

        fn chat(&self, _: ChatRequest) -> LocalBoxFuture<'_, Result<ChatResponse, LlmError>> {
            let usage = CallUsage {
                input_tokens: 1_000,
                output_tokens: 100,
                usd: Some(0.5),
                seconds: 2.0,
            };
            let message = AssistantMessage::default();
            Box::pin(async move {
                Ok(ChatResponse {
                    message,
                    finish: Finish::Stop,
                    usage,
                    failed_tries: None,
                })
            })
        }
    }

    fn ask(latency: f64, price: Option<Price>) -> (ChatResponse, Duration) {
        let paced = Paced {
            name: "x".into(),
            model: Fixed,
            latency,
            limiter: Limiter::new(1),
            price,
            control: Control::new(),
        };
        let started = time::Instant::now();
        let answer = block_on(paced.chat(ChatRequest::default())).unwrap();
        (answer, started.elapsed())
    }

    #[test]
    fn simulated_seconds_pass_only_when_wanted() {
        let (answer, elapsed) = ask(0.0, None);
        assert!(elapsed < Duration::from_millis(500));
        assert_eq!(answer.usage.usd, Some(0.5), "the model's own");
        let (answer, elapsed) = ask(0.02, None);
        assert!(elapsed >= Duration::from_millis(40));
        assert_eq!(
            answer.usage.seconds, 2.0,
            "the simulated seconds, not the real ones"
        );
    }

    #[test]
    fn a_script_reaches_the_model_with_its_name() {
        struct Signs;

        impl AgentScript for Signs {
            fn next(&self, _: &ChatRequest, model: &str, _: u64) -> AssistantMessage {
                AssistantMessage {
                    content: Some(format!("Yours, {model}")),
                    tool_calls: Vec::new(),
                }
            }
        }

        let paced = Paced {
            name: "x".into(),
            model: Simulated::new("sim-small", 0).unwrap(),
            latency: 0.0,
            limiter: Limiter::new(1),
            price: None,
            control: Control::new(),
        };
        let request = ChatRequest::new(vec![Message::user("Hello.")]);
        let acted = block_on(paced.act(request.clone(), &Signs)).unwrap();
        assert_eq!(acted.message.text(), "Yours, sim-small");
        assert_ne!(block_on(paced.chat(request)).unwrap().message, acted.message);
    }

    #[test]
    fn a_stated_price_replaces_the_simulated_one() {
        let price = Price {
            input: 1.0,
            output: 10.0,
            cached_input: None,
            cache_write: None,
        };
        let (answer, _) = ask(0.0, Some(price));
        assert_eq!(answer.usage.usd, Some(0.002));
    }
}
