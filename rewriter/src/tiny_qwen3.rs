//! Small models with random weights, which learn from nothing: a Qwen3 of any size in a folder that
//! loads like any other model's.

use std::path::Path;

use burn_flex::{Flex, FlexDevice};
use burn_tensor::{Tensor, TensorData};
use capo_core::random::{Streams, normal};
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::config::{Architecture, ModelConfig};
use crate::decoder::Names;
use crate::error::FileError;
use crate::lora::Projection;
use crate::store::{Stored, make_empty_folder, write_json, write_tensors};
use crate::tokenizer::{Tokenizer, special};
use crate::weights::SINGLE;

/// Standard deviation of new weights, as GPT-2's and Qwen's.
const DEVIATION: f64 = 0.02;

/// Roles and contents between special tokens; an answer ends with `<|eos|>`.
const CHAT_TEMPLATE: &str = "\
{{- bos_token }}
{%- for message in messages %}
    {{- '<|' + message.role + '|>' + message.content }}
    {%- if message.role == 'assistant' %}
        {{- eos_token }}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|assistant|>' }}
{%- endif %}
";

/// The sizes of a small Qwen3; its vocabulary is its tokenizer's. The defaults make 3.2 million
/// parameters over bytes.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct TinyQwen3Config {
    /// Width of the residual stream.
    pub hidden: usize,
    /// Number of layers.
    pub layers: usize,
    /// Query heads, a multiple of `kv_heads`.
    pub heads: usize,
    /// Key and value heads.
    pub kv_heads: usize,
    /// Width of a head, even.
    pub head_dim: usize,
    /// Width inside the feed-forward block.
    pub intermediate: usize,
    /// Longest sequence in tokens.
    pub context: usize,
    /// Whether the output layer is the embedding.
    pub tied: bool,
}

impl Default for TinyQwen3Config {
    fn default() -> Self {
        Self {
            hidden: 256,
            layers: 4,
            heads: 4,
            kv_heads: 2,
            head_dim: 64,
            intermediate: 768,
            context: 4096,
            tied: true,
        }
    }
}

impl TinyQwen3Config {
    /// Writes a model into an empty folder, which is made if it is not there: weights drawn from
    /// `seed`, 32-bit, with a tokenizer that has the [`special`] tokens, configuration and chat
    /// template. The same seed and sizes give the same weights everywhere.
    ///
    /// Weights are drawn from N(0, 0.02²); those of the maps that add to the residual stream
    /// (`o_proj`, `down_proj`) from N(0, 0.02² / (2 · layers)), so that its variance does not grow
    /// with depth [Radford et al., GPT-2]. Norms begin at 1.
    ///
    /// # Errors
    ///
    /// [`FileError::Content`] when the folder holds anything, the sizes do not fit together or the
    /// tokenizer lacks a special token, and [`FileError::Io`] when a file cannot be written.
    pub fn write(&self, folder: &Path, tokenizer: &Tokenizer, seed: u64) -> Result<(), FileError> {
        let ids = Ids::of(tokenizer, folder)?;
        make_empty_folder(folder)?;
        write_json(
            &folder.join("config.json"),
            &self.config_file(tokenizer.embeddings(), &ids),
        )?;
        // Checked before anything large is made.
        ModelConfig::from_folder(folder)?;
        write_json(
            &folder.join("generation_config.json"),
            &json!({
                "bos_token_id": ids.begin, "eos_token_id": ids.end, "pad_token_id": ids.padding,
            }),
        )?;
        write_json(
            &folder.join("tokenizer_config.json"),
            &json!({
                "tokenizer_class": "PreTrainedTokenizerFast",
                "bos_token": special::BEGIN, "eos_token": special::END, "pad_token": special::PADDING,
                "additional_special_tokens": special::ROLES,
                "add_bos_token": false, "clean_up_tokenization_spaces": false,
                "model_max_length": self.context,
            }),
        )?;
        let template = folder.join("chat_template.jinja");
        std::fs::write(&template, CHAT_TEMPLATE).map_err(FileError::io(&template))?;
        tokenizer.save(&folder.join("tokenizer.json"))?;
        write_weights(folder, seed)
    }

    fn config_file(&self, vocabulary: usize, ids: &Ids) -> serde_json::Value {
        json!({
            "architectures": [Architecture::Qwen3.class()],
            "model_type": Architecture::Qwen3.name(),
            "vocab_size": vocabulary,
            "hidden_size": self.hidden,
            "intermediate_size": self.intermediate,
            "num_hidden_layers": self.layers,
            "num_attention_heads": self.heads,
            "num_key_value_heads": self.kv_heads,
            "head_dim": self.head_dim,
            "hidden_act": "silu",
            "max_position_embeddings": self.context,
            "rms_norm_eps": 1e-6,
            "rope_theta": 10_000.0,
            "attention_bias": false,
            "attention_dropout": 0.0,
            "use_sliding_window": false,
            "tie_word_embeddings": self.tied,
            "initializer_range": DEVIATION,
            "bos_token_id": ids.begin,
            "eos_token_id": ids.end,
            "pad_token_id": ids.padding,
            "dtype": "float32",
        })
    }
}

/// Writes weights drawn from `seed`, as [`TinyQwen3Config::write`] draws them, beside the `config.json` of a
/// folder, whatever its sizes.
///
/// # Errors
///
/// [`FileError`] when the configuration does not read or the file cannot be written.
pub fn write_weights(folder: &Path, seed: u64) -> Result<(), FileError> {
    let config = ModelConfig::from_folder(folder)?;
    write_tensors(&folder.join(SINGLE), draw(&config, seed), &[])
}

struct Ids {
    begin: u32,
    end: u32,
    padding: u32,
}

impl Ids {
    fn of(tokenizer: &Tokenizer, folder: &Path) -> Result<Self, FileError> {
        let id = |token: &str| {
            tokenizer.id(token).ok_or_else(|| {
                let missing = format!("the tokenizer has no token `{token}`: take one made for new models");
                FileError::content(&folder.join("tokenizer.json"), missing)
            })
        };
        for token in special::ROLES {
            id(token)?;
        }
        Ok(Self {
            begin: id(special::BEGIN)?,
            end: id(special::END)?,
            padding: id(special::PADDING)?,
        })
    }
}

/// New weights by name. Each tensor has a stream of its own, named after it.
fn draw(config: &ModelConfig, seed: u64) -> Vec<(String, Stored<Flex>)> {
    let names = Names::TEXT;
    let streams = Streams::new(seed);
    let matrix = |name: String, shape: [usize; 2], deviation: f64| {
        let mut stream = streams.stream(&name, 0, 0);
        let numbers: Vec<f32> = (0..shape[0] * shape[1])
            .map(|_| (deviation * normal(&mut stream)) as f32)
            .collect();
        let tensor = Tensor::from_data(TensorData::new(numbers, shape), &FlexDevice);
        (name, Stored::matrix(tensor))
    };
    let ones = |name: String, width: usize| (name, Stored::vector(Tensor::ones([width], &FlexDevice)));

    let table = [config.vocabulary, config.hidden];
    let mut tensors = vec![
        matrix(names.embedding(), table, DEVIATION),
        ones(names.norm(), config.hidden),
    ];
    if !config.tied {
        tensors.push(matrix(names.head().to_owned(), table, DEVIATION));
    }
    let residual = DEVIATION / (2.0 * config.layers() as f64).sqrt();
    for layer in 0..config.layers() {
        let mut norms = vec![
            ("input_layernorm", config.hidden),
            ("post_attention_layernorm", config.hidden),
        ];
        if config.architecture.normalises_heads() {
            norms.extend([
                ("self_attn.q_norm", config.head_dim),
                ("self_attn.k_norm", config.head_dim),
            ]);
        }
        for (name, width) in norms {
            tensors.push(ones(names.layer(layer, name), width));
        }
        for projection in Projection::ALL {
            let deviation = match projection {
                Projection::Output | Projection::Down => residual,
                _ => DEVIATION,
            };
            let name = names.projection(layer, projection);
            tensors.push(matrix(name, projection.shape(config), deviation));
        }
    }
    tensors
}

#[cfg(test)]
mod tests {
    use burn_tensor::FloatDType;
    use tempfile::TempDir;

    use super::*;
    use crate::chat::{ChatTemplate, Message};
    use crate::decoder::Decoder;
    use crate::generate::{Generation, GenerationRow};
    use crate::token_sampling::Sampling;

    const TINY: TinyQwen3Config = TinyQwen3Config {
        hidden: 32,
        layers: 2,
        heads: 4,
        kv_heads: 2,
        head_dim: 8,
        intermediate: 48,
        context: 128,
        tied: true,
    };

    fn write(config: TinyQwen3Config, seed: u64) -> TempDir {
        let folder = TempDir::new().expect("a folder");
        let tokenizer = Tokenizer::of_bytes().expect("builds");
        config.write(folder.path(), &tokenizer, seed).expect("writes");
        folder
    }

    fn weights(folder: &TempDir) -> Vec<u8> {
        std::fs::read(folder.path().join(SINGLE)).expect("reads")
    }

    fn load(folder: &TempDir) -> Decoder<Flex> {
        Decoder::from_folder(folder.path(), FloatDType::F32, &FlexDevice).expect("loads")
    }

    fn deviation(tensor: &Tensor<Flex, 2>) -> f64 {
        let numbers: Vec<f32> = tensor.to_data().into_vec().expect("32-bit numbers");
        let squares: f64 = numbers.iter().map(|number| f64::from(*number).powi(2)).sum();
        (squares / numbers.len() as f64).sqrt()
    }

    #[test]
    fn it_loads_and_answers_like_any_other_model() {
        for tied in [true, false] {
            let folder = write(TinyQwen3Config { tied, ..TINY }, 1);
            let model = load(&folder);
            assert_eq!(model.config().vocabulary, 262);
            assert_eq!(model.config().stop_tokens, [257]);
            let tokenizer = Tokenizer::from_folder(folder.path(), 262).expect("reads");
            let settings = Generation {
                sampling: Sampling::default(),
                max_new_tokens: 5,
                stop_tokens: vec![],
                share_prefixes: true,
            };
            let prompt = tokenizer.encode("<|bos|>hello").expect("encodes");
            let rows = [GenerationRow { prompt, seed: 3 }];
            let answers = model.generate(None, &rows, &settings).expect("valid");
            assert_eq!(answers[0].tokens.len(), 5);
        }
    }

    #[test]
    fn weights_follow_from_the_seed() {
        assert_eq!(weights(&write(TINY, 4)), weights(&write(TINY, 4)));
        assert_ne!(weights(&write(TINY, 4)), weights(&write(TINY, 5)));
    }

    #[test]
    fn weights_have_their_deviations() {
        let folder = write(
            TinyQwen3Config {
                hidden: 96,
                intermediate: 256,
                ..TINY
            },
            2,
        );
        let model = load(&folder);
        assert!((deviation(&model.embedding) - 0.02).abs() < 0.001);
        for layer in &model.layers {
            for projection in Projection::ALL {
                let expected = match projection {
                    Projection::Output | Projection::Down => 0.01,
                    _ => 0.02,
                };
                let found = deviation(&layer.projections[projection as usize]);
                assert!((found / expected - 1.0).abs() < 0.1, "{projection:?}: {found}");
            }
        }
    }

    #[test]
    fn conversations_are_text_between_special_tokens() {
        let folder = write(TINY, 0);
        let chat = ChatTemplate::from_folder(folder.path()).expect("reads");
        let mut messages = vec![Message::new("system", " a\n"), Message::new("user", "b")];
        let asked = chat.render(&messages, true, Some(false)).expect("renders");
        assert_eq!(asked, "<|bos|><|system|> a\n<|user|>b<|assistant|>");
        messages.push(Message::new("assistant", "c"));
        let answered = chat.render(&messages, false, Some(false)).expect("renders");
        assert_eq!(answered, format!("{asked}c<|eos|>"));
    }

    #[test]
    fn what_does_not_fit_together_is_refused() {
        let tokenizer = Tokenizer::of_bytes().expect("builds");
        let refused = |config: TinyQwen3Config, part: &str| {
            let folder = TempDir::new().expect("a folder");
            let why = config
                .write(folder.path(), &tokenizer, 0)
                .expect_err("must be refused");
            assert!(why.to_string().contains(part), "{why}");
        };
        refused(TinyQwen3Config { kv_heads: 3, ..TINY }, "num_key_value_heads");
        refused(TinyQwen3Config { head_dim: 7, ..TINY }, "head_dim");
        refused(TinyQwen3Config { layers: 0, ..TINY }, "num_hidden_layers");
        let folder = write(TINY, 0);
        let again = TINY.write(folder.path(), &tokenizer, 0).expect_err("not empty");
        assert!(again.to_string().contains("not empty"), "{again}");
    }
}
