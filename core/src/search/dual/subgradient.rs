//! The paper's dual step: dual ascent by projected subgradients.

use super::{DualSettings, DualStep, Residuals, moved};
use crate::study::score::Multipliers;

/// λ_i ← clip(λ_i + β ρ_i, 0, λ_max), the projected subgradient step (`eq:lambda_update`).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Subgradient {
    /// Dual rate β, > 0.
    pub beta: f64,
    /// Upper bound λ_max of the multiplier.
    pub cap: f64,
}

impl Subgradient {
    /// With β and λ_max of the settings.
    pub fn new(settings: &DualSettings) -> Self {
        Self {
            beta: settings.beta,
            cap: settings.lambda_max,
        }
    }
}

impl DualStep for Subgradient {
    fn step(&mut self, multipliers: &Multipliers, residuals: &Residuals) -> Multipliers {
        moved(multipliers, residuals, self.cap, |_, multiplier, residual| {
            multiplier + self.beta * residual
        })
    }
}
