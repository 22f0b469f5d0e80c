//! The augmented Lagrangian.

use super::{DualSettings, DualStep, Residuals, moved};
use crate::study::score::{Limits, Multipliers, Score};

/// λ_i ← clip(λ_i + ρ g_i, 0, λ_max) with g the residual, and candidates ranked by
/// R − Σ [ρ/2 · max(0, g_i + λ_i/ρ)² − λ_i²/(2ρ)]: near the threshold this is R − Σ λ_i g_i minus
/// ρ/2 · g_i², far inside it stops rewarding slack (Rockafellar 1973).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Augmented {
    /// Weight ρ of the quadratic term, ≥ 0.
    pub rho: f64,
    /// Upper bound λ_max of the multiplier.
    pub cap: f64,
}

impl Augmented {
    /// With ρ and λ_max of the settings.
    pub fn new(settings: &DualSettings) -> Self {
        Self {
            rho: settings.rho,
            cap: settings.lambda_max,
        }
    }
}

impl DualStep for Augmented {
    fn step(&mut self, multipliers: &Multipliers, residuals: &Residuals) -> Multipliers {
        moved(multipliers, residuals, self.cap, |_, multiplier, residual| {
            multiplier + self.rho * residual
        })
    }

    fn rank_by(&self, score: &Score, limits: &Limits, multipliers: &Multipliers) -> f64 {
        let penalty: f64 = limits
            .iter()
            .map(|(metric, limit)| {
                let multiplier = multipliers.get(metric).copied().unwrap_or(0.0);
                let reach = (limit.residual(score.cautious_cost(metric)) + multiplier / self.rho).max(0.0);
                self.rho / 2.0 * reach.powi(2) - multiplier.powi(2) / (2.0 * self.rho)
            })
            .sum();
        score.objective - penalty
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::study::score::{Limit, Means};

    #[test]
    fn is_the_lagrangian_minus_a_square_near_the_threshold() {
        let limits = Limits::from([(
            "cost".to_owned(),
            Limit {
                threshold: 1.0,
                scale: 1.0,
            },
        )]);
        let multipliers = Multipliers::from([("cost".to_owned(), 2.0)]);
        let step = Augmented { rho: 4.0, cap: 10.0 };
        for (cost, expected_gap) in [(1.2, 4.0 / 2.0 * 0.04), (0.8, 4.0 / 2.0 * 0.04), (1.0, 0.0)] {
            let means = Means {
                objective: 0.5,
                costs: [("cost".to_owned(), cost)].into(),
                ..Means::default()
            };
            let score = Score::new(means, &limits, &multipliers);
            let gap = score.lagrangian - step.rank_by(&score, &limits, &multipliers);
            assert!((gap - expected_gap).abs() < 1e-12, "{cost}: {gap}");
        }
        // Beyond g = −λ/ρ more slack earns nothing.
        let rank = |cost| {
            let means = Means {
                objective: 0.5,
                costs: [("cost".to_owned(), cost)].into(),
                ..Means::default()
            };
            step.rank_by(&Score::new(means, &limits, &multipliers), &limits, &multipliers)
        };
        assert_eq!(rank(0.4), rank(0.1));
    }
}
