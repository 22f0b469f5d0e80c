//! Attention: of few queries in one kernel, of many the softmax between two products.

use burn_cubecl::cubecl::prelude::*;
use burn_cubecl::tensor::CubeTensor;
use burn_cubecl::{CubeRuntime, cubecl};

use super::{UNITS, dims, empty, largest, number_type, total, units};

/// Most columns of queries that [`attend`] is for: each reads all keys and values by itself.
pub(super) const FEW_COLUMNS: usize = 2;

/// Of a key that is not seen. Finite, so that a query that sees nothing has a softmax.
const HIDDEN: f32 = -1e30;

/// A mask, or a tensor in its place that is not read.
fn mask_or<R: CubeRuntime>(hidden: Option<CubeTensor<R>>, instead: &CubeTensor<R>) -> (CubeTensor<R>, bool) {
    match hidden {
        Some(hidden) => (hidden, true),
        None => (instead.clone(), false),
    }
}

/// A cube for each row, column and head. It takes as many keys at a time as it has units: a unit scores
/// a key, then adds up one or more numbers of the values, by the weights of all of these keys.
#[cube(launch, address_type = "dynamic")]
fn attend_kernel<F: Float, M: Numeric>(
    queries: &Tensor<F>,
    keys: &Tensor<F>,
    values: &Tensor<F>,
    hidden: &Tensor<M>,
    output: &mut Tensor<F>,
    scale: f32,
    #[comptime] is_masked: bool,
    #[comptime] width: usize,
    #[comptime] units: usize,
    #[define(F, M)] _types: [StorageType; 2],
) {
    let (columns, heads) = (output.shape(1), output.shape(2));
    if CUBE_POS >= output.shape(0) * columns * heads {
        terminate!();
    }
    let unit = UNIT_POS as usize;
    let head = CUBE_POS % heads;
    let column = CUBE_POS / heads % columns;
    let row = CUBE_POS / heads / columns;
    let seen = keys.shape(1);
    let key_head = head / (heads / keys.shape(2));

    let mut shared = SharedMemory::<f32>::new(units);
    let mut weights = SharedMemory::<f32>::new(units);
    let mut query = SharedMemory::<f32>::new(width);
    let mut mixed = SharedMemory::<f32>::new(width);

    let from = row * queries.stride(0) + column * queries.stride(1) + head * queries.stride(2);
    let mut at = unit;
    while at < width {
        query[at] = f32::cast_from(queries[from + at * queries.stride(3)]) * scale;
        mixed[at] = 0.0f32;
        at += units;
    }
    sync_cube();

    let of_keys = row * keys.stride(0) + key_head * keys.stride(2);
    let of_values = row * values.stride(0) + key_head * values.stride(2);
    let mut most = f32::new(HIDDEN);
    let mut sum = 0.0f32;
    let mut first = 0;
    while first < seen {
        let key = first + unit;
        let mut score = f32::new(HIDDEN);
        if key < seen {
            let start = of_keys + key * keys.stride(1);
            let mut product = 0.0f32;
            for at in 0..width {
                product += query[at] * f32::cast_from(keys[start + at * keys.stride(3)]);
            }
            score = product;
            if is_masked {
                let at = row * hidden.stride(0) + column * hidden.stride(2) + key * hidden.stride(3);
                if u32::cast_from(hidden[at]) != 0 {
                    score = f32::new(HIDDEN);
                }
            }
        }
        let before = most;
        most = max(before, largest(score, &mut shared));
        let kept = (before - most).exp();
        let mut weight = 0.0f32;
        if key < seen {
            weight = (score - most).exp();
        }
        weights[unit] = weight;
        sum = sum * kept + total(weight, &mut shared);
        let here = min(units, seen - first);
        let mut at = unit;
        while at < width {
            let mut number = mixed[at] * kept;
            for index in 0..here {
                let from = of_values + (first + index) * values.stride(1) + at * values.stride(3);
                number += weights[index] * f32::cast_from(values[from]);
            }
            mixed[at] = number;
            at += units;
        }
        sync_cube();
        first += units;
    }
    let mut at = unit;
    while at < width {
        output[CUBE_POS * width + at] = F::cast_from(mixed[at] / sum);
        at += units;
    }
}

/// [`attend`](super::PolicyBackend::attend) for few columns; `hidden` is `[rows, 1, columns, keys]`. What is given may
/// have any strides.
pub(super) fn attend<R: CubeRuntime>(
    queries: &CubeTensor<R>,
    keys: &CubeTensor<R>,
    values: &CubeTensor<R>,
    scale: f64,
    hidden: Option<CubeTensor<R>>,
) -> CubeTensor<R> {
    let shape @ [rows, columns, heads, width] = dims(queries);
    let output = empty(queries, &shape, queries.dtype);
    if shape.contains(&0) {
        return output;
    }
    let number_type = number_type(&[queries, keys, values]);
    let (mask, is_masked) = mask_or(hidden, queries);
    let mask_type = mask.dtype;
    let units = width.next_power_of_two().clamp(64, UNITS);
    launch!(
        attend_kernel,
        rows * columns * heads,
        units,
        [queries, keys, values, mask, output],
        scale as f32,
        is_masked,
        width,
        units,
        [number_type, mask_type.into()],
    );
    output
}

/// A score times the scale, or that of a key that is not seen.
#[cube]
fn scaled<F: Float, M: Numeric>(
    scores: &Tensor<F>,
    hidden: &Tensor<M>,
    start: usize,
    of_mask: usize,
    key: usize,
    scale: f32,
    #[comptime] is_masked: bool,
) -> f32 {
    let mut score = f32::cast_from(scores[start + key]) * scale;
    if is_masked && u32::cast_from(hidden[of_mask + key * hidden.stride(3)]) != 0 {
        score = f32::new(HIDDEN);
    }
    score
}

/// Where the mask of a row of scores begins: `row` of `[rows, key heads, group · columns]`.
#[cube]
fn mask_of<F: Float, M: Numeric>(
    scores: &Tensor<F>,
    hidden: &Tensor<M>,
    row: usize,
    group: usize,
    #[comptime] is_masked: bool,
) -> usize {
    let mut start = 0;
    if is_masked {
        let queries = scores.shape(2);
        let column = row % queries % (queries / group);
        start = row / queries / scores.shape(1) * hidden.stride(0) + column * hidden.stride(2);
    }
    start
}

#[cube(launch, address_type = "dynamic")]
fn weights_kernel<F: Float, M: Numeric>(
    scores: &Tensor<F>,
    hidden: &Tensor<M>,
    output: &mut Tensor<F>,
    scale: f32,
    group: usize,
    #[comptime] is_masked: bool,
    #[comptime] units: usize,
    #[define(F, M)] _types: [StorageType; 2],
) {
    let row = CUBE_POS;
    let seen = scores.shape(3);
    if row >= scores.shape(0) * scores.shape(1) * scores.shape(2) {
        terminate!();
    }
    let start = row * seen;
    let of_mask = mask_of::<F, M>(scores, hidden, row, group, is_masked);
    let mut shared = SharedMemory::<f32>::new(units);
    let mut most = f32::new(HIDDEN);
    let mut key = UNIT_POS as usize;
    while key < seen {
        most = max(
            most,
            scaled::<F, M>(scores, hidden, start, of_mask, key, scale, is_masked),
        );
        key += units;
    }
    let most = largest(most, &mut shared);
    let mut sum = 0.0f32;
    let mut key = UNIT_POS as usize;
    while key < seen {
        sum += (scaled::<F, M>(scores, hidden, start, of_mask, key, scale, is_masked) - most).exp();
        key += units;
    }
    let sum = total(sum, &mut shared);
    let mut key = UNIT_POS as usize;
    while key < seen {
        let score = scaled::<F, M>(scores, hidden, start, of_mask, key, scale, is_masked);
        output[start + key] = F::cast_from((score - most).exp() / sum);
        key += units;
    }
}

/// The softmax of packed `scores` times `scale`, `[rows, key heads, group · columns, keys]`; `hidden` is
/// `[rows, 1, columns, keys]`.
pub(super) fn weights<R: CubeRuntime>(
    scores: &CubeTensor<R>,
    group: usize,
    scale: f64,
    hidden: Option<CubeTensor<R>>,
) -> CubeTensor<R> {
    let shape @ [.., seen] = dims::<R, 4>(scores);
    let output = empty(scores, &shape, scores.dtype);
    if shape.contains(&0) {
        return output;
    }
    let number_type = number_type(&[scores]);
    let (mask, is_masked) = mask_or(hidden, scores);
    let mask_type = mask.dtype;
    let units = units(seen);
    launch!(
        weights_kernel,
        shape[..3].iter().product(),
        units,
        [scores, mask, output],
        scale as f32,
        group,
        is_masked,
        units,
        [number_type, mask_type.into()],
    );
    output
}

/// With P the softmax and D the gradient by it: P, and scale · P ∘ (D − sums of P ∘ D).
#[cube(launch, address_type = "dynamic")]
fn weights_backward_kernel<F: Float, M: Numeric>(
    scores: &Tensor<F>,
    by_weights: &Tensor<F>,
    hidden: &Tensor<M>,
    weights: &mut Tensor<F>,
    by_scores: &mut Tensor<F>,
    scale: f32,
    group: usize,
    #[comptime] is_masked: bool,
    #[comptime] units: usize,
    #[define(F, M)] _types: [StorageType; 2],
) {
    let row = CUBE_POS;
    let seen = scores.shape(3);
    if row >= scores.shape(0) * scores.shape(1) * scores.shape(2) {
        terminate!();
    }
    let start = row * seen;
    let of_mask = mask_of::<F, M>(scores, hidden, row, group, is_masked);
    let mut shared = SharedMemory::<f32>::new(units);
    let mut most = f32::new(HIDDEN);
    let mut key = UNIT_POS as usize;
    while key < seen {
        most = max(
            most,
            scaled::<F, M>(scores, hidden, start, of_mask, key, scale, is_masked),
        );
        key += units;
    }
    let most = largest(most, &mut shared);
    let mut sum = 0.0f32;
    let mut along = 0.0f32;
    let mut key = UNIT_POS as usize;
    while key < seen {
        let score = scaled::<F, M>(scores, hidden, start, of_mask, key, scale, is_masked);
        let weight = (score - most).exp();
        sum += weight;
        along += weight * f32::cast_from(by_weights[start + key]);
        key += units;
    }
    let sum = total(sum, &mut shared);
    let along = total(along, &mut shared) / sum;
    let mut key = UNIT_POS as usize;
    while key < seen {
        let score = scaled::<F, M>(scores, hidden, start, of_mask, key, scale, is_masked);
        let weight = (score - most).exp() / sum;
        weights[start + key] = F::cast_from(weight);
        let slope = f32::cast_from(by_weights[start + key]) - along;
        by_scores[start + key] = F::cast_from(weight * slope * scale);
        key += units;
    }
}

/// What [`weights`] gives, and the gradient by its scores from the one by what it gives; all of them packed.
pub(super) fn weights_backward<R: CubeRuntime>(
    scores: &CubeTensor<R>,
    by_weights: &CubeTensor<R>,
    group: usize,
    scale: f64,
    hidden: Option<CubeTensor<R>>,
) -> [CubeTensor<R>; 2] {
    let shape @ [.., seen] = dims::<R, 4>(scores);
    let outputs = [0, 1].map(|_| empty(scores, &shape, scores.dtype));
    if shape.contains(&0) {
        return outputs;
    }
    let [weights, by_scores] = &outputs;
    let number_type = number_type(&[scores, by_weights]);
    let (mask, is_masked) = mask_or(hidden, scores);
    let mask_type = mask.dtype;
    let units = units(seen);
    launch!(
        weights_backward_kernel,
        shape[..3].iter().product(),
        units,
        [scores, by_weights, mask, weights, by_scores],
        scale as f32,
        group,
        is_masked,
        units,
        [number_type, mask_type.into()],
    );
    outputs
}
