//! A model's `config.json`, in the style of transformers 4 and in that of transformers 5.

use std::path::Path;

use serde::Deserialize;
use serde_json::{Map, Value};

use self::resolve::resolve;
pub(crate) use self::table::{Table, read_json};
use crate::error::FileError;

mod resolve;
mod rope;
mod table;

/// The families of decoders that are understood.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Architecture {
    /// Qwen3: queries and keys are normalised per head.
    Qwen3,
    /// Mistral: as Llama, with a sliding window in its early versions.
    Mistral,
    /// The text model of Ministral 3: YaRN, and queries scaled by position.
    Ministral3,
}

impl Architecture {
    /// The value of `model_type` in `config.json`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Qwen3 => "qwen3",
            Self::Mistral => "mistral",
            Self::Ministral3 => "ministral3",
        }
    }

    /// The value of `architectures` in the `config.json` of a text model.
    pub fn class(self) -> &'static str {
        match self {
            Self::Qwen3 => "Qwen3ForCausalLM",
            Self::Mistral => "MistralForCausalLM",
            Self::Ministral3 => "Ministral3ForCausalLM",
        }
    }

    /// Whether queries and keys are normalised per head.
    pub fn normalises_heads(self) -> bool {
        self == Self::Qwen3
    }
}

/// How positions turn into angles.
#[derive(Debug, Clone, PartialEq)]
pub struct RopeConfig {
    /// Base of the frequencies.
    pub theta: f64,
    /// How the frequencies are stretched to a longer context.
    pub yarn: Option<Yarn>,
}

/// YaRN's interpolation of frequencies [Peng et al., YaRN, arXiv 2309.00071].
#[derive(Debug, Clone, PartialEq)]
pub struct Yarn {
    /// Stretch of the context.
    pub factor: f64,
    /// Context that the frequencies were trained on, in tokens.
    pub original_context: usize,
    /// Turns over the original context above which a frequency is kept.
    pub beta_fast: f64,
    /// Turns over the original context below which a frequency is divided by `factor`.
    pub beta_slow: f64,
    /// Factor on cosine and sine.
    pub attention_factor: f64,
}

/// Queries at position p are multiplied by 1 + β ln(1 + ⌊p / original context⌋).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct QueryScaling {
    /// Dual rate β, > 0.
    pub beta: f64,
    /// The original context in tokens.
    pub original_context: usize,
}

/// The sizes and constants of a decoder.
#[derive(Debug, Clone, PartialEq)]
pub struct ModelConfig {
    /// The family.
    pub architecture: Architecture,
    /// Whether this is the text model of a multimodal one, below whose name adapters name its modules.
    pub multimodal: bool,
    /// Number of embeddings; a tokenizer may have fewer tokens.
    pub vocabulary: usize,
    /// Width of the residual stream.
    pub hidden: usize,
    /// Width inside the feed-forward block.
    pub intermediate: usize,
    /// Query heads.
    pub heads: usize,
    /// Key and value heads; each serves `heads / kv_heads` query heads.
    pub kv_heads: usize,
    /// Width of a head.
    pub head_dim: usize,
    /// Added to the mean square before the root.
    pub rms_norm_eps: f64,
    /// Longest sequence in tokens.
    pub context: usize,
    /// Positions to angles.
    pub rope: RopeConfig,
    /// Scaling of queries by position.
    pub query_scaling: Option<QueryScaling>,
    /// For each layer how many positions back a query sees, itself included; `None` is all.
    pub windows: Vec<Option<usize>>,
    /// Whether the output layer is the embedding.
    pub tied: bool,
    /// Tokens that end an answer.
    pub stop_tokens: Vec<u32>,
}

impl ModelConfig {
    /// Reads `config.json` and, for the stop tokens, `generation_config.json` of a model's folder.
    ///
    /// # Errors
    ///
    /// A file that does not read, an unknown architecture, or sizes that do not fit together.
    pub fn from_folder(folder: &Path) -> Result<Self, FileError> {
        let path = folder.join("config.json");
        if !path.exists() {
            return Err(FileError::Missing {
                folder: folder.to_owned(),
                file: "config.json",
            });
        }
        let mut config = Self::from_value(read_json(&path)?).map_err(|why| FileError::content(&path, why))?;
        let path = folder.join("generation_config.json");
        if path.exists() {
            let generation: GenerationFile =
                serde_json::from_value(read_json(&path)?).map_err(|why| FileError::content(&path, why))?;
            if let Some(tokens) = generation.eos_token_id {
                config.stop_tokens = tokens.into();
            }
        }
        Ok(config)
    }

    fn from_value(value: Value) -> Result<Self, String> {
        let Value::Object(whole) = value else {
            return Err("the file must hold an object".into());
        };
        let whole = Table::new("", &whole);
        whole.refuse_quantisation()?;
        // A multimodal checkpoint holds the text model's configuration as a table of its own.
        let Some(text) = whole.get::<Map<String, Value>>("text_config")? else {
            return resolve(&whole, false);
        };
        let text = Table::new("text_config.", &text);
        text.refuse_quantisation()?;
        let mut config = resolve(&text, true)?;
        if text.stated("tie_word_embeddings").is_none()
            && let Some(tied) = whole.get("tie_word_embeddings")?
        {
            config.tied = tied;
        }
        Ok(config)
    }

    /// Number of layers.
    pub fn layers(&self) -> usize {
        self.windows.len()
    }

    /// Query heads that share one key and value head.
    pub fn group(&self) -> usize {
        self.heads / self.kv_heads
    }
}

/// One token or several.
#[derive(Deserialize)]
#[serde(untagged)]
enum Tokens {
    One(u32),
    Many(Vec<u32>),
}

impl From<Tokens> for Vec<u32> {
    fn from(tokens: Tokens) -> Self {
        match tokens {
            Tokens::One(token) => vec![token],
            Tokens::Many(tokens) => tokens,
        }
    }
}

#[derive(Deserialize)]
struct GenerationFile {
    eos_token_id: Option<Tokens>,
}

#[cfg(test)]
mod tests;
