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
    pub fn of(values: &[f64]) -> Option<Self> {
        let n = values.len();
        if n == 0 {
            return None;
        }
        let mean = values.iter().sum::<f64>() / n as f64;
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
