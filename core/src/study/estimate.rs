//! Means with their standard errors.

use serde::{Deserialize, Serialize};

use crate::study::numbers::number;

/// Squares of larger values, summed over any number of examples, may leave the range of numbers.
const SQUARABLE: f64 = 1e140;

/// A mean over examples.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Estimate {
    /// The plain mean.
    #[serde(deserialize_with = "number")]
    pub mean: f64,
    /// s/√n with ddof = 1 over examples; 0 for fewer than two (nothing can be said).
    #[serde(deserialize_with = "number")]
    pub standard_error: f64,
    /// Number of examples.
    pub n: usize,
}

impl Estimate {
    /// The estimate from one value for each example, in a fixed order; `None` without values.
    ///
    /// ```
    /// use capo_core::estimate::Estimate;
    ///
    /// let estimate = Estimate::of(&[1.0, 0.0, 1.0, 1.0]).unwrap();
    /// assert_eq!((estimate.mean, estimate.standard_error, estimate.n), (0.75, 0.25, 4));
    /// ```
    pub fn of(values: &[f64]) -> Option<Self> {
        let (n, mean) = (values.len(), mean_of(values.iter().copied())?);
        let standard_error = if n < 2 {
            0.0
        } else {
            // Measured in units of the largest one where squares would leave the range of numbers.
            let largest = values.iter().fold(0.0_f64, |most, value| most.max(value.abs()));
            let unit = if largest > SQUARABLE { largest } else { 1.0 };
            let squares: f64 = values
                .iter()
                .map(|value| (value / unit - mean / unit).powi(2))
                .sum();
            unit * (squares / (n - 1) as f64 / n as f64).sqrt()
        };
        Some(Self {
            mean,
            standard_error,
            n,
        })
    }

    /// The predictive probability that the mean over so many further examples, infinitely many for 0, is at most
    /// `bound`: normal around the mean, of variance s²(1/n + 1/further). Where nothing varies, or a single example says
    /// nothing of how it varies, the mean itself decides: 0 or 1.
    ///
    /// ```
    /// use capo_core::estimate::Estimate;
    ///
    /// let estimate = Estimate::of(&[0.0, 1.0, 0.0, 0.0]).unwrap();
    /// assert_eq!(estimate.probability_at_most(0.25, 100), 0.5);
    /// assert!(estimate.probability_at_most(0.5, 0) > estimate.probability_at_most(0.5, 4));
    /// ```
    pub fn probability_at_most(&self, bound: f64, further: usize) -> f64 {
        let more = if further == 0 {
            1.0
        } else {
            1.0 + self.n as f64 / further as f64
        };
        let spread = self.standard_error * more.sqrt();
        if spread > 0.0 {
            libm::erfc((self.mean - bound) / (spread * std::f64::consts::SQRT_2)) / 2.0
        } else {
            f64::from(u8::from(self.mean <= bound))
        }
    }
}

/// The plain mean; `None` without values. Rounding may carry a sum's quotient past every one of its terms, so that a cost
/// that equals its threshold on each example would seem to exceed it: the mean stays between them.
pub fn mean_of(values: impl Iterator<Item = f64> + Clone) -> Option<f64> {
    let least = values.clone().reduce(f64::min)?;
    let most = values.clone().reduce(f64::max)?;
    let count = values.clone().count() as f64;
    let mut mean = values.clone().sum::<f64>() / count;
    if !mean.is_finite() {
        // The sum left the range of numbers; its parts do not.
        mean = values.map(|value| value / count).sum();
    }
    Some(mean.clamp(least, most))
}

/// pass^k for k = 1 to `tries`: how likely k tries at an example, drawn without replacement from those made,
/// are all successes; the mean over examples of C(c, k) / C(n, k) for c successes in n tries (tau-bench, Yao
/// et al. 2024). `successes` counts those of each example. Empty without examples.
///
/// ```
/// use capo_core::estimate::pass_hat;
///
/// // One example succeeded on both tries, one on one of them.
/// assert_eq!(pass_hat(&[2, 1], 2), [0.75, 0.5]);
/// ```
pub fn pass_hat(successes: &[u32], tries: u32) -> Vec<f64> {
    let all_of = |k: u32, successes: u32| -> f64 {
        let nth = |made: u32| f64::from(successes.saturating_sub(made)) / f64::from(tries - made);
        (0..k).map(nth).product()
    };
    (1..=tries)
        .map_while(|k| mean_of(successes.iter().map(|successes| all_of(k, *successes))))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pass_hat_counts_the_draws_that_all_succeed() {
        // Of 4 tries 3 succeed: C(3, k) / C(4, k).
        assert_eq!(pass_hat(&[3], 4), [0.75, 0.5, 0.25, 0.0]);
        assert_eq!(pass_hat(&[4, 0], 4), [0.5; 4]);
        assert!(pass_hat(&[], 4).is_empty());
    }

    #[test]
    fn standard_error_uses_ddof_one() {
        let estimate = Estimate::of(&[1.0, 0.0, 1.0, 1.0]).unwrap();
        assert_eq!(estimate.mean, 0.75);
        assert!((estimate.standard_error - 0.25).abs() < 1e-12);
        assert_eq!(Estimate::of(&[]), None);
        assert_eq!(Estimate::of(&[2.0]).unwrap().standard_error, 0.0);
    }

    #[test]
    fn no_finite_values_have_an_estimate_that_is_not() {
        for values in [
            [f64::MAX, 1.0, 2.0],
            [f64::MAX; 3],
            [f64::MAX, -f64::MAX, 0.0],
            [1e155, 0.0, 0.0],
        ] {
            let estimate = Estimate::of(&values).unwrap();
            assert!(
                estimate.mean.is_finite() && estimate.standard_error.is_finite(),
                "{values:?}: {estimate:?}"
            );
        }
        let estimate = Estimate::of(&[1e200, 0.0, 1e200, 1e200]).unwrap();
        assert!((estimate.standard_error / 1e200 - 0.25).abs() < 1e-12);
    }
}
