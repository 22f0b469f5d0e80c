//! Shares of seeds and means over them, with intervals. Standard errors are [`capo_core::estimate`]'s.

#[cfg(any(test, feature = "train"))]
use capo_core::estimate::Estimate;
#[cfg(any(test, feature = "train"))]
use capo_core::statistics::Interval;
use serde::{Deserialize, Serialize};

/// Standard normal quantile of a two-sided 95 % interval.
const Z_95: f64 = 1.959_963_984_540_054;

/// How many of how many.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Share {
    /// Those that have the property.
    pub count: usize,
    /// All of them.
    pub of: usize,
}

impl Share {
    /// Counts the true ones.
    pub fn of(values: impl IntoIterator<Item = bool>) -> Self {
        values
            .into_iter()
            .fold(Self { count: 0, of: 0 }, |share, value| Self {
                count: share.count + usize::from(value),
                of: share.of + 1,
            })
    }

    /// The fraction in [0, 1]; `None` of nothing.
    pub fn fraction(self) -> Option<f64> {
        (self.of > 0).then(|| self.count as f64 / self.of as f64)
    }

    /// Wilson's score interval at 95 % (Wilson 1927): stays inside [0, 1] and has width at 0 and
    /// at 1, where the normal interval has none. `None` of nothing.
    pub fn wilson(self) -> Option<(f64, f64)> {
        let fraction = self.fraction()?;
        let n = self.of as f64;
        let z2 = Z_95 * Z_95;
        let centre = (fraction + z2 / (2.0 * n)) / (1.0 + z2 / n);
        let half = Z_95 / (1.0 + z2 / n) * (fraction * (1.0 - fraction) / n + z2 / (4.0 * n * n)).sqrt();
        let low = if self.count == 0 { 0.0 } else { centre - half };
        let high = if self.count == self.of { 1.0 } else { centre + half };
        Some((low, high))
    }
}

/// Student's 95 % interval of a mean over independent values; `None` of fewer than two.
#[cfg(any(test, feature = "train"))]
pub(super) fn t_interval(values: &[f64]) -> Option<Interval> {
    let Estimate {
        mean,
        standard_error,
        n,
    } = Estimate::of(values).filter(|estimate| estimate.n > 1)?;
    let half = t_95(n - 1) * standard_error;
    Some(Interval {
        low: mean - half,
        high: mean + half,
    })
}

/// Student's quantile of a two-sided 95 % interval at so many degrees of freedom, ≥ 1: of few by the table, of more
/// by the expansion about the normal quantile (Abramowitz and Stegun 26.7.5), to three decimals.
#[cfg(any(test, feature = "train"))]
fn t_95(freedom: usize) -> f64 {
    const FEW: [f64; 8] = [12.7062, 4.3027, 3.1824, 2.7764, 2.5706, 2.4469, 2.3646, 2.3060];
    if let Some(quantile) = FEW.get(freedom - 1) {
        return *quantile;
    }
    let (z, n) = (Z_95, freedom as f64);
    let powers = |terms: &[(f64, i32)]| {
        terms
            .iter()
            .map(|(factor, power)| factor * z.powi(*power))
            .sum::<f64>()
    };
    z + powers(&[(1.0, 3), (1.0, 1)]) / (4.0 * n)
        + powers(&[(5.0, 5), (16.0, 3), (3.0, 1)]) / (96.0 * n.powi(2))
        + powers(&[(3.0, 7), (19.0, 5), (17.0, 3), (-15.0, 1)]) / (384.0 * n.powi(3))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mean_over_few_seeds_has_students_interval() {
        // Of 5 values with mean 3 and standard error 0.7071: 2.7764 · 0.7071 to each side.
        let Interval { low, high } = t_interval(&[1.0, 2.0, 3.0, 4.0, 5.0]).unwrap();
        assert!(
            (low - 1.0368).abs() < 1e-3 && (high - 4.9632).abs() < 1e-3,
            "{low} {high}"
        );
        assert!(t_interval(&[1.0]).is_none());
        for (freedom, quantile) in [(1, 12.706), (9, 2.262), (10, 2.228), (19, 2.093), (199, 1.972)] {
            assert!(
                (t_95(freedom) - quantile).abs() < 1e-3,
                "{freedom}: {}",
                t_95(freedom)
            );
        }
    }

    #[test]
    fn wilson_matches_published_values() {
        // Newcombe (1998), table I, method 3.
        for (count, of, low, high) in [
            (81, 263, 0.2553, 0.3662),
            (15, 148, 0.0624, 0.1605),
            (0, 20, 0.0, 0.1611),
            (1, 29, 0.0061, 0.1718),
        ] {
            let interval = Share { count, of }.wilson().unwrap();
            assert!((interval.0 - low).abs() < 5e-5, "{count} of {of}: {interval:?}");
            assert!((interval.1 - high).abs() < 5e-5, "{count} of {of}: {interval:?}");
        }
    }

    #[test]
    fn wilson_reaches_the_ends_exactly() {
        assert_eq!(Share { count: 0, of: 5 }.wilson().unwrap().0, 0.0);
        assert_eq!(Share { count: 5, of: 5 }.wilson().unwrap().1, 1.0);
        assert_eq!(Share { count: 0, of: 0 }.wilson(), None);
    }

    #[test]
    fn counting_takes_every_value() {
        assert_eq!(Share::of([true, false, true]), Share { count: 2, of: 3 });
    }
}
