//! A PID controller on the residual.

use super::{DualSettings, DualStep, Residuals, moved};
use crate::study::score::Multipliers;

/// λ = max(0, K_p e + K_i Σe + K_d max(0, Δe)), capped at λ_max, with e the residual. The integral
/// never falls below 0, and the derivative acts only while the violation grows (Stooke, Achiam and
/// Abbeel 2020, "Responsive Safety in Reinforcement Learning by PID Lagrangian Methods").
#[derive(Debug, Clone, PartialEq)]
pub struct Pid {
    kp: f64,
    ki: f64,
    kd: f64,
    cap: f64,
    integral: Residuals,
    previous: Residuals,
}

impl Pid {
    /// A controller at rest, with the gains and λ_max of the settings.
    pub fn new(settings: &DualSettings) -> Self {
        Self {
            kp: settings.kp,
            ki: settings.ki,
            kd: settings.kd,
            cap: settings.lambda_max,
            integral: Residuals::new(),
            previous: Residuals::new(),
        }
    }
}

impl DualStep for Pid {
    fn step(&mut self, multipliers: &Multipliers, residuals: &Residuals) -> Multipliers {
        let Self {
            kp,
            ki,
            kd,
            cap,
            integral,
            previous,
        } = self;
        moved(multipliers, residuals, *cap, |metric, _, residual| {
            let integral = integral.entry(metric.to_owned()).or_insert(0.0);
            *integral = (*integral + residual).max(0.0);
            // The first residual has no predecessor: it counts as no change.
            let growth =
                (residual - previous.insert(metric.to_owned(), residual).unwrap_or(residual)).max(0.0);
            *kp * residual + *ki * *integral + *kd * growth
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn follows_the_formula_by_hand() {
        let mut pid = Pid::new(&DualSettings {
            kp: 2.0,
            ki: 1.0,
            kd: 3.0,
            ..DualSettings::default()
        });
        let one = |value: f64| Residuals::from([("cost".to_owned(), value)]);
        let mut multipliers = one(1.0);
        // e = 0.5: 2·0.5 + 1·0.5 + 0
        multipliers = pid.step(&multipliers, &one(0.5));
        assert!((multipliers["cost"] - 1.5).abs() < 1e-12);
        // e = 0.7: 2·0.7 + 1·1.2 + 3·0.2
        multipliers = pid.step(&multipliers, &one(0.7));
        assert!((multipliers["cost"] - 3.2).abs() < 1e-12);
        // e = −2: the integral stops at 0, and so does λ.
        multipliers = pid.step(&multipliers, &one(-2.0));
        assert_eq!(multipliers["cost"], 0.0);
        // e = 0.1: 2·0.1 + 1·0.1 + 3·2.1
        multipliers = pid.step(&multipliers, &one(0.1));
        assert!((multipliers["cost"] - 6.6).abs() < 1e-12);
    }
}
