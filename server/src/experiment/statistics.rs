//! Shares of seeds, with intervals. Means and standard errors are [`capo_core::estimate`]'s.

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

#[cfg(test)]
mod tests {
    use super::*;

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
