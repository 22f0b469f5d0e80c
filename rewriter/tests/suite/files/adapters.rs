//! Adapters in PEFT's layout.

use std::fs;
use std::path::Path;

use burn_flex::Flex;
use capo_rewriter::decoder::Decoder;
use capo_rewriter::lora::{Adapter, LoraConfig, Projection};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::load;
use super::model::ModelFiles;

fn adapter(model: &Decoder<Flex>, lora: &LoraConfig) -> Adapter<Flex> {
    Adapter::new(lora, model.config(), 7, &model.device()).expect("valid")
}

fn read(folder: &Path, model: &Decoder<Flex>) -> Result<Adapter<Flex>, String> {
    Adapter::from_folder(folder, model.config(), &model.device()).map_err(|why| why.to_string())
}

fn config(folder: &Path) -> Value {
    let text = fs::read_to_string(folder.join("adapter_config.json")).expect("read");
    serde_json::from_str(&text).expect("JSON")
}

/// The names of an adapter's tensors, sorted.
fn names(folder: &Path) -> Vec<String> {
    let bytes = fs::read(folder.join("adapter_model.safetensors")).expect("read");
    let tensors = safetensors::SafeTensors::deserialize(&bytes).expect("safetensors");
    let mut names: Vec<_> = tensors.names().into_iter().map(str::to_owned).collect();
    names.sort();
    names
}

fn assert_alike(one: &Adapter<Flex>, other: &Adapter<Flex>) {
    assert_eq!(one.config(), other.config());
    for (one, other) in one.matrices().zip(other.matrices()) {
        one.to_data().assert_eq(&other.to_data(), true);
    }
}

#[test]
fn adapters_keep_to_their_targets() {
    let folder = ModelFiles::new().write();
    let model = load(folder.path()).expect("loads");
    let lora = LoraConfig {
        targets: vec![Projection::Down, Projection::Query],
        dropout: 0.05,
        rank_stabilised: true,
        ..LoraConfig::all(2, 8.0)
    };
    let adapter = adapter(&model, &lora);
    assert_eq!(adapter.updates().count(), 4);
    let saved = folder.path().join("adapter");
    adapter.save(&saved, "tiny").expect("written");
    let again = read(&saved, &model).expect("loads");
    assert_eq!(again.config().targets, [Projection::Query, Projection::Down]);
    assert_eq!(again.config().rank_stabilised, lora.rank_stabilised);
    for (one, other) in adapter.matrices().zip(again.matrices()) {
        one.to_data().assert_eq(&other.to_data(), true);
    }
}

#[test]
fn settings_that_would_compute_something_else_are_named() {
    let folder = ModelFiles::new().write();
    let model = load(folder.path()).expect("loads");
    let lora = LoraConfig {
        targets: vec![Projection::Query, Projection::Down],
        ..LoraConfig::all(2, 8.0)
    };
    let saved = folder.path().join("adapter");
    adapter(&model, &lora).save(&saved, "tiny").expect("written");
    let whole = config(&saved);
    let edited = |key: &str, value: Value| {
        let mut changed = whole.clone();
        changed[key] = value;
        fs::write(saved.join("adapter_config.json"), changed.to_string()).expect("written");
        read(&saved, &model)
    };
    for (key, value, part) in [
        ("r", json!(3), "[2, 8]"),
        ("r", json!(0), "rank"),
        ("r", json!(-1), "`r`"),
        ("lora_alpha", json!(0), "alpha"),
        ("lora_dropout", json!(1.0), "dropout"),
        ("target_modules", json!(["q_proj"]), "down_proj"),
        ("target_modules", json!(["c_attn"]), "c_attn"),
        ("target_modules", json!([]), "targets"),
        ("peft_type", json!("IA3"), "IA3"),
        ("use_dora", json!(true), "use_dora"),
        (
            "alora_invocation_tokens",
            json!([5, 6]),
            "alora_invocation_tokens",
        ),
        ("bias", json!("lora_only"), "bias"),
        ("lora_bias", json!(true), "lora_bias"),
        ("rank_pattern", json!({ "q_proj": 4 }), "rank_pattern"),
        ("alpha_pattern", json!({ "q_proj": 4 }), "alpha_pattern"),
        ("modules_to_save", json!(["lm_head"]), "modules_to_save"),
        ("fan_in_fan_out", json!(true), "fan_in_fan_out"),
        ("layers_to_transform", json!([0]), "layers_to_transform"),
        ("layer_replication", json!([[0, 2]]), "layer_replication"),
        ("target_parameters", json!(["experts"]), "target_parameters"),
        ("trainable_token_indices", json!([1]), "trainable_token_indices"),
        ("use_qalora", json!(true), "use_qalora"),
        ("use_something_new", json!(true), "use_something_new"),
        ("init_lora_weights", json!("pissa_niter_4"), "pissa_niter_4"),
        ("init_lora_weights", json!("olora"), "olora"),
        ("init_lora_weights", json!("loftq"), "loftq"),
    ] {
        let message = edited(key, value.clone()).expect_err("must be refused");
        assert!(message.contains(part), "{key} {value}: {message}");
    }
    for (key, value) in [
        ("init_lora_weights", json!(true)),
        ("init_lora_weights", json!("gaussian")),
        ("use_dora", json!(false)),
        ("rank_pattern", json!({})),
        ("layers_to_transform", Value::Null),
        ("megatron_core", json!("megatron.core")),
        ("peft_version", json!("0.21.2")),
        ("qalora_group_size", json!(16)),
        ("inference_mode", json!(false)),
    ] {
        edited(key, value.clone()).unwrap_or_else(|why| panic!("{key} {value}: {why}"));
    }
}

/// A Ministral 3 as the hub has it, below a multimodal model.
fn ministral3(prefix: &'static str) -> TempDir {
    ModelFiles::new()
        .configure(&json!({ "model_type": "ministral3" }))
        .without_head_norms()
        .inside(prefix)
        .add("vision_tower.patch.weight", &[4, 4])
        .write()
}

#[test]
fn adapters_of_a_multimodal_model_have_pefts_names() {
    let folder = ministral3("language_model.");
    let model = load(folder.path()).expect("loads");
    let lora = LoraConfig {
        targets: vec![Projection::Value, Projection::Up],
        ..LoraConfig::all(2, 8.0)
    };
    let adapter = adapter(&model, &lora);
    let saved = folder.path().join("adapter");
    adapter.save(&saved, "tiny").expect("written");
    let mut expected = Vec::new();
    for layer in 0..2 {
        for module in ["mlp.up_proj", "self_attn.v_proj"] {
            for part in ["A", "B"] {
                expected.push(format!(
                    "base_model.model.model.language_model.layers.{layer}.{module}.lora_{part}.weight"
                ));
            }
        }
    }
    assert_eq!(names(&saved), expected);
    // The vision tower has modules of the same names.
    let excluded = config(&saved)["exclude_modules"].clone();
    assert_eq!(excluded, ".*(vision_tower|multi_modal_projector).*");
    assert_alike(&read(&saved, &model).expect("loads"), &adapter);

    // As transformers had them before 4.52, and as of the text model alone.
    for prefix in ["language_model.model.", "model."] {
        rename(&saved, prefix);
        assert_alike(&read(&saved, &model).expect("loads"), &adapter);
        fs::remove_dir_all(&saved).expect("removed");
        adapter.save(&saved, "tiny").expect("written");
    }
}

/// Gives the tensors the prefix instead of `model.language_model.`.
fn rename(folder: &Path, prefix: &str) {
    let file = folder.join("adapter_model.safetensors");
    let bytes = fs::read(&file).expect("read");
    let tensors = safetensors::SafeTensors::deserialize(&bytes).expect("safetensors");
    let renamed = tensors
        .tensors()
        .into_iter()
        .map(|(name, view)| (name.replace("model.language_model.", prefix), view));
    let bytes = safetensors::serialize(renamed, None).expect("serialised");
    fs::write(file, bytes).expect("written");
}

#[test]
fn adapters_of_a_text_model_have_no_names_of_another() {
    let folder = ModelFiles::new().write();
    let model = load(folder.path()).expect("loads");
    let saved = folder.path().join("adapter");
    adapter(&model, &LoraConfig::all(2, 8.0))
        .save(&saved, "tiny")
        .expect("written");
    assert_eq!(
        names(&saved)[0],
        "base_model.model.model.layers.0.mlp.down_proj.lora_A.weight"
    );
    assert_eq!(config(&saved).get("exclude_modules"), None);
}
