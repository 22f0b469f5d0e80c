//! Whether the answer's number is the expected one.
//!
//! Published GSM8K graders disagree on what an answer's number is; each is here as an
//! [`Extraction`], faithful to its oddities, so that figures can be compared with papers that used
//! it. The default, [`Extraction::Final`], is meant for everything else.

mod graders;
mod value;

use capo_core::metric::MetricSpec;
use capo_core::workload::RolloutError;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{DefinitionError, Evaluator, Family, Finding, Rule, Sample, shown};
use crate::files::Sources;

pub use graders::{extract, gold, is_correct};
pub use value::boxed;

/// 1 if the number found in the answer is the expected one.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Numeric {
    /// The metric's name in this study.
    pub name: String,
    /// Template of the expected number, such as `{{ answer }}`; of a worked solution, what follows
    /// the last `#### `.
    pub expected: String,
    /// Which number of the answer counts, and how it is compared.
    #[serde(default)]
    pub extraction: Extraction,
    /// Measure 1 − value, the error rate.
    #[serde(default)]
    pub invert: bool,
}

/// Which number of an answer counts, and how it is compared with the expected one.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Extraction {
    /// The number after the last `####`; else in the last `\boxed{}`; else after the last "answer
    /// is" or "answer:"; else the last one. Thousands separators, currency, `%`, units and
    /// fractions (`1/2`) are understood; equal within 10⁻⁶.
    #[default]
    Final,
    /// A whole number after `####` or "answer", else the last one, in digits or a word from zero
    /// to twenty; equal as a number.
    Integer,
    /// OpenAI's grader: the first `#### N`, commas removed; equal as text.
    Openai,
    /// verl, strict: the last `#### N` within the last 300 characters, commas removed; equal as
    /// text.
    VerlStrict,
    /// verl, flexible: the last number within the last 300 characters; equal as text, commas
    /// included.
    VerlFlexible,
    /// lm-evaluation-harness, strict-match: the first `#### N`; equal as text without commas, `$`
    /// and a final stop.
    LmEvalStrict,
    /// lm-evaluation-harness, flexible-extract: the last number; equal as text without commas, `$`
    /// and a final stop.
    LmEvalFlexible,
    /// open-instruct: the last decimal number, commas within it removed; equal as text.
    OpenInstruct,
    /// GEPA's example: the last run of digits; equal as whole numbers.
    GepaExample,
    /// DSPy: digits of the last word with a digit on the first line, up to a stop; the sign is
    /// lost, no number counts as 0; equal as whole numbers.
    Dspy,
}

impl Rule for Numeric {
    fn check_reference(&self, reference: &str) -> Result<(), String> {
        let gold = gold(reference);
        let comparable = match self.extraction {
            Extraction::Final | Extraction::Integer => extract(self.extraction, &gold).is_some(),
            // The graders that compare text mark or frame answers in ways an expected number is not.
            _ => gold.contains(char::is_numeric),
        };
        if comparable {
            Ok(())
        } else {
            Err(format!("the expected answer {} holds no number", shown(&gold)))
        }
    }

    fn measure(&self, sample: &Sample<'_>) -> Result<Finding, RolloutError> {
        let expected = gold(sample.expected());
        let found = extract(self.extraction, sample.answer);
        let correct = is_correct(self.extraction, sample.answer, &expected);
        let got = match &found {
            Some(number) => shown(number),
            None => format!("no number in {}", shown(sample.answer)),
        };
        Ok(Finding::holds(
            correct,
            format!("expected {}, got {got}", shown(&expected)),
        ))
    }
}

impl Family for Numeric {
    fn reference(&self) -> Option<&str> {
        Some(&self.expected)
    }

    fn spec(&self) -> MetricSpec {
        MetricSpec::objective(&self.name, "The number in the answer is the expected one.").two_valued()
    }

    fn compile(&self, _sources: &mut Sources<'_>) -> Result<Evaluator, DefinitionError> {
        Ok(Evaluator::rule(self.clone()))
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{measure, refused_reference};

    const ACCURACY: &str = r#"{"type": "numeric", "name": "m", "expected": "{{ a }}"}"#;

    #[test]
    fn compares_with_the_end_of_a_worked_solution() {
        let finding = measure(
            ACCURACY,
            "So it costs $1,234.00 in all.",
            "12 * … = 1234\n#### 1,234",
        );
        assert_eq!(
            (finding.value, finding.note.as_str()),
            (1.0, r#"expected "1234", got "1234""#)
        );
        assert_eq!(
            measure(ACCURACY, "I do not know", "#### 5").note,
            r#"expected "5", got no number in "I do not know""#
        );
    }

    #[test]
    fn counts_may_be_words() {
        let count = r#"{"type": "numeric", "name": "m", "expected": "{{ a }}", "extraction": "integer"}"#;
        for (answer, expected, value) in [
            ("It occurs Three times.", "3", 1.0),
            ("There are 2 in \"x\" and 1 in \"y\". Answer: 3", "3", 1.0),
            ("Answer: three (1 in each word)", "3", 0.0),
            ("#### 0", "0", 1.0),
            ("none", "0", 0.0),
        ] {
            assert_eq!(measure(count, answer, expected).value, value, "{answer:?}");
        }
    }

    #[test]
    fn an_expected_answer_without_a_number_is_refused() {
        assert!(
            refused_reference(ACCURACY, "many")
                .unwrap()
                .contains("holds no number")
        );
        assert_eq!(refused_reference(ACCURACY, "#### -3"), None);
        for extraction in ["dspy", "openai", "integer"] {
            let definition = ACCURACY.replace("}}\"", &format!("}}}}\", \"extraction\": \"{extraction}\""));
            assert!(refused_reference(&definition, "many").is_some(), "{definition}");
            assert_eq!(
                refused_reference(&definition, "so\n#### 1,003"),
                None,
                "{definition}"
            );
        }
    }
}
