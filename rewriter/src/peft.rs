//! Adapters in PEFT's layout, which other trainers and servers such as vLLM read.

use std::path::Path;

use burn_tensor::FloatDType;
use serde::Serialize;
use serde_json::{Map, Value};

use crate::backend::PolicyBackend;
use crate::config::{ModelConfig, Table, read_json};
use crate::decoder::Names;
use crate::error::FileError;
use crate::lora::{Adapter, LoraConfig, LowRank, Projection};
use crate::store::{self, Stored};
use crate::weights::Weights;

/// The file that says what an adapter is.
pub const CONFIG: &str = "adapter_config.json";
/// The entry of [`CONFIG`] that names the model an adapter belongs to.
pub(crate) const BASE_MODEL: &str = "base_model_name_or_path";
/// The file of its matrices.
pub const WEIGHTS: &str = "adapter_model.safetensors";
/// What PEFT puts before a module's path.
const PREFIX: &str = "base_model.model.";

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
    #[serde(skip_serializing_if = "Option::is_none")]
    exclude_modules: Option<&'static str>,
    use_rslora: bool,
    bias: &'static str,
    fan_in_fan_out: bool,
    inference_mode: bool,
}

/// The modules of a multimodal model that are called like the decoder's projections and are none.
const OTHER_MODULES: &str = ".*(vision_tower|multi_modal_projector).*";

/// Settings that do not change what an adapter computes, or are read on their own. Which modules are
/// excluded shows in the tensors that are there.
const HARMLESS: [&str; 22] = [
    "auto_mapping",
    BASE_MODEL,
    "bias",
    "ensure_weight_tying",
    "eva_config",
    "exclude_modules",
    "inference_mode",
    "init_lora_weights",
    "layers_pattern",
    "lora_alpha",
    "lora_dropout",
    "megatron_config",
    "megatron_core",
    "peft_type",
    "peft_version",
    "qalora_group_size",
    "r",
    "revision",
    "runtime_config",
    "target_modules",
    "task_type",
    "use_rslora",
];

/// Kinds of `init_lora_weights` that leave the base model's weights as they are; others, such as pissa
/// and olora, subtract the first update from them.
const PLAIN_STARTS: [&str; 3] = ["gaussian", "eva", "orthogonal"];

impl LoraConfig {
    /// Reads `adapter_config.json` of an adapter's folder.
    ///
    /// # Errors
    ///
    /// The file is missing or does not read, or has a setting that is not supported and in use.
    pub fn from_folder(folder: &Path) -> Result<Self, FileError> {
        let path = folder.join(CONFIG);
        if !path.exists() {
            return Err(FileError::Missing {
                folder: folder.to_owned(),
                file: CONFIG,
            });
        }
        Self::from_value(&read_json(&path)?).map_err(|why| FileError::content(&path, why))
    }

    fn from_value(value: &Value) -> Result<Self, String> {
        let entries = value.as_object().ok_or("the file must hold an object")?;
        let table = Table::new("", entries);
        let missing = |name: &str| format!("`{name}` is missing");
        let kind: String = table.get("peft_type")?.ok_or_else(|| missing("peft_type"))?;
        if kind != "LORA" {
            return Err(format!("`peft_type` is {kind}: only LORA is supported"));
        }
        refuse_unsupported(entries)?;
        let modules = entries
            .get("target_modules")
            .ok_or_else(|| missing("target_modules"))?;
        let config = Self {
            rank: table.get("r")?.ok_or_else(|| missing("r"))?,
            alpha: table.get("lora_alpha")?.ok_or_else(|| missing("lora_alpha"))?,
            dropout: table.get("lora_dropout")?.unwrap_or(0.0),
            targets: targets(modules)?,
            rank_stabilised: table.get("use_rslora")?.unwrap_or(false),
        };
        config.check().map_err(|why| why.to_string())?;
        Ok(config)
    }
}

/// # Errors
///
/// Names the first setting in use by which the adapter would compute something else.
fn refuse_unsupported(entries: &Map<String, Value>) -> Result<(), String> {
    for (name, value) in entries {
        if is_used(value) && !HARMLESS.contains(&name.as_str()) {
            return Err(format!(
                "`{name}` is {value}, which is not supported: train or merge the adapter without it"
            ));
        }
    }
    if let Some(bias) = entries
        .get("bias")
        .filter(|bias| is_used(bias) && *bias != "none")
    {
        return Err(format!(
            "`bias` is {bias}, which is not supported: it must be none"
        ));
    }
    match entries.get("init_lora_weights") {
        Some(Value::String(start)) if !PLAIN_STARTS.contains(&start.as_str()) => Err(format!(
            "`init_lora_weights` is {start}, which changes the base model's weights: convert the adapter to plain LoRA when saving it"
        )),
        _ => Ok(()),
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

/// The names of A and B in files, for the names that the model's own tensors have.
fn tensor_names(names: Names, layer: usize, projection: Projection) -> [String; 2] {
    let path = names.projection(layer, projection);
    let path = path.strip_suffix(".weight").unwrap_or(&path);
    ["A", "B"].map(|part| format!("{PREFIX}{path}.lora_{part}.weight"))
}

/// The names that a file uses. An adapter of a text model is found under a multimodal one's names, too,
/// and the other way round: its matrices are the same.
fn names_in(weights: &Weights, targets: &[Projection], multimodal: bool) -> Names {
    let own = names_of(multimodal);
    let is_there = |names: Names| {
        let first = targets.first();
        first.is_some_and(|target| weights.contains(&tensor_names(names, 0, *target)[0]))
    };
    [own, Names::INNER, Names::FORMER_INNER, Names::TEXT]
        .into_iter()
        .find(|names| is_there(*names))
        .unwrap_or(own)
}

fn names_of(multimodal: bool) -> Names {
    if multimodal { Names::INNER } else { Names::TEXT }
}

impl<B: PolicyBackend> Adapter<B> {
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
        let names = names_in(&weights, &config.targets, model.multimodal);
        let adapter = Self::build(config, model, |layer, projection| {
            let [outputs, inputs] = projection.shape(model);
            let [a, b] = tensor_names(names, layer, projection);
            Ok::<_, FileError>(LowRank {
                a: weights.read(&a, [config.rank, inputs], FloatDType::F32, device)?,
                b: weights.read(&b, [outputs, config.rank], FloatDType::F32, device)?,
            })
        })?;
        weights.finish("", "LoRA-adapted")?;
        Ok(adapter)
    }

    /// Writes the adapter into a folder, which is made if it is not there, each file whole or not at
    /// all. `base_model` is the name or path of the model that it belongs to.
    ///
    /// Below a multimodal model the modules have the names of transformers from 4.52 on, which vLLM
    /// reads as well.
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
            exclude_modules: self.multimodal.then_some(OTHER_MODULES),
            use_rslora: config.rank_stabilised,
            bias: "none",
            fan_in_fan_out: false,
            inference_mode: true,
        };
        store::write_json(&folder.join(CONFIG), &written)?;
        store::write_tensors(&folder.join(WEIGHTS), self.named_tensors(), &[])
    }

    /// A and B of all targets with their names in files.
    fn named_tensors(&self) -> Vec<(String, Stored<B>)> {
        let matrices = self.matrices().map(|matrix| Stored::matrix(matrix.clone()));
        self.matrix_names().into_iter().zip(matrices).collect()
    }

    /// What A and B of all targets are called in files, in the order of [`matrices`](Self::matrices).
    pub(crate) fn matrix_names(&self) -> Vec<String> {
        let names = names_of(self.multimodal);
        self.updates()
            .flat_map(|(layer, projection, _)| tensor_names(names, layer, projection))
            .collect()
    }
}
