//! Rotation of heads.

use burn_cubecl::cubecl::prelude::*;
use burn_cubecl::tensor::CubeTensor;
use burn_cubecl::{CubeRuntime, cubecl};

use super::{UNITS, dims, empty, number_type};

/// A unit for each number of the output; `input` may have any strides.
#[cube(launch, address_type = "dynamic")]
fn rotate_kernel<F: Float>(
    input: &Tensor<F>,
    cos: &Tensor<F>,
    sin: &Tensor<F>,
    output: &mut Tensor<F>,
    #[define(F)] _number_type: StorageType,
) {
    let index = ABSOLUTE_POS;
    if index >= output.len() {
        terminate!();
    }
    let (heads, width) = (output.shape(2), output.shape(3));
    let at = index % width;
    let head = index / width;
    let token = head / heads;
    let (row, column) = (token / output.shape(1), token % output.shape(1));
    let start = row * input.stride(0) + column * input.stride(1) + (head % heads) * input.stride(2);
    let half = width / 2;
    let mut partner = at + half;
    if at >= half {
        partner = at - half;
    }
    let number = f32::cast_from(input[start + at * input.stride(3)]);
    let other = f32::cast_from(input[start + partner * input.stride(3)]);
    let table = token * width + at;
    output[index] = F::cast_from(number * f32::cast_from(cos[table]) + other * f32::cast_from(sin[table]));
}

/// [`rotate`](super::PolicyBackend::rotate) of `[rows, columns, heads, width]`; the tables packed.
pub(super) fn rotate<R: CubeRuntime>(
    heads: &CubeTensor<R>,
    cos: &CubeTensor<R>,
    sin: &CubeTensor<R>,
) -> CubeTensor<R> {
    let shape: [usize; 4] = dims(heads);
    let output = empty(heads, &shape, heads.dtype);
    let numbers: usize = shape.iter().product();
    if numbers == 0 {
        return output;
    }
    let number_type = number_type(&[heads, cos, sin]);
    launch!(
        rotate_kernel,
        numbers.div_ceil(UNITS),
        UNITS,
        [heads, cos, sin, output],
        number_type,
    );
    output
}
