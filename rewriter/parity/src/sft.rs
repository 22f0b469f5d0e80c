//! Three steps of supervised fine-tuning.

use burn_autodiff::Autodiff;
use capo_rewriter::backend::PolicyBackend;
use capo_rewriter::decoder::Decoder;
use capo_rewriter::lora::{Adapter, Mode};
use capo_rewriter::optimizer::{Gradient, Optimizer};
use capo_rewriter::sft::SftBatch;
use serde::Deserialize;

use crate::fixture::{Input, Largest, Optim, Reference, assert_norm, numbers};

#[derive(Deserialize)]
struct File {
    model: String,
    adapter: String,
    sft: Sft,
}

#[derive(Deserialize)]
struct Sft {
    optim: Optim,
    batches: Vec<Batch>,
    steps: Vec<Step>,
    grad_step0_file: String,
    params_after3_file: String,
}

#[derive(Deserialize)]
struct Batch {
    #[serde(flatten)]
    input: Input,
    labels: Vec<Vec<i64>>,
}

#[derive(Deserialize)]
struct Step {
    loss: f32,
    supervised_tokens: usize,
    grad_norm_before_clip: f64,
    token_nll: Vec<Vec<f32>>,
}

impl Batch {
    fn masked(&self) -> SftBatch {
        let learned = self
            .labels
            .iter()
            .map(|row| row.iter().map(|label| *label != -100));
        let rows: Vec<_> = self
            .input
            .rows()
            .into_iter()
            .zip(learned)
            .map(|(ids, learned)| {
                let learned = learned.take(ids.len()).collect();
                (ids, learned)
            })
            .collect();
        SftBatch::masked(&rows).expect("a valid batch")
    }
}

/// Losses, gradients and parameters of three steps.
pub fn supervised_steps<B: PolicyBackend>(reference: &Reference<B>) {
    let file: File = reference.read("lora.json");
    let start = reference.adapted(&file.model, &file.adapter);
    let sft = &file.sft;
    let decoder = Decoder::<Autodiff<B>>::from_inner(&start.model);
    let mut optimizer = Optimizer::new(sft.optim.settings(), &start.adapter);
    let mut adapter = start.adapter.clone();
    for (index, (batch, step)) in sft.batches.iter().zip(&sft.steps).enumerate() {
        let what = format!("SFT step {index}");
        let batch = batch.masked();
        assert_eq!(batch.cells().len(), step.supervised_tokens, "{what}");
        let learning = Adapter::<Autodiff<B>>::trainable(&adapter, Mode::Evaluation);
        let losses = batch.losses(&decoder, Some(&learning)).expect("a valid batch");
        let columns = batch.tokens().columns();
        let mut tokens = Largest::of_losses(format!("{what}: token losses"));
        for (cell, found) in batch.cells().iter().zip(numbers(losses.clone().inner())) {
            tokens.compare(found, step.token_nll[cell / columns][cell % columns - 1]);
        }
        let loss = losses.mean();
        Largest::of_losses(format!("{what}: loss")).compare(numbers(loss.clone().inner())[0], step.loss);
        let gradient = Gradient::of(&loss, &learning);
        assert_norm(numbers(gradient.norm())[0], step.grad_norm_before_clip, &what);
        if index == 0 {
            start.compare_gradient(&gradient, &sft.grad_step0_file);
        }
        let after = optimizer
            .step(&adapter, gradient, sft.optim.lr)
            .expect("a finite gradient");
        assert_norm(after.gradient_norm as f32, step.grad_norm_before_clip, &what);
        adapter = after.parameters;
    }
    let most = 2.0 * sft.optim.lr * sft.steps.len() as f64;
    start.compare_parameters(&adapter, &sft.params_after3_file, most);
}
