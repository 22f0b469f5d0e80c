//! Operations that the rewriter asks of a backend beyond burn's own.
//!
//! | module | what it holds |
//! |---|---|
//! | `tensors` | the operations in burn's own |
//! | `autodiff` | how gradients pass through them |
//! | `visibility` | which keys a query sees |
//! | `flex` | the same operations on the CPU's vectors |
//! | `cube` | the same operations as kernels of GPUs |

mod autodiff;
#[cfg(feature = "cube")]
mod cube;
mod flex;
mod tensors;
#[cfg(test)]
mod tests;
mod visibility;

use std::sync::{Arc, Mutex, PoisonError};

use burn_tensor::backend::Backend;
use burn_tensor::{DType, Distribution, FloatDType, Int, Tensor, TensorData};

pub use tensors::TargetScores;
pub use visibility::Visibility;

/// A backend on which policies run and learn.
///
/// Every operation has a body made of burn's; a backend overrides what it does better. Those with a
/// gradient of their own keep for the backward pass what they were given, and compute the rest again.
pub trait PolicyBackend: Backend {
    /// Bytes that the backend holds of a device's own memory, in use or kept for later; `None` for a device that
    /// computes in main memory.
    fn device_memory(_device: &Self::Device) -> Option<u64> {
        None
    }

    /// Writes `values`, `[rows, heads, columns, width]`, from column `start` on into `store`,
    /// `[rows, heads, capacity, width]`.
    ///
    /// The store should be the only handle to its memory, so that a backend can write in place.
    fn write_columns(store: Tensor<Self, 4>, values: Tensor<Self, 4>, start: usize) -> Tensor<Self, 4> {
        let [rows, heads, columns, width] = values.dims();
        store.slice_assign([0..rows, 0..heads, start..start + columns, 0..width], values)
    }

    /// Most numbers of distributions over the vocabulary, `[tokens, vocabulary]`, that are made at a time: 64 MiB in 32
    /// bits.
    fn scored_numbers(_device: &Self::Device) -> usize {
        1 << 24
    }

    /// What `make` gives, a tensor of `bytes` that stays: a device may have memory of its own for it.
    fn lasting<Input: Send, const D: usize>(
        _device: &Self::Device,
        _bytes: usize,
        input: Input,
        make: impl Fn(Input) -> Tensor<Self, D> + Send,
    ) -> Tensor<Self, D> {
        make(input)
    }

    /// Draws a token of each row of `logits`, `[rows, vocabulary]`, on the device: where the row's number of `uniforms`,
    /// in [0, 1), falls in softmax(logits / temperature) along the tokens by id, up to the rounding of 32 bits, or the
    /// best for temperature 0, the first of equals. `None` where drawing is the caller's.
    fn draw(_logits: &Tensor<Self, 2>, _temperature: f32, _uniforms: &[f64]) -> Option<Vec<Draw>> {
        None
    }

    /// The first `columns` of a `store`, `[rows, heads, capacity, width]`.
    ///
    /// # Panics
    ///
    /// More columns than the store's capacity.
    fn first_columns(store: Tensor<Self, 4>, columns: usize) -> Tensor<Self, 4> {
        store.narrow(2, 0, columns)
    }

    /// 1 with probability `keep`, else 0, `shape` of them: a function of `seed` on one kind of device.
    fn keep_mask(
        shape: [usize; 2],
        keep: f64,
        seed: u64,
        number_type: DType,
        device: &Self::Device,
    ) -> Tensor<Self, 2> {
        // Drawn in 32 bits: backends do not draw in all types that they compute in.
        let mask: Tensor<Self, 2> = seeded::<Self, _>(seed, device, || {
            Tensor::random(shape, Distribution::Bernoulli(keep), (device, DType::F32))
        });
        mask.cast(FloatDType::from(number_type))
    }

    /// `input`, `[tokens, inputs]`, times a `weight` of `[outputs, inputs]`: `[tokens, outputs]`.
    fn project(input: Tensor<Self, 2>, weight: Tensor<Self, 2>) -> Tensor<Self, 2> {
        input.matmul(weight.transpose())
    }

    /// w x / √(mean(x²) + eps) over each row of `input`, `[rows, width]`, in at least 32 bits.
    fn rms_norm(input: Tensor<Self, 2>, weight: Tensor<Self, 1>, eps: f64) -> Tensor<Self, 2> {
        tensors::rms_norm(input, weight, eps)
    }

    /// The gradient by the input of [`rms_norm`](Self::rms_norm), from the one by its output.
    fn rms_norm_backward(
        input: Tensor<Self, 2>,
        weight: Tensor<Self, 1>,
        eps: f64,
        gradient: Tensor<Self, 2>,
    ) -> Tensor<Self, 2> {
        tensors::rms_norm_backward(input, weight, eps, gradient)
    }

    /// silu(gate) · up, number by number.
    fn silu_mul(gate: Tensor<Self, 2>, up: Tensor<Self, 2>) -> Tensor<Self, 2> {
        tensors::silu_mul(gate, up)
    }

    /// The gradients by gate and up of [`silu_mul`](Self::silu_mul), from the one by its output.
    fn silu_mul_backward(
        gate: Tensor<Self, 2>,
        up: Tensor<Self, 2>,
        gradient: Tensor<Self, 2>,
    ) -> [Tensor<Self, 2>; 2] {
        tensors::silu_mul_backward(gate, up, gradient)
    }

    /// Rotates each pair of numbers that lie half a head apart in `heads`, `[rows, columns, heads, width]`.
    /// `cos` and `sin`, `[rows, columns, 1, width]`, have halves alike, but for the sign of sin, which is
    /// negative in the first. The gradient by the heads is rotated back.
    fn rotate(heads: Tensor<Self, 4>, cos: Tensor<Self, 4>, sin: Tensor<Self, 4>) -> Tensor<Self, 4> {
        tensors::rotate(heads, cos, sin)
    }

    /// softmax(scale · Q Kᵀ) V over the visible keys, `[rows, columns, heads, width]`: queries of that
    /// shape, keys and values `[rows, keys, key heads, width]`, each key head for as many query heads, side
    /// by side. What a query gets that sees no key is finite and means nothing.
    fn attend(
        queries: Tensor<Self, 4>,
        keys: Tensor<Self, 4>,
        values: Tensor<Self, 4>,
        scale: f64,
        visible: &Arc<Visibility<Self::BoolTensorPrimitive>>,
    ) -> Tensor<Self, 4> {
        tensors::attention(queries, keys, values, scale, visible)
    }

    /// The gradients by queries, keys and values of [`attend`](Self::attend), from the one by its
    /// output. Not for numbers of type F16, whose range gradients leave.
    fn attend_backward(
        queries: Tensor<Self, 4>,
        keys: Tensor<Self, 4>,
        values: Tensor<Self, 4>,
        scale: f64,
        visible: &Arc<Visibility<Self::BoolTensorPrimitive>>,
        gradient: Tensor<Self, 4>,
    ) -> [Tensor<Self, 4>; 3] {
        tensors::attention_backward(queries, keys, values, scale, visible, gradient)
    }

    /// What softmax(logits / temperature), of 32-bit logits `[tokens, vocabulary]`, says of a target each.
    /// A gradient flows through the log-probabilities alone.
    fn target_scores(
        logits: Tensor<Self, 2>,
        targets: Tensor<Self, 1, Int>,
        temperature: f64,
    ) -> TargetScores<Self> {
        tensors::target_scores(logits, targets, temperature)
    }

    /// The gradient by the logits of [`target_scores`](Self::target_scores), from the one by the
    /// log-probabilities, `[tokens]`, and its probabilities.
    fn target_scores_backward(
        probabilities: Tensor<Self, 2>,
        targets: Tensor<Self, 1, Int>,
        temperature: f64,
        gradient: Tensor<Self, 1>,
    ) -> Tensor<Self, 2> {
        tensors::target_scores_backward(probabilities, targets, temperature, gradient)
    }

    /// The sum of all numbers' squares, `[1]`, in the matrices' type or 32 bits; nothing without matrices.
    fn squares(matrices: Vec<Tensor<Self, 2>>) -> Option<Tensor<Self, 1>> {
        tensors::squares(matrices)
    }

    /// A parameter and the running means of its gradient and of its square after one step of AdamW.
    fn adamw(
        parameter: Tensor<Self, 2>,
        gradient: Tensor<Self, 2>,
        moments: [Tensor<Self, 2>; 2],
        update: &AdamWUpdate,
    ) -> [Tensor<Self, 2>; 3] {
        tensors::adamw(parameter, gradient, moments, update)
    }
}

/// What one step of AdamW has in common for all numbers of a matrix.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct AdamWUpdate {
    /// On the gradient, before anything else.
    pub factor: f64,
    /// Decay of the mean gradient.
    pub beta_1: f64,
    /// Decay of the mean squared gradient.
    pub beta_2: f64,
    /// Of the mean gradient, what it is divided by: 1 − β₁ᵗ at step t.
    pub scale_1: f64,
    /// Of the mean squared gradient, likewise.
    pub scale_2: f64,
    /// Added to the root of the mean squared gradient.
    pub eps: f64,
    /// On the parameter, before it moves.
    pub kept: f64,
    /// How far it moves.
    pub learning_rate: f64,
}

/// What [`PolicyBackend::draw`] draws from one row.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Draw {
    /// The token's id.
    pub token: u32,
    /// Its log-probability; at temperature 1 when it is the best.
    pub logprob: f32,
    /// Whether all logits of the row are finite; if not, token and log-probability mean nothing.
    pub is_finite: bool,
}

/// What `draw` draws from a backend's global random numbers after `seed`.
pub(crate) fn seeded<B: Backend, T>(seed: u64, device: &B::Device, draw: impl FnOnce() -> T) -> T {
    // Nobody may draw between seeding and drawing.
    static DRAWS: Mutex<()> = Mutex::new(());
    let _turn = DRAWS.lock().unwrap_or_else(PoisonError::into_inner);
    B::seed(device, seed);
    draw()
}

/// The same numbers on another device, by way of main memory.
pub(crate) fn carried<B: Backend, const D: usize>(tensor: Tensor<B, D>, device: &B::Device) -> Tensor<B, D> {
    if tensor.device() == *device {
        return tensor;
    }
    let number_type = tensor.dtype();
    Tensor::from_data(tensor.into_data(), (device, number_type))
}

/// Indices on a device.
pub(crate) fn index_tensor<B: Backend>(
    indices: impl IntoIterator<Item = usize>,
    device: &B::Device,
) -> Tensor<B, 1, Int> {
    let indices: Vec<_> = indices.into_iter().map(|index| index as u32).collect();
    let count = indices.len();
    Tensor::from_data(TensorData::new(indices, [count]), device)
}

/// In 32 bits, if fewer.
pub(crate) fn wide<B: Backend, const D: usize>(tensor: Tensor<B, D>) -> Tensor<B, D> {
    match tensor.dtype() {
        DType::F16 | DType::BF16 => tensor.cast(FloatDType::F32),
        _ => tensor,
    }
}
