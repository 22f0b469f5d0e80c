//! The kernels of GPUs against the operations of the processor, which are checked against burn's own.

use std::ops::Range;
use std::sync::Arc;

use burn_flex::{Flex, FlexDevice};
use burn_tensor::backend::Backend;
use burn_tensor::{DType, FloatDType, Int, Tensor, TensorData};
use burn_wgpu::WgpuDevice;
use capo_rewriter::backend::{AdamWUpdate, PolicyBackend, Visibility};
use capo_rewriter::token_sampling::{Sampling, logprob};
use capo_rewriter_wgpu::{Wgpu, device};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha12Rng;

fn gpu() -> WgpuDevice {
    device(0).expect("a Vulkan adapter, which `cargo xtask setup` installs")
}

/// Numbers between −`size` and `size`.
fn draw<const D: usize>(dims: [usize; D], size: f32, seed: u64) -> TensorData {
    let mut random = ChaCha12Rng::seed_from_u64(seed);
    let count = dims.iter().product();
    let numbers: Vec<f32> = (0..count).map(|_| random.random_range(-size..=size)).collect();
    TensorData::new(numbers, dims)
}

fn tensor<B: Backend, const D: usize>(data: &TensorData, device: &B::Device) -> Tensor<B, D> {
    Tensor::from_data(data.clone(), (device, DType::F32))
}

fn numbers<B: Backend, const D: usize>(tensor: Tensor<B, D>) -> Vec<f32> {
    let tensor = tensor.cast(FloatDType::F32).into_data();
    tensor.into_vec().expect("32-bit numbers")
}

/// The same up to a share of the largest, or of 1.
fn assert_close<const D: usize>(what: &str, found: Tensor<Wgpu, D>, expected: Tensor<Flex, D>, share: f32) {
    assert_eq!(found.dims(), expected.dims(), "{what}");
    let (found, expected) = (numbers(found), numbers(expected));
    let largest = expected
        .iter()
        .fold(1.0f32, |largest, number| largest.max(number.abs()));
    for (index, (one, other)) in found.iter().zip(&expected).enumerate() {
        assert!(
            (one - other).abs() <= share * largest,
            "{what} at {index}: {one} instead of {other}, largest {largest}"
        );
    }
}

#[test]
fn norms() {
    // Narrower and wider than a cube, more rows than a grid is wide.
    for (rows, width) in [(1, 1), (3, 33), (2, 128), (5, 1000), (70_001, 4)] {
        let inputs = [draw([rows, width], 3.0, 1), draw([rows, width], 1.0, 2)];
        let weight = draw([width], 2.0, 3);
        let (of_gpu, of_flex) = (
            norm::<Wgpu>(&inputs, &weight, &gpu()),
            norm::<Flex>(&inputs, &weight, &FlexDevice),
        );
        for (found, expected) in of_gpu.into_iter().zip(of_flex) {
            assert_close(&format!("{rows} rows of {width}"), found, expected, 1e-5);
        }
    }
}

fn norm<B: PolicyBackend>(
    inputs: &[TensorData; 2],
    weight: &TensorData,
    device: &B::Device,
) -> [Tensor<B, 2>; 2] {
    let [input, gradient] = inputs.each_ref().map(|data| tensor::<B, 2>(data, device));
    let weight = tensor::<B, 1>(weight, device);
    [
        B::rms_norm(input.clone(), weight.clone(), 1e-6),
        B::rms_norm_backward(input, weight, 1e-6, gradient),
    ]
}

#[test]
fn gated_units() {
    // The last is of more units than a grid is wide.
    for (rows, width) in [(1, 1), (3, 85), (700, 30), (1025, 16_400)] {
        // Some gates far outside the range of exp.
        let inputs = [200.0, 3.0, 1.0].map(|size| draw([rows, width], size, size as u64));
        let of_gpu = gated::<Wgpu>(&inputs, &gpu());
        for (found, expected) in of_gpu.into_iter().zip(gated::<Flex>(&inputs, &FlexDevice)) {
            assert_close(&format!("{rows} rows of {width}"), found, expected, 1e-5);
        }
    }
}

fn gated<B: PolicyBackend>(inputs: &[TensorData; 3], device: &B::Device) -> [Tensor<B, 2>; 3] {
    let [gate, up, gradient] = inputs.each_ref().map(|data| tensor::<B, 2>(data, device));
    let [by_gate, by_up] = B::silu_mul_backward(gate.clone(), up.clone(), gradient);
    // A view that is not packed.
    let turned = |tensor: Tensor<B, 2>| tensor.transpose();
    let again = B::silu_mul(turned(gate.clone()), turned(up.clone()));
    let unit = B::silu_mul(gate, up);
    assert_eq!(numbers(unit.clone()), numbers(turned(again)));
    [unit, by_gate, by_up]
}

#[test]
fn rotations() {
    for [rows, columns, heads, half] in [[1, 1, 1, 1], [2, 3, 4, 16], [3, 40, 2, 7]] {
        let heads = draw([rows, columns, heads, 2 * half], 1.0, 1);
        let tables = [2, 3].map(|seed| draw([rows, columns, 1, 2 * half], 1.0, seed));
        let found = rotated::<Wgpu>(&heads, &tables, &gpu());
        let expected = rotated::<Flex>(&heads, &tables, &FlexDevice);
        assert_close("rotation", found, expected, 1e-6);
    }
}

fn rotated<B: PolicyBackend>(
    heads: &TensorData,
    tables: &[TensorData; 2],
    device: &B::Device,
) -> Tensor<B, 4> {
    let [cos, sin] = tables.each_ref().map(|data| {
        let [.., width] = data.shape.dims::<4>();
        let half = tensor::<B, 4>(data, device).narrow(3, 0, width / 2);
        [half.clone(), half]
    });
    let cos = Tensor::cat(cos.into(), 3);
    let [first, second] = sin;
    let sin = Tensor::cat(vec![first.neg(), second], 3);
    // As a gradient comes out of attention: its columns beside its heads.
    let heads = tensor::<B, 4>(heads, device);
    let moved = heads.clone().swap_dims(1, 2).mul_scalar(1.0).swap_dims(1, 2);
    let turned = B::rotate(moved, cos.clone(), sin.clone());
    let plain = B::rotate(heads, cos, sin);
    assert_eq!(numbers(turned), numbers(plain.clone()));
    plain
}

#[test]
fn scores_of_targets() {
    for (tokens, vocabulary, size) in [(1, 1, 1.0), (3, 50, 40.0), (9, 3000, 5.0)] {
        let logits = draw([tokens, vocabulary], size, 1);
        let gradient = draw([tokens], 1.0, 2);
        let found = scored::<Wgpu>(&logits, &gradient, &gpu());
        let expected = scored::<Flex>(&logits, &gradient, &FlexDevice);
        let share = 1e-5 * (1.0 + size);
        assert_close("log-probabilities", found.0, expected.0, share);
        assert_close("entropy", found.1, expected.1, share);
        assert_close("probabilities", found.2, expected.2, share);
        assert_close("gradient", found.3, expected.3, share);
    }
}

fn scored<B: PolicyBackend>(
    logits: &TensorData,
    gradient: &TensorData,
    device: &B::Device,
) -> (Tensor<B, 1>, Tensor<B, 1>, Tensor<B, 2>, Tensor<B, 2>) {
    let [tokens, vocabulary] = logits.shape.dims();
    let targets: Vec<_> = (0..tokens).map(|token| (7 * token % vocabulary) as u32).collect();
    let targets = Tensor::<B, 1, Int>::from_data(TensorData::new(targets, [tokens]), device);
    let scores = B::target_scores(tensor(logits, device), targets.clone(), 0.7);
    let gradient = tensor(gradient, device);
    let gradient = B::target_scores_backward(scores.probabilities.clone(), targets, 0.7, gradient);
    (scores.logprobs, scores.entropy, scores.probabilities, gradient)
}

#[test]
fn draws() {
    let uniforms = [0.0, 0.2, 0.5, 0.77, 0.999_999, 0.31];
    for (vocabulary, size, temperature) in [(1, 1.0, 1.0), (50, 3.0, 0.7), (3000, 8.0, 1.3)] {
        let data = draw([uniforms.len(), vocabulary], size, 5);
        let logits: Vec<f32> = data.to_vec().expect("32-bit numbers");
        let on_gpu = tensor::<Wgpu, 2>(&data, &gpu());
        for temperature in [temperature, 0.0] {
            let sampling = Sampling {
                temperature,
                ..Sampling::default()
            };
            let draws = Wgpu::draw(&on_gpu, temperature, &uniforms).expect("GPUs draw");
            let rows = logits.chunks(vocabulary).zip(&uniforms);
            for (row, (drawn, (logits, uniform))) in draws.iter().zip(rows).enumerate() {
                let what = format!("row {row} of {vocabulary} at temperature {temperature}");
                assert!(drawn.is_finite, "{what}");
                assert_eq!(drawn.token, sampling.draw(logits, *uniform), "{what}");
                let expected = logprob(logits, drawn.token, sampling.logprob_temperature());
                assert!(
                    (drawn.logprob - expected).abs() < 1e-4,
                    "{what}: {} instead of {expected}",
                    drawn.logprob
                );
            }
        }
    }
    // Small weights beside a large one: 0.005 of the mass, evenly among 99,999 tokens.
    let (tokens, share) = (100_000, 0.005_f64);
    let mut peaked = vec![0.0f32; tokens];
    peaked[0] = ((1.0 - share) / (share / (tokens - 1) as f64)).ln() as f32;
    let row = Tensor::<Wgpu, 2>::from_data(TensorData::new(peaked, [1, tokens]), &gpu());
    for step in 1..40 {
        let behind = f64::from(step) / 40.0;
        let drawn = Wgpu::draw(&row, 1.0, &[1.0 - share * behind]).expect("GPUs draw")[0];
        let expected = (1.0 - behind) * tokens as f64;
        // A number of 32 bits is off by 6e-8, which is a token or two.
        let distance = (f64::from(drawn.token) - expected).abs();
        assert!(distance < 10.0, "token {} instead of {expected}", drawn.token);
    }
    assert!(Wgpu::draw(&row, 1e-40, &[0.5]).is_none());
    // The first of equals, the last, and where a number rounded to 1 is above all mass.
    let level = Tensor::<Wgpu, 2>::zeros([1, 700], &gpu());
    assert_eq!(Wgpu::draw(&level, 0.0, &[0.5]).expect("GPUs draw")[0].token, 0);
    assert_eq!(
        Wgpu::draw(&level, 1.0, &[0.999_999]).expect("GPUs draw")[0].token,
        699
    );
    assert_eq!(Wgpu::draw(&level, 1.0, &[1.0]).expect("GPUs draw")[0].token, 0);
}

#[test]
fn logits_that_are_not_finite_are_told() {
    for bad in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
        let mut numbers = vec![0.5; 1200];
        numbers[777] = bad;
        let logits = Tensor::<Wgpu, 2>::from_data(TensorData::new(numbers, [2, 600]), &gpu());
        for temperature in [0.0, 1.0] {
            let draws = Wgpu::draw(&logits, temperature, &[0.3, 0.3]).expect("GPUs draw");
            assert_eq!(
                draws.iter().map(|draw| draw.is_finite).collect::<Vec<_>>(),
                [true, false],
                "{bad}"
            );
        }
    }
}

#[test]
fn steps_of_the_optimizer() {
    let shapes = [[1, 1], [3, 700], [130, 260]];
    let update = AdamWUpdate {
        factor: 0.4,
        beta_1: 0.9,
        beta_2: 0.9999,
        scale_1: 0.19,
        scale_2: 1.0 - 0.9999,
        eps: 1e-6,
        kept: 0.98,
        learning_rate: 0.1,
    };
    let found = stepped::<Wgpu>(&shapes, &update, &gpu());
    let expected = stepped::<Flex>(&shapes, &update, &FlexDevice);
    assert_close("squares", found.0, expected.0, 1e-5);
    for (found, expected) in found.1.into_iter().zip(expected.1) {
        assert_close("a step", found, expected, 1e-5);
    }
    assert!(Wgpu::squares(Vec::new()).is_none());
}

fn stepped<B: PolicyBackend>(
    shapes: &[[usize; 2]],
    update: &AdamWUpdate,
    device: &B::Device,
) -> (Tensor<B, 1>, Vec<Tensor<B, 2>>) {
    let matrix = |shape: [usize; 2], seed| tensor::<B, 2>(&draw(shape, 2.0, seed), device);
    let gradients: Vec<_> = shapes.iter().map(|shape| matrix(*shape, 1)).collect();
    let squares = B::squares(gradients.clone()).expect("there are matrices");
    let steps = shapes.iter().zip(gradients).flat_map(|(shape, gradient)| {
        let second = matrix(*shape, 4);
        let moments = [matrix(*shape, 3), second.clone() * second];
        B::adamw(matrix(*shape, 2), gradient, moments, update)
    });
    (squares, steps.collect())
}

/// Rows whose queries are the last of the columns seen.
#[derive(Debug, Clone, Copy)]
struct Case {
    rows: usize,
    queries: usize,
    before: usize,
    key_heads: usize,
    group: usize,
    width: usize,
    /// How many of the first keys of the last row are no tokens.
    padding: usize,
    window: Option<usize>,
    /// Whether queries see what comes after them.
    sees_all: bool,
}

#[test]
fn attention() {
    let plain = Case {
        rows: 1,
        queries: 1,
        before: 0,
        key_heads: 1,
        group: 1,
        width: 4,
        padding: 0,
        window: None,
        sees_all: false,
    };
    let of_several = Case {
        rows: 3,
        key_heads: 2,
        group: 3,
        width: 40,
        padding: 5,
        ..plain
    };
    let cases = [
        plain,
        // One query, with fewer and more keys than a cube has units, and heads wider than a cube.
        Case { before: 7, ..plain },
        Case {
            before: 200,
            padding: 190,
            width: 300,
            ..of_several
        },
        Case {
            before: 150,
            window: Some(20),
            ..of_several
        },
        // Nothing to see in the last row.
        Case {
            before: 9,
            padding: 10,
            ..of_several
        },
        // Two, and many.
        Case {
            queries: 2,
            before: 80,
            ..of_several
        },
        Case {
            queries: 3,
            before: 4,
            ..of_several
        },
        Case {
            queries: 70,
            window: Some(9),
            ..of_several
        },
        Case {
            queries: 40,
            padding: 0,
            before: 30,
            ..of_several
        },
        Case {
            queries: 40,
            padding: 0,
            sees_all: true,
            ..of_several
        },
        Case {
            queries: 5,
            before: 1100,
            ..of_several
        },
    ];
    for case in cases {
        let what = format!("{case:?}");
        let (found, expected) = (mixed::<Wgpu>(case, &gpu()), mixed::<Flex>(case, &FlexDevice));
        for (found, expected) in found.into_iter().zip(expected) {
            assert_close(&what, found, expected, 2e-5);
        }
    }
}

/// The mixture of what each query sees, and the gradients.
fn mixed<B: PolicyBackend>(case: Case, device: &B::Device) -> [Tensor<B, 4>; 4] {
    let Case {
        rows, queries, width, ..
    } = case;
    let heads = case.key_heads * case.group;
    let keys = case.before + queries;
    let (mut spans, mut tokens, mut sees) = (Vec::new(), Vec::new(), Vec::new());
    for row in 0..rows {
        let padding = if row + 1 == rows { case.padding } else { 0 };
        tokens.extend((0..keys).map(|key| key >= padding));
        spans.extend((case.before..keys).map(|query| -> Range<usize> {
            let oldest = case.window.map_or(0, |window| (query + 1).saturating_sub(window));
            oldest..if case.sees_all { keys } else { query + 1 }
        }));
        sees.extend((case.before..keys).map(|query| f32::from(u8::from(query >= padding))));
    }
    let visible = Arc::new(Visibility::new(rows, spans, tokens));
    // Keys and values lie by head and have room for more, as in a cache.
    let stored = |seed| {
        let data = draw([rows, case.key_heads, keys + 3, width], 1.0, seed);
        B::first_columns(tensor::<B, 4>(&data, device), keys).swap_dims(1, 2)
    };
    let [of_queries, of_keys, of_values] = [
        tensor(&draw([rows, queries, heads, width], 2.0, 1), device),
        stored(2),
        stored(3),
    ];
    let sees = tensor::<B, 4>(&TensorData::new(sees, [rows, queries, 1, 1]), device);
    let sees = sees.expand([rows, queries, heads, width]);
    let gradient = tensor::<B, 4>(&draw([rows, queries, heads, width], 1.0, 4), device) * sees.clone();
    let mixed = B::attend(
        of_queries.clone(),
        of_keys.clone(),
        of_values.clone(),
        0.3,
        &visible,
    );
    assert!(numbers(mixed.clone()).iter().all(|number| number.is_finite()));
    let [by_queries, by_keys, by_values] =
        B::attend_backward(of_queries, of_keys, of_values, 0.3, &visible, gradient);
    [mixed * sees.clone(), by_queries * sees, by_keys, by_values]
}

#[test]
#[should_panic(expected = "the store has no 4 columns")]
fn stores_give_no_more_columns_than_they_have() {
    let store = Tensor::<Wgpu, 4>::zeros([1, 2, 3, 4], &gpu());
    assert_eq!(Wgpu::first_columns(store.clone(), 3).dims(), [1, 2, 3, 4]);
    Wgpu::first_columns(store, 4);
}

#[test]
fn distributions_made_at_a_time_fit_a_tensor() {
    let numbers = Wgpu::scored_numbers(&gpu());
    assert!(numbers >= 1 << 20, "{numbers}");
    let distributions = Tensor::<Wgpu, 2>::ones([numbers / 4096, 4096], &gpu());
    let sum: f32 = distributions.sum().into_scalar();
    assert_eq!(sum, (numbers / 4096 * 4096) as f32);
}

/// Tensors that stay and others, of sizes with and without memory of their own.
#[test]
fn what_stays_keeps_its_numbers() {
    let gpu = gpu();
    let made: Vec<_> = [[3, 5], [2048, 2049], [64, 64], [2048, 2049]]
        .into_iter()
        .enumerate()
        .map(|(seed, shape)| {
            let data = draw(shape, 1.0, seed as u64);
            let stays = Wgpu::lasting(&gpu, data.bytes.len(), data.clone(), |data| {
                tensor::<Wgpu, 2>(&data, &gpu)
            });
            (data, stays)
        })
        .collect();
    for (data, stays) in made {
        let passing = stays.clone().mul_scalar(2.0).mul_scalar(0.5);
        let expected: Vec<f32> = data.into_vec().expect("32-bit numbers");
        assert_eq!(numbers(passing), expected);
        assert_eq!(numbers(stays), expected);
    }
}
