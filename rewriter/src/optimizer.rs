//! AdamW on an adapter [Loshchilov & Hutter, Decoupled Weight Decay Regularization, arXiv 1711.05101].

use burn_tensor::Tensor;
use burn_tensor::backend::{AutodiffBackend, Backend};

use crate::lora::Adapter;

/// The settings of AdamW, with PyTorch's defaults.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct AdamW {
    /// Decay of the mean gradient.
    pub beta_1: f64,
    /// Decay of the mean squared gradient.
    pub beta_2: f64,
    /// Added to the root of the mean squared gradient.
    pub eps: f64,
    /// Each step multiplies the parameters by 1 − learning rate · weight decay.
    pub weight_decay: f64,
    /// Longest gradient, over all parameters together; longer ones are shortened to it.
    pub max_grad_norm: Option<f64>,
}

impl Default for AdamW {
    fn default() -> Self {
        Self {
            beta_1: 0.9,
            beta_2: 0.999,
            eps: 1e-8,
            weight_decay: 0.01,
            max_grad_norm: Some(1.0),
        }
    }
}

/// The gradient of a loss by the matrices of an adapter, in their order.
#[derive(Debug, Clone)]
pub struct Gradient<B: Backend>(Vec<Tensor<B, 2>>);

impl<B: Backend> Gradient<B> {
    /// The gradient of `loss`, `[1]`, by an adapter made by [`Adapter::trainable`].
    pub fn of<A: AutodiffBackend<InnerBackend = B>>(loss: &Tensor<A, 1>, adapter: &Adapter<A>) -> Self {
        let gradients = loss.backward();
        let of_matrix = |matrix: &Tensor<A, 2>| {
            // A matrix that the loss does not depend on has none.
            matrix
                .grad(&gradients)
                .unwrap_or_else(|| matrix.clone().inner().zeros_like())
        };
        Self(adapter.matrices().map(of_matrix).collect())
    }

    /// The parts, in the order of [`Adapter::matrices`].
    pub fn parts(&self) -> &[Tensor<B, 2>] {
        &self.0
    }

    /// The sum of two gradients of the same adapter.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self(
            self.0
                .into_iter()
                .zip(other.0)
                .map(|(one, other)| one + other)
                .collect(),
        )
    }

    /// Euclidean length over all parts together, `[1]`.
    pub fn norm(&self) -> Tensor<B, 1> {
        let squares: Vec<_> = self
            .0
            .iter()
            .map(|part| (part.clone() * part.clone()).sum())
            .collect();
        Tensor::cat(squares, 0).sum().sqrt()
    }

    /// Shortened to `longest`: g · min(1, longest / (‖g‖ + 1e-6)).
    #[must_use]
    pub fn clipped(self, longest: f64) -> Self {
        let norm = self.norm();
        let factor = norm.add_scalar(1e-6).recip().mul_scalar(longest).clamp_max(1.0);
        Self(
            self.0
                .into_iter()
                .map(|part| part * factor.clone().unsqueeze())
                .collect(),
        )
    }
}

/// AdamW with what it remembers of past gradients.
#[derive(Debug, Clone)]
pub struct Optimizer<B: Backend> {
    settings: AdamW,
    steps: u32,
    moments: Vec<Moments<B>>,
}

/// Running means for one matrix.
#[derive(Debug, Clone)]
struct Moments<B: Backend> {
    first: Tensor<B, 2>,
    second: Tensor<B, 2>,
}

impl<B: Backend> Optimizer<B> {
    /// An optimizer that has seen nothing.
    pub fn new(settings: AdamW, adapter: &Adapter<B>) -> Self {
        let moments = adapter.matrices().map(|matrix| Moments {
            first: matrix.zeros_like(),
            second: matrix.zeros_like(),
        });
        Self {
            settings,
            steps: 0,
            moments: moments.collect(),
        }
    }

    /// Steps made so far.
    pub fn steps(&self) -> u32 {
        self.steps
    }

    /// The adapter after one step against the gradient.
    #[must_use]
    pub fn step(&mut self, adapter: &Adapter<B>, gradient: Gradient<B>, learning_rate: f64) -> Adapter<B> {
        let AdamW {
            beta_1,
            beta_2,
            eps,
            weight_decay,
            max_grad_norm,
        } = self.settings;
        let gradient = match max_grad_norm {
            Some(longest) => gradient.clipped(longest),
            None => gradient,
        };
        self.steps += 1;
        let time = f64::from(self.steps);
        let (scale_1, scale_2) = (1.0 - beta_1.powf(time), 1.0 - beta_2.powf(time));
        let mut parts = gradient.0.into_iter().zip(&mut self.moments);
        adapter.map(|matrix| {
            let (part, moments) = parts.next().expect("a gradient has a part for each matrix");
            let square = part.clone() * part.clone();
            moments.first = moments.first.clone().mul_scalar(beta_1) + part.mul_scalar(1.0 - beta_1);
            moments.second = moments.second.clone().mul_scalar(beta_2) + square.mul_scalar(1.0 - beta_2);
            let root = moments.second.clone().div_scalar(scale_2).sqrt().add_scalar(eps);
            let direction = moments.first.clone().div_scalar(scale_1) / root;
            matrix.clone().mul_scalar(1.0 - learning_rate * weight_decay)
                - direction.mul_scalar(learning_rate)
        })
    }
}
