//! A proxy that adds the keys of others, as the builder of models asks for it.

use std::sync::Arc;

use crate::prices::Price;
use crate::providers::Provider;
use crate::secret::Secret;
pub use crate::transport::Carrier;

/// How a model is asked through a proxy that adds the provider's key.
#[derive(Debug, Clone)]
pub struct Route {
    /// Where it is asked, as `base_url` in a study.
    pub base_url: String,
    /// What the proxy knows the caller by; it is sent where the provider's key would be.
    pub key: Secret,
    /// What its tokens cost, where whoever shares the key says so.
    pub price: Option<Price>,
}

/// Knows the routes to models whose keys somebody else has. With one, a study's models are asked by its routes alone, and the
/// variables that they name are not read.
pub trait Gate {
    /// The route to a model of a provider, whose API is at `base_url`.
    ///
    /// # Errors
    ///
    /// Why there is none, and what to do.
    fn route(&self, provider: &'static Provider, base_url: &str, model: &str) -> Result<Route, String>;

    /// Calls to a model at a time, whatever its table says.
    fn most_calls(&self) -> usize {
        usize::MAX
    }

    /// Who carries what is sent on these routes, where they lead to nothing that listens; else it goes by HTTP.
    fn carrier(&self) -> Option<Arc<dyn Carrier>> {
        None
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::collections::BTreeMap;
    use std::rc::Rc;
    use std::sync::Mutex;
    use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

    use bytes::Bytes;
    use capo_core::llm::{ChatRequest, Message, Role};
    use capo_core::notice::Notice;
    use futures::channel::oneshot;
    use futures::executor::block_on;
    use http::{Request, Response};
    use indexmap::IndexMap;
    use rig_core::wasm_compat::WasmBoxedFuture;
    use serde_json::json;

    use super::*;
    use crate::Builder;

    /// Answers the first request, once it is let if it is to wait for that, and refuses all further ones.
    #[derive(Default)]
    struct Once(Arc<AtomicU64>, Arc<Mutex<Option<oneshot::Receiver<()>>>>);

    impl Carrier for Once {
        fn carry(&self, request: Request<Bytes>) -> WasmBoxedFuture<'static, Response<Bytes>> {
            assert_eq!(request.uri().path(), "/api/proxy/team/chat/completions");
            assert_eq!(request.headers()["authorization"], "Bearer pass");
            let message = json!({ "role": "assistant", "content": "Hello" });
            let answer = json!({
                "id": "1", "object": "chat.completion", "created": 1, "model": "m",
                "choices": [{ "index": 0, "finish_reason": "stop", "message": message }],
                "usage": { "prompt_tokens": 3, "completion_tokens": 1, "total_tokens": 4 },
            });
            let refusal = json!({ "title": "Not allowed", "status": 403, "detail": "the role does not do" });
            let (status, body) = match self.0.fetch_add(1, Relaxed) {
                0 => (200, answer),
                _ => (403, refusal),
            };
            let response = Response::builder().status(status).body(body.to_string().into());
            let held = self.1.lock().unwrap().take();
            Box::pin(async move {
                if let Some(held) = held {
                    held.await.unwrap();
                }
                response.unwrap()
            })
        }
    }

    impl Gate for Once {
        fn route(&self, _: &'static Provider, _: &str, _: &str) -> Result<Route, String> {
            Ok(Route {
                base_url: "https://gate.invalid/api/proxy/team".into(),
                key: Secret::new("pass"),
                price: None,
            })
        }

        fn carrier(&self) -> Option<Arc<dyn Carrier>> {
            Some(Arc::new(Self(Arc::clone(&self.0), Arc::clone(&self.1))))
        }
    }

    #[test]
    fn what_a_carrier_brings_is_the_answer() {
        let (keys, gate) = (BTreeMap::new(), Once::default());
        let table =
            json!({ "provider": "openai-compatible", "base_url": "http://m/v1", "model": "m", "retries": 0 });
        let tables = IndexMap::from([(Role::Agent, table)]);
        let models = Builder::new(&keys).gate(&gate).build(&tables).unwrap();
        let model = models.get(Role::Agent).unwrap();
        let ask = || block_on(model.chat(ChatRequest::new(vec![Message::user("Hi")])));
        let answer = ask().unwrap();
        assert_eq!((answer.message.text(), answer.usage.input_tokens), ("Hello", 3));
        let refused = ask().unwrap_err().to_string();
        assert!(refused.contains("403"), "{refused}");
        assert_eq!(gate.0.load(Relaxed), 2);
    }

    #[tokio::test]
    async fn a_model_behind_a_gate_that_never_answered_is_told_of_by_its_own_name() {
        let (tell, told) = oneshot::channel();
        let keys: BTreeMap<String, String> = BTreeMap::new();
        let gate = Once(Arc::default(), Arc::new(Mutex::new(Some(told))));
        let table =
            json!({ "provider": "openai-compatible", "base_url": "http://m/v1", "model": "m", "retries": 0 });
        let (said, tell) = (Rc::new(RefCell::new(Vec::new())), RefCell::new(Some(tell)));
        let heard = Rc::clone(&said);
        let observer = Rc::new(move |notice: &Notice| {
            heard.borrow_mut().push(match notice {
                Notice::Waiting(wait) => wait.to_string(),
                other => format!("{other:?}"),
            });
            if let Some(tell) = tell.take() {
                tell.send(()).unwrap();
            }
        });
        let builder = Builder::new(&keys).gate(&gate).observer(observer);
        let models = builder.build(&IndexMap::from([(Role::Agent, table)])).unwrap();
        let model = models.get(Role::Agent).unwrap();
        let asked = ChatRequest::new(vec![Message::user("Hi")]);
        model.chat(asked).await.unwrap();
        let said = said.borrow();
        assert_eq!(
            said[0],
            "no answer yet from m: it is slow, or out of reach, after 3 s"
        );
        assert!(said.len() == 2 && said[1].starts_with("Answered"), "{said:?}");
    }
}
