//! Whether the answer is what was expected, exactly or up to notation.

use capo_core::metric::MetricSpec;
use capo_core::workload::RolloutError;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use unicode_normalization::UnicodeNormalization;

use super::{DefinitionError, Evaluator, Family, Finding, Rule, Sample, shown, whitespace};
use crate::files::Sources;

/// 1 if the answer, without white space at its ends, is exactly what is expected.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Exact {
    /// The metric's name in this study.
    pub name: String,
    /// Template of the expected answer, such as `{{ answer }}`.
    pub expected: String,
    /// Splits the expected text into several accepted answers, such as `|`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub alternatives: Option<String>,
    /// Measure 1 − value, a cost.
    #[serde(default)]
    pub invert: bool,
}

/// 1 if the answer is what is expected after [`normalize`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Normalized {
    /// The metric's name in this study.
    pub name: String,
    /// Template of the expected answer, such as `{{ answer }}`.
    pub expected: String,
    /// Splits the expected text into several accepted answers, such as `|`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub alternatives: Option<String>,
    /// Measure 1 − value, a cost.
    #[serde(default)]
    pub invert: bool,
}

/// The form in which normalised texts are compared: Unicode NFKC, lower case, every character that
/// is neither letter, mark nor number taken as a space, runs of white space as one space, none at
/// the ends. `Don’t!` becomes `don t`, `ﬁve` becomes `five`.
pub fn normalize(text: &str) -> String {
    // Lower-casing may undo NFKC (İ), hence once more; the second pass changes nothing else.
    let folded: String = text.nfkc().collect::<String>().to_lowercase().nfkc().collect();
    let spaced: String = folded
        .chars()
        .map(|c| {
            if c.is_alphanumeric() || unicode_normalization::char::is_combining_mark(c) {
                c
            } else {
                ' '
            }
        })
        .collect();
    spaced.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The accepted answers in a rendered reference.
pub(super) fn accepted<'a>(reference: &'a str, separator: Option<&'a str>) -> Vec<&'a str> {
    match separator {
        Some(separator) => reference.split(separator).map(whitespace::strip).collect(),
        None => vec![whitespace::strip(reference)],
    }
}

/// Refuses a separator that would split between all characters.
pub(super) fn check_alternatives(separator: Option<&str>) -> Result<(), DefinitionError> {
    if separator == Some("") {
        return Err(DefinitionError::new(
            "alternatives",
            "must not be empty; leave it out for one accepted answer",
        ));
    }
    Ok(())
}

type Form = fn(&str) -> String;

struct Equality {
    form: Form,
    alternatives: Option<String>,
}

impl Rule for Equality {
    fn check_reference(&self, reference: &str) -> Result<(), String> {
        if accepted(reference, self.alternatives.as_deref())
            .iter()
            .any(|one| (self.form)(one).is_empty())
        {
            return Err(format!(
                "the expected answer {} is empty in the form that is compared",
                shown(reference)
            ));
        }
        Ok(())
    }

    fn measure(&self, sample: &Sample<'_>) -> Result<Finding, RolloutError> {
        let answer = (self.form)(sample.answer);
        let equal = accepted(sample.expected(), self.alternatives.as_deref())
            .into_iter()
            .any(|expected| (self.form)(expected) == answer);
        Ok(Finding::holds(
            equal,
            format!(
                "expected {}, got {}",
                shown(sample.expected()),
                shown(sample.answer)
            ),
        ))
    }
}

impl Family for Exact {
    fn reference(&self) -> Option<&str> {
        Some(&self.expected)
    }

    fn spec(&self) -> MetricSpec {
        MetricSpec::objective(
            &self.name,
            "The answer is exactly the expected one, apart from white space at its ends.",
        )
        .two_valued()
    }

    fn compile(&self, _sources: &mut Sources<'_>) -> Result<Evaluator, DefinitionError> {
        check_alternatives(self.alternatives.as_deref())?;
        let form: Form = |text| whitespace::strip(text).to_owned();
        Ok(Evaluator::rule(Equality {
            form,
            alternatives: self.alternatives.clone(),
        }))
    }
}

impl Family for Normalized {
    fn reference(&self) -> Option<&str> {
        Some(&self.expected)
    }

    fn spec(&self) -> MetricSpec {
        MetricSpec::objective(
            &self.name,
            "The answer is the expected one, apart from case, punctuation, white space and compatible forms of characters.",
        )
        .two_valued()
    }

    fn compile(&self, _sources: &mut Sources<'_>) -> Result<Evaluator, DefinitionError> {
        check_alternatives(self.alternatives.as_deref())?;
        Ok(Evaluator::rule(Equality {
            form: normalize,
            alternatives: self.alternatives.clone(),
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{measure, refused_reference};
    use super::*;

    #[test]
    fn exact_forgives_only_white_space_at_the_ends() {
        for (answer, value) in [
            ("Paris", 1.0),
            (" Paris\n", 1.0),
            ("\u{1f}Paris", 1.0),
            ("paris", 0.0),
            ("Paris.", 0.0),
            ("", 0.0),
        ] {
            let definition = r#"{"type": "exact", "name": "m", "expected": "{{ a }}"}"#;
            assert_eq!(measure(definition, answer, "Paris").value, value, "{answer:?}");
        }
    }

    #[test]
    fn normalized_forgives_notation() {
        let definition = r#"{"type": "normalized", "name": "m", "expected": "{{ a }}"}"#;
        for (answer, expected, value) in [
            ("  the  PARIS!", "The Paris", 1.0),
            ("ﬁve", "Five", 1.0),
            ("e\u{301}te\u{301}", "Été", 1.0),
            ("well-known", "well known", 1.0),
            ("नमस्ते।", "नमस्ते", 1.0),
            ("London", "Paris", 0.0),
        ] {
            assert_eq!(measure(definition, answer, expected).value, value, "{answer:?}");
        }
    }

    #[test]
    fn normalizing_twice_changes_nothing() {
        for text in ["İstanbul", "ﬁve “Quotes” — x", "Ⅷ ℌ", "ß", "a\u{200d}b"] {
            assert_eq!(normalize(&normalize(text)), normalize(text), "{text:?}");
        }
    }

    #[test]
    fn several_answers_may_be_accepted() {
        let definition = r#"{"type": "exact", "name": "m", "expected": "{{ a }}", "alternatives": "|"}"#;
        assert_eq!(measure(definition, "b", "a | b").value, 1.0);
        assert_eq!(measure(definition, "a | b", "a | b").value, 0.0);
    }

    #[test]
    fn an_expected_answer_that_anything_empty_would_meet_is_refused() {
        let definition = r#"{"type": "normalized", "name": "m", "expected": "{{ a }}"}"#;
        assert!(
            refused_reference(definition, "!!")
                .unwrap()
                .contains("is empty in the form that is compared")
        );
        assert_eq!(refused_reference(definition, "!a"), None);
    }
}
