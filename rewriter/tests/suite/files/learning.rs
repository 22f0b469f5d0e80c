//! Scores, losses and steps: what is refused, and what is the same however it is computed.

use burn_autodiff::Autodiff;
use burn_flex::Flex;
use burn_tensor::{Tensor, TensorData};
use capo_rewriter::decoder::Decoder;
use capo_rewriter::error::RequestError;
use capo_rewriter::generate::{Generation, GenerationRow};
use capo_rewriter::lora::{Adapter, LoraConfig, Mode};
use capo_rewriter::optimizer::{AdamW, Gradient, Optimizer, Step};
use capo_rewriter::sft::SftBatch;
use capo_rewriter::token_sampling::Sampling;
use capo_rewriter::tokens::{Padding, Tokens};
use tempfile::TempDir;

use super::load;
use super::model::ModelFiles;

type Learning = Autodiff<Flex>;

fn model() -> Decoder<Flex> {
    load(ModelFiles::new().write().path()).expect("loads")
}

/// An adapter that changes the model: B is as A is.
fn adapter(model: &Decoder<Flex>, dropout: f64) -> Adapter<Flex> {
    let lora = LoraConfig {
        dropout,
        ..LoraConfig::all(2, 8.0)
    };
    let mut wave = 0;
    Adapter::<Flex>::new(&lora, model.config(), 7, &model.device())
        .expect("valid")
        .map(|matrix| {
            wave += 1;
            let shape = matrix.dims();
            let count: usize = shape.iter().product();
            let numbers: Vec<_> = (0..count)
                .map(|index| 0.3 * (index as f32 + wave as f32).sin())
                .collect();
            Tensor::from_data(TensorData::new(numbers, shape), &matrix.device())
        })
}

fn batch() -> SftBatch {
    SftBatch::new(&[(vec![1, 2, 3], vec![4, 5]), (vec![9], vec![8, 7, 6])]).expect("valid")
}

fn numbers<const D: usize>(tensor: Tensor<Flex, D>) -> Vec<f32> {
    tensor.into_data().into_vec().expect("32-bit numbers")
}

fn gradient(model: &Decoder<Flex>, adapter: &Adapter<Flex>, mode: Mode) -> Gradient<Flex> {
    let decoder = Decoder::<Learning>::from_inner(model);
    let learning = Adapter::<Learning>::trainable(adapter, mode);
    let loss = batch().losses(&decoder, Some(&learning)).expect("valid").mean();
    Gradient::of(&loss, &learning)
}

fn flat(adapter: &Adapter<Flex>) -> Vec<f32> {
    adapter
        .matrices()
        .flat_map(|matrix| numbers(matrix.clone()))
        .collect()
}

#[test]
fn cells_that_cannot_be_scored_are_named() {
    let model = model();
    let tokens = Tokens::padded(&[vec![1, 2, 3], vec![4]], Padding::Left);
    let score = |cells: &[usize], temperature| {
        model
            .score(&tokens, cells, None, temperature)
            .map(|_| ())
            .expect_err("must be refused")
    };
    assert_eq!(score(&[], 1.0), RequestError::EmptyBatch);
    // A first token, padding, a token after padding, and one beyond the batch.
    for cell in [0, 3, 4, 5, 6, usize::MAX] {
        let refused = RequestError::Unpredicted {
            cell,
            rows: 2,
            columns: 3,
        };
        assert_eq!(score(&[1, cell], 1.0), refused);
    }
    for temperature in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        let refused = score(&[1], temperature).to_string();
        assert!(refused.contains("temperature"), "{refused}");
    }
    model.score(&tokens, &[1, 2], None, 1.0).expect("valid");

    let unknown = SftBatch::new(&[(vec![1], vec![32])]).expect("the vocabulary is the model's");
    let refused = unknown
        .losses(&model, None)
        .map(|_| ())
        .expect_err("no such token");
    assert!(matches!(refused, RequestError::UnknownToken { token: 32, .. }));
    let none = Tokens::padded::<Vec<u32>>(&[], Padding::Left);
    let refused = model.hidden(&none, None, None).map(|_| ());
    assert_eq!(refused, Err(RequestError::EmptyBatch));
}

#[test]
fn logits_that_are_not_finite_end_generation() {
    let model = model();
    let broken = adapter(&model, 0.0).map(|matrix| matrix.clone().mul_scalar(f32::NAN));
    let rows = [GenerationRow {
        prompt: vec![1, 2],
        seed: 0,
    }];
    for sampling in [Sampling::GREEDY, Sampling::default()] {
        let settings = Generation {
            sampling,
            max_new_tokens: 3,
            stop_tokens: vec![],
            share_prefixes: true,
        };
        let message = model
            .generate(Some(&broken), &rows, &settings)
            .expect_err("must be refused")
            .to_string();
        assert!(
            message.contains("row 0, new token 0: the logit of token id"),
            "{message}"
        );
    }
}

#[test]
fn a_step_that_is_refused_changes_nothing() {
    let model = model();
    let start = adapter(&model, 0.0);
    let good = gradient(&model, &start, Mode::Evaluation);
    let mut optimizer = Optimizer::new(AdamW::default(), &start);
    let Step {
        parameters: first,
        gradient_norm,
    } = optimizer.step(&start, good.clone(), 0.01).expect("finite");
    let exact = numbers(good.norm())[0];
    assert!(exact > 0.0 && (gradient_norm - f64::from(exact)).abs() < 1e-6);

    let mut twin = optimizer.clone();
    for bad in [f32::NAN, f32::INFINITY] {
        let broken = start.map(|matrix| matrix.clone().mul_scalar(bad));
        let broken = gradient(&model, &broken, Mode::Evaluation);
        let message = optimizer
            .step(&first, broken, 0.01)
            .map(|_| ())
            .expect_err("must be refused")
            .to_string();
        assert!(message.contains("gradient of step 2"), "{message}");
    }
    for rate in [f64::NAN, -1.0] {
        let refused = optimizer.step(&first, good.clone(), rate).map(|_| ());
        assert!(matches!(
            refused,
            Err(RequestError::Setting {
                name: "learning_rate",
                ..
            })
        ));
    }
    let smaller = Adapter::<Flex>::new(&LoraConfig::all(1, 8.0), model.config(), 7, &model.device());
    let refused = optimizer
        .step(&smaller.expect("valid"), good.clone(), 0.01)
        .map(|_| ())
        .expect_err("another adapter");
    assert!(matches!(refused, RequestError::OtherParameters { index: 0, .. }));
    assert_eq!(optimizer.steps(), 1);
    let [one, other] =
        [&mut optimizer, &mut twin].map(|optimizer| optimizer.step(&first, good.clone(), 0.01));
    assert_eq!(
        flat(&one.expect("finite").parameters),
        flat(&other.expect("finite").parameters)
    );
}

#[test]
fn bad_settings_of_the_optimizer_are_named() {
    let model = model();
    let start = adapter(&model, 0.0);
    let good = gradient(&model, &start, Mode::Evaluation);
    for (settings, name) in [
        (
            AdamW {
                beta_1: 1.0,
                ..AdamW::default()
            },
            "beta_1",
        ),
        (
            AdamW {
                beta_2: f64::NAN,
                ..AdamW::default()
            },
            "beta_2",
        ),
        (
            AdamW {
                eps: 0.0,
                ..AdamW::default()
            },
            "eps",
        ),
        (
            AdamW {
                weight_decay: -1.0,
                ..AdamW::default()
            },
            "weight_decay",
        ),
        (
            AdamW {
                max_grad_norm: Some(0.0),
                ..AdamW::default()
            },
            "max_grad_norm",
        ),
    ] {
        let refused = Optimizer::new(settings, &start).step(&start, good.clone(), 0.01);
        let message = refused.map(|_| ()).expect_err("must be refused").to_string();
        assert!(message.contains(name), "{message}");
    }
}

#[test]
fn steps_go_on_after_a_break_as_if_there_had_been_none() {
    let model = model();
    let folder = TempDir::new().expect("a temporary folder");
    let file = folder.path().join("optimizer.safetensors");
    let start = adapter(&model, 0.0);
    let step = |optimizer: &mut Optimizer<Flex>, adapter: &Adapter<Flex>| {
        let gradient = gradient(&model, adapter, Mode::Evaluation);
        optimizer
            .step(adapter, gradient, 0.01)
            .expect("finite")
            .parameters
    };
    let mut whole = Optimizer::new(AdamW::default(), &start);
    let mut adapter = start.clone();
    for _ in 0..3 {
        adapter = step(&mut whole, &adapter);
    }
    whole.save(&file, &adapter).expect("written");
    let mut resumed = Optimizer::load(&file, AdamW::default(), &adapter).expect("reads");
    assert_eq!(resumed.steps(), 3);
    let fresh = step(&mut Optimizer::new(AdamW::default(), &start), &adapter);
    let [one, other] = [&mut whole, &mut resumed].map(|optimizer| step(optimizer, &adapter));
    assert_eq!(flat(&one), flat(&other));
    assert_ne!(flat(&one), flat(&fresh), "moments count");

    let smaller: Adapter<Flex> =
        Adapter::new(&LoraConfig::all(1, 8.0), model.config(), 7, &model.device()).expect("valid");
    let message = Optimizer::load(&file, AdamW::default(), &smaller)
        .map(|_| ())
        .expect_err("another adapter")
        .to_string();
    assert!(
        message.contains("exp_avg") && message.contains("[2, 8]"),
        "{message}"
    );
    let message = whole
        .save(&file, &smaller)
        .expect_err("another adapter")
        .to_string();
    assert!(message.contains("different adapters"), "{message}");
    adapter.save(folder.path(), "tiny").expect("written");
    let other = folder.path().join("adapter_model.safetensors");
    let message = Optimizer::load(&other, AdamW::default(), &adapter)
        .map(|_| ())
        .expect_err("no optimizer")
        .to_string();
    assert!(message.contains("step"), "{message}");
}

#[test]
fn dropout_is_a_function_of_its_seed_and_only_of_training() {
    let model = model();
    let start = adapter(&model, 0.4);
    let losses = |mode| {
        let decoder = Decoder::<Learning>::from_inner(&model);
        let learning = Adapter::<Learning>::trainable(&start, mode);
        assert_eq!(learning.mode(), mode);
        numbers(batch().losses(&decoder, Some(&learning)).expect("valid").inner())
    };
    let training = |seed| Mode::Training { seed };
    let exact = numbers(batch().losses(&model, Some(&start)).expect("valid"));
    for (one, other) in losses(Mode::Evaluation).iter().zip(&exact) {
        assert!((one - other).abs() < 1e-5, "{one} {other}");
    }
    assert_eq!(losses(training(3)), losses(training(3)));
    assert_ne!(losses(training(3)), losses(training(4)));
    assert_ne!(losses(training(3)), losses(Mode::Evaluation));

    let stepped = |seed| {
        let gradient = gradient(&model, &start, training(seed));
        let step = Optimizer::new(AdamW::default(), &start).step(&start, gradient, 0.01);
        flat(&step.expect("finite").parameters)
    };
    assert_eq!(stepped(3), stepped(3));
    assert_ne!(stepped(3), stepped(4));

    let plain = adapter(&model, 0.0);
    let without = |mode| {
        numbers(
            batch()
                .losses(&model, Some(&plain.clone().in_mode(mode)))
                .expect("valid"),
        )
    };
    assert_eq!(
        without(training(3)),
        without(Mode::Evaluation),
        "there is nothing to drop"
    );
}

#[test]
fn answers_are_drawn_without_dropout() {
    let model = model();
    let adapter = adapter(&model, 0.5);
    let settings = Generation {
        sampling: Sampling::default(),
        max_new_tokens: 6,
        stop_tokens: vec![],
        share_prefixes: true,
    };
    let rows = [GenerationRow {
        prompt: vec![1, 2, 3],
        seed: 5,
    }];
    let generate = |mode| {
        let adapter = adapter.clone().in_mode(mode);
        model.generate(Some(&adapter), &rows, &settings).expect("valid")
    };
    assert_eq!(generate(Mode::Training { seed: 1 }), generate(Mode::Evaluation));
}

/// log softmax through the backend's own backward pass.
fn plain_losses(
    decoder: &Decoder<Learning>,
    adapter: &Adapter<Learning>,
    temperature: f64,
) -> Tensor<Learning, 1> {
    let batch = batch();
    let hidden = decoder
        .hidden(batch.tokens(), Some(adapter), None)
        .expect("valid");
    let logits = decoder.logits(hidden.flatten(0, 1)).div_scalar(temperature);
    let distribution = burn_tensor::activation::log_softmax(logits, 1);
    let losses = batch.cells().iter().map(|cell| {
        let target = batch.tokens().ids()[*cell] as usize;
        let row = distribution.clone().narrow(0, cell - 1, 1);
        row.narrow(1, target, 1).reshape([1])
    });
    Tensor::cat(losses.collect(), 0).neg()
}

#[test]
fn scores_and_their_gradients_are_those_of_whole_distributions() {
    let model = model();
    let start = adapter(&model, 0.0);
    let decoder = Decoder::<Learning>::from_inner(&model);
    let learning = Adapter::<Learning>::trainable(&start, Mode::Evaluation);
    let weights = Tensor::<Learning, 1>::from_floats([0.3, -1.0, 2.0, 0.7, -0.2], &model.device());
    for temperature in [1.0, 0.7] {
        let batch = batch();
        let scores = decoder
            .score(batch.tokens(), batch.cells(), Some(&learning), temperature)
            .expect("valid");
        let (found, expected) = (
            scores.logprobs().neg(),
            plain_losses(&decoder, &learning, temperature),
        );
        let pairs = numbers(found.clone().inner());
        for (one, other) in pairs.iter().zip(numbers(expected.clone().inner())) {
            assert!((one - other).abs() < 1e-5, "{one} {other}");
        }
        let [found, expected] =
            [found, expected].map(|losses| Gradient::of(&(losses * weights.clone()).sum(), &learning));
        for (found, expected) in found.parts().iter().zip(expected.parts()) {
            for (one, other) in numbers(found.clone()).iter().zip(numbers(expected.clone())) {
                assert!((one - other).abs() < 1e-5, "{one} {other}");
            }
        }
    }
}
