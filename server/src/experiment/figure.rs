//! Figures: what a plot shows, apart from how it is drawn.

use capo_core::estimate::Estimate;

/// A page of panels that share a legend.
#[derive(Debug, Clone, PartialEq)]
pub struct Figure {
    /// Stem of the file it is written to.
    pub name: String,
    /// Title above the panels.
    pub title: String,
    /// A line or two below the title: what a mark and its bar mean.
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
