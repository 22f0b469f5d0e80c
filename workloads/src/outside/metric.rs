//! A metric that somebody outside measures.

use capo_core::metric::{Direction, LARGEST_MEASUREMENT, MetricSpec};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A metric that somebody outside of Capo measures.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ExternalMetric {
    /// Its name in the response's `measurements`.
    pub name: String,
    /// Which way is better.
    pub direction: Direction,
    /// Unit of one measurement.
    #[serde(default = "rate")]
    pub unit: String,
    /// One sentence on what is measured, for people and the rewriter.
    #[serde(default)]
    pub explanation: String,
    /// Smallest possible value; 0 unless stated. An objective's is 0.
    #[serde(default)]
    pub min: Option<f64>,
    /// Largest possible value; unbounded unless stated. An objective's is 1.
    #[serde(default)]
    pub max: Option<f64>,
    /// Whether every value is either the smallest or the largest one, such as 0 or 1: certificates need fewer
    /// examples then.
    #[serde(default)]
    pub binary: bool,
}

/// The unit unless a study says otherwise.
pub(crate) fn rate() -> String {
    "rate".to_owned()
}

impl ExternalMetric {
    /// What is impossible about it.
    ///
    /// # Errors
    /// Says what, and what to do.
    pub(crate) fn check(&self) -> Result<(), String> {
        let MetricSpec { min, max, .. } = self.spec("");
        if self.direction == Direction::Objective && (min, max) != (Some(0.0), Some(1.0)) {
            return Err("an objective lies between 0 and 1; scale what is given".to_owned());
        }
        let is_far = |bound: f64| !(-LARGEST_MEASUREMENT..=LARGEST_MEASUREMENT).contains(&bound);
        if min.zip(max).is_some_and(|(min, max)| min >= max) || [min, max].into_iter().flatten().any(is_far) {
            return Err(format!(
                "`min` must be below `max`, and both between -{LARGEST_MEASUREMENT:e} and {LARGEST_MEASUREMENT:e}"
            ));
        }
        if self.binary && max.is_none() {
            return Err("`binary` says that every value is `min` or `max`: state `max`".to_owned());
        }
        Ok(())
    }

    /// The metric as `who` measures it.
    pub(crate) fn spec(&self, who: &str) -> MetricSpec {
        let max = match self.direction {
            Direction::Objective => Some(self.max.unwrap_or(1.0)),
            Direction::Cost => self.max,
        };
        let explanation = match self.explanation.trim() {
            "" => format!("`{}` as the {who} measures it.", self.name),
            text => text.to_owned(),
        };
        MetricSpec {
            name: self.name.clone(),
            direction: self.direction,
            unit: self.unit.clone(),
            explanation,
            min: Some(self.min.unwrap_or(0.0)),
            max,
            default_scale: 1.0,
            binary: self.binary,
        }
    }
}
