//! Metrics: what a rollout measures.

use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The metric every workload has: thousands of characters of the candidate prompt.
pub const PROMPT_LENGTH: &str = "prompt_length";

/// The largest absolute value of a measurement. Larger ones stand for infinity, which is no measurement:
/// their squares and their products with multipliers leave the range of numbers.
pub const LARGEST_MEASUREMENT: f64 = 1e15;

/// A number of somebody else's as people read it: one that takes many digits by its power of ten.
pub fn shown(value: f64) -> String {
    if value == 0.0 || (1e-6..LARGEST_MEASUREMENT).contains(&value.abs()) {
        value.to_string()
    } else {
        format!("{value:e}")
    }
}

/// Values of one rollout by metric name, before averaging.
pub type Measurements = IndexMap<String, f64>;

/// Which way a metric is good.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Direction {
    /// Higher is better; usable as objective (range [0, 1]).
    Objective,
    /// Lower is better; usable as constraint.
    Cost,
}

/// A metric a workload can measure, with what a person needs to choose it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MetricSpec {
    /// Name in study files and journals.
    pub name: String,
    /// Which way is better.
    pub direction: Direction,
    /// Unit of one measurement, such as `rate`, `calls per dialogue`, `seconds`.
    pub unit: String,
    /// One sentence on what is measured.
    pub explanation: String,
    /// Smallest possible value, if bounded below (a threshold under it can never be met).
    pub min: Option<f64>,
    /// Largest possible value, if bounded above.
    pub max: Option<f64>,
    /// Scale of the residual when the study states none.
    pub default_scale: f64,
    /// Whether every value is either `min` or `max`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub binary: bool,
}

impl MetricSpec {
    /// A metric in [0, 1] where higher is better.
    pub fn objective(name: &str, explanation: &str) -> Self {
        Self {
            name: name.into(),
            direction: Direction::Objective,
            unit: "rate".into(),
            explanation: explanation.into(),
            min: Some(0.0),
            max: Some(1.0),
            default_scale: 1.0,
            binary: false,
        }
    }

    /// A metric ≥ 0 where lower is better, unbounded above.
    pub fn cost(name: &str, unit: &str, explanation: &str) -> Self {
        Self {
            name: name.into(),
            direction: Direction::Cost,
            unit: unit.into(),
            explanation: explanation.into(),
            min: Some(0.0),
            max: None,
            default_scale: 1.0,
            binary: false,
        }
    }

    /// A cost that is 0 or 1 in each rollout.
    pub fn event(name: &str, unit: &str, explanation: &str) -> Self {
        Self {
            max: Some(1.0),
            binary: true,
            ..Self::cost(name, unit, explanation)
        }
    }

    /// The same metric, every value of which is its smallest or its largest.
    #[must_use]
    pub fn two_valued(self) -> Self {
        Self { binary: true, ..self }
    }

    /// [`PROMPT_LENGTH`], with the paper's scale of 4.
    pub fn prompt_length() -> Self {
        Self {
            default_scale: 4.0,
            ..Self::cost(
                PROMPT_LENGTH,
                "thousand characters",
                "Characters of the candidate prompt divided by 1000, the same for every example.",
            )
        }
    }
}

/// The [`PROMPT_LENGTH`] of a prompt: Unicode scalar values divided by 1000.
pub fn prompt_length(prompt: &str) -> f64 {
    prompt.chars().count() as f64 / 1000.0
}
