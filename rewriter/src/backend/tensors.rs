//! The operations in burn's own, for backends that have nothing better, and gradients worked out by hand.

use std::sync::Arc;

use burn_tensor::activation::{log_softmax, sigmoid, silu, softmax};
use burn_tensor::backend::Backend;
use burn_tensor::{FloatDType, IndexingUpdateOp, Int, Tensor};

use super::{AdamWUpdate, Visibility, wide};

/// What a distribution over the vocabulary says of one target.
#[derive(Debug, Clone)]
pub struct TargetScores<B: Backend> {
    /// Log-probability of the target, `[tokens]`.
    pub logprobs: Tensor<B, 1>,
    /// Entropy of the distribution in nats, `[tokens]`.
    pub entropy: Tensor<B, 1>,
    /// The distribution, `[tokens, vocabulary]`.
    pub probabilities: Tensor<B, 2>,
}

pub(super) fn rms_norm<B: Backend>(input: Tensor<B, 2>, weight: Tensor<B, 1>, eps: f64) -> Tensor<B, 2> {
    let number_type = FloatDType::from(input.dtype());
    let input = wide(input);
    (input.clone() / root_mean_square(&input, eps)).cast(number_type) * weight.unsqueeze()
}

/// With g the gradient times the weight: g / rms − x · mean(g x) / rms³.
pub(super) fn rms_norm_backward<B: Backend>(
    input: Tensor<B, 2>,
    weight: Tensor<B, 1>,
    eps: f64,
    gradient: Tensor<B, 2>,
) -> Tensor<B, 2> {
    let number_type = FloatDType::from(input.dtype());
    let input = wide(input);
    let gradient = wide(gradient * weight.unsqueeze());
    let root = root_mean_square(&input, eps);
    let normed = input / root.clone();
    let along = (gradient.clone() * normed.clone()).mean_dim(1);
    ((gradient - normed * along) / root).cast(number_type)
}

fn root_mean_square<B: Backend>(input: &Tensor<B, 2>, eps: f64) -> Tensor<B, 2> {
    (input.clone() * input.clone()).mean_dim(1).add_scalar(eps).sqrt()
}

pub(super) fn silu_mul<B: Backend>(gate: Tensor<B, 2>, up: Tensor<B, 2>) -> Tensor<B, 2> {
    silu(gate) * up
}

/// silu'(x) = s (1 + x (1 − s)) with s the logistic function of x.
pub(super) fn silu_mul_backward<B: Backend>(
    gate: Tensor<B, 2>,
    up: Tensor<B, 2>,
    gradient: Tensor<B, 2>,
) -> [Tensor<B, 2>; 2] {
    let share = sigmoid(gate.clone());
    let by_up = gradient.clone() * gate.clone() * share.clone();
    let slope = (share.clone().neg().add_scalar(1.0) * gate).add_scalar(1.0) * share;
    [gradient * up * slope, by_up]
}

pub(super) fn rotate<B: Backend>(heads: Tensor<B, 4>, cos: Tensor<B, 4>, sin: Tensor<B, 4>) -> Tensor<B, 4> {
    let [.., width] = heads.dims();
    let half = width / 2;
    let halves = vec![
        heads.clone().narrow(3, half, half),
        heads.clone().narrow(3, 0, half),
    ];
    heads * cos + Tensor::cat(halves, 3) * sin
}

pub(super) fn attention<B: Backend>(
    queries: Tensor<B, 4>,
    keys: Tensor<B, 4>,
    values: Tensor<B, 4>,
    scale: f64,
    visible: &Arc<Visibility<B::BoolTensorPrimitive>>,
) -> Tensor<B, 4> {
    let shape = Shape::of(&queries, &keys);
    let number_type = FloatDType::from(queries.dtype());
    let weights = shape.weights(&shape.grouped(queries), keys.swap_dims(1, 2), scale, visible);
    let mixed = weights.cast(number_type).matmul(values.swap_dims(1, 2));
    shape.ungrouped(mixed)
}

/// With P the softmax and G the gradient: dV = Pᵀ G, dS = P ∘ (G Vᵀ − rows' sums of P ∘ G Vᵀ),
/// dQ = scale · dS K, dK = scale · dSᵀ Q.
pub(super) fn attention_backward<B: Backend>(
    queries: Tensor<B, 4>,
    keys: Tensor<B, 4>,
    values: Tensor<B, 4>,
    scale: f64,
    visible: &Arc<Visibility<B::BoolTensorPrimitive>>,
    gradient: Tensor<B, 4>,
) -> [Tensor<B, 4>; 3] {
    let shape = Shape::of(&queries, &keys);
    let number_type = FloatDType::from(queries.dtype());
    let (queries, gradient) = (shape.grouped(queries), shape.grouped(gradient));
    let (keys, values) = (keys.swap_dims(1, 2), values.swap_dims(1, 2));
    let weights = shape.weights(&queries, keys.clone(), scale, visible);
    let by_values = weights
        .clone()
        .cast(number_type)
        .swap_dims(2, 3)
        .matmul(gradient.clone());
    let by_weights = wide(gradient.matmul(values.swap_dims(2, 3)));
    let along = (weights.clone() * by_weights.clone()).sum_dim(3);
    let by_scores = (weights * (by_weights - along))
        .mul_scalar(scale)
        .cast(number_type);
    let by_keys = by_scores.clone().swap_dims(2, 3).matmul(queries);
    [
        shape.ungrouped(by_scores.matmul(keys)),
        by_keys.swap_dims(1, 2),
        by_values.swap_dims(1, 2),
    ]
}

/// The sizes of one attention.
pub(super) struct Shape {
    rows: usize,
    columns: usize,
    heads: usize,
    width: usize,
    seen: usize,
    key_heads: usize,
}

impl Shape {
    pub(super) fn of<B: Backend>(queries: &Tensor<B, 4>, keys: &Tensor<B, 4>) -> Self {
        let [rows, columns, heads, width] = queries.dims();
        let [_, seen, key_heads, _] = keys.dims();
        Self {
            rows,
            columns,
            heads,
            width,
            seen,
            key_heads,
        }
    }

    /// Query heads of one key head.
    pub(super) fn group(&self) -> usize {
        self.heads / self.key_heads
    }

    /// The query heads of one key head side by side, so that keys and values are not copied:
    /// `[rows, key heads, group · columns, width]`.
    pub(super) fn grouped<B: Backend>(&self, heads: Tensor<B, 4>) -> Tensor<B, 4> {
        heads
            .swap_dims(1, 2)
            .reshape([self.rows, self.key_heads, self.group() * self.columns, self.width])
    }

    pub(super) fn ungrouped<B: Backend>(&self, heads: Tensor<B, 4>) -> Tensor<B, 4> {
        heads
            .reshape([self.rows, self.heads, self.columns, self.width])
            .swap_dims(1, 2)
    }

    /// Softmax over the visible keys, in at least 32 bits, `[rows, key heads, group · columns, keys]`.
    fn weights<B: Backend>(
        &self,
        queries: &Tensor<B, 4>,
        keys: Tensor<B, 4>,
        scale: f64,
        visible: &Arc<Visibility<B::BoolTensorPrimitive>>,
    ) -> Tensor<B, 4> {
        let scores = queries.clone().mul_scalar(scale).matmul(keys.swap_dims(2, 3));
        let grouped = scores.dims();
        let scores = wide(scores).reshape([self.rows, self.heads, self.columns, self.seen]);
        let scores = match visible.hidden::<B>(self.heads, &scores.device()) {
            // Finite, so that a query that sees nothing has a softmax.
            Some(hidden) => scores.mask_fill(hidden, -1e30),
            None => scores,
        };
        softmax(scores, 3).reshape(grouped)
    }
}

pub(super) fn target_scores<B: Backend>(
    logits: Tensor<B, 2>,
    targets: Tensor<B, 1, Int>,
    temperature: f64,
) -> TargetScores<B> {
    let distribution = log_softmax(logits.div_scalar(temperature), 1);
    let logprobs = distribution
        .clone()
        .gather(1, targets.unsqueeze_dim(1))
        .squeeze_dim(1);
    let distribution = distribution.detach();
    let probabilities = distribution.clone().exp();
    let entropy = (probabilities.clone() * distribution)
        .sum_dim(1)
        .neg()
        .squeeze_dim(1);
    TargetScores {
        logprobs,
        entropy,
        probabilities,
    }
}

/// (1 at the target − p) · gradient / temperature.
pub(super) fn target_scores_backward<B: Backend>(
    probabilities: Tensor<B, 2>,
    targets: Tensor<B, 1, Int>,
    temperature: f64,
    gradient: Tensor<B, 1>,
) -> Tensor<B, 2> {
    let gradient = gradient.div_scalar(temperature).unsqueeze_dim(1);
    (probabilities.neg() * gradient.clone()).scatter(
        1,
        targets.unsqueeze_dim(1),
        gradient,
        IndexingUpdateOp::Add,
    )
}

pub(super) fn squares<B: Backend>(matrices: Vec<Tensor<B, 2>>) -> Option<Tensor<B, 1>> {
    let squares = matrices.into_iter().map(|matrix| (matrix.clone() * matrix).sum());
    let squares: Vec<_> = squares.collect();
    (!squares.is_empty()).then(|| Tensor::cat(squares, 0).sum())
}

pub(super) fn adamw<B: Backend>(
    parameter: Tensor<B, 2>,
    gradient: Tensor<B, 2>,
    [first, second]: [Tensor<B, 2>; 2],
    update: &AdamWUpdate,
) -> [Tensor<B, 2>; 3] {
    let &AdamWUpdate { beta_1, beta_2, .. } = update;
    let gradient = gradient.mul_scalar(update.factor);
    let square = gradient.clone() * gradient.clone();
    let first = first.mul_scalar(beta_1) + gradient.mul_scalar(1.0 - beta_1);
    let second = second.mul_scalar(beta_2) + square.mul_scalar(1.0 - beta_2);
    let root = second
        .clone()
        .div_scalar(update.scale_2)
        .sqrt()
        .add_scalar(update.eps);
    let direction = first.clone().div_scalar(update.scale_1) / root;
    let kept = parameter.mul_scalar(update.kept);
    [kept - direction.mul_scalar(update.learning_rate), first, second]
}
