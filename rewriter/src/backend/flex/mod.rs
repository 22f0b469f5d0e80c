//! The operations on the CPU, in 32 bits: one pass over memory each, in loops that become vector
//! instructions, whichever the processor has. Numbers of other types go through burn's operations.

#![allow(
    clippy::inline_always,
    reason = "what is not inlined is not compiled for the processor's vectors"
)]

mod attention;
mod linear;
mod multiply;
mod rows;
mod store;
mod vector;

use std::sync::Arc;

use burn_flex::{Flex, FlexTensor};
use burn_tensor::{DType, Int, Tensor, TensorData, TensorPrimitive};

use super::{PolicyBackend, TargetScores, Visibility, tensors};

/// The boolean tensors of the backend.
type Mask = FlexTensor;

impl PolicyBackend for Flex {
    /// In place: assignment to a slice copies the whole store.
    fn write_columns(store: Tensor<Self, 4>, values: Tensor<Self, 4>, start: usize) -> Tensor<Self, 4> {
        store::write_columns(store, values, start)
    }

    fn project(input: Tensor<Self, 2>, weight: Tensor<Self, 2>) -> Tensor<Self, 2> {
        match linear::few_rows(&input, &weight) {
            Some(output) => output,
            None => input.matmul(weight.transpose()),
        }
    }

    fn rms_norm(input: Tensor<Self, 2>, weight: Tensor<Self, 1>, eps: f64) -> Tensor<Self, 2> {
        if !is_single(&input) {
            return tensors::rms_norm(input, weight, eps);
        }
        rows::rms_norm(&Numbers::of(input), &Numbers::of(weight), eps as f32)
    }

    fn rms_norm_backward(
        input: Tensor<Self, 2>,
        weight: Tensor<Self, 1>,
        eps: f64,
        gradient: Tensor<Self, 2>,
    ) -> Tensor<Self, 2> {
        if !is_single(&input) {
            return tensors::rms_norm_backward(input, weight, eps, gradient);
        }
        rows::rms_norm_backward(
            &Numbers::of(input),
            &Numbers::of(weight),
            eps as f32,
            &Numbers::of(gradient),
        )
    }

    fn silu_mul(gate: Tensor<Self, 2>, up: Tensor<Self, 2>) -> Tensor<Self, 2> {
        if !is_single(&gate) {
            return tensors::silu_mul(gate, up);
        }
        rows::silu_mul(&Numbers::of(gate), &Numbers::of(up))
    }

    fn silu_mul_backward(
        gate: Tensor<Self, 2>,
        up: Tensor<Self, 2>,
        gradient: Tensor<Self, 2>,
    ) -> [Tensor<Self, 2>; 2] {
        if !is_single(&gate) {
            return tensors::silu_mul_backward(gate, up, gradient);
        }
        rows::silu_mul_backward(&Numbers::of(gate), &Numbers::of(up), &Numbers::of(gradient))
    }

    fn rotate(heads: Tensor<Self, 4>, cos: Tensor<Self, 4>, sin: Tensor<Self, 4>) -> Tensor<Self, 4> {
        if !is_single(&heads) {
            return tensors::rotate(heads, cos, sin);
        }
        rows::rotate(&Numbers::of(heads), &Numbers::of(cos), &Numbers::of(sin))
    }

    fn attend(
        queries: Tensor<Self, 4>,
        keys: Tensor<Self, 4>,
        values: Tensor<Self, 4>,
        scale: f64,
        visible: &Arc<Visibility<Mask>>,
    ) -> Tensor<Self, 4> {
        if !is_single(&queries) {
            return tensors::attention(queries, keys, values, scale, visible);
        }
        let [queries, keys, values] = [queries, keys, values].map(Numbers::by_rows);
        attention::forward(&queries, &keys, &values, scale as f32, visible)
    }

    fn attend_backward(
        queries: Tensor<Self, 4>,
        keys: Tensor<Self, 4>,
        values: Tensor<Self, 4>,
        scale: f64,
        visible: &Arc<Visibility<Mask>>,
        gradient: Tensor<Self, 4>,
    ) -> [Tensor<Self, 4>; 3] {
        if !is_single(&queries) {
            return tensors::attention_backward(queries, keys, values, scale, visible, gradient);
        }
        let [queries, keys, values, gradient] = [queries, keys, values, gradient].map(Numbers::by_rows);
        attention::backward(&queries, &keys, &values, scale as f32, visible, &gradient)
    }

    fn target_scores(
        logits: Tensor<Self, 2>,
        targets: Tensor<Self, 1, Int>,
        temperature: f64,
    ) -> TargetScores<Self> {
        if !is_single(&logits) {
            return tensors::target_scores(logits, targets, temperature);
        }
        rows::target_scores(logits, &indices(targets), temperature as f32)
    }

    fn target_scores_backward(
        probabilities: Tensor<Self, 2>,
        targets: Tensor<Self, 1, Int>,
        temperature: f64,
        gradient: Tensor<Self, 1>,
    ) -> Tensor<Self, 2> {
        if !is_single(&probabilities) {
            return tensors::target_scores_backward(probabilities, targets, temperature, gradient);
        }
        let gradient = Numbers::of(gradient);
        rows::target_scores_backward(probabilities, &indices(targets), temperature as f32, &gradient)
    }
}

fn is_single<const D: usize>(tensor: &Tensor<Flex, D>) -> bool {
    tensor.dtype() == DType::F32
}

fn indices(tensor: Tensor<Flex, 1, Int>) -> Vec<usize> {
    let data = tensor.into_data();
    data.iter::<i64>().map(|index| index as usize).collect()
}

/// The 32-bit numbers of a tensor, the last dimension without gaps.
struct Numbers<const D: usize> {
    tensor: FlexTensor,
    dims: [usize; D],
    /// Numbers from one index to the next, by dimension.
    strides: [usize; D],
    start: usize,
}

impl<const D: usize> Numbers<D> {
    /// All in one row-major piece.
    fn of(tensor: Tensor<Flex, D>) -> Self {
        let tensor = tensor.into_primitive().tensor();
        let is_piece = tensor.layout().contiguous_offsets().is_some();
        Self::read(if is_piece { tensor } else { tensor.to_contiguous() })
    }

    /// With the strides they have, if the last dimension is without gaps.
    fn by_rows(tensor: Tensor<Flex, D>) -> Self {
        let tensor = tensor.into_primitive().tensor();
        let strides = tensor.layout().strides();
        let is_by_rows = strides[D - 1] == 1 && strides.iter().all(|stride| *stride >= 0);
        Self::read(if is_by_rows {
            tensor
        } else {
            tensor.to_contiguous()
        })
    }

    fn read(tensor: FlexTensor) -> Self {
        let layout = tensor.layout();
        let shape = layout.shape();
        Self {
            dims: std::array::from_fn(|index| shape[index]),
            strides: std::array::from_fn(|index| layout.strides()[index] as usize),
            start: layout.start_offset(),
            tensor,
        }
    }

    /// From the first number on.
    fn slice(&self) -> &[f32] {
        &self.tensor.storage::<f32>()[self.start..]
    }

    /// The numbers of a tensor in one piece.
    fn piece(&self) -> &[f32] {
        &self.slice()[..self.dims.iter().product()]
    }
}

fn tensor_of<const D: usize>(numbers: Vec<f32>, dims: [usize; D]) -> Tensor<Flex, D> {
    let tensor = FlexTensor::from_data(TensorData::new(numbers, dims));
    Tensor::from_primitive(TensorPrimitive::Float(tensor))
}
