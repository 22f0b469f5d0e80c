//! Operations that take each row, or each number, by itself.

use std::ops::Range;

use burn_flex::Flex;
use burn_tensor::{Tensor, TensorPrimitive};
use rayon::prelude::*;

use super::super::TargetScores;
use super::vector::{LANES, dot, exp, exponentiate, largest, logistic, on_vectors, sum};
use super::{Numbers, tensor_of};

/// Numbers that one task writes.
const PART: usize = 1 << 15;

/// Calls `work` with parts of `output` and the row that each begins at, on all threads if there are several.
fn by_parts(output: &mut [f32], width: usize, work: impl Fn(usize, &mut [f32]) + Sync) {
    let rows = (PART / width).max(1);
    if output.len() > PART && rayon::current_num_threads() > 1 {
        let parts = output.par_chunks_mut(rows * width).enumerate();
        parts.for_each(|(index, part)| work(index * rows, part));
    } else if !output.is_empty() {
        work(0, output);
    }
}

pub(super) fn rms_norm(input: &Numbers<2>, weight: &Numbers<1>, eps: f32) -> Tensor<Flex, 2> {
    let width = input.dims[1];
    let (numbers, weight) = (input.piece(), weight.piece());
    let mut output = vec![0.0; numbers.len()];
    by_parts(&mut output, width, |first, part| {
        on_vectors(|| {
            let inputs = numbers[first * width..].chunks_exact(width);
            for (output, input) in part.chunks_exact_mut(width).zip(inputs) {
                let scale = inverse_root(input, eps);
                for ((output, input), weight) in output.iter_mut().zip(input).zip(weight) {
                    *output = input * scale * weight;
                }
            }
        });
    });
    tensor_of(output, input.dims)
}

pub(super) fn rms_norm_backward(
    input: &Numbers<2>,
    weight: &Numbers<1>,
    eps: f32,
    gradient: &Numbers<2>,
) -> Tensor<Flex, 2> {
    let width = input.dims[1];
    let (inputs, weight, gradients) = (input.piece(), weight.piece(), gradient.piece());
    let mut output = vec![0.0; inputs.len()];
    by_parts(&mut output, width, |first, part| {
        on_vectors(|| {
            let inputs = inputs[first * width..].chunks_exact(width);
            let gradients = gradients[first * width..].chunks_exact(width);
            for ((output, input), gradient) in part.chunks_exact_mut(width).zip(inputs).zip(gradients) {
                for ((output, gradient), weight) in output.iter_mut().zip(gradient).zip(weight) {
                    *output = gradient * weight;
                }
                let scale = inverse_root(input, eps);
                let along = dot(output, input) / width as f32 * scale * scale;
                for (output, input) in output.iter_mut().zip(input) {
                    *output = (*output - input * along) * scale;
                }
            }
        });
    });
    tensor_of(output, input.dims)
}

/// 1 / √(mean(x²) + eps).
#[inline(always)]
fn inverse_root(row: &[f32], eps: f32) -> f32 {
    1.0 / (sum(row, |number| number * number) / row.len() as f32 + eps).sqrt()
}

pub(super) fn silu_mul(gate: &Numbers<2>, up: &Numbers<2>) -> Tensor<Flex, 2> {
    let (gates, ups) = (gate.piece(), up.piece());
    let mut output = vec![0.0; gates.len()];
    by_parts(&mut output, 1, |first, part| {
        on_vectors(|| {
            for ((output, gate), up) in part.iter_mut().zip(&gates[first..]).zip(&ups[first..]) {
                *output = gate * logistic(*gate) * up;
            }
        });
    });
    tensor_of(output, gate.dims)
}

pub(super) fn silu_mul_backward(
    gate: &Numbers<2>,
    up: &Numbers<2>,
    gradient: &Numbers<2>,
) -> [Tensor<Flex, 2>; 2] {
    let (gates, ups, gradients) = (gate.piece(), up.piece(), gradient.piece());
    let mut by_gate = vec![0.0; gates.len()];
    by_parts(&mut by_gate, 1, |first, part| {
        on_vectors(|| {
            let inputs = gates[first..].iter().zip(&ups[first..]).zip(&gradients[first..]);
            for (output, ((gate, up), gradient)) in part.iter_mut().zip(inputs) {
                let share = logistic(*gate);
                *output = gradient * up * share * (1.0 + gate * (1.0 - share));
            }
        });
    });
    let mut by_up = vec![0.0; gates.len()];
    by_parts(&mut by_up, 1, |first, part| {
        on_vectors(|| {
            let inputs = gates[first..].iter().zip(&gradients[first..]);
            for (output, (gate, gradient)) in part.iter_mut().zip(inputs) {
                *output = gradient * gate * logistic(*gate);
            }
        });
    });
    [tensor_of(by_gate, gate.dims), tensor_of(by_up, gate.dims)]
}

pub(super) fn rotate(heads: &Numbers<4>, cos: &Numbers<4>, sin: &Numbers<4>) -> Tensor<Flex, 4> {
    let [_, _, count, width] = heads.dims;
    let (numbers, cos, sin) = (heads.piece(), cos.piece(), sin.piece());
    let mut output = vec![0.0; numbers.len()];
    by_parts(&mut output, count * width, |first, part| {
        on_vectors(|| {
            let tokens = part.chunks_exact_mut(count * width);
            let inputs = numbers[first * count * width..].chunks_exact(count * width);
            let tables = cos[first * width..]
                .chunks_exact(width)
                .zip(sin[first * width..].chunks_exact(width));
            for ((output, input), (cos, sin)) in tokens.zip(inputs).zip(tables) {
                rotate_token(output, input, cos, sin);
            }
        });
    });
    tensor_of(output, heads.dims)
}

/// All heads of one token.
#[inline(always)]
fn rotate_token(output: &mut [f32], input: &[f32], cos: &[f32], sin: &[f32]) {
    let width = cos.len();
    let half = width / 2;
    let ((cos_low, cos_high), (sin_low, sin_high)) = (cos.split_at(half), sin.split_at(half));
    for (output, input) in output.chunks_exact_mut(width).zip(input.chunks_exact(width)) {
        let (low, high) = input.split_at(half);
        let (output_low, output_high) = output.split_at_mut(half);
        for index in 0..half {
            output_low[index] = low[index] * cos_low[index] + high[index] * sin_low[index];
        }
        for index in 0..half {
            output_high[index] = high[index] * cos_high[index] + low[index] * sin_high[index];
        }
    }
}

/// In the memory of the logits, if nobody else holds it.
pub(super) fn target_scores(
    logits: Tensor<Flex, 2>,
    targets: &[usize],
    temperature: f32,
) -> TargetScores<Flex> {
    let [tokens, vocabulary] = logits.dims();
    let mut logits = logits.into_primitive().tensor().to_contiguous();
    let mut scores = vec![0.0; 2 * tokens];
    // Each task writes its rows of both.
    let rows = (PART / vocabulary).max(1);
    let parts = logits
        .storage_mut::<f32>()
        .par_chunks_mut(rows * vocabulary)
        .zip(scores.par_chunks_mut(2 * rows))
        .zip(targets.par_chunks(rows));
    parts.for_each(|((logits, scores), targets)| {
        on_vectors(|| {
            let rows = logits
                .chunks_exact_mut(vocabulary)
                .zip(scores.chunks_exact_mut(2));
            for ((logits, scores), target) in rows.zip(targets) {
                score_target(logits, scores, *target, temperature);
            }
        });
    });
    let column = |index: usize| scores.iter().skip(index).step_by(2).copied().collect();
    TargetScores {
        logprobs: tensor_of(column(0), [tokens]),
        entropy: tensor_of(column(1), [tokens]),
        probabilities: Tensor::from_primitive(TensorPrimitive::Float(logits)),
    }
}

/// Makes probabilities of the logits of one token, and its target's log-probability and the entropy.
#[inline(always)]
fn score_target(logits: &mut [f32], scores: &mut [f32], target: usize, temperature: f32) {
    let scale = 1.0 / temperature;
    let shift = largest(logits) * scale;
    let chosen = logits[target] * scale - shift;
    // With z the shifted logits: ln Σ eᶻ − Σ z eᶻ / Σ eᶻ, the terms of the second sum 0 where eᶻ is.
    let mut sums = [0.0; LANES];
    let mut products = [0.0; LANES];
    let mut chunks = logits.chunks_exact_mut(LANES);
    for chunk in &mut chunks {
        for ((number, sum), product) in chunk.iter_mut().zip(&mut sums).zip(&mut products) {
            let shifted = *number * scale - shift;
            *number = exp(shifted);
            *sum += *number;
            *product += if *number == 0.0 { 0.0 } else { *number * shifted };
        }
    }
    let (mut sum, mut product) = (sums.iter().sum::<f32>(), products.iter().sum::<f32>());
    for number in chunks.into_remainder() {
        let shifted = *number * scale - shift;
        *number = exp(shifted);
        sum += *number;
        product += if *number == 0.0 { 0.0 } else { *number * shifted };
    }
    for number in &mut *logits {
        *number /= sum;
    }
    scores[0] = chosen - sum.ln();
    scores[1] = sum.ln() - product / sum;
}

/// In the memory of the probabilities, if nobody else holds it.
pub(super) fn target_scores_backward(
    probabilities: Tensor<Flex, 2>,
    targets: &[usize],
    temperature: f32,
    gradient: &Numbers<1>,
) -> Tensor<Flex, 2> {
    let [_, vocabulary] = probabilities.dims();
    let mut probabilities = probabilities.into_primitive().tensor().to_contiguous();
    let gradients = gradient.piece();
    by_parts(probabilities.storage_mut::<f32>(), vocabulary, |first, part| {
        on_vectors(|| {
            let rows = part.chunks_exact_mut(vocabulary);
            for ((row, target), gradient) in rows.zip(&targets[first..]).zip(&gradients[first..]) {
                let gradient = gradient / temperature;
                for number in &mut *row {
                    *number *= -gradient;
                }
                row[*target] += gradient;
            }
        });
    });
    Tensor::from_primitive(TensorPrimitive::Float(probabilities))
}

/// Replaces scores by their softmax, those outside `span` and those of no token by 0.
pub(super) fn softmax(scores: &mut [f32], span: Range<usize>, tokens: &[bool], scale: f32) {
    on_vectors(|| {
        scores[..span.start].fill(0.0);
        scores[span.end..].fill(0.0);
        let (scores, tokens) = (&mut scores[span.clone()], &tokens[span]);
        if !tokens.contains(&true) {
            scores.fill(0.0);
            return;
        }
        if tokens.contains(&false) {
            for (score, is_token) in scores.iter_mut().zip(tokens) {
                if !is_token {
                    *score = f32::NEG_INFINITY;
                }
            }
        }
        let largest = largest(scores);
        let sum = exponentiate(scores, scale, largest * scale);
        let share = 1.0 / sum;
        for score in scores {
            *score *= share;
        }
    });
}
