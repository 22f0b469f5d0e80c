//! Whether the answer holds what was expected.

use capo_core::metric::MetricSpec;
use capo_core::workload::RolloutError;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::equality::{accepted, check_alternatives};
use super::{DefinitionError, Evaluator, Family, Finding, Rule, Sample, shown};
use crate::files::Sources;

/// 1 if the expected text occurs anywhere in the answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Contains {
    /// The metric's name in this study.
    pub name: String,
    /// Template of the text to look for, such as `{{ answer }}` or a fixed phrase.
    pub expected: String,
    /// Splits the expected text into several, of which one is enough, such as `|`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub alternatives: Option<String>,
    /// Compare in lower case.
    #[serde(default)]
    pub ignore_case: bool,
    /// Measure 1 − value, a cost.
    #[serde(default)]
    pub invert: bool,
}

impl Rule for Contains {
    fn check_reference(&self, reference: &str) -> Result<(), String> {
        if accepted(reference, self.alternatives.as_deref()).contains(&"") {
            return Err(format!(
                "the text to look for in {} is empty, which every answer contains",
                shown(reference)
            ));
        }
        Ok(())
    }

    fn measure(&self, sample: &Sample<'_>) -> Result<Finding, RolloutError> {
        let case = |text: &str| {
            if self.ignore_case {
                text.to_lowercase()
            } else {
                text.to_owned()
            }
        };
        let answer = case(sample.answer);
        let found = accepted(sample.expected(), self.alternatives.as_deref())
            .into_iter()
            .any(|expected| answer.contains(&case(expected)));
        Ok(Finding::holds(
            found,
            format!(
                "looked for {} in {}",
                shown(sample.expected()),
                shown(sample.answer)
            ),
        ))
    }
}

impl Family for Contains {
    fn reference(&self) -> Option<&str> {
        Some(&self.expected)
    }

    fn spec(&self) -> MetricSpec {
        MetricSpec::objective(&self.name, "The expected text occurs in the answer.").two_valued()
    }

    fn compile(&self, _sources: &mut Sources<'_>) -> Result<Evaluator, DefinitionError> {
        check_alternatives(self.alternatives.as_deref())?;
        Ok(Evaluator::rule(self.clone()))
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{measure, refused_reference};

    #[test]
    fn looks_anywhere_in_the_answer() {
        let definition = r#"{"type": "contains", "name": "m", "expected": "{{ a }}"}"#;
        assert_eq!(measure(definition, "It is Paris, of course", "Paris").value, 1.0);
        assert_eq!(measure(definition, "It is PARIS", "Paris").value, 0.0);
        assert!(refused_reference(definition, " ").is_some());
    }

    #[test]
    fn case_alternatives_and_inversion_are_options() {
        let definition = r#"{"type": "contains", "name": "m", "expected": "x", "ignore_case": true, "alternatives": "|", "invert": true}"#;
        assert_eq!(measure(definition, "in ROME", "Paris|Rome").value, 0.0);
        assert_eq!(measure(definition, "in London", "Paris|Rome").value, 1.0);
    }
}
