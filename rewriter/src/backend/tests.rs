//! The operations against their bodies in burn's own, values and gradients.

use std::ops::Range;
use std::sync::Arc;

use burn_autodiff::Autodiff;
use burn_flex::{Flex, FlexDevice, FlexTensor};
use burn_tensor::{DType, Distribution, Tensor, TensorData};
use proptest::prelude::*;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha12Rng;

use super::{PolicyBackend, Visibility, index_tensor, tensors};

type Learning = Autodiff<Flex>;
type Seen = Arc<Visibility<FlexTensor>>;

/// Numbers between −`size` and `size`.
fn draw<const D: usize>(dims: [usize; D], size: f32, seed: u64) -> Tensor<Flex, D> {
    let mut random = ChaCha12Rng::seed_from_u64(seed);
    let count = dims.iter().product();
    let numbers: Vec<f32> = (0..count).map(|_| random.random_range(-size..=size)).collect();
    Tensor::from_data(TensorData::new(numbers, dims), &FlexDevice)
}

fn numbers<const D: usize>(tensor: Tensor<Flex, D>) -> Vec<f32> {
    tensor.into_data().into_vec().expect("32-bit numbers")
}

/// What may stand where another computation underflows to zero: the smallest numbers, times what they are multiplied by.
const UNDERFLOWN: f32 = 1e-30;

/// The same up to a share of the largest.
fn assert_close<const D: usize>(what: &str, found: Tensor<Flex, D>, expected: Tensor<Flex, D>, share: f32) {
    assert_eq!(found.dims(), expected.dims(), "{what}");
    let (found, expected) = (numbers(found), numbers(expected));
    let largest = expected
        .iter()
        .fold(0.0f32, |largest, number| largest.max(number.abs()));
    for (index, (one, other)) in found.iter().zip(&expected).enumerate() {
        let is_close = (one - other).abs() <= share * largest + UNDERFLOWN;
        assert!(
            is_close,
            "{what} at {index}: {one} instead of {other}, largest {largest}"
        );
    }
}

/// Tensors of which gradients are wanted.
fn tracked<const D: usize, const N: usize>(tensors: &[Tensor<Flex, D>; N]) -> [Tensor<Learning, D>; N] {
    tensors
        .clone()
        .map(|tensor| Tensor::from_inner(tensor).require_grad())
}

/// The gradients of the sum of an output, weighted, by the inputs.
fn gradients<const D: usize, const O: usize, const N: usize>(
    inputs: &[Tensor<Flex, D>; N],
    weights: &Tensor<Flex, O>,
    work: impl FnOnce([Tensor<Learning, D>; N]) -> Tensor<Learning, O>,
) -> [Tensor<Flex, D>; N] {
    let inputs = tracked(inputs);
    let output = work(inputs.clone());
    let gradients = (output * Tensor::from_inner(weights.clone())).sum().backward();
    inputs.map(|input| input.grad(&gradients).expect("it is tracked"))
}

fn sizes() -> impl Strategy<Value = f32> {
    prop_oneof![Just(1e-3f32), Just(1.0), Just(40.0)]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn norms_are_those_of_the_tensor_operations(
        rows in 1usize..6, width in 1usize..70, size in sizes(), seed: u64,
    ) {
        let input = draw([rows, width], size, seed);
        let weight = draw([1, width], 2.0, seed ^ 1);
        let weights = draw([rows, width], 1.0, seed ^ 2);
        let found = Flex::rms_norm(input.clone(), weight.clone().squeeze_dim(0), 1e-6);
        let expected = tensors::rms_norm(input.clone(), weight.clone().squeeze_dim(0), 1e-6);
        assert_close("norm", found, expected, 1e-5);

        let inputs = [input.clone(), weight.clone().expand([rows, width])];
        let first_row = |weight: Tensor<Learning, 2>| weight.narrow(0, 0, 1).squeeze_dim(0);
        let found = gradients(&inputs, &weights, |[input, weight]| {
            Learning::rms_norm(input, first_row(weight), 1e-6)
        });
        let expected = gradients(&inputs, &weights, |[input, weight]| {
            tensors::rms_norm(input, first_row(weight), 1e-6)
        });
        // Relative to the parts of the gradient, which cancel where a row is narrow.
        let beside = |gradient: Tensor<Flex, 2>, part: f32| {
            Tensor::cat(vec![gradient, Tensor::full([1, width], part, &FlexDevice)], 0)
        };
        let by_hand = tensors::rms_norm_backward(input, weight.squeeze_dim(0), 1e-6, weights);
        let [found, found_weight] = found;
        let [expected, expected_weight] = expected;
        let expected = beside(expected, 1.0 / size);
        assert_close("gradient of the norm", beside(found, 1.0 / size), expected.clone(), 1e-4);
        assert_close("gradient by hand", beside(by_hand, 1.0 / size), expected, 1e-4);
        assert_close("gradient by the weight", beside(found_weight, 1.0), beside(expected_weight, 1.0), 1e-4);
    }

    #[test]
    fn gated_units_are_those_of_the_tensor_operations(
        rows in 1usize..6, width in 1usize..70, size in sizes(), seed: u64,
    ) {
        // Some gates far outside the range of exp.
        let gate = draw([rows, width], 4.0 * size, seed);
        let up = draw([rows, width], size, seed ^ 1);
        let weights = draw([rows, width], 1.0, seed ^ 2);
        let found = Flex::silu_mul(gate.clone(), up.clone());
        assert_close("unit", found, tensors::silu_mul(gate.clone(), up.clone()), 1e-5);

        let inputs = [gate.clone(), up.clone()];
        let found = gradients(&inputs, &weights, |[gate, up]| Learning::silu_mul(gate, up));
        let expected = gradients(&inputs, &weights, |[gate, up]| tensors::silu_mul(gate, up));
        let by_hand = tensors::silu_mul_backward(gate, up, weights);
        for ((found, by_hand), expected) in found.into_iter().zip(by_hand).zip(expected) {
            assert_close("gradient of the unit", found, expected.clone(), 1e-5);
            assert_close("gradient by hand", by_hand, expected, 1e-5);
        }
    }

    #[test]
    fn rotations_are_those_of_the_tensor_operations(
        rows in 1usize..3, columns in 1usize..6, heads in 1usize..4, half in 1usize..20, seed: u64,
    ) {
        let dims = [rows, columns, heads, 2 * half];
        let inputs = [draw(dims, 1.0, seed)];
        let [input] = inputs.clone();
        let (cos, sin) = (draw([rows, columns, 1, half], 1.0, seed ^ 1), draw([rows, columns, 1, half], 1.0, seed ^ 2));
        let cos = Tensor::cat(vec![cos.clone(), cos], 3);
        let sin = Tensor::cat(vec![sin.clone().neg(), sin], 3);
        let found = Flex::rotate(input.clone(), cos.clone(), sin.clone());
        assert_close("rotation", found, tensors::rotate(input, cos.clone(), sin.clone()), 1e-6);

        let weights = draw(dims, 1.0, seed ^ 3);
        let tables = || [cos.clone(), sin.clone()].map(Tensor::<Learning, 4>::from_inner);
        let [found] = gradients(&inputs, &weights, |[input]| {
            let [cos, sin] = tables();
            Learning::rotate(input, cos, sin)
        });
        let [expected] = gradients(&inputs, &weights, |[input]| {
            let [cos, sin] = tables();
            tensors::rotate(input, cos, sin)
        });
        assert_close("gradient of the rotation", found, expected, 1e-6);
    }

    #[test]
    fn few_rows_are_multiplied_as_many_are(
        rows in 1usize..20, inputs in 1usize..80, outputs in 1usize..40, seed: u64,
    ) {
        let input = draw([rows, inputs], 1.0, seed);
        let weight = draw([outputs, inputs], 1.0, seed ^ 1);
        let expected = input.clone().matmul(weight.clone().transpose());
        assert_close("product", Flex::project(input.clone(), weight), expected, 1e-5);
        // Rows that lie in columns.
        let turned = draw([inputs, outputs], 1.0, seed ^ 2).transpose();
        let expected = input.clone().matmul(turned.clone().transpose());
        assert_close("product", Flex::project(input, turned), expected, 1e-5);
    }

    #[test]
    fn targets_are_scored_as_by_the_tensor_operations(
        tokens in 1usize..6, vocabulary in 1usize..90, size in sizes(),
        temperature in 0.3f64..2.0, seed: u64,
    ) {
        let logits = draw([tokens, vocabulary], size, seed);
        let targets = || index_tensor::<Flex>((0..tokens).map(|token| 7 * token % vocabulary), &FlexDevice);
        let found = Flex::target_scores(logits.clone(), targets(), temperature);
        let expected = tensors::target_scores(logits.clone(), targets(), temperature);
        // The differences of logits are rounded by the size of the logits.
        let share = 1e-5 * (1.0 + size);
        let scale = |scores: Tensor<Flex, 1>| Tensor::cat(vec![scores, Tensor::ones([1], &FlexDevice)], 0);
        assert_close("log-probabilities", scale(found.logprobs), scale(expected.logprobs), share);
        assert_close("entropy", scale(found.entropy), scale(expected.entropy), share);
        assert_close("probabilities", found.probabilities, expected.probabilities.clone(), share);

        let weights = draw([tokens], 1.0, seed ^ 1);
        let learned = || index_tensor::<Learning>((0..tokens).map(|token| 7 * token % vocabulary), &FlexDevice);
        let inputs = [logits];
        let [found] = gradients(&inputs, &weights, |[logits]| {
            Learning::target_scores(logits, learned(), temperature).logprobs
        });
        let [expected_gradient] = gradients(&inputs, &weights, |[logits]| {
            tensors::target_scores(logits, learned(), temperature).logprobs
        });
        let by_hand = tensors::target_scores_backward(expected.probabilities, targets(), temperature, weights);
        // Relative to the weights, since the differences may all be next to nothing.
        let ones = Tensor::ones([1, vocabulary], &FlexDevice);
        let scale = |gradient: Tensor<Flex, 2>| Tensor::cat(vec![gradient, ones.clone()], 0);
        assert_close("gradient of the scores", scale(found), scale(expected_gradient.clone()), 4.0 * share);
        assert_close("gradient by hand", scale(by_hand), scale(expected_gradient), 4.0 * share);
    }

    #[test]
    fn attention_is_that_of_the_tensor_operations(case in cases()) {
        let seen = case.visible();
        let inputs = case.inputs();
        let [queries, keys, values] = inputs.clone();
        let found = Flex::attend(queries.clone(), keys.clone(), values.clone(), 0.3, &seen);
        prop_assert!(numbers(found.clone()).iter().all(|number| number.is_finite()));
        let expected = tensors::attention(queries.clone(), keys.clone(), values.clone(), 0.3, &seen);
        let sees = case.sees(&seen);
        assert_close("mixture", found * sees.clone(), expected * sees.clone(), 1e-4);

        let weights = draw(queries.dims(), 1.0, case.seed ^ 7) * sees;
        let found = gradients(&inputs, &weights, |[queries, keys, values]| {
            Learning::attend(queries, keys, values, 0.3, &seen)
        });
        let expected = gradients(&inputs, &weights, |[queries, keys, values]| {
            tensors::attention(queries, keys, values, 0.3, &seen)
        });
        let by_hand = tensors::attention_backward(queries, keys, values, 0.3, &seen, weights.clone());
        // The gradients of sharp weights are differences of larger numbers.
        let unit = Tensor::<Flex, 4>::ones([1; 4], &FlexDevice).mul_scalar(case.size.max(1e-2));
        let unit = |gradient: Tensor<Flex, 4>| Tensor::cat(vec![gradient.flatten::<1>(0, 3), unit.clone().flatten(0, 3)], 0);
        for ((found, by_hand), expected) in found.into_iter().zip(by_hand).zip(expected) {
            assert_close("gradient of attention", unit(found), unit(expected.clone()), 2e-4);
            assert_close("gradient by hand", unit(by_hand), unit(expected), 2e-4);
        }
    }
}

/// Rows that may be padded on the left, their queries the last of the columns seen.
#[derive(Debug, Clone)]
struct Case {
    rows: usize,
    queries: usize,
    before: usize,
    key_heads: usize,
    group: usize,
    width: usize,
    /// By row, how many of the first keys are no tokens.
    padding: Vec<usize>,
    /// A key in the middle that is no token.
    gap: Option<usize>,
    window: Option<usize>,
    size: f32,
    seed: u64,
}

fn cases() -> impl Strategy<Value = Case> {
    let sizes = (1usize..3, prop_oneof![1usize..12, 30usize..70], 0usize..20);
    let heads = (1usize..3, 1usize..3, 1usize..36);
    let hidden = (
        prop::collection::vec(0usize..90, 2),
        prop::option::of(0usize..90),
        prop::option::of(1usize..20),
    );
    let numbers = (prop_oneof![Just(0.1f32), Just(1.0), Just(8.0)], any::<u64>());
    (sizes, heads, hidden, numbers).prop_map(
        |((rows, queries, before), (key_heads, group, width), (padding, gap, window), (size, seed))| Case {
            rows,
            queries,
            before,
            key_heads,
            group,
            width,
            padding,
            gap,
            window,
            size,
            seed,
        },
    )
}

impl Case {
    fn keys(&self) -> usize {
        self.before + self.queries
    }

    /// Rows may be all padding.
    fn visible(&self) -> Seen {
        let (mut spans, mut tokens) = (Vec::new(), Vec::new());
        for row in 0..self.rows {
            let padding = self.padding[row].min(self.keys());
            let is_token = |key: usize| key >= padding && Some(key) != self.gap;
            tokens.extend((0..self.keys()).map(is_token));
            spans.extend((self.before..self.keys()).map(|query| -> Range<usize> {
                let oldest = self.window.map_or(0, |window| (query + 1).saturating_sub(window));
                let end = if query < padding { padding } else { query + 1 };
                padding.max(oldest).min(end)..end
            }));
        }
        Arc::new(Visibility::new(self.rows, spans, tokens))
    }

    /// 1 for each query that sees a key, else 0.
    fn sees(&self, seen: &Seen) -> Tensor<Flex, 4> {
        let sees = (0..self.rows).flat_map(|row| {
            (0..self.queries).map(move |query| {
                let is_seen = seen.tokens(row)[seen.span(row, query)].contains(&true);
                f32::from(u8::from(is_seen))
            })
        });
        let data = TensorData::new(sees.collect::<Vec<_>>(), [self.rows, self.queries, 1, 1]);
        let heads = self.key_heads * self.group;
        Tensor::<Flex, 4>::from_data(data, &FlexDevice).expand([self.rows, self.queries, heads, self.width])
    }

    /// Queries, and keys and values that lie by head, as a cache has them.
    fn inputs(&self) -> [Tensor<Flex, 4>; 3] {
        let heads = self.key_heads * self.group;
        let stored = [self.rows, self.key_heads, self.keys(), self.width];
        [
            draw([self.rows, self.queries, heads, self.width], self.size, self.seed),
            draw(stored, self.size, self.seed ^ 1).swap_dims(1, 2),
            draw(stored, self.size, self.seed ^ 2).swap_dims(1, 2),
        ]
    }
}

#[test]
fn numbers_that_are_none_are_not_hidden() {
    let poisoned = |dims: [usize; 4]| {
        let tensor = draw(dims, 1.0, 1);
        tensor.slice_assign(
            [0..1, 1..2, 0..1, 0..1],
            Tensor::full([1; 4], f32::NAN, &FlexDevice),
        )
    };
    let plain = |dims| draw(dims, 1.0, 2);
    let dims = [1, 40, 1, 4];
    let spans = (0..40).map(|query| 0..query + 1).collect();
    let seen: Seen = Arc::new(Visibility::new(1, spans, vec![true; 40]));
    for inputs in [
        [poisoned(dims), plain(dims), plain(dims)],
        [plain(dims), poisoned(dims), plain(dims)],
        [plain(dims), plain(dims), poisoned(dims)],
    ] {
        let [queries, keys, values] = inputs;
        let mixed = numbers(Flex::attend(queries, keys, values, 0.5, &seen));
        assert!(mixed[4..8].iter().any(|number| number.is_nan()));
    }
    // A query is not harmed by the scores of keys that it does not see.
    let mixed = numbers(Flex::attend(plain(dims), poisoned(dims), plain(dims), 0.5, &seen));
    assert!(mixed[..4].iter().all(|number| number.is_finite()));
    let logits =
        draw([1, 20], 1.0, 3).slice_assign([0..1, 4..5], Tensor::full([1; 2], f32::NAN, &FlexDevice));
    let scores = Flex::target_scores(logits.clone(), index_tensor::<Flex>([0], &FlexDevice), 1.0);
    assert!(numbers(scores.logprobs)[0].is_nan() && numbers(scores.entropy)[0].is_nan());
    assert!(numbers(Flex::silu_mul(logits.clone(), logits.ones_like()))[4].is_nan());
}

#[test]
fn masks_are_those_of_their_seed_and_keep_their_share() {
    let mask = |seed| numbers(Flex::keep_mask([200, 50], 0.9, seed, DType::F32, &FlexDevice));
    assert_eq!(mask(3), mask(3));
    assert_ne!(mask(3), mask(4));
    let kept: f32 = mask(5).iter().sum();
    // 9000 expected, with a standard deviation of 30.
    assert!((8850.0..9150.0).contains(&kept), "{kept}");
    assert!(mask(5).iter().all(|number| *number == 0.0 || *number == 1.0));
}

#[test]
fn columns_are_written_in_place_and_beside_another_handle() {
    let draw = |shape: [usize; 4]| Tensor::<Flex, 4>::random(shape, Distribution::Default, &FlexDevice);
    let store = draw([2, 3, 7, 4]);
    // A view with other strides, as a projection's heads are.
    let values = draw([2, 2, 3, 4]).swap_dims(1, 2);
    let expected = store
        .clone()
        .slice_assign([0..2, 0..3, 4..6, 0..4], values.clone())
        .into_data();
    let copy = Tensor::from_data(store.to_data(), &FlexDevice);
    let alone = Flex::write_columns(copy, values.clone(), 4);
    alone.into_data().assert_eq(&expected, true);
    let before = store.to_data();
    let shared = Flex::write_columns(store.clone(), values, 4);
    shared.into_data().assert_eq(&expected, true);
    store.into_data().assert_eq(&before, true);
}
