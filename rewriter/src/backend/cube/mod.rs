//! The operations on GPUs: each a kernel of its own, where burn's tensors would launch half a dozen.
//!
//! A token of a row takes some 20 launches a layer, and launching is what a small batch waits for.
//! Kernels compute in 32 bits whatever they read and write (but products with a norm's weight, which have the tensors'
//! type as everywhere), share nothing between units but a cube's own memory, and need no instructions that work
//! across a plane, so that every adapter runs them.

#![allow(
    clippy::trivially_copy_pass_by_ref,
    clippy::used_underscore_binding,
    reason = "of the macro that makes kernels, which needs tensors by reference and types as arguments"
)]

/// Launches a kernel on so many cubes of so many units, beside its first tensor: on its tensors, and what else it takes.
macro_rules! launch {
    ($kernel:ident, $cubes:expr, $units:expr, [$first:expr $(, $tensor:expr)*], $($argument:expr),* $(,)?) => {
        $kernel::launch(
            &$first.client,
            $crate::backend::cube::grid($cubes),
            CubeDim::new_1d($units as u32),
            $crate::backend::cube::addresses(&[&$first $(, &$tensor)*]),
            $first.clone().into_tensor_arg(),
            $($tensor.clone().into_tensor_arg(),)*
            $($argument),*
        )
    };
}

mod attention;
mod draw;
mod heads;
mod optimizer;
mod rows;

use std::sync::Arc;

use burn_cubecl::cubecl::prelude::*;
use burn_cubecl::kernel::into_contiguous;
use burn_cubecl::ops::numeric::empty_device_contiguous_dtype;
use burn_cubecl::tensor::CubeTensor;
use burn_cubecl::{BoolElement, CubeBackend, CubeRuntime, FloatElement, IntElement, cubecl};
use burn_tensor::backend::Backend;
use burn_tensor::{DType, Int, Shape, Tensor, TensorData, TensorPrimitive};

use super::tensors::Shape as Sizes;
use super::{AdamWUpdate, Draw, PolicyBackend, TargetScores, Visibility};

/// Most units of a cube: every adapter has as many.
const UNITS: usize = 256;
/// Most cubes in a row of a launch's grid on every adapter.
const CUBES: usize = 65_535;
/// Bytes of a tensor that is worth memory of its own: pages for smaller ones are 550 MB on a GPU of 140 GB.
const LARGE: usize = 16 << 20;

/// Burn's GPU backends without fusion. They write to a slice in place where nobody shares the store.
impl<R, F, I, T> PolicyBackend for CubeBackend<R, F, I, T>
where
    R: CubeRuntime,
    F: FloatElement,
    I: IntElement,
    T: BoolElement,
    Self: Backend<
            Device = R::Device,
            FloatTensorPrimitive = CubeTensor<R>,
            IntTensorPrimitive = CubeTensor<R>,
            BoolTensorPrimitive = CubeTensor<R>,
        >,
{
    fn device_memory(device: &R::Device) -> Option<u64> {
        // Pages are kept for what comes next, so that this is about the most that was in use at a time.
        R::client(device)
            .memory_usage()
            .ok()
            .map(|usage| usage.bytes_reserved)
    }

    /// Four times as many where a tensor may be as large: the output layer is read once for each part.
    fn scored_numbers(device: &R::Device) -> usize {
        let largest = largest_tensor::<R>(device) / size_of::<f32>() as u64;
        usize::try_from(largest).map_or(1 << 26, |largest| largest.min(1 << 26))
    }

    /// A large tensor gets as much memory as it takes: among the others it would get a page of which the rest may
    /// stay empty. Others of exactly its size get such memory from then on, which no other size can use; so small
    /// ones share pages.
    fn lasting<Input: Send, const D: usize>(
        device: &R::Device,
        bytes: usize,
        input: Input,
        make: impl Fn(Input) -> Tensor<Self, D> + Send,
    ) -> Tensor<Self, D> {
        // Memory of its own is not checked for what a device can hold.
        if bytes >= LARGE && bytes as u64 <= largest_tensor::<R>(device) {
            Self::memory_persistent_allocations(device, input, make)
        } else {
            make(input)
        }
    }

    fn draw(logits: &Tensor<Self, 2>, temperature: f32, uniforms: &[f64]) -> Option<Vec<Draw>> {
        let ([rows, vocabulary], device) = (logits.dims(), logits.device());
        // By one so small that no adapter has to tell it from 0, logits cannot be divided.
        let is_divisor = temperature == 0.0 || temperature.is_normal();
        if vocabulary > draw::LARGEST_VOCABULARY || rows == 0 || !is_divisor {
            return None;
        }
        let uniforms: Vec<_> = uniforms.iter().map(|number| *number as f32).collect();
        let uniforms = Tensor::<Self, 1>::from_data(TensorData::new(uniforms, [rows]), (&device, DType::F32));
        let drawn = draw::draw(&packed(logits.clone()), &packed(uniforms), temperature);
        let drawn: Vec<f32> = tensor::<Self, 2>(drawn)
            .into_data()
            .into_vec()
            .expect("draws are numbers of 32 bits");
        let draws = drawn.chunks(draw::FIELDS).map(|fields| Draw {
            token: fields[0] as u32,
            logprob: fields[1],
            is_finite: fields[2] == 1.0,
        });
        Some(draws.collect())
    }

    fn first_columns(store: Tensor<Self, 4>, columns: usize) -> Tensor<Self, 4> {
        let mut store = primitive(store);
        assert!(
            columns <= store.meta.shape()[2],
            "the store has no {columns} columns"
        );
        // Burn copies a slice that does not end where memory is aligned.
        store.meta.shape[2] = columns;
        tensor(store)
    }

    fn rms_norm(input: Tensor<Self, 2>, weight: Tensor<Self, 1>, eps: f64) -> Tensor<Self, 2> {
        tensor(rows::rms_norm(&packed(input), &packed(weight), eps))
    }

    fn rms_norm_backward(
        input: Tensor<Self, 2>,
        weight: Tensor<Self, 1>,
        eps: f64,
        gradient: Tensor<Self, 2>,
    ) -> Tensor<Self, 2> {
        tensor(rows::rms_norm_backward(
            &packed(input),
            &packed(weight),
            eps,
            &packed(gradient),
        ))
    }

    fn silu_mul(gate: Tensor<Self, 2>, up: Tensor<Self, 2>) -> Tensor<Self, 2> {
        tensor(rows::silu_mul(&packed(gate), &packed(up)))
    }

    fn silu_mul_backward(
        gate: Tensor<Self, 2>,
        up: Tensor<Self, 2>,
        gradient: Tensor<Self, 2>,
    ) -> [Tensor<Self, 2>; 2] {
        rows::silu_mul_backward(&packed(gate), &packed(up), &packed(gradient)).map(tensor)
    }

    fn rotate(heads: Tensor<Self, 4>, cos: Tensor<Self, 4>, sin: Tensor<Self, 4>) -> Tensor<Self, 4> {
        tensor(heads::rotate(&primitive(heads), &packed(cos), &packed(sin)))
    }

    fn attend(
        queries: Tensor<Self, 4>,
        keys: Tensor<Self, 4>,
        values: Tensor<Self, 4>,
        scale: f64,
        visible: &Arc<Visibility<CubeTensor<R>>>,
    ) -> Tensor<Self, 4> {
        let hidden = visible
            .hidden::<Self>(1, &queries.device())
            .map(Tensor::into_primitive);
        if queries.dims()[1] <= attention::FEW_COLUMNS {
            let [queries, keys, values] = [queries, keys, values].map(primitive);
            return tensor(attention::attend(&queries, &keys, &values, scale, hidden));
        }
        let shape = Sizes::of(&queries, &keys);
        // In numbers of type F16 a product may end that its scaled scores would not.
        let (queries, scale) = match queries.dtype() {
            DType::F16 => (queries.mul_scalar(scale), 1.0),
            _ => (queries, scale),
        };
        let scores = shape
            .grouped(queries)
            .matmul(keys.swap_dims(1, 2).swap_dims(2, 3));
        let weights = attention::weights(&packed(scores), shape.group(), scale, hidden);
        shape.ungrouped(tensor::<Self, 4>(weights).matmul(values.swap_dims(1, 2)))
    }

    fn attend_backward(
        queries: Tensor<Self, 4>,
        keys: Tensor<Self, 4>,
        values: Tensor<Self, 4>,
        scale: f64,
        visible: &Arc<Visibility<CubeTensor<R>>>,
        gradient: Tensor<Self, 4>,
    ) -> [Tensor<Self, 4>; 3] {
        let hidden = visible
            .hidden::<Self>(1, &queries.device())
            .map(Tensor::into_primitive);
        let shape = Sizes::of(&queries, &keys);
        let (queries, gradient) = (shape.grouped(queries), shape.grouped(gradient));
        let (keys, values) = (keys.swap_dims(1, 2), values.swap_dims(1, 2));
        let scores = queries.clone().matmul(keys.clone().swap_dims(2, 3));
        let by_weights = gradient.clone().matmul(values.swap_dims(2, 3));
        let [weights, by_scores] =
            attention::weights_backward(&packed(scores), &packed(by_weights), shape.group(), scale, hidden)
                .map(tensor::<Self, 4>);
        [
            shape.ungrouped(by_scores.clone().matmul(keys)),
            by_scores.swap_dims(2, 3).matmul(queries).swap_dims(1, 2),
            weights.swap_dims(2, 3).matmul(gradient).swap_dims(1, 2),
        ]
    }

    fn target_scores(
        logits: Tensor<Self, 2>,
        targets: Tensor<Self, 1, Int>,
        temperature: f64,
    ) -> TargetScores<Self> {
        let targets = into_contiguous(targets.into_primitive());
        let scores = rows::target_scores(&packed(logits), &targets, temperature);
        TargetScores {
            logprobs: tensor(scores.logprobs),
            entropy: tensor(scores.entropy),
            probabilities: tensor(scores.probabilities),
        }
    }

    fn target_scores_backward(
        probabilities: Tensor<Self, 2>,
        targets: Tensor<Self, 1, Int>,
        temperature: f64,
        gradient: Tensor<Self, 1>,
    ) -> Tensor<Self, 2> {
        let targets = into_contiguous(targets.into_primitive());
        tensor(rows::target_scores_backward(
            &packed(probabilities),
            &targets,
            temperature,
            &packed(gradient),
        ))
    }

    fn squares(matrices: Vec<Tensor<Self, 2>>) -> Option<Tensor<Self, 1>> {
        let matrices = matrices.into_iter().map(packed).collect();
        let parts = optimizer::squares(matrices)?;
        Some(tensor::<Self, 1>(parts).sum())
    }

    fn adamw(
        parameter: Tensor<Self, 2>,
        gradient: Tensor<Self, 2>,
        moments: [Tensor<Self, 2>; 2],
        update: &AdamWUpdate,
    ) -> [Tensor<Self, 2>; 3] {
        let moments = moments.map(packed);
        optimizer::adamw(&packed(parameter), &packed(gradient), &moments, update).map(tensor)
    }
}

fn primitive<B: Backend, const D: usize>(tensor: Tensor<B, D>) -> B::FloatTensorPrimitive {
    tensor.into_primitive().tensor()
}

fn tensor<B: Backend, const D: usize>(primitive: B::FloatTensorPrimitive) -> Tensor<B, D> {
    Tensor::from_primitive(TensorPrimitive::Float(primitive))
}

/// Number after number, in the order of the dimensions.
fn packed<R: CubeRuntime, B: Backend<FloatTensorPrimitive = CubeTensor<R>>, const D: usize>(
    tensor: Tensor<B, D>,
) -> CubeTensor<R> {
    into_contiguous(primitive(tensor))
}

/// Bytes of the largest tensor that a device takes.
fn largest_tensor<R: CubeRuntime>(device: &R::Device) -> u64 {
    R::client(device).properties().memory.max_page_size
}

/// A tensor to be written, where `beside` lies.
fn empty<R: CubeRuntime>(beside: &CubeTensor<R>, shape: &[usize], number_type: DType) -> CubeTensor<R> {
    let (client, device) = (beside.client.clone(), beside.device.clone());
    empty_device_contiguous_dtype(client, device, Shape::from(shape.to_vec()), number_type)
}

/// The sizes of a tensor of `D` dimensions.
fn dims<R: CubeRuntime, const D: usize>(tensor: &CubeTensor<R>) -> [usize; D] {
    tensor.meta.shape().dims()
}

/// The widest of the tensors' indices.
fn addresses<R: CubeRuntime>(tensors: &[&CubeTensor<R>]) -> AddressType {
    let addresses = tensors.iter().map(|tensor| tensor.required_address_type());
    addresses.max().unwrap_or_default()
}

/// The type of all of the tensors' numbers. A kernel would misread those of another.
fn number_type<R: CubeRuntime>(tensors: &[&CubeTensor<R>]) -> StorageType {
    let number_type = tensors[0].dtype;
    for tensor in tensors {
        assert_eq!(tensor.dtype, number_type, "tensors of one type");
    }
    number_type.into()
}

/// A grid of at least `cubes`; those beyond have nothing to do.
fn grid(cubes: usize) -> CubeCount {
    let deep = cubes.div_ceil(CUBES).max(1);
    CubeCount::Static(cubes.div_ceil(deep) as u32, deep as u32, 1)
}

/// Units for a row of that width, a power of two.
fn units(width: usize) -> usize {
    width.next_power_of_two().div_ceil(4).clamp(32, UNITS)
}

/// The sum of what a cube's units give, which all of them get.
#[cube]
fn total(given: f32, shared: &mut SharedMemory<f32>) -> f32 {
    let unit = UNIT_POS as usize;
    shared[unit] = given;
    sync_cube();
    let mut half = CUBE_DIM as usize / 2;
    while half > 0 {
        if unit < half {
            let other = shared[unit + half];
            shared[unit] += other;
        }
        sync_cube();
        half /= 2;
    }
    let total = shared[0];
    sync_cube();
    total
}

/// The largest of what a cube's units give, which all of them get.
#[cube]
fn largest(given: f32, shared: &mut SharedMemory<f32>) -> f32 {
    let unit = UNIT_POS as usize;
    shared[unit] = given;
    sync_cube();
    let mut half = CUBE_DIM as usize / 2;
    while half > 0 {
        if unit < half {
            let other = shared[unit + half];
            shared[unit] = max(shared[unit], other);
        }
        sync_cube();
        half /= 2;
    }
    let largest = shared[0];
    sync_cube();
    largest
}
