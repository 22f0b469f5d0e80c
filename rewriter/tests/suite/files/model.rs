//! A tiny model's folder, as it should be or not.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use burn_tensor::{bf16, f16};
use safetensors::Dtype;
use safetensors::tensor::TensorView;
use serde_json::{Value, json};
use tempfile::TempDir;

/// How numbers are stored.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Number {
    F32,
    F16,
    BF16,
    I8,
}

pub(crate) struct ModelFiles {
    config: Value,
    shapes: BTreeMap<String, Vec<usize>>,
    number: Number,
    shards: usize,
    prefix: &'static str,
}

impl ModelFiles {
    /// A Qwen3 with tied embeddings: 32 tokens, width 8, 2 layers, 2 heads of 4, 1 key head.
    pub(crate) fn new() -> Self {
        let mut shapes = BTreeMap::from([
            ("model.embed_tokens.weight".to_owned(), vec![32, 8]),
            ("model.norm.weight".to_owned(), vec![8]),
        ]);
        for layer in 0..2 {
            for (name, shape) in [
                ("input_layernorm", vec![8]),
                ("post_attention_layernorm", vec![8]),
                ("self_attn.q_proj", vec![8, 8]),
                ("self_attn.k_proj", vec![4, 8]),
                ("self_attn.v_proj", vec![4, 8]),
                ("self_attn.o_proj", vec![8, 8]),
                ("self_attn.q_norm", vec![4]),
                ("self_attn.k_norm", vec![4]),
                ("mlp.gate_proj", vec![16, 8]),
                ("mlp.up_proj", vec![16, 8]),
                ("mlp.down_proj", vec![8, 16]),
            ] {
                shapes.insert(format!("model.layers.{layer}.{name}.weight"), shape);
            }
        }
        Self {
            config: json!({
                "model_type": "qwen3", "vocab_size": 32, "hidden_size": 8, "intermediate_size": 16,
                "num_hidden_layers": 2, "num_attention_heads": 2, "num_key_value_heads": 1, "head_dim": 4,
                "max_position_embeddings": 64, "rms_norm_eps": 1e-6, "rope_theta": 10_000.0,
                "tie_word_embeddings": true, "hidden_act": "silu",
            }),
            shapes,
            number: Number::F32,
            shards: 1,
            prefix: "",
        }
    }

    pub(crate) fn configure(mut self, changes: &Value) -> Self {
        for (key, value) in changes.as_object().expect("an object") {
            self.config[key] = value.clone();
        }
        self
    }

    pub(crate) fn add(mut self, name: &str, shape: &[usize]) -> Self {
        self.shapes.insert(name.to_owned(), shape.to_vec());
        self
    }

    pub(crate) fn reshape(self, name: &str, shape: &[usize]) -> Self {
        assert!(self.shapes.contains_key(name));
        self.add(name, shape)
    }

    pub(crate) fn remove(mut self, name: &str) -> Self {
        self.shapes.remove(name).expect("a tensor of the model");
        self
    }

    /// As the models have it whose queries and keys are not normalised.
    pub(crate) fn without_head_norms(mut self) -> Self {
        self.shapes
            .retain(|name, _| !name.contains("q_norm") && !name.contains("k_norm"));
        self
    }

    pub(crate) fn stored_as(mut self, number: Number) -> Self {
        self.number = number;
        self
    }

    pub(crate) fn shards(mut self, count: usize) -> Self {
        self.shards = count;
        self
    }

    /// As the text model of a multimodal checkpoint.
    pub(crate) fn inside(mut self, prefix: &'static str) -> Self {
        self.prefix = prefix;
        self.config = json!({ "model_type": "several", "text_config": self.config });
        self
    }

    pub(crate) fn write_config(&self, folder: &Path) {
        fs::write(folder.join("config.json"), self.config.to_string()).expect("written");
    }

    pub(crate) fn write(self) -> TempDir {
        let folder = TempDir::new().expect("a temporary folder");
        self.write_config(folder.path());
        let tensors: Vec<_> = self
            .shapes
            .iter()
            .map(|(name, shape)| {
                let name = if name.starts_with("model.") {
                    format!("{}{name}", self.prefix)
                } else {
                    name.clone()
                };
                let bytes = self.number.bytes(shape.iter().product(), shape.len() == 1);
                (name, shape.clone(), bytes)
            })
            .collect();
        let part = tensors.len().div_ceil(self.shards);
        let mut places = BTreeMap::new();
        for (index, part) in tensors.chunks(part).enumerate() {
            let file = if self.shards == 1 {
                "model.safetensors".to_owned()
            } else {
                format!("model-{:05}-of-{:05}.safetensors", index + 1, self.shards)
            };
            let views: Vec<_> = part
                .iter()
                .map(|(name, shape, bytes)| {
                    let view = TensorView::new(self.number.stored(), shape.clone(), bytes);
                    (name.clone(), view.expect("bytes fit the shape"))
                })
                .collect();
            places.extend(views.iter().map(|(name, _)| (name.clone(), file.clone())));
            safetensors::serialize_to_file(views, None, &folder.path().join(file)).expect("written");
        }
        if self.shards > 1 {
            let index = json!({ "metadata": {}, "weight_map": places }).to_string();
            fs::write(folder.path().join("model.safetensors.index.json"), index).expect("written");
        }
        folder
    }
}

impl Number {
    fn stored(self) -> Dtype {
        match self {
            Self::F32 => Dtype::F32,
            Self::F16 => Dtype::F16,
            Self::BF16 => Dtype::BF16,
            Self::I8 => Dtype::I8,
        }
    }

    /// Small numbers of both signs, or around 1 for a norm.
    fn bytes(self, count: usize, is_norm: bool) -> Vec<u8> {
        let number = |index: usize| {
            let wave = (index as f32 * 1.7 + count as f32).sin();
            if is_norm { 1.0 + 0.25 * wave } else { 0.5 * wave }
        };
        let numbers = (0..count).map(number);
        match self {
            Self::F32 => numbers.flat_map(f32::to_le_bytes).collect(),
            Self::F16 => numbers
                .flat_map(|number| f16::from_f32(number).to_le_bytes())
                .collect(),
            Self::BF16 => numbers
                .flat_map(|number| bf16::from_f32(number).to_le_bytes())
                .collect(),
            Self::I8 => numbers.map(|number| number as u8).collect(),
        }
    }
}
