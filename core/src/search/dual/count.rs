//! The count-based ablation.

use super::{DualSettings, DualStep, Residuals, moved};
use crate::study::score::Multipliers;

/// λ_i ← clip(λ_i + β σ_i, 0, λ_max) with σ_i = 1 where the mean cost exceeds τ_i and `satisfied`
/// (−1 or 0) elsewhere: the sign of a violation, not its size.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Count {
    /// Dual rate β, > 0.
    pub beta: f64,
    /// Movement under slack.
    pub satisfied: f64,
    /// Upper bound λ_max of the multiplier.
    pub cap: f64,
}

impl Count {
    /// With β, `count_satisfied` and λ_max of the settings.
    pub fn new(settings: &DualSettings) -> Self {
        Self {
            beta: settings.beta,
            satisfied: settings.count_satisfied,
            cap: settings.lambda_max,
        }
    }
}

impl DualStep for Count {
    fn step(&mut self, multipliers: &Multipliers, residuals: &Residuals) -> Multipliers {
        moved(multipliers, residuals, self.cap, |_, multiplier, residual| {
            multiplier + self.beta * if residual > 0.0 { 1.0 } else { self.satisfied }
        })
    }
}
