//! What `capo-models` sends passes the gateway and arrives where `capo-models` itself would have called.
#![cfg(not(target_arch = "wasm32"))]

use std::collections::BTreeMap;
use std::sync::Arc;

use capo_core::llm::{ChatRequest, Role};
use capo_gateway::{Caller, DEFAULT_MAX_BODY, Gateway, Limits, NanoUsd, Request, split_path};
use capo_models::prices::PriceTable;
use indexmap::IndexMap;
use serde_json::json;
use wiremock::matchers::any;
use wiremock::{Mock, MockServer, ResponseTemplate};

/// Providers, with what follows the server's address in their `base_url` and where their requests arrive.
const PROVIDERS: [(&str, &str, &str); 7] = [
    ("openai", "/v1", "/v1/chat/completions"),
    ("anthropic", "", "/v1/messages"),
    ("gemini", "", "/v1beta/models/m-1:generateContent"),
    ("mistral", "", "/v1/chat/completions"),
    ("openrouter", "/v1", "/v1/chat/completions"),
    ("ollama", "", "/v1/chat/completions"),
    ("openai-compatible", "/v1", "/v1/chat/completions"),
];

/// A conversation with a tool that was called and answered.
const CONVERSATION: &str = r#"{
    "messages": [
        {"role": "system", "content": "Be kind."}, {"role": "user", "content": "Where is it?"},
        {"role": "assistant", "tool_calls": [{"id": "call00001", "name": "look_up", "arguments": {"order": 7}}]},
        {"role": "tool", "call_id": "call00001", "content": "{\"status\":\"sent\"}"}
    ],
    "tools": [{"name": "look_up", "description": "Finds an order.", "parameters": {"type": "object", "properties": {}}}],
    "seed": 7
}"#;

#[tokio::test]
async fn what_capo_models_sends_passes() {
    for (provider, root, expected) in PROVIDERS {
        let proxy = MockServer::start().await;
        let refused = ResponseTemplate::new(400);
        Mock::given(any()).respond_with(refused).mount(&proxy).await;
        let base_url = format!("{}/api/proxy/team", proxy.uri());
        let spec = json!({
            "provider": provider, "model": "m-1", "base_url": base_url, "api_key_env": "TOKEN", "max_tokens": 64,
        });
        let keys = BTreeMap::from([("TOKEN".to_owned(), "token-of-the-member".to_owned())]);
        let models = capo_models::build(&IndexMap::from([(Role::Agent, spec)]), &keys, 0).unwrap();
        let conversation: ChatRequest = serde_json::from_str(CONVERSATION).unwrap();
        let answer = models.get(Role::Agent).unwrap().chat(conversation).await;
        assert!(answer.is_err(), "{provider}");
        let sent = &proxy.received_requests().await.unwrap()[0];

        let record = json!({
            "id": "team", "provider": provider, "base_url": format!("https://upstream.example{root}"),
            "projects": ["p"], "models": [{ "name": "m-*", "price": { "input": 1.0, "output": 1.0 } }],
        });
        let key = serde_json::from_value(record).unwrap();
        let (prices, max_body) = (Arc::new(PriceTable::shipped()), DEFAULT_MAX_BODY);
        let gateway = Gateway {
            origins: Vec::new(),
            prices,
            max_body,
        };
        let caller = Caller {
            project: "p".to_owned(),
            may_run: true,
        };
        let (_, path) = split_path(sent.url.path()).unwrap();
        let (method, query, headers, body) = (&sent.method, sent.url.query(), &sent.headers, &*sent.body);
        let request = Request {
            method,
            path,
            query,
            headers,
            body,
        };
        let (usd_per_day, requests_per_day) = (NanoUsd::from_usd(1.0), None);
        let limits = [Limits {
            usd_per_day,
            requests_per_day,
        }];
        let upstream = gateway.check(Some(&caller), Some(&key), &limits, &request);
        let upstream = upstream.unwrap_or_else(|problem| panic!("{provider}: {problem}"));
        assert_eq!(upstream.url, format!("https://upstream.example{expected}"));
        assert_eq!(
            (&*upstream.model, upstream.bound().output),
            ("m-1", Some(64)),
            "{provider}"
        );
        let is_of_member = |value: &http::HeaderValue| value.as_bytes().ends_with(b"token-of-the-member");
        assert!(!upstream.headers.values().any(is_of_member), "{provider}");
    }
}
