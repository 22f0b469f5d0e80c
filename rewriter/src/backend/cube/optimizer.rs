//! Kernels of the optimizers: what one does with each matrix.

use burn_cubecl::cubecl::prelude::*;
use burn_cubecl::tensor::CubeTensor;
use burn_cubecl::{CubeRuntime, cubecl};
use burn_tensor::DType;

use super::{UNITS, dims, empty, number_type, total};
use crate::backend::AdamWUpdate;

/// Cubes that add up one matrix.
const PARTS: usize = 32;

/// The cubes of a launch write their parts from `first` on.
#[cube(launch, address_type = "dynamic")]
fn squares_kernel<F: Float>(
    input: &Tensor<F>,
    output: &mut Tensor<f32>,
    first: usize,
    #[comptime] units: usize,
    #[define(F)] _number_type: StorageType,
) {
    let mut shared = SharedMemory::<f32>::new(units);
    let mut sum = 0.0f32;
    let mut index = ABSOLUTE_POS;
    while index < input.len() {
        let number = f32::cast_from(input[index]);
        sum += number * number;
        index += units * CUBE_COUNT;
    }
    let sum = total(sum, &mut shared);
    if UNIT_POS == 0 {
        output[first + CUBE_POS] = sum;
    }
}

/// Sums of squares, `[matrices · PARTS]`, of packed matrices.
pub(super) fn squares<R: CubeRuntime>(matrices: Vec<CubeTensor<R>>) -> Option<CubeTensor<R>> {
    let output = empty(matrices.first()?, &[matrices.len() * PARTS], DType::F32);
    for (index, matrix) in matrices.into_iter().enumerate() {
        launch!(
            squares_kernel,
            PARTS,
            UNITS,
            [matrix, output],
            index * PARTS,
            UNITS,
            matrix.dtype.into(),
        );
    }
    Some(output)
}

#[cube(launch, address_type = "dynamic")]
fn adamw_kernel<F: Float>(
    parameter: &Tensor<F>,
    gradient: &Tensor<F>,
    first: &Tensor<F>,
    second: &Tensor<F>,
    next_parameter: &mut Tensor<F>,
    next_first: &mut Tensor<F>,
    next_second: &mut Tensor<F>,
    factor: f32,
    beta_1: f32,
    beta_2: f32,
    share_1: f32,
    share_2: f32,
    scale_1: f32,
    scale_2: f32,
    eps: f32,
    kept: f32,
    learning_rate: f32,
    #[define(F)] _number_type: StorageType,
) {
    let index = ABSOLUTE_POS;
    if index >= next_parameter.len() {
        terminate!();
    }
    let slope = f32::cast_from(gradient[index]) * factor;
    let mean = f32::cast_from(first[index]) * beta_1 + slope * share_1;
    let square = f32::cast_from(second[index]) * beta_2 + slope * slope * share_2;
    let direction = mean / scale_1 / ((square / scale_2).sqrt() + eps);
    next_first[index] = F::cast_from(mean);
    next_second[index] = F::cast_from(square);
    next_parameter[index] = F::cast_from(f32::cast_from(parameter[index]) * kept - direction * learning_rate);
}

/// [`adamw`](crate::backend::PolicyBackend::adamw) of packed matrices.
pub(super) fn adamw<R: CubeRuntime>(
    parameter: &CubeTensor<R>,
    gradient: &CubeTensor<R>,
    [first, second]: &[CubeTensor<R>; 2],
    update: &AdamWUpdate,
) -> [CubeTensor<R>; 3] {
    let shape: [usize; 2] = dims(parameter);
    let outputs = [0, 1, 2].map(|_| empty(parameter, &shape, parameter.dtype));
    let numbers: usize = shape.iter().product();
    if numbers == 0 {
        return outputs;
    }
    let [next_parameter, next_first, next_second] = &outputs;
    let number_type = number_type(&[parameter, gradient, first, second]);
    launch!(
        adamw_kernel,
        numbers.div_ceil(UNITS),
        UNITS,
        [
            parameter,
            gradient,
            first,
            second,
            next_parameter,
            next_first,
            next_second
        ],
        update.factor as f32,
        update.beta_1 as f32,
        update.beta_2 as f32,
        // Of a number near 1 the difference in 32 bits is off by much.
        (1.0 - update.beta_1) as f32,
        (1.0 - update.beta_2) as f32,
        update.scale_1 as f32,
        update.scale_2 as f32,
        update.eps as f32,
        update.kept as f32,
        update.learning_rate as f32,
        number_type,
    );
    outputs
}
