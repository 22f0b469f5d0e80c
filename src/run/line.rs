//! A metric of a prompt, in words.

use capo_core::estimate::Estimate;
use capo_core::reading::metrics::StudiedMetric;

use super::studied::Shown as _;
use crate::format::NOTHING;

/// What a prompt measured of a metric, against its threshold.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Line {
    /// "Human requests".
    pub metric: String,
    /// "32.4%", or a dash until it is measured.
    pub value: String,
    /// "≤ 35%", or a dash without one.
    pub threshold: String,
    /// Whether it keeps the threshold, as far as there are both.
    pub kept: Option<bool>,
}

impl Line {
    /// Of this mean.
    pub fn of(metric: &StudiedMetric, this: Option<Estimate>, threshold: Option<f64>) -> Self {
        let quantity = metric.quantity();
        Self {
            metric: metric.label(),
            value: match (this, threshold) {
                (None, _) => NOTHING.to_owned(),
                (Some(this), None) => quantity.value(this.mean),
                (Some(this), Some(threshold)) => quantity.against(this.mean, threshold),
            },
            threshold: threshold.map_or_else(|| NOTHING.to_owned(), |threshold| quantity.limit(threshold)),
            kept: this
                .zip(threshold)
                .map(|(this, threshold)| this.mean <= threshold),
        }
    }
}
