//! A rewriter of discrete prompts: a step of ascent with noise, rounded at random to a grid without bias.

use std::array::from_fn;

use capo_core::random::Streams;

use super::problem::{Point, SMOOTHNESS, STRONG_CONCAVITY};

/// How far a rewrite goes along the gradient.
const STEP: f64 = 0.25;
/// Distance of neighbouring prompts in each coordinate.
const GRID: f64 = 0.05;
/// What is added to or taken off each coordinate, by the toss of a coin.
const NOISE: f64 = 0.05;

/// How far a coordinate of a rewrite with such a bias strays from the step at most, in lengths of the step.
pub(super) fn stray(bias: Point) -> f64 {
    (NOISE + GRID + bias.iter().fold(0.0, |most, b| f64::max(most, b.abs()))) / STEP
}

/// κ of B1, with ε = 0.
pub(super) const ALIGNMENT: f64 = STEP;
/// ν of B2.
pub(super) const LENGTH: f64 = STEP * STEP;
/// σ_d² of B2: of the noise, and at most of rounding.
pub(super) const VARIANCE: f64 = 4.0 * (NOISE * NOISE + GRID * GRID / 4.0);
/// ρ of `prop:app_discrete_bridge`.
pub(super) const CONTRACTION: f64 = 2.0 * STRONG_CONCAVITY * (ALIGNMENT - SMOOTHNESS * LENGTH / 2.0);
/// η of the same.
pub(super) const RESIDUAL: f64 = SMOOTHNESS / 2.0 * VARIANCE;

/// A prompt: whole numbers of the grid.
pub(super) type Prompt = [i32; 4];

/// φ: where a prompt lies.
pub(super) fn point(prompt: Prompt) -> Point {
    prompt.map(|steps| GRID * f64::from(steps))
}

/// The prompt nearest to a point.
pub(super) fn nearest(point: Point) -> Prompt {
    point.map(|value| (value / GRID).round() as i32)
}

/// A rewrite, of which four random numbers from `first` on decide. `bias` goes into every one.
pub(super) fn rewrite(
    parent: Prompt,
    gradient: Point,
    bias: Point,
    (streams, round, first): (Streams, u64, u64),
) -> Prompt {
    let from = point(parent);
    from_fn(|i| {
        // Heads or tails, and where between two prompts it is rounded up.
        let draw = 2.0 * uniform(streams, "rewrite", round, first + i as u64);
        let noise = if draw < 1.0 { NOISE } else { -NOISE };
        let wanted = from[i] + STEP * gradient[i] + bias[i] + noise;
        (wanted / GRID + draw.fract()).floor() as i32
    })
}

/// A number from 0 to 1.
pub(super) fn uniform(streams: Streams, purpose: &str, round: u64, index: u64) -> f64 {
    streams.number(purpose, round, index) as f64 / (1_u64 << 63) as f64
}
