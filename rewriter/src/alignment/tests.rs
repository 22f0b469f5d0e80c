//! Products against finite differences of what they are derivatives of.

use burn_flex::{Flex, FlexDevice};
use burn_tensor::TensorData;
use capo_core::random::{Streams, normal};

use super::*;
use crate::lora::{Adapter, LoraConfig};
use crate::tiny_qwen3::TinyQwen3Config;
use crate::tokenizer::Tokenizer;

const TEMPERATURE: f64 = 0.7;

fn decoder(tied: bool) -> Decoder<Flex> {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let tokenizer = Tokenizer::of_bytes().expect("builds");
    let config = TinyQwen3Config {
        hidden: 32,
        layers: 2,
        heads: 2,
        kv_heads: 1,
        head_dim: 16,
        intermediate: 48,
        context: 128,
        tied,
    };
    config.write(folder.path(), &tokenizer, 3).expect("writes");
    let decoder = Decoder::from_folder(folder.path(), FloatDType::F32, &FlexDevice).expect("loads");
    // Ten times as large, so that what follows from weights is seen in 32 bits.
    decoder.with(decoder.parameters().into_iter().map(|parameter| match parameter {
        Parameter::Matrix(matrix) => Parameter::Matrix(matrix.mul_scalar(10.0)),
        norm @ Parameter::Vector(_) => norm,
    }))
}

fn adapted(dropout: f64) -> Policy<Flex> {
    let base = decoder(true);
    let mut config = LoraConfig::all(4, 8.0);
    config.dropout = dropout;
    let adapter: Adapter<Flex> = Adapter::new(&config, base.config(), 1, &FlexDevice).expect("valid");
    let policy = Policy::Adapted { base, adapter };
    // B begins at zero, where A has no gradient.
    moved(&policy, &step(&policy, 0.05, 1), 1.0)
}

fn example() -> AlignmentExample {
    let tokens = |text: &str| text.bytes().map(u32::from).collect();
    AlignmentExample {
        parent: 0,
        line: 7,
        request: tokens("Be brief. Rewrite this: be kind."),
        rewritten: tokens("Be brief. Rewrite this: ask the customer first."),
        child: tokens("ask the customer first."),
        advantage: -0.75,
        gain: 0.5,
    }
}

/// A random direction for everything that learns.
fn step(policy: &Policy<Flex>, size: f64, seed: u64) -> Vec<Tensor<Flex, 2>> {
    let mut random = Streams::new(seed).stream("step", 0, 0);
    let parameters = policy.parameters();
    let drawn = parameters.iter().map(|parameter| {
        let dims = parameter.matrix().dims();
        let numbers: Vec<f32> = (0..dims[0] * dims[1])
            .map(|_| (size * normal(&mut random)) as f32)
            .collect();
        Tensor::from_data(TensorData::new(numbers, dims), &FlexDevice)
    });
    drawn.collect()
}

fn moved(policy: &Policy<Flex>, step: &[Tensor<Flex, 2>], share: f64) -> Policy<Flex> {
    let parameters = policy.parameters().into_iter().zip(step);
    policy.with(
        parameters.map(|(parameter, step)| {
            parameter.of_matrix(parameter.matrix() + step.clone().mul_scalar(share))
        }),
    )
}

/// (J − b) log π of the whole child.
fn surrogate(policy: &Policy<Flex>, example: &AlignmentExample) -> f64 {
    let completions = Completions::new(&[&example.request], &[&example.child]).expect("valid");
    let logprobs = completions
        .logprobs(policy.decoder(), policy.adapter(), TEMPERATURE)
        .expect("valid");
    example.advantage * logprobs.into_data().iter::<f64>().sum::<f64>()
}

fn found(policy: &Policy<Flex>, after: &Policy<Flex>) -> Alignment {
    let mut seen = 0;
    let found = policy
        .alignment(after, &[example()], TEMPERATURE, &mut || seen += 1)
        .expect("valid");
    assert_eq!((found.len(), seen), (1, 1));
    found[0]
}

#[track_caller]
fn assert_close(found: f64, expected: f64, share: f64) {
    assert!(expected.abs() > 1e-2, "{expected} tells nothing");
    assert!(
        (found - expected).abs() < share * expected.abs(),
        "{found} instead of {expected}"
    );
}

#[test]
fn the_parameter_product_is_the_directional_derivative_of_the_surrogate() {
    for policy in [
        adapted(0.0),
        Policy::Whole(decoder(true)),
        Policy::Whole(decoder(false)),
    ] {
        let step = step(&policy, 0.02, 2);
        let at = |share| surrogate(&moved(&policy, &step, share), &example());
        let slope = |width: f64| (at(width) - at(-width)) / (2.0 * width);
        // Central differences of two widths, the error of the first order taken out [Richardson].
        let expected = (4.0 * slope(0.02) - slope(0.04)) / 3.0;
        let found = found(&policy, &moved(&policy, &step, 1.0));
        println!("{} instead of {expected}", found.parameters);
        assert_close(found.parameters, expected, 0.01);
    }
}

/// (J − b) log softmax(W z / T) at the child's first token, in 64 bits.
fn surrogate_of_state(policy: &Policy<Flex>, example: &AlignmentExample, state: &[f64]) -> f64 {
    let rows: Vec<f64> = policy
        .decoder()
        .output_layer()
        .clone()
        .into_data()
        .iter::<f64>()
        .collect();
    let logits: Vec<f64> = rows
        .chunks(state.len())
        .map(|row| {
            row.iter()
                .zip(state)
                .map(|(weight, number)| weight * number)
                .sum::<f64>()
                / TEMPERATURE
        })
        .collect();
    let total = logits.iter().map(|logit| logit.exp()).sum::<f64>().ln();
    example.advantage * (logits[example.child[0] as usize] - total)
}

#[test]
fn the_hidden_product_is_the_directional_derivative_by_the_state() {
    for policy in [adapted(0.0), Policy::Whole(decoder(false))] {
        let example = example();
        let state = |tokens: &[u32]| -> Vec<f64> {
            let state = policy.last_hidden(tokens).expect("valid");
            state.into_data().iter::<f64>().collect()
        };
        let (from, to) = (state(&example.request), state(&example.rewritten));
        let at = |share: f64| {
            let numbers: Vec<f64> = from
                .iter()
                .zip(&to)
                .map(|(from, to)| from + share * (to - from))
                .collect();
            surrogate_of_state(&policy, &example, &numbers)
        };
        let expected = (at(1e-5) - at(-1e-5)) / 2e-5;
        let found = found(&policy, &policy);
        println!("{} instead of {expected}", found.hidden);
        assert_close(found.hidden, expected, 1e-3);
        assert_eq!(found.parameters, 0.0, "nothing was learned");
    }
}

/// The state that the output layer reads is the last of the request's, not of padding or of the child.
#[test]
fn the_state_is_what_the_first_token_is_drawn_from() {
    let policy = adapted(0.0);
    let example = example();
    let completions = Completions::new(&[&example.request], &[&example.child[..1].to_vec()]).expect("valid");
    let logprob = completions
        .logprobs(policy.decoder(), policy.adapter(), TEMPERATURE)
        .expect("valid");
    let state = policy.last_hidden(&example.request).expect("valid");
    let state: Vec<f64> = state.into_data().iter::<f64>().collect();
    let expected = example.advantage * logprob.into_data().iter::<f64>().sum::<f64>();
    assert_close(surrogate_of_state(&policy, &example, &state), expected, 1e-4);
}

#[test]
fn nothing_is_dropped_and_products_grow_with_the_advantage() {
    let (plain, dropping) = (adapted(0.0), adapted(0.5));
    let after = |policy: &Policy<Flex>| moved(policy, &step(policy, 0.02, 2), 1.0);
    let expected = found(&plain, &after(&plain));
    assert_eq!(found(&dropping, &after(&dropping)), expected);
    let twice = AlignmentExample {
        advantage: -1.5,
        ..example()
    };
    let doubled = plain
        .alignment(&after(&plain), &[twice], TEMPERATURE, &mut || ())
        .expect("valid")[0];
    assert_eq!(
        (doubled.hidden, doubled.parameters),
        (2.0 * expected.hidden, 2.0 * expected.parameters)
    );
}

#[test]
fn what_does_not_fit_together_is_named() {
    let policy = adapted(0.0);
    let refused = |after: &Policy<Flex>, example: AlignmentExample| {
        let refused = policy.alignment(after, &[example], TEMPERATURE, &mut || ());
        refused.expect_err("must be refused").to_string()
    };
    let whole = Policy::Whole(decoder(true));
    assert!(refused(&whole, example()).contains("policy after the step"));
    let endless = AlignmentExample {
        advantage: f64::INFINITY,
        ..example()
    };
    assert!(refused(&policy, endless).contains("line 7 of the journal"));
    let empty = AlignmentExample {
        child: Vec::new(),
        ..example()
    };
    assert!(refused(&policy, empty).contains("completion is empty"));
}
