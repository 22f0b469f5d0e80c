//! A decoder with an adapter beside it and merged into it.

use burn_tensor::FloatDType;
use capo_rewriter::backend::PolicyBackend;
use capo_rewriter::decoder::Decoder;
use capo_rewriter::lora::Adapter;
use capo_rewriter::tokens::{Padding, Tokens};
use serde::Deserialize;

use crate::fixture::{Adapted, Input, LOGITS, Largest, Reference, numbers};

#[derive(Deserialize)]
struct File {
    model: String,
    adapter: String,
    r: usize,
    alpha: f64,
    target_modules: Vec<String>,
    forward: Forward,
}

#[derive(Deserialize)]
struct Forward {
    #[serde(flatten)]
    input: Input,
    logits: Vec<Vec<Option<Vec<f32>>>>,
}

fn compare<B: PolicyBackend>(
    model: &Decoder<B>,
    adapter: Option<&Adapter<B>>,
    forward: &Forward,
    what: &str,
) {
    let tokens = Tokens::padded(&forward.input.rows(), Padding::Left);
    let hidden = model.hidden(&tokens, adapter, None).expect("a valid input");
    let logits = numbers(model.logits(hidden.flatten(0, 1)));
    let mut largest = Largest::new(what, LOGITS);
    for (found, expected) in logits
        .chunks(model.config().vocabulary)
        .zip(forward.logits.iter().flatten())
    {
        if let Some(expected) = expected {
            largest.compare_all(found, expected);
        }
    }
}

/// Logits with an adapter: beside the decoder, merged into it, and both written and read.
pub fn adapted_logits<B: PolicyBackend>(reference: &Reference<B>) {
    let file: File = reference.read("lora.json");
    let source = reference.folder.join(&file.model);
    let Adapted { model, adapter, .. } = reference.adapted(&file.model, &file.adapter);
    let config = adapter.config();
    assert_eq!((config.rank, config.alpha), (file.r, file.alpha));
    assert_eq!(config.targets.len(), file.target_modules.len());
    compare(&model, Some(&adapter), &file.forward, "LoRA: logits");

    let merged = model.merged(&adapter);
    compare(&merged, None, &file.forward, "LoRA: logits when merged");

    let written = tempfile::tempdir().expect("a temporary folder");
    let full = written.path().join("full");
    merged.save(&full, &source).expect("the merged model is written");
    compare(
        &reference.decoder_in(&full, FloatDType::F32),
        None,
        &file.forward,
        "LoRA: logits when merged, written and read",
    );

    let own = written.path().join("adapter");
    adapter.save(&own, &file.model).expect("the adapter is written");
    let again = Adapter::from_folder(&own, model.config(), &reference.device).expect("the adapter loads");
    assert_eq!(again.config(), config);
    compare(
        &model,
        Some(&again),
        &file.forward,
        "LoRA: logits of the adapter written and read",
    );
}

/// Logits computed in a shorter type are near those in 32 bits.
pub fn coarse_logits<B: PolicyBackend>(reference: &Reference<B>, number_type: FloatDType) {
    let file: File = reference.read("lora.json");
    let source = reference.folder.join(&file.model);
    let tokens = Tokens::padded(&file.forward.input.rows(), Padding::Left);
    let logits = |number_type| {
        let model = reference.decoder_in(&source, number_type);
        let hidden = model.hidden(&tokens, None, None).expect("a valid input");
        numbers(model.logits(hidden.flatten(0, 1)).cast(FloatDType::F32))
    };
    let (exact, coarse) = (logits(FloatDType::F32), logits(number_type));
    // What stands at padding means nothing.
    let vocabulary = exact.len() / tokens.real().len();
    let difference = exact
        .iter()
        .zip(&coarse)
        .enumerate()
        .filter(|(index, _)| tokens.real()[index / vocabulary])
        .map(|(_, (a, b))| (a - b).abs())
        .fold(0.0, f32::max);
    println!("{number_type:?}: logits differ by at most {difference:.2}");
    assert!(difference > 0.0 && difference < 1.0, "{difference}");
}
