//! A model's `config.json`, in the style of transformers 4 and in that of transformers 5.

use std::path::Path;

use serde::Deserialize;
use serde_json::{Map, Value};

use crate::error::FileError;

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
    /// β.
    pub beta: f64,
    /// The original context in tokens.
    pub original_context: usize,
}

/// The sizes and constants of a decoder.
#[derive(Debug, Clone, PartialEq)]
pub struct ModelConfig {
    /// The family.
    pub architecture: Architecture,
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

    fn from_value(mut value: Value) -> Result<Self, String> {
        // A multimodal checkpoint holds the text model's configuration as a table of its own.
        if let Some(text) = value.get_mut("text_config").map(Value::take) {
            value = text;
        }
        if value
            .get("quantization_config")
            .is_some_and(|table| !table.is_null())
        {
            return Err(
                "the weights are quantised (`quantization_config`): take a BF16 or F32 checkpoint".into(),
            );
        }
        let architecture = architecture(&value)?;
        let file: ConfigFile = serde_json::from_value(value).map_err(|why| why.to_string())?;
        file.resolve(architecture)
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

fn architecture(value: &Value) -> Result<Architecture, String> {
    let found = value
        .get("model_type")
        .and_then(Value::as_str)
        .ok_or("`model_type` is missing, so the architecture is unknown")?;
    [
        Architecture::Qwen3,
        Architecture::Mistral,
        Architecture::Ministral3,
    ]
    .into_iter()
    .find(|architecture| architecture.name() == found)
    .ok_or_else(|| {
        format!("unknown architecture `{found}`: `model_type` must be qwen3, mistral or ministral3")
    })
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

#[derive(Deserialize)]
struct ConfigFile {
    vocab_size: usize,
    hidden_size: usize,
    intermediate_size: usize,
    num_hidden_layers: usize,
    num_attention_heads: usize,
    num_key_value_heads: Option<usize>,
    head_dim: Option<usize>,
    hidden_act: Option<String>,
    max_position_embeddings: usize,
    rms_norm_eps: f64,
    rope_theta: Option<f64>,
    rope_scaling: Option<RopeTable>,
    rope_parameters: Option<RopeTable>,
    #[serde(default)]
    attention_bias: bool,
    #[serde(default)]
    tie_word_embeddings: bool,
    use_sliding_window: Option<bool>,
    sliding_window: Option<usize>,
    max_window_layers: Option<usize>,
    layer_types: Option<Vec<String>>,
    eos_token_id: Option<Tokens>,
}

/// `rope_scaling` of transformers 4 and `rope_parameters` of transformers 5.
#[derive(Deserialize, Default)]
struct RopeTable {
    rope_theta: Option<f64>,
    rope_type: Option<String>,
    r#type: Option<String>,
    factor: Option<f64>,
    original_max_position_embeddings: Option<usize>,
    beta_fast: Option<f64>,
    beta_slow: Option<f64>,
    mscale: Option<f64>,
    mscale_all_dim: Option<f64>,
    attention_factor: Option<f64>,
    llama_4_scaling_beta: Option<f64>,
    #[serde(flatten)]
    _rest: Map<String, Value>,
}

impl ConfigFile {
    fn resolve(self, architecture: Architecture) -> Result<ModelConfig, String> {
        if self.hidden_act.as_deref().is_some_and(|name| name != "silu") {
            return Err("`hidden_act` must be silu".into());
        }
        if self.attention_bias {
            return Err("`attention_bias` is true: biases are not supported".into());
        }
        let kv_heads = self.num_key_value_heads.unwrap_or(self.num_attention_heads);
        for (name, size) in [
            ("vocab_size", self.vocab_size),
            ("hidden_size", self.hidden_size),
            ("intermediate_size", self.intermediate_size),
            ("num_hidden_layers", self.num_hidden_layers),
            ("num_attention_heads", self.num_attention_heads),
            ("num_key_value_heads", kv_heads),
            ("max_position_embeddings", self.max_position_embeddings),
        ] {
            if size == 0 {
                return Err(format!("`{name}` is 0"));
            }
        }
        if !self.num_attention_heads.is_multiple_of(kv_heads) {
            return Err(format!(
                "`num_attention_heads` {} is no multiple of `num_key_value_heads` {kv_heads}",
                self.num_attention_heads
            ));
        }
        let head_dim = match (self.head_dim, architecture) {
            (Some(width), _) => width,
            (None, Architecture::Qwen3) => 128,
            (None, _) => self.hidden_size / self.num_attention_heads,
        };
        if head_dim == 0 || !head_dim.is_multiple_of(2) {
            return Err(format!("`head_dim` is {head_dim}: it must be even and not 0"));
        }
        let windows = self.windows(architecture)?;
        let (rope, query_scaling) = self.rope()?;
        Ok(ModelConfig {
            architecture,
            vocabulary: self.vocab_size,
            hidden: self.hidden_size,
            intermediate: self.intermediate_size,
            heads: self.num_attention_heads,
            kv_heads,
            head_dim,
            rms_norm_eps: self.rms_norm_eps,
            context: self.max_position_embeddings,
            rope,
            query_scaling,
            windows,
            tied: self.tie_word_embeddings,
            stop_tokens: self.eos_token_id.map(Vec::from).unwrap_or_default(),
        })
    }

    fn windows(&self, architecture: Architecture) -> Result<Vec<Option<usize>>, String> {
        let layers = self.num_hidden_layers;
        let Some(window) = self
            .sliding_window
            .filter(|_| self.use_sliding_window != Some(false))
        else {
            return Ok(vec![None; layers]);
        };
        if window == 0 {
            return Err("`sliding_window` is 0: a query must see itself".into());
        }
        if let Some(types) = &self.layer_types {
            if types.len() != layers {
                return Err(format!("`layer_types` names {} layers of {layers}", types.len()));
            }
            return types
                .iter()
                .map(|kind| match kind.as_str() {
                    "full_attention" => Ok(None),
                    "sliding_attention" => Ok(Some(window)),
                    other => Err(format!(
                        "`layer_types` has `{other}`: known are full_attention and sliding_attention"
                    )),
                })
                .collect();
        }
        // Qwen3's first `max_window_layers` layers see everything.
        let full = match architecture {
            Architecture::Qwen3 => self.max_window_layers.unwrap_or(0),
            _ => 0,
        };
        Ok((0..layers)
            .map(|layer| (layer >= full).then_some(window))
            .collect())
    }

    fn rope(&self) -> Result<(RopeConfig, Option<QueryScaling>), String> {
        let none = RopeTable::default();
        let table = self
            .rope_parameters
            .as_ref()
            .or(self.rope_scaling.as_ref())
            .unwrap_or(&none);
        let theta = table
            .rope_theta
            .or(self.rope_theta)
            .ok_or("neither `rope_theta` nor `rope_parameters.rope_theta` is given")?;
        let original_context = table
            .original_max_position_embeddings
            .unwrap_or(self.max_position_embeddings);
        let kind = table.rope_type.as_ref().or(table.r#type.as_ref());
        let yarn = match kind.map_or("default", String::as_str) {
            "default" => None,
            "yarn" => {
                let factor = table.factor.ok_or("rope type yarn needs `factor`")?;
                if original_context == 0 || factor.is_nan() || factor < 1.0 {
                    return Err(
                        "rope type yarn needs `factor` >= 1 and `original_max_position_embeddings` > 0"
                            .into(),
                    );
                }
                Some(Yarn {
                    factor,
                    original_context,
                    beta_fast: table.beta_fast.unwrap_or(32.0),
                    beta_slow: table.beta_slow.unwrap_or(1.0),
                    attention_factor: table.attention_factor(factor),
                })
            }
            other => {
                return Err(format!(
                    "rope type `{other}` is not supported: it must be default or yarn"
                ));
            }
        };
        let query_scaling = table.llama_4_scaling_beta.map(|beta| QueryScaling {
            beta,
            original_context: original_context.max(1),
        });
        Ok((RopeConfig { theta, yarn }, query_scaling))
    }
}

impl RopeTable {
    fn attention_factor(&self, factor: f64) -> f64 {
        let scale = |k: f64| 0.1 * k * factor.ln() + 1.0;
        self.attention_factor
            .unwrap_or_else(|| match (self.mscale, self.mscale_all_dim) {
                (Some(one), Some(all)) if one != 0.0 && all != 0.0 => scale(one) / scale(all),
                _ => scale(1.0),
            })
    }
}

pub(crate) fn read_json(path: &Path) -> Result<Value, FileError> {
    let text = std::fs::read_to_string(path).map_err(FileError::io(path))?;
    serde_json::from_str(&text).map_err(|why| FileError::content(path, why))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn qwen3() -> Value {
        json!({
            "model_type": "qwen3", "vocab_size": 151_936, "hidden_size": 1024,
            "intermediate_size": 3072, "num_hidden_layers": 28, "num_attention_heads": 16,
            "num_key_value_heads": 8, "head_dim": 128, "hidden_act": "silu",
            "max_position_embeddings": 40_960, "max_window_layers": 28, "rms_norm_eps": 1e-6,
            "rope_theta": 1_000_000, "rope_scaling": null, "attention_bias": false,
            "tie_word_embeddings": true, "use_sliding_window": false, "sliding_window": null,
            "eos_token_id": 151_645, "torch_dtype": "bfloat16",
        })
    }

    fn with(mut config: Value, changes: &Value) -> Value {
        for (key, value) in changes.as_object().expect("an object") {
            config[key] = value.clone();
        }
        config
    }

    #[test]
    fn both_styles_say_the_same() {
        let old = ModelConfig::from_value(qwen3()).expect("reads");
        let mut new = qwen3();
        for key in ["rope_theta", "rope_scaling", "torch_dtype"] {
            new.as_object_mut().expect("an object").remove(key);
        }
        let new = with(
            new,
            &json!({
                "rope_parameters": { "rope_theta": 1e6, "rope_type": "default" }, "dtype": "bfloat16",
                "eos_token_id": [151_645],
            }),
        );
        assert_eq!(ModelConfig::from_value(new), Ok(old));
    }

    #[test]
    fn yarn_of_transformers_4_has_its_attention_factor() {
        let scaling = json!({ "rope_scaling": {
            "rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 32_768,
        }});
        let config = ModelConfig::from_value(with(qwen3(), &scaling)).expect("reads");
        let yarn = config.rope.yarn.expect("yarn");
        assert_eq!(yarn.original_context, 32_768);
        assert!((yarn.attention_factor - (0.1 * 4f64.ln() + 1.0)).abs() < 1e-12);
    }

    #[test]
    fn a_multimodal_checkpoint_gives_its_text_model() {
        let text = with(qwen3(), &json!({ "model_type": "ministral3" }));
        let config =
            ModelConfig::from_value(json!({ "model_type": "mistral3", "text_config": text })).expect("reads");
        assert_eq!(config.architecture, Architecture::Ministral3);
    }

    #[test]
    fn windows_follow_layer_types_or_the_number_of_full_layers() {
        let sliding = json!({ "use_sliding_window": true, "sliding_window": 8, "num_hidden_layers": 3, "max_window_layers": 2 });
        let config = ModelConfig::from_value(with(qwen3(), &sliding)).expect("reads");
        assert_eq!(config.windows, [None, None, Some(8)]);
        let typed = with(
            with(qwen3(), &sliding),
            &json!({ "layer_types": ["sliding_attention", "full_attention", "full_attention"] }),
        );
        let config = ModelConfig::from_value(typed).expect("reads");
        assert_eq!(config.windows, [Some(8), None, None]);
    }

    #[test]
    fn what_is_not_supported_is_named() {
        let message =
            |changes: Value| ModelConfig::from_value(with(qwen3(), &changes)).expect_err("must not read");
        assert!(message(json!({ "model_type": "llama" })).contains("unknown architecture `llama`"));
        assert!(message(json!({ "hidden_act": "gelu" })).contains("silu"));
        assert!(message(json!({ "num_key_value_heads": 5 })).contains("num_key_value_heads"));
        assert!(message(json!({ "head_dim": 7 })).contains("head_dim"));
        assert!(message(json!({ "rope_scaling": { "rope_type": "longrope" } })).contains("longrope"));
        assert!(message(json!({ "quantization_config": { "quant_method": "fp8" } })).contains("quantised"));
        assert!(message(json!({ "vocab_size": "many" })).contains("invalid type"));
    }
}
