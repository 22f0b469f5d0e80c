//! A decoder with an adapter beside it and merged into it.

use burn_tensor::FloatDType;
use capo_rewriter::decoder::Decoder;
use capo_rewriter::lora::Adapter;
use capo_rewriter::tokens::{Padding, Tokens};
use serde::Deserialize;

use crate::fixture::{Cpu, Input, LOGITS, Largest, decoder, folder, numbers, read};

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

fn compare(model: &Decoder<Cpu>, adapter: Option<&Adapter<Cpu>>, forward: &Forward, what: &str) {
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

#[test]
fn parity_of_adapted_logits() {
    let Some(folder) = folder() else { return };
    let file: File = read(&folder.join("lora.json"));
    let source = folder.join(&file.model);
    let model = decoder(&source);
    let device = model.device();
    let adapter: Adapter<Cpu> = Adapter::from_folder(&folder.join(&file.adapter), model.config(), &device)
        .expect("the adapter loads");
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
        &decoder(&full),
        None,
        &file.forward,
        "LoRA: logits when merged, written and read",
    );

    let own = written.path().join("adapter");
    adapter.save(&own, &file.model).expect("the adapter is written");
    let again = Adapter::from_folder(&own, model.config(), &device).expect("the adapter loads");
    assert_eq!(again.config(), config);
    compare(
        &model,
        Some(&again),
        &file.forward,
        "LoRA: logits of the adapter written and read",
    );
}

#[test]
fn parity_of_bf16_answers_in_kind() {
    let Some(folder) = folder() else { return };
    let file: File = read(&folder.join("lora.json"));
    let source = folder.join(&file.model);
    let exact = decoder(&source);
    let coarse: Decoder<Cpu> =
        Decoder::from_folder(&source, FloatDType::BF16, &exact.device()).expect("the model loads");
    let tokens = Tokens::padded(&file.forward.input.rows(), Padding::Left);
    let logits = |model: &Decoder<Cpu>| {
        let hidden = model.hidden(&tokens, None, None).expect("a valid input");
        numbers(model.logits(hidden.flatten(0, 1)).cast(FloatDType::F32))
    };
    let (exact, coarse) = (logits(&exact), logits(&coarse));
    // What stands at padding means nothing.
    let vocabulary = exact.len() / tokens.real().len();
    let difference = exact
        .iter()
        .zip(&coarse)
        .enumerate()
        .filter(|(index, _)| tokens.real()[index / vocabulary])
        .map(|(_, (a, b))| (a - b).abs())
        .fold(0.0, f32::max);
    println!("bf16: logits differ by at most {difference:.2}");
    assert!(difference > 0.0 && difference < 1.0, "{difference}");
}
