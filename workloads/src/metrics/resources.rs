//! Latency and cost of the answer: seconds and dollars.

use capo_core::llm::FailureKind;
use capo_core::metric::MetricSpec;
use capo_core::workload::RolloutError;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::length::{against_limit, check_limit};
use super::{DefinitionError, Evaluator, Family, Finding, Rule, Sample};
use crate::files::Sources;

/// Seconds the agent's answer took, without waiting for a rate limit, or, with `limit`, 1 if it
/// took longer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Latency {
    /// The metric's name in this study.
    pub name: String,
    /// Measure whether the seconds are above this, not the seconds themselves.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<f64>,
    /// Measure 1 − value (the share within the limit); needs `limit`.
    #[serde(default)]
    pub invert: bool,
}

/// US dollars the agent's answer cost, or, with `limit`, 1 if it cost more. A judge's calls do not
/// count. An answer whose price nobody knows fails; it does not cost 0.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Dollars {
    /// The metric's name in this study.
    pub name: String,
    /// Measure whether the dollars are above this, not the dollars themselves.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<f64>,
    /// Measure 1 − value (the share within the limit); needs `limit`.
    #[serde(default)]
    pub invert: bool,
}

impl Rule for Latency {
    fn measure(&self, sample: &Sample<'_>) -> Result<Finding, RolloutError> {
        Ok(against_limit(sample.usage.seconds, self.limit, "seconds"))
    }
}

impl Rule for Dollars {
    fn measure(&self, sample: &Sample<'_>) -> Result<Finding, RolloutError> {
        let dollars = sample.usage.usd.ok_or_else(|| {
            RolloutError::failed(
                FailureKind::Provider,
                false,
                format!(
                    "metric `{}`: the agent's model has no known price; add it to the price table",
                    self.name
                ),
            )
        })?;
        Ok(against_limit(dollars, self.limit, "dollars"))
    }
}

fn spec(name: &str, limit: Option<f64>, unit: &str, took: &str, scale: f64) -> MetricSpec {
    match limit {
        Some(limit) => MetricSpec::event(
            name,
            "rate",
            &format!("The answer {took} more than {limit} {unit}."),
        ),
        None => MetricSpec {
            default_scale: scale,
            ..MetricSpec::cost(name, unit, &format!("What the agent's answer {took}, in {unit}."))
        },
    }
}

impl Family for Latency {
    fn spec(&self) -> MetricSpec {
        spec(&self.name, self.limit, "seconds", "took", 1.0)
    }

    fn compile(&self, _sources: &mut Sources<'_>) -> Result<Evaluator, DefinitionError> {
        check_limit(self.limit)?;
        Ok(Evaluator::rule(self.clone()))
    }
}

impl Family for Dollars {
    fn spec(&self) -> MetricSpec {
        // Answers cost fractions of a cent: residuals are counted in cents.
        spec(&self.name, self.limit, "US dollars", "cost", 0.01)
    }

    fn compile(&self, _sources: &mut Sources<'_>) -> Result<Evaluator, DefinitionError> {
        check_limit(self.limit)?;
        Ok(Evaluator::rule(self.clone()))
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{USAGE, measure};
    use super::*;

    #[test]
    fn seconds_and_dollars_come_from_the_usage() {
        assert_eq!(measure(r#"{"type": "latency", "name": "m"}"#, "x", "").value, 1.5);
        assert_eq!(
            measure(r#"{"type": "dollars", "name": "m"}"#, "x", "").value,
            0.25
        );
        assert_eq!(
            measure(r#"{"type": "latency", "name": "m", "limit": 1}"#, "x", "").value,
            1.0
        );
        assert_eq!(
            measure(
                r#"{"type": "dollars", "name": "m", "limit": 0.25, "invert": true}"#,
                "x",
                ""
            )
            .value,
            1.0
        );
    }

    #[test]
    fn an_unknown_price_is_a_failure_not_zero() {
        let dollars = Dollars {
            name: "price".into(),
            limit: None,
            invert: false,
        };
        let sample = Sample {
            user: "",
            answer: "",
            reference: None,
            finish: capo_core::llm::Finish::Stop,
            usage: capo_core::llm::CallUsage { usd: None, ..USAGE },
            scoring: &super::super::Scoring::default(),
        };
        assert!(
            dollars
                .measure(&sample)
                .unwrap_err()
                .to_string()
                .contains("no known price")
        );
    }
}
