//! Means with their standard errors.

use serde::{Deserialize, Serialize};

/// A mean over examples.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Estimate {
    /// The plain mean.
    pub mean: f64,
    /// s/√n with ddof = 1 over examples; 0 for fewer than two (nothing can be said).
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
        let (n, mean) = (values.len(), mean(values)?);
        let standard_error = if n < 2 {
            0.0
        } else {
            let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
            (squares / (n - 1) as f64 / n as f64).sqrt()
        };
        Some(Self {
            mean,
            standard_error,
            n,
        })
    }
}

/// The plain mean; `None` without values. Rounding may carry a sum's quotient past every one of its
/// terms, so that a cost that equals its threshold on each example would seem to exceed it: the mean
/// stays between them.
pub(crate) fn mean(values: &[f64]) -> Option<f64> {
    mean_of(values.iter().copied())
}

/// The plain mean of values that lie in no slice, as [`Estimate::of`] computes it; `None` without values.
pub fn mean_of(values: impl Iterator<Item = f64> + Clone) -> Option<f64> {
    let least = values.clone().reduce(f64::min)?;
    let most = values.clone().reduce(f64::max)?;
    let count = values.clone().count();
    Some((values.sum::<f64>() / count as f64).clamp(least, most))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn standard_error_uses_ddof_one() {
        let estimate = Estimate::of(&[1.0, 0.0, 1.0, 1.0]).unwrap();
        assert_eq!(estimate.mean, 0.75);
        assert!((estimate.standard_error - 0.25).abs() < 1e-12);
        assert_eq!(Estimate::of(&[]), None);
        assert_eq!(Estimate::of(&[2.0]).unwrap().standard_error, 0.0);
    }
}
