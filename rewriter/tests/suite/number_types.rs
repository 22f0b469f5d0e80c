//! Computing in fewer bits: near the same numbers, and an adapter that stays in 32 bits.

use std::num::NonZeroUsize;

use burn_flex::{Flex, FlexDevice};
use burn_tensor::{DType, FloatDType, Tensor};
use capo_rewriter::checkpoint::{Checkpoints, Identity, Retention};
use capo_rewriter::decoder::Decoder;
use capo_rewriter::device::{CPU, DeviceChoice};
use capo_rewriter::engine::{Examples, Learns, Start};
use capo_rewriter::fine_tuning::{SftSettings, TrainingError};
use capo_rewriter::folder::PolicyFolder;
use capo_rewriter::generate::{Generation, GenerationRow};
use capo_rewriter::lora::{Adapter, LoraConfig, Mode};
use capo_rewriter::optimizer::{AdamW, Gradient, Optimizer};
use capo_rewriter::policy::Policy;
use capo_rewriter::sft::SftBatch;
use capo_rewriter::tiny_qwen3::TinyQwen3Config;
use capo_rewriter::token_sampling::Sampling;
use capo_rewriter::tokenizer::Tokenizer;
use serde_json::json;
use tempfile::TempDir;

fn model() -> TempDir {
    let folder = TempDir::new().expect("a folder");
    let config = TinyQwen3Config {
        hidden: 32,
        layers: 2,
        heads: 4,
        kv_heads: 2,
        head_dim: 16,
        intermediate: 64,
        context: 64,
        tied: true,
    };
    let tokenizer = Tokenizer::of_bytes().expect("builds");
    config.write(folder.path(), &tokenizer, 5).expect("writes");
    folder
}

fn decoder(folder: &TempDir, number_type: FloatDType) -> Decoder<Flex> {
    Decoder::from_folder(folder.path(), number_type, &FlexDevice).expect("loads")
}

/// A policy with dropout, so that its masks are of the type too.
fn policy(folder: &TempDir, number_type: FloatDType) -> Policy<Flex> {
    let base = decoder(folder, number_type);
    let lora = LoraConfig {
        dropout: 0.1,
        ..LoraConfig::all(4, 8.0)
    };
    let adapter = Adapter::new(&lora, base.config(), 1, &FlexDevice).expect("valid");
    Policy::Adapted { base, adapter }
}

fn batch() -> SftBatch {
    let tokens = |text: &str| text.bytes().map(u32::from).collect::<Vec<_>>();
    let pairs = [("abc>", "cba."), ("aabb>", "bbaa."), ("c>", "c.")];
    let pairs: Vec<_> = pairs
        .iter()
        .map(|(prompt, answer)| (tokens(prompt), tokens(answer)))
        .collect();
    SftBatch::new(&pairs).expect("valid")
}

fn numbers<const D: usize>(tensor: Tensor<Flex, D>) -> Vec<f64> {
    tensor.into_data().iter::<f64>().collect()
}

fn learn(policy: &Policy<Flex>, seed: u64) -> (f64, Gradient<Flex>) {
    let (loss, gradient) = policy
        .differentiate(Mode::Training { seed }, false, |decoder, adapter| {
            Ok(batch().losses(decoder, adapter)?.mean())
        })
        .expect("valid");
    (numbers(loss)[0], gradient)
}

#[test]
fn answers_in_bf16_are_as_likely_as_in_f32() {
    let folder = model();
    let settings = Generation {
        sampling: Sampling::GREEDY,
        max_new_tokens: 12,
        stop_tokens: Vec::new(),
        share_prefixes: true,
    };
    let rows: Vec<_> = [&b"ab"[..], b"abcd", b"x"]
        .iter()
        .map(|prompt| GenerationRow {
            prompt: prompt.iter().map(|byte| u32::from(*byte)).collect(),
            seed: 0,
        })
        .collect();
    let [exact, coarse] = [FloatDType::F32, FloatDType::BF16].map(|number_type| {
        let model = decoder(&folder, number_type);
        assert_eq!(model.number_type(), number_type);
        model.generate(None, &rows, &settings).expect("valid")
    });
    for (exact, coarse) in exact.iter().zip(&coarse) {
        // Where two tokens are nearly as likely another may be taken; the first is seen by both alike.
        let difference = (exact.logprobs[0] - coarse.logprobs[0]).abs();
        assert!(difference < 0.02, "{difference}");
    }
    let bits = |answers: &[capo_rewriter::generate::Completion]| answers[0].logprobs[0].to_bits();
    assert_ne!(
        bits(&exact),
        bits(&coarse),
        "the coarse model computes in its own type"
    );
}

#[test]
fn losses_and_gradients_in_bf16_are_near_those_in_f32() {
    let folder = model();
    let [exact, coarse] = [FloatDType::F32, FloatDType::BF16].map(|number_type| {
        // After some steps B is no longer zero, and every part has a gradient.
        let mut policy = policy(&folder, number_type);
        let mut optimizer = Optimizer::new(AdamW::default(), &policy);
        for step in 0..3 {
            let (_, gradient) = learn(&policy, step);
            policy = optimizer
                .step(&policy, gradient, 1e-2)
                .expect("finite")
                .parameters;
        }
        learn(&policy, 9)
    });
    assert!(
        (exact.0 / coarse.0 - 1.0).abs() < 0.01,
        "{} {}",
        exact.0,
        coarse.0
    );
    let flat = |gradient: &Gradient<Flex>| -> Vec<f64> {
        gradient
            .parts()
            .iter()
            .flat_map(|part| numbers(part.clone()))
            .collect()
    };
    let (exact, coarse) = (flat(&exact.1), flat(&coarse.1));
    let product = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
    let cosine = product(&exact, &coarse) / (product(&exact, &exact) * product(&coarse, &coarse)).sqrt();
    assert!(cosine > 0.98, "{cosine}");
}

#[test]
fn the_adapter_its_gradient_and_its_losses_stay_in_32_bits() {
    let folder = model();
    let policy = policy(&folder, FloatDType::BF16);
    let losses = batch().losses(policy.decoder(), policy.adapter()).expect("valid");
    assert_eq!(losses.dtype(), DType::F32);
    let (_, gradient) = learn(&policy, 0);
    assert!(gradient.parts().iter().all(|part| part.dtype() == DType::F32));
    let mut optimizer = Optimizer::new(AdamW::default(), &policy);
    let after = optimizer
        .step(&policy, gradient, 1e-6)
        .expect("finite")
        .parameters;
    let matrices = |policy: &Policy<Flex>| -> Vec<Tensor<Flex, 2>> {
        let adapter = policy.adapter().expect("it is adapted");
        adapter.matrices().cloned().collect()
    };
    // A step this small is lost on numbers of 8 bits.
    for (before, after) in matrices(&policy).into_iter().zip(matrices(&after)).step_by(2) {
        assert_eq!(after.dtype(), DType::F32);
        let (before, after) = (numbers(before), numbers(after));
        let changed = before.iter().zip(&after).filter(|(a, b)| a != b).count();
        assert!(
            2 * changed > before.len() || changed == 0,
            "{changed} of {}",
            before.len()
        );
    }
}

#[test]
fn all_weights_learn_in_32_bits_only() {
    let folder = model();
    let engine = DeviceChoice::Auto
        .open(&[CPU], Some(FloatDType::BF16))
        .expect("there is a processor");
    let start = Start {
        folder: PolicyFolder {
            model: folder.path().to_owned(),
            adapter: None,
        },
        learns: Learns::Whole,
        seed: 0,
    };
    let examples = Examples {
        training: vec![(vec![1], vec![2])],
        held_out: Vec::new(),
    };
    let output = TempDir::new().expect("a folder");
    let identity = Identity::of_model(folder.path(), json!("words"), json!({})).expect("reads");
    let retention = Retention {
        last: NonZeroUsize::MIN,
        best: true,
    };
    let checkpoints = Checkpoints::open(output.path(), identity, retention).expect("opens");
    let refused = engine.fine_tune(
        &start,
        examples,
        SftSettings::default(),
        &checkpoints,
        &mut |_| unreachable!("nothing is learned"),
    );
    let message = match refused {
        Err(TrainingError::Request(why)) => why.to_string(),
        other => panic!("{other:?}"),
    };
    assert!(message.contains("BF16") && message.contains("F32"), "{message}");
}
