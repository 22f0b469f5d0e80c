//! A whole decoder that learns, from nothing.

use burn_autodiff::Autodiff;
use burn_flex::Flex;
use capo_rewriter::decoder::Decoder;
use capo_rewriter::optimizer::{AdamW, Gradient, Optimizer};
use capo_rewriter::parameters::{Parameter, Parameters};
use capo_rewriter::sft::SftBatch;
use serde_json::json;
use tempfile::TempDir;

use super::load;
use super::model::ModelFiles;

type Learning = Autodiff<Flex>;

/// Models with tied and with their own output layer, with and without norms of heads.
fn models() -> Vec<Decoder<Flex>> {
    let tied = ModelFiles::new();
    let own_output = ModelFiles::new()
        .configure(&json!({ "tie_word_embeddings": false }))
        .add("lm_head.weight", &[32, 8]);
    let mistral = ModelFiles::new()
        .without_head_norms()
        .configure(&json!({ "model_type": "mistral", "sliding_window": null }));
    [tied, own_output, mistral]
        .map(|files| load(files.write().path()).expect("loads"))
        .into()
}

fn batch() -> SftBatch {
    SftBatch::new(&[(vec![1, 2, 3], vec![4, 5]), (vec![9], vec![8, 7, 6])]).expect("valid")
}

fn loss(model: &Decoder<Flex>) -> f64 {
    let losses = batch().losses(model, None).expect("valid");
    f64::from(losses.mean().into_scalar())
}

fn gradient(model: &Decoder<Flex>) -> Gradient<Flex> {
    let learning = Decoder::<Learning>::trainable(model);
    let loss = batch().losses(&learning, None).expect("valid").mean();
    Gradient::of(&loss, &learning)
}

/// The model with one of its tensors moved along the gradient by this length.
fn moved(model: &Decoder<Flex>, gradient: &Gradient<Flex>, place: usize, length: f64) -> Decoder<Flex> {
    let norm = gradient.parts()[place].clone().powf_scalar(2.0).sum().sqrt();
    let factor = length / f64::from(norm.into_scalar());
    let parameters = model.parameters().into_iter().enumerate();
    model.with(parameters.map(|(index, parameter)| {
        let step = gradient.parts()[index].clone().mul_scalar(factor);
        match parameter {
            other if index != place => other,
            Parameter::Vector(vector) => Parameter::Vector(vector + step.flatten(0, 1)),
            Parameter::Matrix(matrix) => Parameter::Matrix(matrix + step),
        }
    }))
}

#[test]
fn gradients_are_the_slopes_of_the_loss() {
    const LENGTH: f64 = 2e-2;
    for model in models() {
        let gradient = gradient(&model);
        let names = model.names();
        assert_eq!(
            (names.len(), names.len()),
            (gradient.parts().len(), model.parameters().len())
        );
        for (place, name) in names.iter().enumerate() {
            let slope = gradient.parts()[place].clone().powf_scalar(2.0).sum().sqrt();
            let slope = f64::from(slope.into_scalar());
            let [up, down] = [LENGTH, -LENGTH].map(|length| loss(&moved(&model, &gradient, place, length)));
            let found = (up - down) / (2.0 * LENGTH);
            assert!(slope > 0.0, "{name}");
            assert!(
                (found - slope).abs() < 0.02 * slope + 2e-4,
                "{name}: {found} {slope}"
            );
        }
    }
}

#[test]
fn a_model_learns_its_answers_by_heart() {
    for model in models() {
        let settings = AdamW {
            weight_decay: 0.0,
            ..AdamW::default()
        };
        let mut optimizer = Optimizer::new(settings, &model);
        let before = loss(&model);
        let mut model = model;
        for _ in 0..60 {
            let gradient = gradient(&model);
            model = optimizer.step(&model, gradient, 0.02).expect("finite").parameters;
        }
        let after = loss(&model);
        assert!(after < 0.05 * before, "{before} {after}");
    }
}

#[test]
fn norms_do_not_decay() {
    let model = models().swap_remove(0);
    // Moments of exact zeros: only decay moves anything.
    let zeros = gradient(&model).plus(gradient(&model).negated());
    let settings = AdamW {
        weight_decay: 0.5,
        ..AdamW::default()
    };
    let step = Optimizer::new(settings, &model).step(&model, zeros, 0.1);
    let after = step.expect("finite").parameters;
    let sizes = |model: &Decoder<Flex>| -> Vec<(bool, f32)> {
        let size = |parameter| match parameter {
            Parameter::Vector(vector) => (false, vector.abs().sum().into_scalar()),
            Parameter::Matrix(matrix) => (true, matrix.abs().sum().into_scalar()),
        };
        model.parameters().into_iter().map(size).collect()
    };
    for ((is_matrix, before), (_, after)) in sizes(&model).into_iter().zip(sizes(&after)) {
        let expected = if is_matrix { 0.95 } else { 1.0 };
        assert!((after / before - expected).abs() < 1e-5, "{before} {after}");
    }
}

#[test]
fn a_whole_model_goes_on_after_a_break() {
    let folder = TempDir::new().expect("a temporary folder");
    let file = folder.path().join("optimizer.safetensors");
    let model = models().swap_remove(1);
    let mut optimizer = Optimizer::new(AdamW::default(), &model);
    let step = optimizer.step(&model, gradient(&model), 0.01).expect("finite");
    optimizer.save(&file, &step.parameters).expect("written");
    let mut resumed = Optimizer::load(&file, AdamW::default(), &step.parameters).expect("reads");
    let [one, other] = [&mut optimizer, &mut resumed].map(|optimizer| {
        let next = optimizer.step(&step.parameters, gradient(&step.parameters), 0.01);
        loss(&next.expect("finite").parameters)
    });
    assert!((one - other).abs() < f64::EPSILON, "{one} {other}");
    let adapterless = models().swap_remove(2);
    let message = Optimizer::load(&file, AdamW::default(), &adapterless).map(|_| ());
    message.expect_err("a model of another form");
}
