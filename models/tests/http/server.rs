//! A provider on loopback, and a model that asks it.

use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::Duration;

use capo_core::llm::{ChatRequest, Llm, Message, Role};
use capo_models::{Builder, Models};
use indexmap::IndexMap;
use serde_json::{Value, json};
use wiremock::matchers::{method, path};
use wiremock::{Mock, MockServer, Request, ResponseTemplate};

/// The key every test uses. No message may hold it.
pub(crate) const KEY: &str = "sk-test-0123456789abcdef";

/// Which wire a provider speaks, and where.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Wire {
    Chat,
    Anthropic,
    Gemini,
}

/// A provider as the tests address it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Subject {
    pub(crate) provider: &'static str,
    pub(crate) wire: Wire,
    /// What follows the server's address in `base_url`.
    pub(crate) root: &'static str,
    /// Where requests must arrive.
    pub(crate) path: &'static str,
}

const fn chat(provider: &'static str, root: &'static str, path: &'static str) -> Subject {
    Subject {
        provider,
        wire: Wire::Chat,
        root,
        path,
    }
}

/// Every provider that is reached over HTTP.
pub(crate) const SUBJECTS: [Subject; 7] = [
    chat("openai", "/v1", "/v1/chat/completions"),
    Subject {
        provider: "anthropic",
        wire: Wire::Anthropic,
        root: "",
        path: "/v1/messages",
    },
    Subject {
        provider: "gemini",
        wire: Wire::Gemini,
        root: "",
        path: "/v1beta/models/test-model:generateContent",
    },
    chat("mistral", "/v1", "/v1/chat/completions"),
    chat("openrouter", "/api/v1", "/api/v1/chat/completions"),
    chat("ollama", "/v1", "/v1/chat/completions"),
    chat("openai-compatible", "/v1/", "/v1/chat/completions"),
];

/// The plainest of them, for what does not depend on the provider.
pub(crate) const PLAIN: Subject = SUBJECTS[6];

impl Subject {
    /// The study's table for this provider at `server`, with `more` keys.
    pub(crate) fn table(&self, server: &MockServer, more: &Value) -> Value {
        let mut table = json!({
            "provider": self.provider,
            "model": "test-model",
            "base_url": format!("{}{}", server.uri(), self.root),
            "api_key_env": "TEST_KEY",
        });
        if let (Some(table), Value::Object(more)) = (table.as_object_mut(), more) {
            table.extend(more.clone());
        }
        table
    }

    /// A model at `server`.
    pub(crate) fn model(&self, server: &MockServer, more: &Value) -> Rc<dyn Llm> {
        models([(Role::Agent, self.table(server, more))])
            .get(Role::Agent)
            .unwrap()
    }

    /// Answers every request with `replies` in order, the last one for ever.
    pub(crate) async fn serve(&self, server: &MockServer, replies: Vec<ResponseTemplate>) {
        let last = replies.len() - 1;
        for (index, reply) in replies.into_iter().enumerate() {
            let mock = Mock::given(method("POST"))
                .and(path(self.path))
                .respond_with(reply);
            let mock = if index == last {
                mock
            } else {
                mock.up_to_n_times(1)
            };
            mock.with_priority(index as u8 + 1).mount(server).await;
        }
    }

    /// A reply that says `text`, with 11 tokens read and 7 written.
    pub(crate) fn says(&self, text: &str) -> ResponseTemplate {
        ResponseTemplate::new(200).set_body_json(self.answer(text))
    }

    /// What [`Subject::says`] replies.
    pub(crate) fn answer(&self, text: &str) -> Value {
        self.reply(
            &match self.wire {
                Wire::Chat => json!({ "role": "assistant", "content": text }),
                Wire::Anthropic => json!([{ "type": "text", "text": text }]),
                Wire::Gemini => json!([{ "text": text }]),
            },
            false,
        )
    }

    /// A reply that calls `look_up` with `{"order": 7}`.
    pub(crate) fn calls_tool(&self) -> ResponseTemplate {
        let reply = self.reply(
            &match self.wire {
                Wire::Chat => json!({
                    "role": "assistant",
                    "content": null,
                    "tool_calls": [{
                        "id": "call00001",
                        "type": "function",
                        "function": { "name": "look_up", "arguments": "{\"order\":7}" },
                    }],
                }),
                Wire::Anthropic => json!([
                    { "type": "thinking", "thinking": "Which order?", "signature": "c2lnbmVk" },
                    { "type": "tool_use", "id": "call00001", "name": "look_up", "input": { "order": 7 } },
                ]),
                Wire::Gemini => json!([{
                    "functionCall": { "name": "look_up", "args": { "order": 7 } },
                    "thoughtSignature": "c2lnbmVk",
                }]),
            },
            true,
        );
        ResponseTemplate::new(200).set_body_json(reply)
    }

    fn reply(&self, said: &Value, calls: bool) -> Value {
        match self.wire {
            Wire::Chat => json!({
                "id": "r1",
                "object": "chat.completion",
                "model": "test-model",
                "choices": [{
                    "index": 0,
                    "message": said,
                    "finish_reason": if calls { "tool_calls" } else { "stop" },
                }],
                "usage": { "prompt_tokens": 11, "completion_tokens": 7, "total_tokens": 18 },
            }),
            Wire::Anthropic => json!({
                "id": "r1",
                "type": "message",
                "role": "assistant",
                "model": "test-model",
                "content": said,
                "stop_reason": if calls { "tool_use" } else { "end_turn" },
                "usage": { "input_tokens": 11, "output_tokens": 7 },
            }),
            Wire::Gemini => json!({
                "candidates": [{
                    "content": { "role": "model", "parts": said },
                    "finishReason": "STOP",
                    "index": 0,
                }],
                "usageMetadata": {
                    "promptTokenCount": 11,
                    "candidatesTokenCount": 7,
                    "totalTokenCount": 18,
                },
                "modelVersion": "test-model",
            }),
        }
    }
}

/// Models that know [`KEY`] as `TEST_KEY`, another as `OTHER_KEY`, and wait at most a moment
/// between tries.
pub(crate) fn models(tables: impl IntoIterator<Item = (Role, Value)>) -> Models {
    models_of(tables, |builder| builder.first_wait(Duration::from_millis(2)))
}

/// Like [`models`], with other settings of the builder.
pub(crate) fn models_of(
    tables: impl IntoIterator<Item = (Role, Value)>,
    set: impl FnOnce(Builder<'_>) -> Builder<'_>,
) -> Models {
    let keys = BTreeMap::from([
        ("TEST_KEY".to_owned(), KEY.to_owned()),
        ("OTHER_KEY".to_owned(), "sk-other-0123456789".to_owned()),
    ]);
    let tables: IndexMap<Role, Value> = tables.into_iter().collect();
    set(Builder::new(&keys)).build(&tables).unwrap()
}

pub(crate) fn question() -> ChatRequest {
    ChatRequest::new(vec![Message::system("Be kind."), Message::user("Hello?")])
}

/// The bodies `server` received, in order.
pub(crate) async fn received(server: &MockServer) -> Vec<(Request, Value)> {
    let requests = server.received_requests().await.unwrap_or_default();
    requests
        .into_iter()
        .map(|request| {
            let body = serde_json::from_slice(&request.body).unwrap();
            (request, body)
        })
        .collect()
}
