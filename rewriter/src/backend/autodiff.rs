//! Backward passes of the operations: automatic differentiation.

use std::sync::Arc;

use burn_autodiff::Autodiff;
use burn_autodiff::checkpoint::base::Checkpointer;
use burn_autodiff::checkpoint::strategy::CheckpointStrategy;
use burn_autodiff::grads::Gradients;
use burn_autodiff::ops::{Backward, Ops, OpsKind, unary};
use burn_tensor::ops::{BoolTensor, FloatTensor};
use burn_tensor::{Int, Tensor, TensorPrimitive};

use super::{PolicyBackend, TargetScores, Visibility};

impl<B: PolicyBackend, C: CheckpointStrategy> PolicyBackend for Autodiff<B, C> {
    fn scored_numbers(device: &Self::Device) -> usize {
        B::scored_numbers(device)
    }

    fn rms_norm(input: Tensor<Self, 2>, weight: Tensor<Self, 1>, eps: f64) -> Tensor<Self, 2> {
        let (input, weight) = (tracked(input), tracked(weight));
        let state = RmsNormState::<B> {
            input: tensor(input.primitive),
            weight: tensor(weight.primitive),
            eps,
        };
        let output = B::rms_norm(state.input.clone(), state.weight.clone(), eps);
        let nodes = [input.node, weight.node];
        match RmsNorm.prepare::<C>(nodes).compute_bound().stateful() {
            OpsKind::Tracked(step) => tensor(step.finish(state, primitive(output))),
            OpsKind::UnTracked(step) => tensor(step.finish(primitive(output))),
        }
    }

    fn silu_mul(gate: Tensor<Self, 2>, up: Tensor<Self, 2>) -> Tensor<Self, 2> {
        let (gate, up) = (tracked(gate), tracked(up));
        let state: [Tensor<B, 2>; 2] = [tensor(gate.primitive), tensor(up.primitive)];
        let [inner_gate, inner_up] = state.clone();
        let output = primitive(B::silu_mul(inner_gate, inner_up));
        match SiluMul
            .prepare::<C>([gate.node, up.node])
            .compute_bound()
            .stateful()
        {
            OpsKind::Tracked(step) => tensor(step.finish(state, output)),
            OpsKind::UnTracked(step) => tensor(step.finish(output)),
        }
    }

    fn rotate(heads: Tensor<Self, 4>, cos: Tensor<Self, 4>, sin: Tensor<Self, 4>) -> Tensor<Self, 4> {
        let heads = tracked(heads);
        let tables: [Tensor<B, 4>; 2] = [cos, sin].map(|table| tensor(tracked(table).primitive));
        let [cos, sin] = tables.clone();
        let output = primitive(B::rotate(tensor(heads.primitive), cos, sin));
        match Rotate.prepare::<C>([heads.node]).compute_bound().stateful() {
            OpsKind::Tracked(step) => tensor(step.finish(tables, output)),
            OpsKind::UnTracked(step) => tensor(step.finish(output)),
        }
    }

    fn attend(
        queries: Tensor<Self, 4>,
        keys: Tensor<Self, 4>,
        values: Tensor<Self, 4>,
        scale: f64,
        visible: &Arc<Visibility<BoolTensor<B>>>,
    ) -> Tensor<Self, 4> {
        let parents = [queries, keys, values].map(tracked);
        let nodes = parents.each_ref().map(|parent| parent.node.clone());
        let state = AttentionState::<B> {
            parents: parents.map(|parent| tensor(parent.primitive)),
            scale,
            visible: visible.clone(),
        };
        let [queries, keys, values] = state.parents.clone();
        let output = primitive(B::attend(queries, keys, values, scale, visible));
        match Attention.prepare::<C>(nodes).compute_bound().stateful() {
            OpsKind::Tracked(step) => tensor(step.finish(state, output)),
            OpsKind::UnTracked(step) => tensor(step.finish(output)),
        }
    }

    fn target_scores(
        logits: Tensor<Self, 2>,
        targets: Tensor<Self, 1, Int>,
        temperature: f64,
    ) -> TargetScores<Self> {
        let logits = tracked(logits);
        let targets = Tensor::<B, 1, Int>::from_primitive(targets.into_primitive());
        let scores = B::target_scores(tensor(logits.primitive), targets.clone(), temperature);
        let probabilities = Tensor::from_inner(scores.probabilities.clone());
        let state = TargetState::<B> {
            probabilities: scores.probabilities,
            targets,
            temperature,
        };
        let logprobs = primitive(scores.logprobs);
        let logprobs = match TargetLogprobs
            .prepare::<C>([logits.node])
            .compute_bound()
            .stateful()
        {
            OpsKind::Tracked(step) => step.finish(state, logprobs),
            OpsKind::UnTracked(step) => step.finish(logprobs),
        };
        TargetScores {
            logprobs: tensor(logprobs),
            entropy: Tensor::from_inner(scores.entropy),
            probabilities,
        }
    }
}

fn tracked<B: PolicyBackend, C: CheckpointStrategy, const D: usize>(
    tensor: Tensor<Autodiff<B, C>, D>,
) -> FloatTensor<Autodiff<B, C>> {
    tensor.into_primitive().tensor()
}

fn primitive<B: PolicyBackend, const D: usize>(tensor: Tensor<B, D>) -> FloatTensor<B> {
    tensor.into_primitive().tensor()
}

fn tensor<B: PolicyBackend, const D: usize>(primitive: FloatTensor<B>) -> Tensor<B, D> {
    Tensor::from_primitive(TensorPrimitive::Float(primitive))
}

#[derive(Debug)]
struct RmsNorm;

#[derive(Debug, Clone)]
struct RmsNormState<B: PolicyBackend> {
    input: Tensor<B, 2>,
    weight: Tensor<B, 1>,
    eps: f64,
}

impl<B: PolicyBackend> Backward<B, 2> for RmsNorm {
    type State = RmsNormState<B>;

    fn backward(self, ops: Ops<Self::State, 2>, gradients: &mut Gradients, _: &mut Checkpointer) {
        let gradient: Tensor<B, 2> = tensor(gradients.consume::<B>(&ops.node));
        let RmsNormState { input, weight, eps } = ops.state;
        let [of_input, of_weight] = ops.parents;
        if let Some(node) = of_weight {
            let normed = B::rms_norm(input.clone(), weight.ones_like(), eps);
            let by_weight: Tensor<B, 1> = (gradient.clone() * normed).sum_dim(0).squeeze_dim(0);
            gradients.register::<B>(node.id, primitive(by_weight));
        }
        if let Some(node) = of_input {
            let by_input = B::rms_norm_backward(input, weight, eps, gradient);
            gradients.register::<B>(node.id, primitive(by_input));
        }
    }
}

#[derive(Debug)]
struct SiluMul;

impl<B: PolicyBackend> Backward<B, 2> for SiluMul {
    type State = [Tensor<B, 2>; 2];

    fn backward(self, ops: Ops<Self::State, 2>, gradients: &mut Gradients, _: &mut Checkpointer) {
        let gradient = tensor(gradients.consume::<B>(&ops.node));
        let [gate, up] = ops.state;
        let parts = B::silu_mul_backward(gate, up, gradient);
        for (node, part) in ops.parents.into_iter().zip(parts) {
            if let Some(node) = node {
                gradients.register::<B>(node.id, primitive(part));
            }
        }
    }
}

#[derive(Debug)]
struct Rotate;

impl<B: PolicyBackend> Backward<B, 1> for Rotate {
    type State = [Tensor<B, 4>; 2];

    fn backward(self, ops: Ops<Self::State, 1>, gradients: &mut Gradients, _: &mut Checkpointer) {
        let [cos, sin] = ops.state;
        unary::<B, _>(ops.parents, ops.node, gradients, |gradient| {
            primitive(B::rotate(tensor(gradient), cos, sin.neg()))
        });
    }
}

#[derive(Debug)]
struct Attention;

#[derive(Debug, Clone)]
struct AttentionState<B: PolicyBackend> {
    /// Queries, keys and values.
    parents: [Tensor<B, 4>; 3],
    scale: f64,
    visible: Arc<Visibility<BoolTensor<B>>>,
}

impl<B: PolicyBackend> Backward<B, 3> for Attention {
    type State = AttentionState<B>;

    fn backward(self, ops: Ops<Self::State, 3>, gradients: &mut Gradients, _: &mut Checkpointer) {
        let gradient = tensor(gradients.consume::<B>(&ops.node));
        let [queries, keys, values] = ops.state.parents;
        let parts = B::attend_backward(
            queries,
            keys,
            values,
            ops.state.scale,
            &ops.state.visible,
            gradient,
        );
        for (node, part) in ops.parents.into_iter().zip(parts) {
            if let Some(node) = node {
                gradients.register::<B>(node.id, primitive(part));
            }
        }
    }
}

#[derive(Debug)]
struct TargetLogprobs;

#[derive(Debug, Clone)]
struct TargetState<B: PolicyBackend> {
    probabilities: Tensor<B, 2>,
    targets: Tensor<B, 1, Int>,
    temperature: f64,
}

impl<B: PolicyBackend> Backward<B, 1> for TargetLogprobs {
    type State = TargetState<B>;

    fn backward(self, ops: Ops<Self::State, 1>, gradients: &mut Gradients, _: &mut Checkpointer) {
        let TargetState {
            probabilities,
            targets,
            temperature,
        } = ops.state;
        unary::<B, _>(ops.parents, ops.node, gradients, |gradient| {
            primitive(B::target_scores_backward(
                probabilities,
                targets,
                temperature,
                tensor(gradient),
            ))
        });
    }
}
