//! Tensors written to safetensors files, one at a time.

use std::borrow::Cow;
use std::path::Path;

use burn_tensor::backend::Backend;
use burn_tensor::{DType, Tensor};
use safetensors::{Dtype, View};
use serde::Serialize;
use serde_json::{Value, json};

use crate::backend::PolicyBackend;
use crate::config::read_json;
use crate::decoder::{Decoder, Names};
use crate::error::FileError;
use crate::lora::Projection;

/// A tensor on its way into a file; its bytes are fetched when their turn comes.
#[derive(Debug, Clone)]
pub struct Stored<B: Backend> {
    flat: Tensor<B, 1>,
    shape: Vec<usize>,
    number_type: Dtype,
}

impl<B: Backend> Stored<B> {
    /// A vector.
    pub fn vector(tensor: Tensor<B, 1>) -> Self {
        let shape = tensor.dims().to_vec();
        Self::of(tensor, shape)
    }

    /// A matrix.
    pub fn matrix(tensor: Tensor<B, 2>) -> Self {
        let shape = tensor.dims().to_vec();
        Self::of(tensor.flatten(0, 1), shape)
    }

    fn of(flat: Tensor<B, 1>, shape: Vec<usize>) -> Self {
        let number_type = match flat.dtype() {
            DType::F16 => Dtype::F16,
            DType::BF16 => Dtype::BF16,
            DType::F64 => Dtype::F64,
            _ => Dtype::F32,
        };
        Self {
            flat,
            shape,
            number_type,
        }
    }
}

impl<B: Backend> View for Stored<B> {
    fn dtype(&self) -> Dtype {
        self.number_type
    }

    fn shape(&self) -> &[usize] {
        &self.shape
    }

    fn data(&self) -> Cow<'_, [u8]> {
        Cow::Owned(self.flat.to_data().as_bytes().to_vec())
    }

    fn data_len(&self) -> usize {
        self.flat.dims()[0] * self.flat.dtype().size()
    }
}

pub(crate) fn write_tensors<B: Backend>(
    path: &Path,
    tensors: Vec<(String, Stored<B>)>,
) -> Result<(), FileError> {
    let format = [("format".to_owned(), "pt".to_owned())].into();
    safetensors::serialize_to_file(tensors, Some(format), path).map_err(|why| FileError::content(path, why))
}

pub(crate) fn write_json(path: &Path, content: &impl Serialize) -> Result<(), FileError> {
    let text = serde_json::to_string_pretty(content).map_err(|why| FileError::content(path, why))?;
    std::fs::write(path, text + "\n").map_err(FileError::io(path))
}

/// Makes a folder for a model, whose files must not be mixed with another's.
///
/// # Errors
///
/// The folder cannot be made, or holds anything.
pub(crate) fn make_empty_folder(folder: &Path) -> Result<(), FileError> {
    std::fs::create_dir_all(folder).map_err(FileError::io(folder))?;
    let mut there = std::fs::read_dir(folder).map_err(FileError::io(folder))?;
    if there.next().is_some() {
        return Err(FileError::content(
            folder,
            "the folder is not empty: choose a new one",
        ));
    }
    Ok(())
}

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
        write_tensors(&folder.join("model.safetensors"), self.named_tensors())
    }

    /// The source's `config.json`, or its text model's, with the type of these weights.
    fn written_config(&self, source: &Path) -> Result<Value, FileError> {
        let mut config = read_json(&source.join("config.json"))?;
        if let Some(text) = config.get_mut("text_config").map(Value::take) {
            config = text;
            config["architectures"] = json!([self.config().architecture.class()]);
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
