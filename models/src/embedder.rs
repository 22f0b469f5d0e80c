//! Texts as vectors, made by a model behind HTTP.

use capo_core::llm::{CallUsage, LlmError};
use rig_core::embeddings::EmbeddingResponse;

use crate::client::{Client, Tried, Try};
use crate::failure::Failure;
use crate::providers::Embed;
use crate::rate_limit;
use crate::tariff;
use crate::time;

/// A model that makes vectors of texts.
pub struct Embedder {
    client: Client,
    embed: Embed,
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
    /// The most texts of a request. Gemini takes 100, others more.
    pub const BATCH: usize = 64;

    pub(crate) fn new(client: Client, embed: Embed) -> Self {
        Self { client, embed }
    }

    /// Provider and model.
    pub fn name(&self) -> &str {
        &self.client.name
    }

    /// The vectors of at most [`Embedder::BATCH`] texts, none of them empty, by one call that is tried as often as the
    /// table says.
    ///
    /// # Errors
    /// When the model does not answer, or not with such vectors.
    pub async fn embed(&self, texts: &[String]) -> Result<Embedded, LlmError> {
        let attempt = async || self.attempt(texts).await;
        let (embedded, failed_tries) = self.client.persist(attempt).await?;
        let Some(failed) = failed_tries else {
            return Ok(embedded);
        };
        Ok(Embedded {
            usage: tariff::sum(failed, embedded.usage),
            ..embedded
        })
    }

    async fn attempt(&self, texts: &[String]) -> Tried<Embedded> {
        let Try {
            outcome,
            reply,
            seconds,
        } = self.client.send_through(self.embed, texts.to_vec()).await;
        let response = outcome.map_err(|failure| {
            let asked = texts.iter().map(|text| text.chars().count()).sum();
            self.client.consumed(failure, asked, &reply, seconds)
        })?;
        let usage = self.client.tariff.answer(&response.usage, &response.raw, seconds);
        let vectors = vectors(response).map_err(|message| (Failure::malformed(message), usage))?;
        let hold = rate_limit::wait(&reply.headers, time::since_epoch());
        Ok((Embedded { vectors, usage }, hold))
    }
}

/// The vectors of an answer, which has as many as there are texts.
fn vectors(response: EmbeddingResponse) -> Result<Vec<Vec<f64>>, String> {
    let vectors: Vec<Vec<f64>> = response.embeddings.into_iter().map(|one| one.vec).collect();
    let length = vectors.first().map_or(0, Vec::len);
    if length == 0 || vectors.iter().any(|vector| vector.len() != length) {
        return Err("its vectors are empty or of different lengths".to_owned());
    }
    if vectors.iter().flatten().any(|value| !value.is_finite()) {
        return Err("its vectors hold numbers that are not finite".to_owned());
    }
    Ok(vectors)
}
