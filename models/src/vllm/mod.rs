//! A vLLM server that serves adapters under names of their own and samples tokens for tokens.
//!
//! Sources: vLLM's OpenAI-compatible server, its LoRA endpoints (`/v1/load_lora_adapter`,
//! `/v1/unload_lora_adapter`) and the fields that it adds to `/v1/completions`.

mod completion;
mod spec;

use std::sync::Arc;

use bytes::Bytes;
use capo_core::llm::{CallUsage, LlmError};
use http::{HeaderValue, Method, Request, StatusCode, header};
use rig_core::ProviderError;
use rig_core::http_client::HttpClientExt as _;
use serde_json::{Value, json};

use crate::builder::Builder;
use crate::call_price;
use crate::client::{Client, Tried, Try};
use crate::error::BuildError;
use crate::failure::{Failure, excerpt};
use crate::providers::{Key, Provider};
use crate::rate_limit;
use crate::time;

pub use completion::{TokenAnswer, TokenRequest};
pub use spec::VllmSpec;

/// What errors call the server, and how its accounts are found.
pub(crate) const VLLM: Provider = Provider {
    embeds: false,
    // The variable that the server itself reads its key from.
    ..Provider::over_http("vllm", "vLLM", Key::Optional("VLLM_API_KEY"))
};

/// How vLLM is started so that adapters can be loaded into it.
const START: &str =
    "start vLLM with VLLM_ALLOW_RUNTIME_LORA_UPDATING=True in its environment and --enable-lora";

/// A vLLM server.
pub struct Vllm {
    client: Client,
}

impl Vllm {
    /// The server that `spec` names. Nothing is sent yet.
    ///
    /// # Errors
    ///
    /// A value is wrong, or a key that is asked for is not there.
    pub fn new(spec: &VllmSpec, builder: &Builder<'_>) -> Result<Self, BuildError> {
        let client = builder.server(&spec.table()?, &VLLM)?;
        Ok(Self { client })
    }

    /// The names of all models and adapters that it serves.
    ///
    /// # Errors
    ///
    /// It is not there, refuses, or does not answer with a list of models.
    pub async fn models(&self) -> Result<Vec<String>, LlmError> {
        let names = |list: &Value| {
            let name = |model: &Value| Some(model["id"].as_str()?.to_owned());
            list["data"]
                .as_array()?
                .iter()
                .map(name)
                .collect::<Option<Vec<_>>>()
        };
        let attempt = async || {
            let answer = self.send(Method::GET, "models", None).await;
            judge(answer, |body| {
                names(&self.json(body)?).ok_or_else(|| Failure::unusable("the answer is no list of models"))
            })
        };
        Ok(self.client.persist(attempt, time_alone).await?.0)
    }

    /// Loads the adapter in a folder, in PEFT's layout, which the server must see at this path. One that is loaded
    /// under the name already is left as it is.
    ///
    /// # Errors
    ///
    /// The server is not there, allows no loading, does not see the folder, or cannot serve the adapter.
    pub async fn load(&self, name: &str, path: &str) -> Result<(), LlmError> {
        let body = json!({ "lora_name": name, "lora_path": path });
        self.change("load_lora_adapter", &body, |failure| {
            let said = failure.said.as_deref().unwrap_or_default();
            match failure.status {
                Some(StatusCode::BAD_REQUEST) if said.contains("already been loaded") => Ok(Bytes::new()),
                Some(StatusCode::NOT_FOUND) => Err(Failure {
                    message: format!(
                        "{}; the server must see the training's folder, so write where it does as `server_folder`",
                        failure.message
                    ),
                    ..failure
                }),
                _ => Err(failure),
            }
        })
        .await
    }

    /// Unloads an adapter. One that is not loaded is no error.
    ///
    /// # Errors
    ///
    /// The server is not there, or allows no unloading.
    pub async fn unload(&self, name: &str) -> Result<(), LlmError> {
        let body = json!({ "lora_name": name });
        self.change("unload_lora_adapter", &body, |failure| match failure.status {
            Some(StatusCode::NOT_FOUND) => Ok(Bytes::new()),
            _ => Err(failure),
        })
        .await
    }

    /// Samples an answer to a prompt of tokens from an adapter.
    ///
    /// # Errors
    ///
    /// The server is not there or refuses, or its answer does not say which tokens it sampled or why it ended.
    pub async fn complete(&self, request: &TokenRequest<'_>) -> Result<TokenAnswer, LlmError> {
        let body = request.body();
        let attempt = async || {
            let answer = self.send(Method::POST, "completions", Some(&body)).await;
            let seconds = answer.seconds;
            judge(answer, |body| request.read(&self.json(body)?, seconds))
        };
        let (answer, failed_tries) = self.client.persist(attempt, time_alone).await?;
        Ok(TokenAnswer {
            failed_tries,
            ..answer
        })
    }

    /// Asks for a change of what is served. `forgive` may take a failure for a success, or say more of it.
    async fn change(
        &self,
        path: &str,
        body: &Value,
        forgive: impl Fn(Failure) -> Result<Bytes, Failure>,
    ) -> Result<(), LlmError> {
        let attempt = async || {
            let mut answer = self.send(Method::POST, path, Some(body)).await;
            answer.outcome = answer.outcome.or_else(|failure| {
                if !is_no_route(&failure) {
                    return forgive(failure);
                }
                let message = format!("{}: it loads no adapters; {START}", failure.message);
                Err(Failure { message, ..failure })
            });
            judge(answer, |_| Ok(()))
        };
        let ((), _) = self.client.persist(attempt, time_alone).await?;
        Ok(())
    }

    async fn send(&self, method: Method, path: &str, body: Option<&Value>) -> Try<Bytes> {
        let recorder = self.client.recorder();
        let sending = async {
            let request = self.request(method, path, body);
            let request = request.map_err(|error| ProviderError::Request(Arc::new(error)))?;
            let response = recorder.send::<Bytes, Bytes>(request).await;
            let body = response.map_err(ProviderError::from_transport_error)?.into_body();
            body.await.map_err(ProviderError::from_transport_error)
        };
        self.client.timed(&recorder, sending).await
    }

    fn json(&self, body: &Bytes) -> Result<Value, Failure> {
        serde_json::from_slice(body).map_err(|_| {
            let begins = excerpt(body, &self.client.redactor);
            Failure::malformed(format!("the answer is no JSON; it begins: {begins}"))
        })
    }

    fn request(&self, method: Method, path: &str, body: Option<&Value>) -> http::Result<Request<Bytes>> {
        let account = &self.client.account;
        let mut request = Request::builder()
            .method(method)
            .uri(format!("{}/{path}", account.base_url));
        if let Some(key) = &account.key {
            let mut bearer = HeaderValue::try_from(format!("Bearer {}", key.expose()))?;
            bearer.set_sensitive(true);
            request = request.header(header::AUTHORIZATION, bearer);
        }
        if body.is_some() {
            request = request.header(header::CONTENT_TYPE, "application/json");
        }
        request.body(Bytes::from(body.map(Value::to_string).unwrap_or_default()))
    }
}

/// What a try came to, for an answer that `read` reads.
fn judge<T>(answer: Try<Bytes>, read: impl FnOnce(&Bytes) -> Result<T, Failure>) -> Tried<T> {
    let hold = rate_limit::wait(&answer.reply.headers, time::since_epoch());
    let seconds = answer.seconds;
    let read = answer.outcome.and_then(|body| read(&body));
    read.map(|read| (read, hold))
        .map_err(|failure| (failure, time_alone(seconds)))
}

/// What a try consumed on a server that is the user's own.
fn time_alone(seconds: f64) -> CallUsage {
    CallUsage {
        seconds,
        ..call_price::NOTHING
    }
}

/// Whether the server has nothing at the path that was asked, not even a refusal of its own.
fn is_no_route(failure: &Failure) -> bool {
    let is_absent = matches!(
        failure.status,
        Some(StatusCode::NOT_FOUND | StatusCode::METHOD_NOT_ALLOWED)
    );
    let said = failure.said.as_deref().unwrap_or_default();
    is_absent && ["", "Not Found", "Method Not Allowed"].contains(&said)
}
