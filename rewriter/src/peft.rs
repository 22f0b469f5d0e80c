//! Adapters in PEFT's layout, which other trainers and servers such as vLLM read.

use std::collections::BTreeMap;
use std::path::Path;

use burn_tensor::FloatDType;
use burn_tensor::backend::Backend;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::config::{ModelConfig, read_json};
use crate::decoder::Names;
use crate::error::FileError;
use crate::lora::{Adapter, LoraConfig, LowRank, Projection};
use crate::store::{self, Stored};
use crate::weights::Weights;

const CONFIG: &str = "adapter_config.json";
const WEIGHTS: &str = "adapter_model.safetensors";
/// What PEFT puts before a module's path.
const PREFIX: &str = "base_model.model.";

/// The parts of `adapter_config.json` that decide what an adapter computes.
#[derive(Deserialize)]
struct ConfigFile {
    peft_type: String,
    r: usize,
    lora_alpha: f64,
    #[serde(default)]
    lora_dropout: f64,
    target_modules: Value,
    #[serde(default)]
    use_rslora: bool,
    #[serde(flatten)]
    rest: BTreeMap<String, Value>,
}

/// What is written; everything else has PEFT's default.
#[derive(Serialize)]
struct WrittenConfig<'a> {
    peft_type: &'static str,
    task_type: &'static str,
    base_model_name_or_path: &'a str,
    r: usize,
    lora_alpha: f64,
    lora_dropout: f64,
    target_modules: Vec<&'static str>,
    use_rslora: bool,
    bias: &'static str,
    fan_in_fan_out: bool,
    inference_mode: bool,
}

/// Settings that change what is computed and must not be used.
const UNSUPPORTED: [&str; 8] = [
    "rank_pattern",
    "alpha_pattern",
    "layers_to_transform",
    "layer_replication",
    "modules_to_save",
    "use_dora",
    "fan_in_fan_out",
    "lora_bias",
];

impl LoraConfig {
    /// Reads `adapter_config.json` of an adapter's folder.
    ///
    /// # Errors
    ///
    /// The file is missing or does not read, or the adapter is of a kind that is not supported.
    pub fn from_folder(folder: &Path) -> Result<Self, FileError> {
        let path = folder.join(CONFIG);
        if !path.exists() {
            return Err(FileError::Missing {
                folder: folder.to_owned(),
                file: CONFIG,
            });
        }
        let refuse = |why: String| FileError::content(&path, why);
        let file: ConfigFile =
            serde_json::from_value(read_json(&path)?).map_err(|why| refuse(why.to_string()))?;
        if file.peft_type != "LORA" {
            return Err(refuse(format!(
                "`peft_type` is {}: only LORA is supported",
                file.peft_type
            )));
        }
        for name in UNSUPPORTED {
            if file.rest.get(name).is_some_and(is_used) {
                return Err(refuse(format!("`{name}` is used, which is not supported")));
            }
        }
        if file.rest.get("bias").is_some_and(|bias| bias != "none") {
            return Err(refuse("`bias` must be none".into()));
        }
        let config = Self {
            rank: file.r,
            alpha: file.lora_alpha,
            dropout: file.lora_dropout,
            targets: targets(&file.target_modules).map_err(refuse)?,
            rank_stabilised: file.use_rslora,
        };
        config.check().map_err(|why| refuse(why.to_string()))?;
        Ok(config)
    }
}

fn is_used(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(false) => false,
        Value::Array(items) => !items.is_empty(),
        Value::Object(items) => !items.is_empty(),
        _ => true,
    }
}

/// `target_modules` is a list of names or the text `all-linear`.
fn targets(modules: &Value) -> Result<Vec<Projection>, String> {
    let unknown = |name: &Value| {
        format!("`target_modules` has {name}: it must be all-linear or name projections such as q_proj")
    };
    match modules {
        Value::String(all) if all == "all-linear" => Ok(Projection::ALL.to_vec()),
        Value::Array(names) => {
            let mut targets = names
                .iter()
                .map(|name| {
                    Projection::ALL
                        .into_iter()
                        .find(|projection| name == projection.name())
                        .ok_or_else(|| unknown(name))
                })
                .collect::<Result<Vec<_>, _>>()?;
            targets.sort_unstable();
            targets.dedup();
            Ok(targets)
        }
        other => Err(unknown(other)),
    }
}

/// The names of A and B in files.
pub(crate) fn tensor_names(layer: usize, projection: Projection) -> [String; 2] {
    let path = Names::TEXT.projection(layer, projection);
    let path = path.strip_suffix(".weight").unwrap_or(&path);
    ["A", "B"].map(|part| format!("{PREFIX}{path}.lora_{part}.weight"))
}

impl<B: Backend> Adapter<B> {
    /// Reads the adapter in a folder, trained on a model of the configuration `model`; its numbers
    /// become 32-bit.
    ///
    /// # Errors
    ///
    /// As [`LoraConfig::from_folder`], and everything that can be wrong with safetensors files.
    pub fn from_folder(folder: &Path, model: &ModelConfig, device: &B::Device) -> Result<Self, FileError> {
        let config = LoraConfig::from_folder(folder)?;
        Self::from_file(&folder.join(WEIGHTS), &config, model, device)
    }

    /// Reads A and B of all targets from a safetensors file.
    ///
    /// # Errors
    ///
    /// Everything that can be wrong with a safetensors file.
    pub fn from_file(
        file: &Path,
        config: &LoraConfig,
        model: &ModelConfig,
        device: &B::Device,
    ) -> Result<Self, FileError> {
        let mut weights = Weights::open_file(file)?;
        let adapter = Self::build(config, model, |layer, projection| {
            let [outputs, inputs] = projection.shape(model);
            let [a, b] = tensor_names(layer, projection);
            Ok::<_, FileError>(LowRank {
                a: weights.read(&a, [config.rank, inputs], FloatDType::F32, device)?,
                b: weights.read(&b, [outputs, config.rank], FloatDType::F32, device)?,
            })
        })?;
        weights.finish("", "LoRA-adapted")?;
        Ok(adapter)
    }

    /// Writes the adapter into a folder, which is made if it is not there. `base_model` is the name
    /// or path of the model that it belongs to.
    ///
    /// # Errors
    ///
    /// [`FileError::Io`] when a file cannot be written.
    pub fn save(&self, folder: &Path, base_model: &str) -> Result<(), FileError> {
        std::fs::create_dir_all(folder).map_err(FileError::io(folder))?;
        let config = self.config();
        let mut targets = config.targets.clone();
        targets.sort_unstable();
        let written = WrittenConfig {
            peft_type: "LORA",
            task_type: "CAUSAL_LM",
            base_model_name_or_path: base_model,
            r: config.rank,
            lora_alpha: config.alpha,
            lora_dropout: config.dropout,
            target_modules: targets.into_iter().map(Projection::name).collect(),
            use_rslora: config.rank_stabilised,
            bias: "none",
            fan_in_fan_out: false,
            inference_mode: true,
        };
        store::write_json(&folder.join(CONFIG), &written)?;
        store::write_tensors(&folder.join(WEIGHTS), self.named_tensors())
    }

    /// A and B of all targets with their names in files.
    pub(crate) fn named_tensors(&self) -> Vec<(String, Stored<B>)> {
        self.updates()
            .flat_map(|(layer, projection, LowRank { a, b })| {
                let [a_name, b_name] = tensor_names(layer, projection);
                [
                    (a_name, Stored::matrix(a.clone())),
                    (b_name, Stored::matrix(b.clone())),
                ]
            })
            .collect()
    }
}
