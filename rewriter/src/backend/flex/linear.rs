//! A linear map of few rows, as in decoding, where each weight is used only a few times.

use burn_flex::Flex;
use burn_tensor::Tensor;
use pulp::{Simd, WithSimd};
use rayon::prelude::*;

use super::vector::on_vectors;
use super::{Numbers, is_single, tensor_of};

/// Beyond so many rows a general product is faster.
const FEW: usize = 16;
/// Outputs of one task.
const PART: usize = 256;
/// Numbers of a weight that make it worth several tasks.
const LARGE: usize = 1 << 18;

/// `input`, `[rows, inputs]`, times `weight`, `[outputs, inputs]`, both with rows without gaps; nothing when
/// there are many rows, or the numbers lie otherwise.
pub(super) fn few_rows(input: &Tensor<Flex, 2>, weight: &Tensor<Flex, 2>) -> Option<Tensor<Flex, 2>> {
    let [rows, inputs] = input.dims();
    let [outputs, _] = weight.dims();
    if rows > FEW || !is_single(input) || !is_single(weight) {
        return None;
    }
    let weight = Numbers::by_rows(weight.clone());
    if weight.strides[0] != inputs {
        return None;
    }
    let input = Numbers::of(input.clone());
    let mut output = vec![0.0; outputs * rows];
    let part = if outputs * inputs < LARGE { outputs } else { PART };
    // By output first: the tasks write side by side.
    let work = |(index, output): (usize, &mut [f32])| {
        on_vectors(Dots {
            input: input.piece(),
            weight: &weight.slice()[index * part * inputs..][..output.len() / rows * inputs],
            inputs,
            rows,
            output,
        });
    };
    if part < outputs && rayon::current_num_threads() > 1 {
        output.par_chunks_mut(part * rows).enumerate().for_each(work);
    } else {
        output.chunks_mut(part * rows).enumerate().for_each(work);
    }
    Some(if rows == 1 {
        tensor_of(output, [1, outputs])
    } else {
        tensor_of(transposed(&output, rows), [rows, outputs])
    })
}

/// `[columns, rows]` to `[rows, columns]`.
fn transposed(numbers: &[f32], rows: usize) -> Vec<f32> {
    (0..rows)
        .flat_map(|row| numbers.iter().skip(row).step_by(rows).copied())
        .collect()
}

/// The products of every row of the weight with every row of the input, `[outputs, rows]`.
struct Dots<'a> {
    input: &'a [f32],
    weight: &'a [f32],
    inputs: usize,
    rows: usize,
    output: &'a mut [f32],
}

impl Dots<'_> {
    /// Outputs from `output` on, `W` of them, by rows from `row` on, `R` of them.
    #[inline(always)]
    fn tile<S: Simd, const W: usize, const R: usize>(&mut self, simd: S, output: usize, row: usize) {
        let at = |index: usize| index * self.inputs..(index + 1) * self.inputs;
        let weights: [_; W] = std::array::from_fn(|index| S::as_simd_f32s(&self.weight[at(output + index)]));
        let inputs: [_; R] = std::array::from_fn(|index| S::as_simd_f32s(&self.input[at(row + index)]));
        let count = weights[0].0.len();
        let weight_vectors: [_; W] = std::array::from_fn(|index| &weights[index].0[..count]);
        let input_vectors: [_; R] = std::array::from_fn(|index| &inputs[index].0[..count]);
        let mut sums = [[simd.splat_f32s(0.0); R]; W];
        for vector in 0..count {
            for (sums, weight) in sums.iter_mut().zip(&weight_vectors) {
                for (sum, input) in sums.iter_mut().zip(&input_vectors) {
                    *sum = simd.mul_add_e_f32s(weight[vector], input[vector], *sum);
                }
            }
        }
        for (of_weight, sums) in sums.into_iter().enumerate() {
            for (of_row, sum) in sums.into_iter().enumerate() {
                let (weight, input) = (weights[of_weight].1, inputs[of_row].1);
                let rest: f32 = weight.iter().zip(input).map(|(one, other)| one * other).sum();
                self.output[(output + of_weight) * self.rows + row + of_row] =
                    simd.reduce_sum_f32s(sum) + rest;
            }
        }
    }

    #[inline(always)]
    fn outputs<S: Simd, const W: usize>(&mut self, simd: S, output: usize) {
        let mut row = 0;
        while row + 4 <= self.rows {
            self.tile::<S, W, 4>(simd, output, row);
            row += 4;
        }
        while row < self.rows {
            self.tile::<S, W, 1>(simd, output, row);
            row += 1;
        }
    }
}

impl WithSimd for Dots<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(mut self, simd: S) {
        let outputs = self.output.len() / self.rows;
        let mut output = 0;
        while output + 4 <= outputs {
            self.outputs::<S, 4>(simd, output);
            output += 4;
        }
        while output < outputs {
            self.outputs::<S, 1>(simd, output);
            output += 1;
        }
    }
}
