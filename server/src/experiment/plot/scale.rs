//! Scales of axes: their ends and ticks.

use std::ops::Range;

use plotters::coord::ranged1d::{DefaultFormatting, KeyPointHint, Ranged};

use crate::experiment::figure::{Axis, Panel};

/// Where an axis ends and where its ticks are.
#[derive(Clone)]
pub(super) struct Scale {
    pub(super) range: Range<f64>,
    ticks: Vec<f64>,
    /// Digits after the point of a tick's label.
    pub(super) decimals: usize,
}

impl Scale {
    fn covering(values: impl IntoIterator<Item = f64>) -> Self {
        let (low, high) = values
            .into_iter()
            .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| {
                (low.min(value), high.max(value))
            });
        let (low, high) = if low > high { (0.0, 1.0) } else { (low, high) };
        // A scale that nearly reaches zero includes it: bars of error are then read in proportion.
        let low = if low > 0.0 && low < 0.5 * high { 0.0 } else { low };
        Self::between(low, high)
    }

    /// Ticks that cover `low..=high`, and a little room beyond them for markers.
    fn between(low: f64, high: f64) -> Self {
        let (ticks, decimals) = ticks(low, high);
        let (first, last) = (ticks[0], ticks[ticks.len() - 1]);
        let room = 0.03 * (last - first);
        Self {
            range: first - room..last + room,
            ticks,
            decimals,
        }
    }
}

impl Ranged for Scale {
    type FormatOption = DefaultFormatting;
    type ValueType = f64;

    fn map(&self, value: &f64, (first, last): (i32, i32)) -> i32 {
        let share = (value - self.range.start) / (self.range.end - self.range.start);
        first + (f64::from(last - first) * share).round() as i32
    }

    fn key_points<Hint: KeyPointHint>(&self, _: Hint) -> Vec<f64> {
        self.ticks.clone()
    }

    fn range(&self) -> Range<f64> {
        self.range.clone()
    }
}

/// The horizontal scale of a panel, and its label.
pub(super) fn horizontal(panel: &Panel) -> (Scale, &str) {
    match &panel.x {
        Axis::Categories { label, names } => {
            let last = names.len().max(1) as f64;
            let ticks = (0..names.len()).map(|at| at as f64).collect();
            (
                Scale {
                    range: -0.5..last - 0.5,
                    ticks,
                    decimals: 0,
                },
                label,
            )
        }
        Axis::Steps { label, first, last } => {
            let every = ((last - first) / 12 + 1) as usize;
            let ticks = (*first..=*last).step_by(every).map(f64::from).collect();
            (
                Scale {
                    range: f64::from(*first) - 0.3..f64::from(*last) + 0.3,
                    ticks,
                    decimals: 0,
                },
                label,
            )
        }
        Axis::Values { label } => (
            Scale::covering(
                panel
                    .series
                    .iter()
                    .flat_map(|series| &series.points)
                    .map(|point| point.x),
            ),
            label,
        ),
    }
}

/// The vertical scale of a panel.
pub(super) fn vertical(panel: &Panel) -> Scale {
    match panel.y_range {
        Some((low, high)) => Scale::between(low, high),
        None => Scale::covering(
            panel
                .series
                .iter()
                .flat_map(|series| &series.points)
                .flat_map(|point| [point.interval.0, point.y, point.interval.1])
                .chain(panel.thresholds.iter().map(|threshold| threshold.value)),
        ),
    }
}

/// Round tick values that cover `low..=high`, about five of them, and the digits they need.
///
/// Steps are 1, 2 or 5 times a power of ten. An empty range is widened, so that a constant series
/// still has an axis.
fn ticks(low: f64, high: f64) -> (Vec<f64>, usize) {
    let (low, high) = if high - low > 1e-9 * high.abs().max(low.abs()).max(1e-9) {
        (low, high)
    } else {
        let half = 0.1 * high.abs().max(0.5);
        (low - half, high + half)
    };
    let raw = (high - low) / 5.0;
    let power = 10_f64.powf(raw.log10().floor());
    let step = [1.0, 2.0, 5.0, 10.0]
        .into_iter()
        .map(|factor| factor * power)
        .find(|&step| step >= raw * (1.0 - 1e-9))
        .unwrap_or(10.0 * power);
    let first = (low / step + 1e-9).floor() as i64;
    let last = (high / step - 1e-9).ceil() as i64;
    let decimals = (-step.log10() - 1e-9).ceil().max(0.0) as usize;
    ((first..=last).map(|at| at as f64 * step).collect(), decimals)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_cover_the_range_with_round_steps() {
        for (low, high, expected, digits) in [
            (0.0, 1.0, &[0.0, 0.2, 0.4, 0.6, 0.8, 1.0][..], 1),
            (0.31, 0.62, &[0.3, 0.4, 0.5, 0.6, 0.7], 1),
            (-3.0, 17.0, &[-5.0, 0.0, 5.0, 10.0, 15.0, 20.0], 0),
            (0.0, 0.012, &[0.0, 0.005, 0.01, 0.015], 3),
        ] {
            let (found, decimals) = ticks(low, high);
            assert_eq!(found.len(), expected.len(), "{found:?}");
            assert!(
                found.iter().zip(expected).all(|(a, b)| (a - b).abs() < 1e-12),
                "{found:?}"
            );
            assert_eq!(decimals, digits);
        }
    }

    #[test]
    fn a_constant_series_still_has_an_axis() {
        for value in [0.0, 1.0, -7.5, 1e-3] {
            let (ticks, _) = ticks(value, value);
            assert!(ticks.len() >= 2, "{ticks:?}");
            assert!(ticks[0] < value && value < ticks[ticks.len() - 1]);
        }
    }
}
