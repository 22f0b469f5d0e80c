//! Models, natively and in WebAssembly.
//!
//! Both targets ask the simulated models the same and compare with the same constant, so that a run
//! of the browser can be repeated natively. When a change of the simulated world is meant to change
//! what its models say, the native test says the new constant.

use capo_core::ids::sha256_hex;
use capo_core::llm::{ChatRequest, Message, Role};
use capo_models::Models;
use indexmap::IndexMap;
use serde_json::{Value, json};

/// SHA-256 over every answer of [`the_simulated_models_say_what_is_recorded`], and over the bits of
/// the seconds each took.
const ANSWERS: &str = "e16120fdf8a99b3a2f1b82cff496927ce245aaa176705a8a2e3e69c95abc4a68";

const SYSTEM: &str = "Work step by step. End with the number after ####.";
const QUESTION: &str = "How many times does the letter \"r\" occur in \"strawberry\"?";

fn models(tables: impl IntoIterator<Item = (Role, Value)>, seed: u64) -> Models {
    let tables: IndexMap<Role, Value> = tables.into_iter().collect();
    let keys = std::collections::BTreeMap::new();
    capo_models::build(&tables, &keys, seed).expect("the tables are good")
}

async fn the_simulated_models_say_what_is_recorded() {
    let mut said = String::new();
    for name in ["sim-small", "sim-medium", "sim-large"] {
        let table = json!({ "provider": "simulated", "model": name });
        let model = models([(Role::Agent, table)], 7)
            .get(Role::Agent)
            .expect("the agent");
        for seed in 0..20 {
            let mut request = ChatRequest::new(vec![Message::system(SYSTEM), Message::user(QUESTION)]);
            request.seed = Some(seed);
            let answer = model.chat(request).await.expect("an answer");
            assert!(!answer.message.is_empty());
            let (text, seconds) = (answer.message.text(), answer.usage.seconds.to_bits());
            said = format!("{said}{text}\n{seconds:016x}\n");
        }
    }
    assert_eq!(sha256_hex(&said), ANSWERS);
}

async fn simulated_seconds_pass_on_the_clock_of_the_target() {
    let table = json!({ "provider": "simulated", "latency": 0.001, "concurrency": 2 });
    let model = models([(Role::Agent, table)], 7)
        .get(Role::Agent)
        .expect("the agent");
    let ask = || model.chat(ChatRequest::new(vec![Message::user(QUESTION)]));
    for answer in futures::future::join_all((0..5).map(|_| ask())).await {
        assert!(answer.expect("an answer").usage.seconds > 0.0);
    }
}

#[cfg(not(target_arch = "wasm32"))]
mod native {
    use futures::executor::block_on;

    #[test]
    fn the_simulated_models_say_what_is_recorded() {
        block_on(super::the_simulated_models_say_what_is_recorded());
    }

    #[test]
    fn simulated_seconds_pass_on_the_clock_of_the_target() {
        block_on(super::simulated_seconds_pass_on_the_clock_of_the_target());
    }
}

#[cfg(target_arch = "wasm32")]
mod wasm {
    use capo_core::llm::{ChatRequest, FailureKind, LlmError, Message, Role};
    use serde_json::json;
    use wasm_bindgen_test::wasm_bindgen_test;

    #[wasm_bindgen_test]
    async fn the_simulated_models_say_what_is_recorded() {
        super::the_simulated_models_say_what_is_recorded().await;
    }

    #[wasm_bindgen_test]
    async fn simulated_seconds_pass_on_the_clock_of_the_target() {
        super::simulated_seconds_pass_on_the_clock_of_the_target().await;
    }

    /// The page's own HTTP client, timers and clock, with nobody at the other end. What answers do
    /// is tested natively, over the same code.
    #[wasm_bindgen_test]
    async fn nobody_there_is_said_after_the_retries() {
        let table = json!({
            "provider": "openai-compatible", "model": "m", "base_url": "http://127.0.0.1:1", "retries": 1,
        });
        let model = super::models([(Role::Agent, table)], 0)
            .get(Role::Agent)
            .expect("the agent");
        let answer = model.chat(ChatRequest::new(vec![Message::user("Hello?")])).await;
        let Err(LlmError::Failed {
            kind,
            message,
            retryable,
            ..
        }) = answer
        else {
            panic!("nobody answers: {answer:?}");
        };
        assert_eq!((kind, retryable), (FailureKind::Unreachable, true));
        assert!(
            message.contains("cannot reach http://127.0.0.1:1 (in a browser also")
                && message.ends_with("(tried 2 times)"),
            "{message}"
        );
    }
}
