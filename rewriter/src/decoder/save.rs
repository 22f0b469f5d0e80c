//! A decoder written to the files of a model.

use std::path::Path;

use burn_tensor::{DType, Tensor};
use serde_json::{Value, json};

use super::{Decoder, Names};
use crate::backend::PolicyBackend;
use crate::config::read_json;
use crate::error::FileError;
use crate::lora::Projection;
use crate::store::{Stored, make_empty_folder, write_json, write_tensors};

/// Files that a model needs beside its weights, as far as it has them.
const COMPANIONS: [&str; 4] = [
    "generation_config.json",
    "tokenizer.json",
    "tokenizer_config.json",
    "chat_template.jinja",
];

impl<B: PolicyBackend> Decoder<B> {
    /// Writes the weights into an empty folder, which is made if it is not there, with the configuration
    /// and tokenizer of the folder `source` that the model was read from.
    ///
    /// # Errors
    ///
    /// [`FileError::Content`] when the folder holds anything, which would be mixed with this model, and
    /// [`FileError::Io`] when a file cannot be read or written.
    pub fn save(&self, folder: &Path, source: &Path) -> Result<(), FileError> {
        make_empty_folder(folder)?;
        for name in COMPANIONS {
            let from = source.join(name);
            if from.exists() {
                std::fs::copy(&from, folder.join(name)).map_err(FileError::io(&from))?;
            }
        }
        write_json(&folder.join("config.json"), &self.written_config(source)?)?;
        write_tensors(&folder.join("model.safetensors"), self.named_tensors(), &[])
    }

    /// The source's `config.json`, or its text model's, with the type of these weights.
    fn written_config(&self, source: &Path) -> Result<Value, FileError> {
        let mut config = read_json(&source.join("config.json"))?;
        if let Some(text) = config.get_mut("text_config").map(Value::take) {
            config = text;
            config["architectures"] = json!([self.config().architecture.class()]);
            // Of these two the table around it may have decided.
            config["model_type"] = json!(self.config().architecture.name());
            config["tie_word_embeddings"] = json!(self.config().tied);
        }
        let number_type = match self.embedding.dtype() {
            DType::F16 => "float16",
            DType::BF16 => "bfloat16",
            DType::F64 => "float64",
            _ => "float32",
        };
        let key = if config.get("torch_dtype").is_some() {
            "torch_dtype"
        } else {
            "dtype"
        };
        config[key] = json!(number_type);
        Ok(config)
    }

    fn named_tensors(&self) -> Vec<(String, Stored<B>)> {
        let names = Names::TEXT;
        let mut named = vec![
            (names.embedding(), Stored::matrix(self.embedding.clone())),
            (names.norm(), Stored::vector(self.norm.clone())),
        ];
        if let Some(head) = &self.head {
            named.push((names.head().to_owned(), Stored::matrix(head.clone())));
        }
        for (index, layer) in self.layers.iter().enumerate() {
            let mut vector = |name: &str, tensor: &Tensor<B, 1>| {
                named.push((names.layer(index, name), Stored::vector(tensor.clone())));
            };
            vector("input_layernorm", &layer.attention_norm);
            vector("post_attention_layernorm", &layer.feed_forward_norm);
            if let Some([queries, keys]) = &layer.head_norms {
                vector("self_attn.q_norm", queries);
                vector("self_attn.k_norm", keys);
            }
            for projection in Projection::ALL {
                let weight = layer.projections[projection as usize].clone();
                named.push((names.projection(index, projection), Stored::matrix(weight)));
            }
        }
        named
    }
}
