//! Tokens for tokens, by vLLM's `/v1/completions`.

use capo_core::llm::{CallUsage, Finish};
use serde_json::{Value, json};

use crate::conversation::portable_seed;
use crate::failure::Failure;

/// An answer that is asked for.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TokenRequest<'a> {
    /// The adapter that samples, by the name that it was loaded under.
    pub adapter: &'a str,
    /// The tokens to be answered.
    pub prompt: &'a [u32],
    /// Decides the draws; its lower 31 bits are sent.
    pub seed: u64,
    /// Longest answer in tokens, 1 or more.
    pub max_tokens: usize,
    /// Tokens that end an answer, and no others.
    pub stop_tokens: &'a [u32],
    /// Above 0, or 0 for the best token always.
    pub temperature: f32,
    /// Tokens kept; 0 keeps all.
    pub top_k: usize,
    /// In (0, 1]; 1 keeps all.
    pub top_p: f32,
    /// In [0, 1]; 0 keeps all.
    pub min_p: f32,
}

/// An answer in tokens.
#[derive(Debug, Clone, PartialEq)]
pub struct TokenAnswer {
    /// The sampled tokens, the one that ends the answer included.
    pub tokens: Vec<u32>,
    /// [`Finish::Stop`] or [`Finish::Length`].
    pub finish: Finish,
    /// What the answer consumed, at no price.
    pub usage: CallUsage,
    /// What failed tries before it consumed, none when the first one was answered.
    pub failed_tries: Option<CallUsage>,
}

/// What a server lacks that does not say which tokens it sampled.
const NO_TOKENS: &str = "the answer does not say which tokens were sampled (`token_ids`), and text cannot be turned \
                         back into them; take vLLM 0.10.2 or later";

impl TokenRequest<'_> {
    /// Every setting of the sampling is sent: what is left out a server takes from the model's
    /// `generation_config.json`.
    pub(super) fn body(&self) -> Value {
        json!({
            "model": self.adapter,
            "prompt": self.prompt,
            "n": 1,
            "seed": portable_seed(self.seed),
            "max_tokens": self.max_tokens,
            "temperature": self.temperature,
            // -1 keeps all in every version; older ones refuse 0.
            "top_k": if self.top_k == 0 { json!(-1) } else { json!(self.top_k) },
            "top_p": self.top_p,
            "min_p": self.min_p,
            "presence_penalty": 0.0,
            "frequency_penalty": 0.0,
            "repetition_penalty": 1.0,
            // The tokens that end an answer are those given and no others of the server's model.
            "ignore_eos": true,
            "stop_token_ids": self.stop_tokens,
            "return_token_ids": true,
        })
    }

    /// Reads the answer, which took so many seconds.
    pub(super) fn read(&self, answer: &Value, seconds: f64) -> Result<TokenAnswer, Failure> {
        let choice = &answer["choices"][0];
        let tokens = tokens(&choice["token_ids"]).ok_or_else(|| Failure::unusable(NO_TOKENS))?;
        if !choice["prompt_token_ids"].is_null() {
            let asked = self::tokens(&choice["prompt_token_ids"]);
            if asked.as_deref() != Some(self.prompt) {
                return Err(Failure::unusable(
                    "the server answered another prompt than it was sent: it must take tokens as they are",
                ));
            }
        }
        let finish = self.finish(choice, &tokens).map_err(Failure::unusable)?;
        Ok(TokenAnswer {
            usage: CallUsage {
                input_tokens: self.prompt.len() as u64,
                output_tokens: tokens.len() as u64,
                usd: Some(0.0),
                seconds,
            },
            tokens,
            finish,
            failed_tries: None,
        })
    }

    /// Why the answer ended, which must show in its tokens.
    fn finish(&self, choice: &Value, tokens: &[u32]) -> Result<Finish, String> {
        let ends = tokens.iter().position(|token| self.stop_tokens.contains(token));
        let is_ended = ends.is_some_and(|end| end + 1 == tokens.len());
        match choice["finish_reason"].as_str() {
            // Some versions say `length` of an answer that ends at its last possible token.
            Some("stop" | "length") if is_ended && tokens.len() <= self.max_tokens => Ok(Finish::Stop),
            Some("length") if ends.is_none() && tokens.len() == self.max_tokens => Ok(Finish::Length),
            reason => Err(format!(
                "an answer of {} tokens was cut off or mended (finish_reason {}): one ends with a stop token or at \
                 {} tokens",
                tokens.len(),
                reason.unwrap_or("none"),
                self.max_tokens
            )),
        }
    }
}

/// A list of token ids.
fn tokens(list: &Value) -> Option<Vec<u32>> {
    let token = |id: &Value| u32::try_from(id.as_u64()?).ok();
    list.as_array()?.iter().map(token).collect()
}
