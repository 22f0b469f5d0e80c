//! Attention in blocks of queries, of which the scores stay in the cache of the processor.

use std::ops::Range;

use burn_flex::Flex;
use burn_tensor::Tensor;
use rayon::prelude::*;

use super::multiply::{Before, Multiply, Rows, RowsMut, Strided};
use super::rows::softmax;
use super::vector::{dot, on_vectors};
use super::{Mask, Numbers, Visibility, tensor_of};

/// Queries of a block.
const BLOCK: usize = 32;
/// Below so many queries each is multiplied with the keys as they lie; from there on the keys are transposed.
const FEW: usize = 8;

/// Queries `[rows, columns, heads, width]`, keys and values `[rows, keys, key heads, width]`.
struct Heads<'a> {
    queries: &'a Numbers<4>,
    keys: &'a Numbers<4>,
    values: &'a Numbers<4>,
    scale: f32,
    visible: &'a Visibility<Mask>,
}

/// Queries of one row and head that follow each other, with the columns of the keys that any of them sees.
#[derive(Clone)]
struct Block {
    row: usize,
    queries: Range<usize>,
    keys: Range<usize>,
}

pub(super) fn forward(
    queries: &Numbers<4>,
    keys: &Numbers<4>,
    values: &Numbers<4>,
    scale: f32,
    visible: &Visibility<Mask>,
) -> Tensor<Flex, 4> {
    let heads = Heads {
        queries,
        keys,
        values,
        scale,
        visible,
    };
    let [rows, columns, count, width] = queries.dims;
    let mut output = vec![0.0; rows * columns * count * width];
    if output.is_empty() {
        return tensor_of(output, queries.dims);
    }
    let attend_row = |(row, output): (usize, &mut [f32])| {
        let transposed: Vec<_> = (0..keys.dims[2])
            .map(|head| (columns >= FEW).then(|| transposed(keys, row, head)))
            .collect();
        let attend_block = |(index, output): (usize, &mut [f32])| {
            let first = index * BLOCK;
            let block = heads.block(row, first..columns.min(first + BLOCK));
            if block.keys.is_empty() {
                return;
            }
            let mut scores = Vec::new();
            for head in 0..count {
                let keys = transposed[heads.key_head(head)].as_deref();
                heads.weights(&block, head, keys, &mut scores);
                heads.mix(&block, head, &scores, &mut output[head * width..]);
            }
        };
        let size = BLOCK * count * width;
        if columns > BLOCK && rayon::current_num_threads() > 1 {
            output.par_chunks_mut(size).enumerate().for_each(attend_block);
        } else {
            output.chunks_mut(size).enumerate().for_each(attend_block);
        }
    };
    let size = columns * count * width;
    if rows > 1 && rayon::current_num_threads() > 1 {
        output.par_chunks_mut(size).enumerate().for_each(attend_row);
    } else {
        output.chunks_mut(size).enumerate().for_each(attend_row);
    }
    tensor_of(output, queries.dims)
}

pub(super) fn backward(
    queries: &Numbers<4>,
    keys: &Numbers<4>,
    values: &Numbers<4>,
    scale: f32,
    visible: &Visibility<Mask>,
    gradient: &Numbers<4>,
) -> [Tensor<Flex, 4>; 3] {
    let heads = Heads {
        queries,
        keys,
        values,
        scale,
        visible,
    };
    let size = |dims: [usize; 4]| dims[1..].iter().product::<usize>();
    let zeros = |dims: [usize; 4]| vec![0.0; dims.iter().product()];
    let mut by_queries = zeros(queries.dims);
    let mut by_keys = zeros(keys.dims);
    let mut by_values = zeros(keys.dims);
    if !by_queries.is_empty() {
        by_queries
            .par_chunks_mut(size(queries.dims))
            .zip(by_keys.par_chunks_mut(size(keys.dims)))
            .zip(by_values.par_chunks_mut(size(keys.dims)))
            .enumerate()
            .for_each(|(row, ((by_queries, by_keys), by_values))| {
                heads.backward_of_row(row, gradient, by_queries, by_keys, by_values);
            });
    }
    [
        tensor_of(by_queries, queries.dims),
        tensor_of(by_keys, keys.dims),
        tensor_of(by_values, keys.dims),
    ]
}

impl Heads<'_> {
    fn key_head(&self, head: usize) -> usize {
        head / (self.queries.dims[2] / self.keys.dims[2])
    }

    fn block(&self, row: usize, queries: Range<usize>) -> Block {
        let spans = || queries.clone().map(|query| self.visible.span(row, query));
        let start = spans().map(|span| span.start).min().unwrap_or(0);
        let end = spans().map(|span| span.end).max().unwrap_or(0);
        Block {
            row,
            queries,
            keys: start..end.max(start),
        }
    }

    /// Softmax of the scores of a block, `[queries, keys]`. `transposed` has the head's keys by column.
    fn weights(&self, block: &Block, head: usize, transposed: Option<&[f32]>, scores: &mut Vec<f32>) {
        let count = block.keys.len();
        scores.clear();
        scores.resize(block.queries.len() * count, 0.0);
        match transposed {
            Some(keys) => Multiply {
                left: self.queries.rows_of(block.row, block.queries.start, head),
                right: Rows {
                    numbers: &keys[block.keys.start..],
                    stride: self.keys.dims[1],
                },
                product: RowsMut {
                    numbers: scores,
                    stride: count,
                },
                rows: block.queries.len(),
                inner: self.queries.dims[3],
                columns: count,
                before: Before::Replaced,
            }
            .run(),
            None => self.dots(block, head, scores),
        }
        if count == 0 {
            return;
        }
        let tokens = &self.visible.tokens(block.row)[block.keys.clone()];
        for (query, scores) in block.queries.clone().zip(scores.chunks_exact_mut(count)) {
            let span = self.visible.span(block.row, query);
            // A query that sees nothing may have its span anywhere.
            let start = span.start.saturating_sub(block.keys.start).min(count);
            let end = span.end.saturating_sub(block.keys.start).clamp(start, count);
            softmax(scores, start..end, tokens, self.scale);
        }
    }

    fn dots(&self, block: &Block, head: usize, scores: &mut [f32]) {
        let width = self.queries.dims[3];
        let keys = self
            .keys
            .rows_of(block.row, block.keys.start, self.key_head(head));
        for (query, scores) in block
            .queries
            .clone()
            .zip(scores.chunks_exact_mut(block.keys.len().max(1)))
        {
            let query = &self.queries.rows_of(block.row, query, head).numbers[..width];
            on_vectors(|| {
                for (index, score) in scores.iter_mut().enumerate() {
                    *score = dot(query, &keys.numbers[index * keys.row..][..width]);
                }
            });
        }
    }

    /// The values weighted, into the head's part of the output of the block.
    fn mix(&self, block: &Block, head: usize, weights: &[f32], output: &mut [f32]) {
        let [_, _, count, width] = self.queries.dims;
        let values = self
            .values
            .rows_of(block.row, block.keys.start, self.key_head(head));
        Multiply {
            left: Strided {
                numbers: weights,
                row: block.keys.len(),
                column: 1,
            },
            right: Rows {
                numbers: values.numbers,
                stride: values.row,
            },
            product: RowsMut {
                numbers: output,
                stride: count * width,
            },
            rows: block.queries.len(),
            inner: block.keys.len(),
            columns: width,
            before: Before::Replaced,
        }
        .run();
    }

    /// The gradients of one row: by queries as these lie, by keys and values `[keys, key heads, width]`.
    fn backward_of_row(
        &self,
        row: usize,
        gradient: &Numbers<4>,
        by_queries: &mut [f32],
        by_keys: &mut [f32],
        by_values: &mut [f32],
    ) {
        let [_, columns, count, width] = self.queries.dims;
        let [_, seen, key_heads, _] = self.keys.dims;
        let (mut weights, mut by_scores) = (Vec::new(), Vec::new());
        for key_head in 0..key_heads {
            let keys = transposed(self.keys, row, key_head);
            let values = transposed(self.values, row, key_head);
            let group = count / key_heads;
            for head in key_head * group..(key_head + 1) * group {
                for first in (0..columns).step_by(BLOCK) {
                    let block = self.block(row, first..columns.min(first + BLOCK));
                    if block.keys.is_empty() {
                        continue;
                    }
                    self.weights(&block, head, Some(&keys), &mut weights);
                    let gradients = gradient.rows_of(row, first, head);
                    self.by_scores(
                        &block,
                        gradients,
                        &values[..width * seen],
                        &weights,
                        &mut by_scores,
                    );
                    let keys = self.keys.rows_of(row, block.keys.start, key_head);
                    Multiply {
                        left: Strided {
                            numbers: &by_scores,
                            row: block.keys.len(),
                            column: 1,
                        },
                        right: Rows {
                            numbers: keys.numbers,
                            stride: keys.row,
                        },
                        product: RowsMut {
                            numbers: &mut by_queries[(first * count + head) * width..],
                            stride: count * width,
                        },
                        rows: block.queries.len(),
                        inner: block.keys.len(),
                        columns: width,
                        before: Before::Replaced,
                    }
                    .run();
                    let queries = self.queries.rows_of(row, first, head);
                    let place = (block.keys.start * key_heads + key_head) * width;
                    let stride = key_heads * width;
                    let sums = [
                        (&by_scores, queries, &mut *by_keys),
                        (&weights, gradients, &mut *by_values),
                    ];
                    for (left, right, product) in sums {
                        Multiply {
                            left: Strided {
                                numbers: left,
                                row: 1,
                                column: block.keys.len(),
                            },
                            right: Rows {
                                numbers: right.numbers,
                                stride: right.row,
                            },
                            product: RowsMut {
                                numbers: &mut product[place..],
                                stride,
                            },
                            rows: block.keys.len(),
                            inner: block.queries.len(),
                            columns: width,
                            before: Before::Added,
                        }
                        .run();
                    }
                }
            }
        }
    }

    /// The gradient by the scores before scaling, `[queries, keys]`: scale · P ∘ (G Vᵀ − rows' sums of
    /// P ∘ G Vᵀ). `values` are transposed.
    fn by_scores(
        &self,
        block: &Block,
        gradients: Strided<'_>,
        values: &[f32],
        weights: &[f32],
        by_scores: &mut Vec<f32>,
    ) {
        let count = block.keys.len();
        by_scores.clear();
        by_scores.resize(weights.len(), 0.0);
        Multiply {
            left: gradients,
            right: Rows {
                numbers: &values[block.keys.start..],
                stride: self.keys.dims[1],
            },
            product: RowsMut {
                numbers: by_scores,
                stride: count,
            },
            rows: block.queries.len(),
            inner: self.queries.dims[3],
            columns: count,
            before: Before::Replaced,
        }
        .run();
        let scale = self.scale;
        on_vectors(|| {
            for (by_scores, weights) in by_scores.chunks_exact_mut(count).zip(weights.chunks_exact(count)) {
                let along = dot(by_scores, weights);
                for (by_score, weight) in by_scores.iter_mut().zip(weights) {
                    *by_score = weight * (*by_score - along) * scale;
                }
            }
        });
    }
}

impl Numbers<4> {
    /// What one head has for the tokens of a row from `token` on, `[tokens, width]`.
    fn rows_of(&self, row: usize, token: usize, head: usize) -> Strided<'_> {
        let [of_row, of_token, of_head, _] = self.strides;
        Strided {
            numbers: &self.slice()[row * of_row + token * of_token + head * of_head..],
            row: of_token,
            column: 1,
        }
    }
}

/// What one head has for all tokens of a row, `[width, tokens]`.
fn transposed(numbers: &Numbers<4>, row: usize, head: usize) -> Vec<f32> {
    let [_, tokens, _, width] = numbers.dims;
    let source = numbers.rows_of(row, 0, head);
    let mut transposed = vec![0.0; width * tokens];
    // A cache line of the source at a time.
    for first in (0..width).step_by(16) {
        let columns = first..width.min(first + 16);
        for token in 0..tokens {
            let numbers = &source.numbers[token * source.row..][columns.clone()];
            for (column, number) in columns.clone().zip(numbers) {
                transposed[column * tokens + token] = *number;
            }
        }
    }
    transposed
}
