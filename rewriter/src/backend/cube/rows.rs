//! Kernels: what is computed row by row, or number by number.

use burn_cubecl::cubecl::prelude::*;
use burn_cubecl::tensor::CubeTensor;
use burn_cubecl::{CubeRuntime, cubecl};
use burn_tensor::DType;

use super::{UNITS, dims, empty, largest, number_type, total, units};

#[cube(launch, address_type = "dynamic")]
fn rms_norm_kernel<F: Float>(
    input: &Tensor<F>,
    weight: &Tensor<F>,
    output: &mut Tensor<F>,
    eps: f32,
    #[comptime] units: usize,
    #[define(F)] _number_type: StorageType,
) {
    let row = CUBE_POS;
    let width = input.shape(1);
    if row >= input.shape(0) {
        terminate!();
    }
    let start = row * width;
    let mut shared = SharedMemory::<f32>::new(units);
    let mut squares = 0.0f32;
    let mut index = UNIT_POS as usize;
    while index < width {
        let number = f32::cast_from(input[start + index]);
        squares += number * number;
        index += units;
    }
    let mean = total(squares, &mut shared) / f32::cast_from(width);
    let root = (mean + eps).sqrt();
    let mut index = UNIT_POS as usize;
    while index < width {
        let normed = F::cast_from(f32::cast_from(input[start + index]) / root);
        output[start + index] = normed * weight[index];
        index += units;
    }
}

/// [`rms_norm`](super::PolicyBackend::rms_norm) of `[rows, width]`.
pub(super) fn rms_norm<R: CubeRuntime>(
    input: &CubeTensor<R>,
    weight: &CubeTensor<R>,
    eps: f64,
) -> CubeTensor<R> {
    let [rows, width] = dims(input);
    let output = empty(input, &[rows, width], input.dtype);
    if rows == 0 {
        return output;
    }
    let units = units(width);
    let number_type = number_type(&[input, weight]);
    launch!(
        rms_norm_kernel,
        rows,
        units,
        [input, weight, output],
        eps as f32,
        units,
        number_type,
    );
    output
}

/// With g the gradient times the weight: g / rms − x · mean(g x) / rms³.
#[cube(launch, address_type = "dynamic")]
fn rms_norm_backward_kernel<F: Float>(
    input: &Tensor<F>,
    weight: &Tensor<F>,
    gradient: &Tensor<F>,
    output: &mut Tensor<F>,
    eps: f32,
    #[comptime] units: usize,
    #[define(F)] _number_type: StorageType,
) {
    let row = CUBE_POS;
    let width = input.shape(1);
    if row >= input.shape(0) {
        terminate!();
    }
    let start = row * width;
    let mut shared = SharedMemory::<f32>::new(units);
    let mut squares = 0.0f32;
    let mut products = 0.0f32;
    let mut index = UNIT_POS as usize;
    while index < width {
        let number = f32::cast_from(input[start + index]);
        let slope = f32::cast_from(gradient[start + index] * weight[index]);
        squares += number * number;
        products += number * slope;
        index += units;
    }
    let mean = total(squares, &mut shared) / f32::cast_from(width);
    let root = (mean + eps).sqrt();
    let along = total(products, &mut shared) / f32::cast_from(width) / root;
    let mut index = UNIT_POS as usize;
    while index < width {
        let normed = f32::cast_from(input[start + index]) / root;
        let slope = f32::cast_from(gradient[start + index] * weight[index]);
        output[start + index] = F::cast_from((slope - normed * along) / root);
        index += units;
    }
}

/// [`rms_norm_backward`](super::PolicyBackend::rms_norm_backward) of `[rows, width]`.
pub(super) fn rms_norm_backward<R: CubeRuntime>(
    input: &CubeTensor<R>,
    weight: &CubeTensor<R>,
    eps: f64,
    gradient: &CubeTensor<R>,
) -> CubeTensor<R> {
    let [rows, width] = dims(input);
    let output = empty(input, &[rows, width], input.dtype);
    if rows == 0 {
        return output;
    }
    let units = units(width);
    let number_type = number_type(&[input, weight, gradient]);
    launch!(
        rms_norm_backward_kernel,
        rows,
        units,
        [input, weight, gradient, output],
        eps as f32,
        units,
        number_type,
    );
    output
}

/// 1 / (1 + e⁻ˣ).
#[cube]
fn logistic(number: f32) -> f32 {
    1.0f32 / (1.0f32 + (-number).exp())
}

#[cube(launch, address_type = "dynamic")]
fn silu_mul_kernel<F: Float>(
    gate: &Tensor<F>,
    up: &Tensor<F>,
    output: &mut Tensor<F>,
    #[define(F)] _number_type: StorageType,
) {
    let index = ABSOLUTE_POS;
    if index >= output.len() {
        terminate!();
    }
    let number = f32::cast_from(gate[index]);
    output[index] = F::cast_from(number * logistic(number) * f32::cast_from(up[index]));
}

/// [`silu_mul`](super::PolicyBackend::silu_mul) of two tensors of one shape.
pub(super) fn silu_mul<R: CubeRuntime>(gate: &CubeTensor<R>, up: &CubeTensor<R>) -> CubeTensor<R> {
    let shape: [usize; 2] = dims(gate);
    let output = empty(gate, &shape, gate.dtype);
    let numbers: usize = shape.iter().product();
    if numbers == 0 {
        return output;
    }
    let number_type = number_type(&[gate, up]);
    launch!(
        silu_mul_kernel,
        numbers.div_ceil(UNITS),
        UNITS,
        [gate, up, output],
        number_type,
    );
    output
}

/// silu'(x) = s (1 + x (1 − s)) with s the logistic function of x.
#[cube(launch, address_type = "dynamic")]
fn silu_mul_backward_kernel<F: Float>(
    gate: &Tensor<F>,
    up: &Tensor<F>,
    gradient: &Tensor<F>,
    by_gate: &mut Tensor<F>,
    by_up: &mut Tensor<F>,
    #[define(F)] _number_type: StorageType,
) {
    let index = ABSOLUTE_POS;
    if index >= by_up.len() {
        terminate!();
    }
    let number = f32::cast_from(gate[index]);
    let slope = f32::cast_from(gradient[index]);
    let share = logistic(number);
    by_up[index] = F::cast_from(slope * number * share);
    let along = share * (1.0f32 + number * (1.0f32 - share));
    by_gate[index] = F::cast_from(slope * f32::cast_from(up[index]) * along);
}

/// [`silu_mul_backward`](super::PolicyBackend::silu_mul_backward): by the gate, and by the other.
pub(super) fn silu_mul_backward<R: CubeRuntime>(
    gate: &CubeTensor<R>,
    up: &CubeTensor<R>,
    gradient: &CubeTensor<R>,
) -> [CubeTensor<R>; 2] {
    let shape: [usize; 2] = dims(gate);
    let outputs = [0, 1].map(|_| empty(gate, &shape, gate.dtype));
    let numbers: usize = shape.iter().product();
    if numbers == 0 {
        return outputs;
    }
    let [by_gate, by_up] = &outputs;
    let number_type = number_type(&[gate, up, gradient]);
    launch!(
        silu_mul_backward_kernel,
        numbers.div_ceil(UNITS),
        UNITS,
        [gate, up, gradient, by_gate, by_up],
        number_type,
    );
    outputs
}

/// What [`target_scores`] gives.
#[derive(Debug)]
pub(super) struct Scores<R: CubeRuntime> {
    /// `[tokens]`.
    pub(super) logprobs: CubeTensor<R>,
    /// `[tokens]`.
    pub(super) entropy: CubeTensor<R>,
    /// `[tokens, vocabulary]`.
    pub(super) probabilities: CubeTensor<R>,
}

#[cube(launch, address_type = "dynamic")]
fn target_scores_kernel<I: Numeric>(
    logits: &Tensor<f32>,
    targets: &Tensor<I>,
    logprobs: &mut Tensor<f32>,
    entropy: &mut Tensor<f32>,
    probabilities: &mut Tensor<f32>,
    temperature: f32,
    #[comptime] units: usize,
    #[define(I)] _index_type: StorageType,
) {
    let row = CUBE_POS;
    let width = logits.shape(1);
    if row >= logits.shape(0) {
        terminate!();
    }
    let start = row * width;
    let mut shared = SharedMemory::<f32>::new(units);
    let mut most = logits[start];
    let mut index = UNIT_POS as usize;
    while index < width {
        most = max(most, logits[start + index]);
        index += units;
    }
    let most = largest(most, &mut shared);
    let mut weights = 0.0f32;
    let mut weighted = 0.0f32;
    let mut index = UNIT_POS as usize;
    while index < width {
        let below = (logits[start + index] - most) / temperature;
        let weight = below.exp();
        weights += weight;
        weighted += weight * below;
        index += units;
    }
    let weights = total(weights, &mut shared);
    let weighted = total(weighted, &mut shared);
    let mut index = UNIT_POS as usize;
    while index < width {
        let below = (logits[start + index] - most) / temperature;
        probabilities[start + index] = below.exp() / weights;
        index += units;
    }
    if UNIT_POS == 0 {
        let target = usize::cast_from(targets[row]);
        let log_weights = weights.ln();
        logprobs[row] = (logits[start + target] - most) / temperature - log_weights;
        entropy[row] = log_weights - weighted / weights;
    }
}

/// [`target_scores`](super::PolicyBackend::target_scores) of `[tokens, vocabulary]` in 32 bits.
pub(super) fn target_scores<R: CubeRuntime>(
    logits: &CubeTensor<R>,
    targets: &CubeTensor<R>,
    temperature: f64,
) -> Scores<R> {
    assert_eq!(logits.dtype, DType::F32, "logits are scored in 32 bits");
    let [tokens, vocabulary] = dims(logits);
    let scores = Scores {
        logprobs: empty(logits, &[tokens], DType::F32),
        entropy: empty(logits, &[tokens], DType::F32),
        probabilities: empty(logits, &[tokens, vocabulary], DType::F32),
    };
    if tokens == 0 {
        return scores;
    }
    let units = units(vocabulary);
    let index_type = targets.dtype;
    launch!(
        target_scores_kernel,
        tokens,
        units,
        [
            logits,
            targets,
            scores.logprobs,
            scores.entropy,
            scores.probabilities
        ],
        temperature as f32,
        units,
        index_type.into(),
    );
    scores
}

/// (1 at the target − p) · gradient / temperature.
#[cube(launch, address_type = "dynamic")]
fn target_scores_backward_kernel<I: Numeric>(
    probabilities: &Tensor<f32>,
    targets: &Tensor<I>,
    gradient: &Tensor<f32>,
    output: &mut Tensor<f32>,
    temperature: f32,
    #[comptime] units: usize,
    #[define(I)] _index_type: StorageType,
) {
    let row = CUBE_POS;
    let width = probabilities.shape(1);
    if row >= probabilities.shape(0) {
        terminate!();
    }
    let start = row * width;
    let target = usize::cast_from(targets[row]);
    let slope = gradient[row] / temperature;
    let mut index = UNIT_POS as usize;
    while index < width {
        let mut share = -probabilities[start + index];
        if index == target {
            share += 1.0f32;
        }
        output[start + index] = share * slope;
        index += units;
    }
}

/// [`target_scores_backward`](super::PolicyBackend::target_scores_backward), `[tokens, vocabulary]`.
pub(super) fn target_scores_backward<R: CubeRuntime>(
    probabilities: &CubeTensor<R>,
    targets: &CubeTensor<R>,
    temperature: f64,
    gradient: &CubeTensor<R>,
) -> CubeTensor<R> {
    let [tokens, vocabulary] = dims(probabilities);
    let output = empty(probabilities, &[tokens, vocabulary], DType::F32);
    if tokens == 0 {
        return output;
    }
    let units = units(vocabulary);
    let index_type = targets.dtype;
    launch!(
        target_scores_backward_kernel,
        tokens,
        units,
        [probabilities, targets, gradient, output],
        temperature as f32,
        units,
        index_type.into(),
    );
    output
}
