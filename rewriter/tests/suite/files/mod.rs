//! A model's files as people have them: whole, split, damaged, or of another model.

mod adapters;
mod hub;
mod learning;
mod long;
mod model;
mod whole;

use std::fs;
use std::path::Path;

use burn_flex::{Flex, FlexDevice};
use burn_tensor::{FloatDType, Tensor};
use capo_rewriter::cache::KvCache;
use capo_rewriter::chat::ChatTemplate;
use capo_rewriter::decoder::Decoder;
use capo_rewriter::error::{FileError, RequestError};
use capo_rewriter::generate::{Generation, GenerationRow};
use capo_rewriter::token_sampling::Sampling;
use capo_rewriter::tokenizer::Tokenizer;
use capo_rewriter::tokens::{Padding, Tokens};
use serde_json::json;
use tempfile::TempDir;

use self::model::{ModelFiles, Number};

fn load(folder: &Path) -> Result<Decoder<Flex>, FileError> {
    Decoder::from_folder(folder, FloatDType::F32, &FlexDevice)
}

/// The error of loading, which must hold all of these.
fn refused(folder: &TempDir, parts: &[&str]) {
    let message = load(folder.path()).expect_err("must be refused").to_string();
    for part in parts {
        assert!(message.contains(part), "{message:?} lacks {part:?}");
    }
    assert!(message.lines().count() <= 3, "{message}");
}

fn logits(model: &Decoder<Flex>) -> Vec<f32> {
    let tokens = Tokens::padded(&[vec![1, 2, 3], vec![4]], Padding::Left);
    let hidden = model.hidden(&tokens, None, None).expect("a valid input");
    let logits = model.logits(hidden.flatten(0, 1)).cast(FloatDType::F32);
    logits.into_data().into_vec().expect("32-bit numbers")
}

#[test]
fn every_stored_type_and_any_number_of_shards_load_alike() {
    let expected = logits(&load(ModelFiles::new().write().path()).expect("loads"));
    for number in [Number::F32, Number::F16, Number::BF16] {
        for shards in [1, 3] {
            let folder = ModelFiles::new().stored_as(number).shards(shards).write();
            let found = logits(&load(folder.path()).expect("loads"));
            for (found, expected) in found.iter().zip(&expected) {
                let close = (found - expected).abs() < 0.05;
                assert!(close, "{number:?} in {shards}: {found} {expected}");
            }
        }
    }
}

#[test]
fn a_model_computes_in_the_type_asked_for() {
    let folder = ModelFiles::new().stored_as(Number::BF16).write();
    for number_type in [FloatDType::F32, FloatDType::F16, FloatDType::BF16] {
        let model: Decoder<Flex> =
            Decoder::from_folder(folder.path(), number_type, &FlexDevice).expect("loads");
        assert_eq!(model.number_type(), number_type);
        let settings = Generation {
            sampling: Sampling::GREEDY,
            max_new_tokens: 3,
            stop_tokens: vec![],
            share_prefixes: true,
        };
        let row = GenerationRow {
            prompt: vec![1, 2],
            seed: 0,
        };
        let answers = model
            .generate(None, &[row.clone(), row], &settings)
            .expect("valid");
        assert_eq!(answers[0].tokens.len(), 3);
        assert_eq!(answers[0], answers[1]);
    }
}

#[test]
fn a_head_beside_tied_embeddings_is_ignored() {
    let plain = ModelFiles::new().write();
    let with_head = ModelFiles::new().add("lm_head.weight", &[32, 8]).write();
    let [plain, with_head] = [plain, with_head].map(|folder| logits(&load(folder.path()).expect("loads")));
    assert_eq!(plain, with_head);
}

#[test]
fn a_multimodal_checkpoint_loads_its_text_model() {
    let folder = ModelFiles::new()
        .inside("language_model.")
        .add("vision_tower.patch.weight", &[4, 4])
        .write();
    let plain = ModelFiles::new().write();
    assert_eq!(
        logits(&load(folder.path()).expect("loads")),
        logits(&load(plain.path()).expect("loads"))
    );
}

#[test]
fn a_multimodal_checkpoint_is_written_as_its_text_model() {
    let folder = ModelFiles::new()
        .configure(&json!({ "model_type": "ministral3" }))
        .without_head_norms()
        .inside("language_model.")
        .write();
    let model = load(folder.path()).expect("loads");
    assert!(model.config().multimodal);
    let written = folder.path().join("written");
    model.save(&written, folder.path()).expect("written");
    let again = load(&written).expect("loads");
    assert!(!again.config().multimodal);
    assert_eq!(logits(&again), logits(&model));
}

#[test]
fn a_missing_shard_is_named() {
    let folder = ModelFiles::new().shards(2).write();
    fs::remove_file(folder.path().join("model-00002-of-00002.safetensors")).expect("removed");
    refused(&folder, &["model-00002-of-00002.safetensors", "download"]);
}

#[test]
fn a_truncated_file_is_named_with_its_sizes() {
    let folder = ModelFiles::new().write();
    let file = folder.path().join("model.safetensors");
    let whole = fs::read(&file).expect("read");
    for length in [whole.len() - 7, 100, 5] {
        fs::write(&file, &whole[..length]).expect("written");
        refused(&folder, &["model.safetensors", "truncated", &length.to_string()]);
    }
}

#[test]
fn what_is_not_safetensors_is_named() {
    let folder = ModelFiles::new().write();
    let file = folder.path().join("model.safetensors");
    fs::write(&file, "<html>not found</html>").expect("written");
    refused(&folder, &["model.safetensors", "not a safetensors file"]);
    let header = b"{\"a\": 3}";
    let bytes = [&(header.len() as u64).to_le_bytes()[..], header].concat();
    fs::write(&file, bytes).expect("written");
    refused(&folder, &["model.safetensors", "header"]);
}

#[test]
fn a_tensor_of_the_wrong_shape_is_named_with_both_shapes() {
    let folder = ModelFiles::new()
        .reshape("model.layers.1.mlp.up_proj.weight", &[16, 9])
        .write();
    refused(
        &folder,
        &["model.layers.1.mlp.up_proj.weight", "[16, 9]", "[16, 8]"],
    );
}

#[test]
fn a_missing_tensor_is_named() {
    let folder = ModelFiles::new()
        .remove("model.layers.0.self_attn.q_norm.weight")
        .write();
    refused(&folder, &["model.layers.0.self_attn.q_norm.weight"]);
}

#[test]
fn a_tensor_that_would_be_ignored_is_named() {
    let folder = ModelFiles::new()
        .add("model.layers.0.self_attn.q_proj.bias", &[8])
        .write();
    refused(&folder, &["model.layers.0.self_attn.q_proj.bias", "qwen3"]);
}

#[test]
fn numbers_of_another_type_are_named() {
    let folder = ModelFiles::new().stored_as(Number::I8).write();
    refused(&folder, &["I8", "BF16"]);
}

#[test]
fn an_unknown_architecture_is_named_with_the_known_ones() {
    let folder = ModelFiles::new()
        .configure(&json!({ "model_type": "gpt2" }))
        .write();
    refused(&folder, &["config.json", "gpt2", "qwen3"]);
}

#[test]
fn a_folder_without_a_model_is_named() {
    let folder = TempDir::new().expect("a temporary folder");
    refused(&folder, &["config.json", "layout"]);
    ModelFiles::new().write_config(folder.path());
    refused(&folder, &["model.safetensors"]);
}

#[test]
fn a_tokenizer_of_another_model_is_named() {
    let folder = ModelFiles::new().write();
    let path = folder.path();
    let missing = Tokenizer::from_folder(path, 32)
        .expect_err("none is there")
        .to_string();
    assert!(missing.contains("tokenizer.json"), "{missing}");

    let vocabulary: serde_json::Map<_, _> = (0..40).map(|id| (format!("t{id}"), json!(id))).collect();
    let tokenizer = json!({
        "version": "1.0", "truncation": null, "padding": null, "added_tokens": [], "normalizer": null,
        "pre_tokenizer": null, "post_processor": null, "decoder": null,
        "model": { "type": "WordLevel", "vocab": vocabulary, "unk_token": "t0" },
    });
    fs::write(path.join("tokenizer.json"), tokenizer.to_string()).expect("written");
    let mismatch = Tokenizer::from_folder(path, 32)
        .expect_err("too many tokens")
        .to_string();
    assert!(mismatch.contains("39") && mismatch.contains("32"), "{mismatch}");
    let tokenizer = Tokenizer::from_folder(path, 40).expect("fits");
    assert_eq!(tokenizer.encode("t7"), Ok(vec![7]));

    fs::write(path.join("tokenizer.json"), "{").expect("written");
    let damaged = Tokenizer::from_folder(path, 32).expect_err("damaged").to_string();
    assert!(damaged.contains("tokenizer.json"), "{damaged}");
}

#[test]
fn a_model_without_a_chat_template_is_named() {
    let folder = ModelFiles::new().write();
    let message = ChatTemplate::from_folder(folder.path())
        .expect_err("none is there")
        .to_string();
    assert!(message.contains("chat_template"), "{message}");
    fs::write(folder.path().join("chat_template.jinja"), "{% for %}").expect("written");
    let message = ChatTemplate::from_folder(folder.path())
        .expect_err("does not parse")
        .to_string();
    assert!(message.contains("chat_template.jinja"), "{message}");
}

#[test]
fn a_context_overflow_names_row_and_lengths() {
    let model = load(ModelFiles::new().write().path()).expect("loads");
    let context = model.config().context;
    let rows = [3, context].map(|length| GenerationRow {
        prompt: vec![1; length],
        seed: 0,
    });
    let settings = Generation {
        sampling: Sampling::GREEDY,
        max_new_tokens: 2,
        stop_tokens: vec![],
        share_prefixes: true,
    };
    let refused = model.generate(None, &rows, &settings);
    assert_eq!(
        refused,
        Err(RequestError::ContextOverflow {
            row: 1,
            prompt: context,
            new: 2,
            context
        })
    );
    let row = |prompt| [GenerationRow { prompt, seed: 0 }];
    assert_eq!(
        model.generate(None, &row(vec![]), &settings),
        Err(RequestError::EmptyPrompt { row: 0 })
    );
    assert!(matches!(
        model.generate(None, &row(vec![32]), &settings),
        Err(RequestError::UnknownToken {
            token: 32,
            vocabulary: 32,
            ..
        })
    ));
    assert_eq!(model.generate(None, &[], &settings), Ok(vec![]));
    let exact = [GenerationRow {
        prompt: vec![1; context - 2],
        seed: 0,
    }];
    assert_eq!(
        model.generate(None, &exact, &settings).expect("fits")[0]
            .tokens
            .len(),
        2
    );
}

#[test]
fn tokens_that_follow_a_cache_see_what_one_pass_sees() {
    let folder = ModelFiles::new().write();
    let model = load(folder.path()).expect("loads");
    let rows = [vec![1, 2, 3, 4, 5], vec![9, 8, 7, 6, 5]];
    let numbers = |hidden: Tensor<Flex, 3>| -> Vec<f32> {
        let last = hidden.narrow(1, 1, 2).cast(FloatDType::F32);
        last.into_data().into_vec().expect("32-bit numbers")
    };
    let whole = model.hidden(&Tokens::padded(&rows, Padding::Left), None, None);
    let whole = numbers(whole.expect("a valid input").narrow(1, 2, 3));

    let mut cache = KvCache::new(model.config(), 2, 5, FloatDType::F32, &model.device()).expect("fits");
    let (first, rest): (Vec<_>, Vec<_>) = rows.iter().map(|row| row.split_at(2)).unzip();
    let first = Tokens::continued(&first, &[0, 0]).expect("a start for each row");
    model
        .hidden(&first, None, Some(&mut cache))
        .expect("a valid input");
    let rest = Tokens::continued(&rest, &[2, 2]).expect("a start for each row");
    let rest = numbers(
        model
            .hidden(&rest, None, Some(&mut cache))
            .expect("a valid input"),
    );
    for (one, other) in whole.iter().zip(&rest) {
        assert!((one - other).abs() < 1e-5, "{one} {other}");
    }
}

#[test]
fn a_model_is_not_written_over_another() {
    let folder = ModelFiles::new().shards(2).write();
    let model = load(folder.path()).expect("loads");
    let message = model
        .save(folder.path(), folder.path())
        .expect_err("holds a model")
        .to_string();
    assert!(message.contains("the folder is not empty"), "{message}");
    assert_eq!(
        logits(&load(folder.path()).expect("is as it was")),
        logits(&model)
    );
}
