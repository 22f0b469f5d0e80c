//! The request of a call as a run sends it, for people to send themselves.

use std::future::ready;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use capo_core::llm::{ChatRequest, Message, Role};
use futures::FutureExt;
use http::header::CONTENT_TYPE;
use http::{HeaderName, HeaderValue, Request, Response};
use rig_core::wasm_compat::WasmBoxedFuture;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::builder::{Builder, Built};
use crate::gate::Carrier;
use crate::providers::{Access, Key};
use crate::secret::Keys;
use crate::spec::{HeaderText, ModelSpec};
use crate::transport::{Recorder, Wire};

/// A request over HTTP with a body of JSON.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct WrittenRequest {
    /// Where it goes.
    pub url: String,
    /// The headers beside that of the body's type.
    pub headers: Vec<WrittenHeader>,
    /// What it says.
    pub body: Value,
}

/// A header, whose value may end with that of a variable.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WrittenHeader {
    /// Its name, a token.
    pub name: String,
    /// What is written of its value.
    pub text: String,
    /// The variable whose value follows.
    pub variable: Option<String>,
    /// Whether nobody need have set that.
    pub optional: bool,
}

/// Has every variable, with its name as the value.
struct Names;

impl Keys for Names {
    fn get(&self, variable: &str, _: &str) -> Option<String> {
        Some(stands_for(variable))
    }
}

fn stands_for(variable: &str) -> String {
    format!("{{{{{variable}}}}}")
}

/// Keeps what it is given to carry.
#[derive(Default)]
struct Capture(Mutex<Option<Request<Bytes>>>);

impl Carrier for Capture {
    fn carry(&self, request: Request<Bytes>) -> WasmBoxedFuture<'static, Response<Bytes>> {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(request);
        Box::pin(ready(Response::new(Bytes::new())))
    }
}

/// The one call that the agent of a `[models.agent]` table is asked by with a prompt and a message. Nothing is sent.
///
/// # Errors
/// When the table is wrong, or its model is behind no API, in words.
pub fn write_request(table: &Value, prompt: &str, message: &str) -> Result<WrittenRequest, String> {
    let mut spec = ModelSpec::parse(table)?;
    spec.batch = false;
    let provider = spec.provider.get();
    let built = Builder::new(&Names).single(Role::Agent, &spec);
    let (Built::Http(client, _), Access::Http { browser_headers, .. }) =
        (built.map_err(|error| error.to_string())?, provider.access())
    else {
        return Err(
            "Only models behind an API can be called: this one is simulated or runs in this process."
                .to_owned(),
        );
    };
    let mut headers = client.headers.clone();
    for (name, _) in *browser_headers {
        headers.remove(*name);
    }
    let kept = Arc::new(Capture::default());
    let carrier = Arc::<Capture>::clone(&kept);
    let recorder = Recorder::new(Wire::Carrier(carrier), headers);
    let chat = ChatRequest::new(vec![Message::system(prompt), Message::user(message)]);
    let model = (client.connect)(&client.account, &client.model, recorder);
    // There is no answer to read.
    drop(model.call(client.request(&chat)?).now_or_never());
    let sent = kept.0.lock().unwrap_or_else(PoisonError::into_inner).take();
    let (parts, body) = sent.ok_or("No request comes of this table.")?.into_parts();
    let own = client.account.variable.as_ref();
    let of_headers = spec.headers.values().filter_map(|header| match header {
        HeaderText::Variable(variable) => Some(&variable.env),
        HeaderText::Text(_) => None,
    });
    let variables: Vec<&String> = own.into_iter().chain(of_headers).collect();
    let header = |(name, value): (&HeaderName, &HeaderValue)| {
        let value = String::from_utf8_lossy(value.as_bytes()).into_owned();
        let found = variables
            .iter()
            .find_map(|variable| Some((value.strip_suffix(&stands_for(variable))?, *variable)));
        let (text, variable) = found.map_or((&*value, None), |(text, variable)| (text, Some(variable)));
        WrittenHeader {
            name: name.as_str().to_owned(),
            text: text.to_owned(),
            optional: spec.api_key_env.is_none()
                && matches!(provider.key, Key::Optional(usual) if variable.is_some_and(|variable| variable == usual)),
            variable: variable.cloned(),
        }
    };
    let headers = parts.headers.iter().filter(|(name, _)| *name != CONTENT_TYPE);
    Ok(WrittenRequest {
        url: parts.uri.to_string(),
        headers: headers.map(header).collect(),
        body: serde_json::from_slice(&body).map_err(|error| error.to_string())?,
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn of(table: &Value) -> WrittenRequest {
        write_request(table, "Help.", "Hello").expect("a request")
    }

    #[test]
    fn a_request_says_all_that_its_table_does() {
        let table = json!({
            "provider": "openai", "model": "gpt-5-mini", "max_tokens": 50, "reasoning_effort": "low",
            "headers": { "X-Team": "search", "X-Gate": { "env": "GATE_KEY" } },
        });
        let request = of(&table);
        assert_eq!(request.url, "https://api.openai.com/v1/chat/completions");
        assert_eq!(request.body["max_completion_tokens"], 50);
        assert_eq!(request.body["reasoning_effort"], "low");
        let header = |name: &str| {
            let header = request.headers.iter().find(|header| header.name == name).unwrap();
            (header.text.as_str(), header.variable.as_deref())
        };
        assert_eq!(header("authorization"), ("Bearer ", Some("OPENAI_API_KEY")));
        assert_eq!(header("x-gate"), ("", Some("GATE_KEY")));
        assert_eq!(header("x-team"), ("search", None));
    }

    #[test]
    fn each_provider_is_asked_in_its_own_words() {
        let claude =
            of(&json!({ "provider": "anthropic", "model": "claude-haiku-4-5", "reasoning_effort": "low" }));
        assert_eq!(claude.body["max_tokens"], 64_000);
        assert_eq!(claude.body["thinking"]["budget_tokens"], 1_024);
        let gemini =
            of(&json!({ "provider": "gemini", "model": "gemini-2.5-flash", "reasoning_effort": "low" }));
        assert!(
            gemini
                .url
                .ends_with("/v1beta/models/gemini-2.5-flash:generateContent")
        );
        let thinking = &gemini.body["generationConfig"]["thinkingConfig"];
        assert_eq!(thinking["thinkingBudget"], 1_024);
        let ollama = of(&json!({ "provider": "ollama", "model": "m" }));
        let key = &ollama.headers.iter().find(|header| header.variable.is_some());
        assert!(key.is_some_and(|key| key.optional), "{ollama:?}");
    }

    #[test]
    fn a_table_that_no_run_begins_with_is_refused() {
        for (more, said) in [
            (
                json!({ "api_key_env": "A;B" }),
                "`api_key_env` must be the name of a variable",
            ),
            (json!({ "base_url": "-K/etc/x" }), "`base_url`"),
            (
                json!({ "provider": "simulated", "model": "sim-medium" }),
                "behind an API",
            ),
        ] {
            let mut table = json!({ "provider": "openai", "model": "m" });
            let more = more.as_object().unwrap().clone();
            table.as_object_mut().unwrap().extend(more);
            let refused = write_request(&table, "Help.", "Hello").unwrap_err();
            assert!(refused.contains(said), "{refused}");
        }
    }
}
