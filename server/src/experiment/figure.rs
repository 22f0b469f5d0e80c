//! What a plot shows, apart from how it is drawn.

use capo_core::estimate::Estimate;

/// A page of panels that share a legend.
#[derive(Debug, Clone, PartialEq)]
pub struct Figure {
    /// Stem of the file it is written to.
    pub name: String,
    /// Title above the panels.
    pub title: String,
    /// One sentence below the title: what a mark and its bar mean.
    pub caption: String,
    /// Panels, row by row.
    pub panels: Vec<Panel>,
}

/// One pair of axes.
#[derive(Debug, Clone, PartialEq)]
pub struct Panel {
    /// Title above the axes.
    pub title: String,
    /// Horizontal axis.
    pub x: Axis,
    /// Label of the vertical axis, with its unit.
    pub y: String,
    /// Range of the vertical axis; from the data when absent.
    pub y_range: Option<(f64, f64)>,
    /// What is drawn.
    pub series: Vec<Series>,
    /// Dashed horizontal lines: what a cost may not exceed.
    pub thresholds: Vec<Threshold>,
    /// Dotted vertical lines with a label each, such as the round in which a constraint enters.
    pub marks: Vec<(f64, String)>,
}

impl Panel {
    /// A panel without series, thresholds or marks.
    pub fn new(title: impl Into<String>, x: Axis, y: impl Into<String>) -> Self {
        Self {
            title: title.into(),
            x,
            y: y.into(),
            y_range: None,
            series: Vec::new(),
            thresholds: Vec::new(),
            marks: Vec::new(),
        }
    }
}

/// A dashed horizontal line.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Threshold {
    /// Where it lies on the vertical axis.
    pub value: f64,
    /// From where to where it runs on the horizontal axis; all along when absent.
    pub span: Option<(f64, f64)>,
    /// The style of the series it belongs to; ink when it belongs to all of them.
    pub style: Option<usize>,
}

impl Threshold {
    /// A line all along, for every series.
    pub fn common(value: f64) -> Self {
        Self {
            value,
            span: None,
            style: None,
        }
    }
}

/// A horizontal axis.
#[derive(Debug, Clone, PartialEq)]
pub enum Axis {
    /// Names at 0, 1, 2 …, equally spaced.
    Categories {
        /// What the names are.
        label: String,
        /// The names, left to right.
        names: Vec<String>,
    },
    /// Whole numbers from `first` to `last`.
    Steps {
        /// What is counted.
        label: String,
        /// Leftmost number.
        first: u32,
        /// Rightmost number.
        last: u32,
    },
    /// A measured quantity; range from the data.
    Values {
        /// What is measured, with its unit.
        label: String,
    },
}

/// Points of one colour and shape.
#[derive(Debug, Clone, PartialEq)]
pub struct Series {
    /// Name in the legend; series of the same name in different panels share an entry.
    pub label: String,
    /// Which colour and marker: equal for equal labels.
    pub style: usize,
    /// Whether consecutive points are joined and their uncertainty is a band.
    pub joined: bool,
    /// The points, left to right.
    pub points: Vec<Point>,
}

/// One point with an interval.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Point {
    /// Position on the horizontal axis.
    pub x: f64,
    /// The figure.
    pub y: f64,
    /// Lower and upper end of its uncertainty; both `y` when unknown.
    pub interval: (f64, f64),
}

impl Point {
    /// A point with its mean plus and minus one standard error.
    pub fn estimate(x: f64, estimate: Estimate) -> Self {
        let error = estimate.standard_error;
        Self {
            x,
            y: estimate.mean,
            interval: (estimate.mean - error, estimate.mean + error),
        }
    }

    /// A point without uncertainty.
    pub fn exact(x: f64, y: f64) -> Self {
        Self {
            x,
            y,
            interval: (y, y),
        }
    }
}

/// Round tick values that cover `low..=high`, about five of them, and the digits they need.
///
/// Steps are 1, 2 or 5 times a power of ten. An empty range is widened, so that a constant series
/// still has an axis.
pub(super) fn ticks(low: f64, high: f64) -> (Vec<f64>, usize) {
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
