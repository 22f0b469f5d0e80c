//! Texts as vectors, made by a model behind HTTP.

use capo_core::llm::{
    AssistantMessage, CallUsage, ChatRequest, ChatResponse, FailureKind, Finish, Llm, LlmError, Role,
};
use futures::future::LocalBoxFuture;
use indexmap::IndexMap;
use rig_core::embeddings::EmbeddingResponse;
use serde_json::{Value, json};

use crate::call_price;
use crate::client::{Client, Tried, Try};
use crate::error::BuildError;
use crate::failure::Failure;
use crate::providers::{Access, Embed, PROVIDERS};
use crate::rate_limit;
use crate::spec::ModelSpec;
use crate::table_checks::check_written;
use crate::time;

/// A model that makes vectors of texts.
pub struct Embedder {
    client: Client,
    embed: Embed,
}

/// Who makes vectors in a study, by provider and model, as [`Embedder::name`] says.
///
/// # Errors
///
/// When nobody does, the table `[models.embeddings]` does not read, or its provider has no such models.
pub fn embedder_name(models: &IndexMap<Role, Value>) -> Result<String, BuildError> {
    let (spec, _) = embedding(models)?;
    let provider = spec.provider.get().name;
    match spec.model {
        Some(model) => Ok(format!("{provider}/{model}")),
        None => Err(BuildError::Spec {
            role: Role::Embeddings,
            message: format!("provider `{provider}` needs a `model`"),
        }),
    }
}

/// The vectors of some texts.
#[derive(Debug, Clone, PartialEq)]
pub struct Embedded {
    /// One for each text, in their order, all of one length and of finite numbers.
    pub vectors: Vec<Vec<f64>>,
    /// What they consumed, failed tries included.
    pub usage: CallUsage,
}

impl Embedder {
    /// Texts in a request, unless said otherwise. Some servers take 10 or 32, Gemini 100, OpenAI 2048.
    pub const BATCH: usize = 32;

    pub(crate) fn new(client: Client, embed: Embed) -> Self {
        Self { client, embed }
    }

    /// Provider and model.
    pub fn name(&self) -> &str {
        &self.client.name
    }

    /// The vectors of some texts, none of them empty, by one call that is tried as often as the table says.
    /// How many it may be is the provider's business, see [`Embedder::BATCH`].
    ///
    /// # Errors
    /// When the model does not answer, or not with such vectors.
    pub async fn embed(&self, texts: &[String]) -> Result<Embedded, LlmError> {
        let asked_characters = characters(texts);
        let attempt = async || self.attempt(texts, asked_characters).await;
        let unanswered = |seconds| self.client.call_price.unanswered(asked_characters, seconds);
        let (embedded, failed_tries) = self.client.persist(attempt, unanswered).await?;
        let Some(failed) = failed_tries else {
            return Ok(embedded);
        };
        Ok(Embedded {
            usage: call_price::sum(failed, embedded.usage),
            ..embedded
        })
    }

    /// Vectors for a metric of a run, which may have a budget of dollars: tokens that the provider does not count are
    /// estimated.
    async fn answer(&self, request: ChatRequest) -> Result<ChatResponse, LlmError> {
        let Some(texts) = request.texts() else {
            let message = format!("{} makes vectors of texts and does nothing else", self.name());
            return Err(LlmError::failed(FailureKind::Provider, false, message));
        };
        let Embedded { vectors, mut usage } = self.embed(&texts).await?;
        if usage.usd.is_none() && usage.input_tokens == 0 {
            usage = self
                .client
                .call_price
                .unanswered(characters(&texts), usage.seconds);
        }
        Ok(ChatResponse {
            message: AssistantMessage {
                content: Some(json!(vectors).to_string()),
                tool_calls: Vec::new(),
            },
            finish: Finish::Stop,
            usage,
            failed_tries: None,
        })
    }

    async fn attempt(&self, texts: &[String], asked_characters: usize) -> Tried<Embedded> {
        let Try {
            outcome,
            reply,
            seconds,
        } = self.client.send_through(self.embed, texts.to_vec()).await;
        let response =
            outcome.map_err(|failure| self.client.consumed(failure, asked_characters, &reply, seconds))?;
        let usage = self
            .client
            .call_price
            .answer(&response.usage, &response.raw, seconds);
        let vectors = vectors(response).map_err(|message| (Failure::malformed(message), usage))?;
        let hold = rate_limit::wait(&reply.headers, time::since_epoch());
        Ok((Embedded { vectors, usage }, hold))
    }
}

impl Llm for Embedder {
    fn name(&self) -> &str {
        &self.client.name
    }

    fn is_priced(&self) -> bool {
        self.client.is_priced()
    }

    fn chat(&self, request: ChatRequest) -> LocalBoxFuture<'_, Result<ChatResponse, LlmError>> {
        Box::pin(self.answer(request))
    }
}

/// The characters of some texts, for an estimate of their tokens.
fn characters(texts: &[String]) -> usize {
    texts.iter().map(|text| text.chars().count()).sum()
}

/// The vectors of an answer, which has as many as there are texts, in the order of the texts.
fn vectors(response: EmbeddingResponse) -> Result<Vec<Vec<f64>>, String> {
    let mut order: Vec<usize> = (0..response.embeddings.len()).collect();
    // OpenAI's wire numbers its vectors, and a server may send them in any order.
    if let Some(data) = response.raw["data"].as_array() {
        let numbered = |place: &usize| data.get(*place).and_then(|one| one["index"].as_u64());
        order.sort_by_key(|place| numbered(place).unwrap_or(*place as u64));
    }
    let mut given: Vec<Vec<f64>> = response.embeddings.into_iter().map(|one| one.vec).collect();
    let vectors: Vec<Vec<f64>> = order
        .into_iter()
        .map(|place| std::mem::take(&mut given[place]))
        .collect();
    let length = vectors.first().map_or(0, Vec::len);
    if length == 0 || vectors.iter().any(|vector| vector.len() != length) {
        return Err("its vectors are empty or of different lengths".to_owned());
    }
    if vectors.iter().flatten().any(|value| !value.is_finite()) {
        return Err("one of its vectors is not finite".to_owned());
    }
    Ok(vectors)
}

/// The table `[models.embeddings]`, and how its provider makes vectors over HTTP.
pub(crate) fn embedding(models: &IndexMap<Role, Value>) -> Result<(ModelSpec, Embed), BuildError> {
    match table_of_vectors(models)? {
        (spec, Some(embed)) => Ok((spec, embed)),
        (spec, None) => Err(no_vectors(&spec)),
    }
}

/// The table `[models.embeddings]`, and how its provider makes vectors; `None` for the simulated ones, which
/// make them in this process.
pub(crate) fn table_of_vectors(
    models: &IndexMap<Role, Value>,
) -> Result<(ModelSpec, Option<Embed>), BuildError> {
    let role = Role::Embeddings;
    let table = models.get(&role).ok_or(BuildError::NoModel { role })?;
    let wrong = |message: String| BuildError::Spec { role, message };
    let spec = ModelSpec::parse(table).map_err(wrong)?;
    check_written(role, &spec).map_err(wrong)?;
    let unused = [
        ("temperature", spec.temperature.is_some()),
        ("max_tokens", spec.max_tokens.is_some()),
        ("reasoning_effort", spec.reasoning_effort.is_some()),
    ];
    if let Some((key, _)) = unused.iter().find(|(_, is_set)| *is_set) {
        return Err(wrong(format!("`{key}` is for models that write; leave it out")));
    }
    match spec.provider.get().access() {
        Access::Http {
            embed: Some(embed), ..
        } => Ok((spec, Some(*embed))),
        Access::InProcess(_) => Ok((spec, None)),
        Access::Http { embed: None, .. } | Access::Local => Err(no_vectors(&spec)),
    }
}

pub(crate) fn no_vectors(spec: &ModelSpec) -> BuildError {
    let others: Vec<&str> = PROVIDERS
        .iter()
        .filter(|provider| provider.embeds && !provider.in_process)
        .map(|provider| provider.name)
        .collect();
    BuildError::Spec {
        role: Role::Embeddings,
        message: format!(
            "provider `{}` has no models that make vectors; {} have. Where examples are split by them, words are \
             counted without this table and `workload.embeddings`",
            spec.provider.get().name,
            others.join(", ")
        ),
    }
}
