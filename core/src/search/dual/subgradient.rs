//! The paper's dual step.

use super::{DualStep, Residuals, moved};
use crate::study::score::Multipliers;

/// λ_i ← clip(λ_i + β ρ_i, 0, λ_max), the projected subgradient step (Residual-Driven Dual Updates).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Subgradient {
    /// β.
    pub beta: f64,
    /// λ_max.
    pub cap: f64,
}

impl DualStep for Subgradient {
    fn step(&mut self, multipliers: &Multipliers, residuals: &Residuals) -> Multipliers {
        moved(multipliers, residuals, self.cap, |_, multiplier, residual| {
            multiplier + self.beta * residual
        })
    }
}
