//! Dual steps, such as projected dual ascent on the multipliers: one file each, and one line in the list below.

use std::fmt;

use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::study::score::{Limits, Multipliers, Score};

/// Residuals (mean cost − τ)/s by metric, positive where violated.
pub type Residuals = IndexMap<String, f64>;

/// Moves the multipliers once a round and may add a term of its own to the ranking.
pub trait DualStep {
    /// λ_{t+1} from λ_t and the residuals of P_best, each in [0, λ_max].
    fn step(&mut self, multipliers: &Multipliers, residuals: &Residuals) -> Multipliers;

    /// What a candidate is ranked by: J unless the step says otherwise.
    fn rank_by(&self, score: &Score, limits: &Limits, multipliers: &Multipliers) -> f64 {
        let _ = (limits, multipliers);
        score.lagrangian
    }
}

/// Declares the dual steps, each with a sentence for people: its module, and its type there, which has a `new` that
/// takes the [`DualSettings`]. The type's name is the step's, in kebab-case in study files.
macro_rules! dual_steps {
    ($($(#[doc = $meaning:literal])+ $module:ident::$step:ident),* $(,)?) => {
        $(mod $module;
        pub use $module::$step;)*

        /// The dual steps by name.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
        #[serde(rename_all = "kebab-case")]
        pub enum DualStepName {
            $($(#[doc = $meaning])+ $step),*
        }

        impl DualStepName {
            /// All of them.
            pub const ALL: &[Self] = &[$(Self::$step),*];

            fn build(self, settings: &DualSettings) -> Box<dyn DualStep> {
                match self {
                    $(Self::$step => Box::new($step::new(settings)),)*
                }
            }
        }

    };
}

dual_steps! {
    /// λ ← clip(λ + β · residual): the paper's.
    subgradient::Subgradient,
    /// The sign of the violation instead of its size.
    count::Count,
    /// Proportional, integral and derivative terms of the residual.
    pid::Pid,
    /// Augmented Lagrangian: a quadratic penalty joins the ranking.
    augmented::Augmented,
    /// Multipliers stay where they started.
    fixed::Fixed,
}

impl fmt::Display for DualStepName {
    /// As study files name it.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.serialize(formatter)
    }
}

/// Hyperparameters of all dual steps; each reads its own.
///
/// ```
/// use capo_core::dual::{DualSettings, DualStepName, Residuals};
/// use capo_core::score::Multipliers;
///
/// let settings = DualSettings { beta: 2.0, ..DualSettings::default() };
/// let mut step = settings.build(DualStepName::Subgradient);
/// let multipliers = Multipliers::from([("calls".to_owned(), 1.0), ("length".to_owned(), 1.0)]);
/// let residuals = Residuals::from([("calls".to_owned(), 0.25), ("length".to_owned(), -3.0)]);
/// let next = step.step(&multipliers, &residuals);
/// assert_eq!(next["calls"], 1.5); // violated: heavier
/// assert_eq!(next["length"], 0.0); // slack: lighter, never below 0
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct DualSettings {
    /// β > 0: size of a subgradient or count step.
    pub beta: f64,
    /// λ_max > 0: cap of every multiplier.
    pub lambda_max: f64,
    /// λ_0 in [0, λ_max]: where the multipliers of constraints in force at round 0 start.
    pub lambda_init: f64,
    /// Movement of the count step when a constraint is satisfied: −1 or 0.
    pub count_satisfied: f64,
    /// Proportional gain of the PID step.
    pub kp: f64,
    /// Integral gain of the PID step.
    pub ki: f64,
    /// Derivative gain of the PID step.
    pub kd: f64,
    /// ρ > 0: weight of the augmented step's penalty.
    pub rho: f64,
}

impl Default for DualSettings {
    fn default() -> Self {
        Self {
            beta: 4.0,
            lambda_max: 10.0,
            lambda_init: 1.0,
            count_satisfied: -1.0,
            kp: 4.0,
            ki: 2.0,
            kd: 1.0,
            rho: 4.0,
        }
    }
}

/// The largest step size, gain or multiplier: products with costs stay far inside the range of numbers.
pub(crate) const LARGEST: f64 = 1e30;

impl DualSettings {
    /// Checks the ranges.
    ///
    /// # Errors
    /// The key that is out of range, and its range.
    pub fn check(&self) -> Result<(), String> {
        let positive = [
            ("beta", self.beta),
            ("lambda_max", self.lambda_max),
            ("rho", self.rho),
        ];
        let not_negative = [
            ("kp", self.kp),
            ("ki", self.ki),
            ("kd", self.kd),
            ("lambda_init", self.lambda_init),
        ];
        if let Some((key, value)) = positive
            .iter()
            .find(|(_, value)| !(*value > 0.0 && *value <= LARGEST))
        {
            return Err(format!(
                "`{key}` must be above 0 and at most {LARGEST:e}, not {value:e}"
            ));
        }
        if let Some((key, value)) = not_negative
            .iter()
            .find(|(_, value)| !(0.0..=LARGEST).contains(value))
        {
            return Err(format!(
                "`{key}` must be at least 0 and at most {LARGEST:e}, not {value:e}"
            ));
        }
        if self.lambda_init > self.lambda_max {
            return Err(format!(
                "`lambda_init` ({}) is above `lambda_max` ({})",
                self.lambda_init, self.lambda_max
            ));
        }
        if ![-1.0, 0.0].contains(&self.count_satisfied) {
            return Err(format!(
                "`count_satisfied` must be -1 or 0, not {}",
                self.count_satisfied
            ));
        }
        Ok(())
    }

    /// λ_0 of the constraints in force.
    pub fn start(&self, limits: &Limits) -> Multipliers {
        limits
            .keys()
            .map(|metric| (metric.clone(), self.lambda_init))
            .collect()
    }

    /// The named step with these hyperparameters.
    pub fn build(&self, name: DualStepName) -> Box<dyn DualStep> {
        name.build(self)
    }
}

/// Projection onto [0, cap].
fn clip(multiplier: f64, cap: f64) -> f64 {
    multiplier.clamp(0.0, cap)
}

/// Every multiplier moved by `step(λ, residual)` and projected onto [0, cap].
fn moved(
    multipliers: &Multipliers,
    residuals: &Residuals,
    cap: f64,
    mut step: impl FnMut(&str, f64, f64) -> f64,
) -> Multipliers {
    multipliers
        .iter()
        .map(|(metric, &multiplier)| {
            let residual = residuals.get(metric).copied().unwrap_or(0.0);
            (metric.clone(), clip(step(metric, multiplier, residual), cap))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn one(value: f64) -> IndexMap<String, f64> {
        [("cost".to_owned(), value)].into()
    }

    proptest! {
        #[test]
        fn every_step_stays_in_range(
            residuals in proptest::collection::vec(-50.0..50.0_f64, 1..12),
            lambda_max in 0.1..20.0_f64,
            start in 0.0..1.0_f64,
        ) {
            let settings = DualSettings { lambda_max, lambda_init: start * lambda_max, ..DualSettings::default() };
            for &name in DualStepName::ALL {
                let mut step = settings.build(name);
                let mut multipliers = one(settings.lambda_init);
                for residual in &residuals {
                    multipliers = step.step(&multipliers, &one(*residual));
                    prop_assert!((0.0..=lambda_max).contains(&multipliers["cost"]), "{:?} {:?}", name, multipliers);
                }
            }
        }

        #[test]
        fn adaptive_steps_never_fall_under_violation_nor_rise_under_slack(
            multiplier in 0.0..10.0_f64,
            residual in -2.0..2.0_f64,
        ) {
            for name in [DualStepName::Subgradient, DualStepName::Count, DualStepName::Augmented] {
                let next = DualSettings::default().build(name).step(&one(multiplier), &one(residual))["cost"];
                if residual > 0.0 {
                    prop_assert!(next >= multiplier);
                } else {
                    prop_assert!(next <= multiplier);
                }
            }
        }
    }

    #[test]
    fn ranges_are_checked() {
        let bad = DualSettings {
            lambda_init: 11.0,
            ..DualSettings::default()
        };
        assert!(bad.check().unwrap_err().contains("lambda_init"));
        let bad = DualSettings {
            beta: f64::NAN,
            ..DualSettings::default()
        };
        assert!(bad.check().unwrap_err().contains("beta"));
        DualSettings::default().check().unwrap();
    }
}
