//! Length of the answer.

use std::sync::LazyLock;

use capo_core::llm::FailureKind;
use capo_core::metric::MetricSpec;
use capo_core::workload::RolloutError;
use regex::Regex;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use unicode_segmentation::UnicodeSegmentation;

use super::{DefinitionError, Evaluator, Family, Finding, Rule, Sample, whitespace};
use crate::files::Sources;

/// The answer's length, or, with `limit`, 1 if it is longer than that.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Length {
    /// The metric's name in this study.
    pub name: String,
    /// What is counted.
    #[serde(default)]
    pub unit: LengthUnit,
    /// Measure whether the length is above this (a rate over examples), not the length itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<f64>,
    /// Measure 1 − value (the share within the limit); needs `limit`.
    #[serde(default)]
    pub invert: bool,
}

/// What a length counts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum LengthUnit {
    /// Unicode code points.
    #[default]
    Characters,
    /// What a reader sees as characters (extended grapheme clusters, UAX #29).
    Graphemes,
    /// Bytes of UTF-8.
    Bytes,
    /// Runs of characters between white space.
    Words,
    /// Runs of letters, numbers and underscores (combining marks end a run, as in Python's `\w+`).
    WordRuns,
    /// Parts between line feeds.
    Lines,
    /// Output tokens as the provider counts them, thinking included.
    Tokens,
}

/// Python's `\w+`.
pub(super) static WORD_RUN: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"[\p{L}\p{N}_]+").expect("a constant pattern"));

impl LengthUnit {
    /// The length of a text; `None` for [`LengthUnit::Tokens`], which only the provider knows.
    pub fn count(self, text: &str) -> Option<usize> {
        Some(match self {
            Self::Characters => text.chars().count(),
            Self::Graphemes => text.graphemes(true).count(),
            Self::Bytes => text.len(),
            Self::Words => whitespace::words(text).count(),
            Self::WordRuns => WORD_RUN.find_iter(text).count(),
            Self::Lines => text.split('\n').count(),
            Self::Tokens => return None,
        })
    }

    fn name(self) -> &'static str {
        match self {
            Self::Characters => "characters",
            Self::Graphemes => "graphemes",
            Self::Bytes => "bytes",
            Self::Words | Self::WordRuns => "words",
            Self::Lines => "lines",
            Self::Tokens => "tokens",
        }
    }

    /// About a long paragraph: a residual of 1 is then worth acting on, and one of hundreds does
    /// not throw the multiplier to its cap in one step.
    fn scale(self) -> f64 {
        match self {
            Self::Characters | Self::Graphemes | Self::Bytes => 1000.0,
            Self::Words | Self::WordRuns => 150.0,
            Self::Tokens => 250.0,
            Self::Lines => 20.0,
        }
    }
}

/// A limit that makes a measured quantity a rate must be finite and not negative.
pub(super) fn check_limit(limit: Option<f64>) -> Result<(), DefinitionError> {
    match limit {
        Some(limit) if !limit.is_finite() || limit < 0.0 => Err(DefinitionError::new(
            "limit",
            "must be a finite number of at least 0",
        )),
        _ => Ok(()),
    }
}

/// The quantity itself, or whether it is above the limit.
pub(super) fn against_limit(value: f64, limit: Option<f64>, unit: &str) -> Finding {
    match limit {
        None => Finding::new(value, ""),
        Some(limit) => Finding::holds(value > limit, format!("{value} {unit}, limit {limit}")),
    }
}

impl Rule for Length {
    fn measure(&self, sample: &Sample<'_>) -> Result<Finding, RolloutError> {
        let length = match self.unit.count(sample.answer) {
            Some(count) => count as f64,
            None if sample.usage.output_tokens == 0 && !sample.answer.is_empty() => {
                return Err(RolloutError::failed(
                    FailureKind::Provider,
                    false,
                    format!(
                        "metric `{}`: the provider does not report output tokens; use unit = \"words\" or \"characters\"",
                        self.name
                    ),
                ));
            }
            None => sample.usage.output_tokens as f64,
        };
        Ok(against_limit(length, self.limit, self.unit.name()))
    }
}

impl Family for Length {
    fn spec(&self) -> MetricSpec {
        let unit = self.unit.name();
        match self.limit {
            Some(limit) => MetricSpec::event(
                &self.name,
                "rate",
                &format!("The answer is longer than {limit} {unit}."),
            ),
            None => MetricSpec {
                default_scale: self.unit.scale(),
                ..MetricSpec::cost(&self.name, unit, &format!("Length of the answer in {unit}."))
            },
        }
    }

    fn compile(&self, _sources: &mut Sources<'_>) -> Result<Evaluator, DefinitionError> {
        check_limit(self.limit)?;
        Ok(Evaluator::rule(self.clone()))
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{compile, measure};
    use super::*;
    use crate::shared;

    #[test]
    fn lengths_equal_the_recorded_ones() {
        let Some(rows) = shared::json_lines("parity/length.jsonl") else {
            return;
        };
        assert!(rows.len() > 100);
        for row in rows {
            let text = row["text"].as_str().unwrap();
            for (unit, column) in [
                (LengthUnit::Characters, "code_points"),
                (LengthUnit::Graphemes, "graphemes"),
                (LengthUnit::Bytes, "bytes_utf8"),
                (LengthUnit::Words, "words_whitespace"),
                (LengthUnit::WordRuns, "words_regex_w"),
                (LengthUnit::Lines, "lines_split_n"),
            ] {
                assert_eq!(
                    unit.count(text).map(|n| n as u64),
                    row[column].as_u64(),
                    "{column} of {text:?}"
                );
            }
        }
    }

    #[test]
    fn a_limit_makes_it_a_rate_and_the_limit_itself_is_allowed() {
        let definition = r#"{"type": "length", "name": "m", "unit": "words", "limit": 2}"#;
        assert_eq!(measure(definition, "one two", "").value, 0.0);
        let finding = measure(definition, "one two three", "");
        assert_eq!((finding.value, finding.note.as_str()), (1.0, "3 words, limit 2"));
        assert_eq!(
            measure(r#"{"type": "length", "name": "m"}"#, "añb", "").value,
            3.0
        );
    }

    #[test]
    fn tokens_come_from_the_usage() {
        assert_eq!(
            measure(r#"{"type": "length", "name": "m", "unit": "tokens"}"#, "x", "").value,
            7.0
        );
    }

    #[test]
    fn a_plain_length_cannot_be_inverted_and_a_limit_is_a_number() {
        assert!(compile(r#"{"type": "length", "name": "m", "invert": true}"#).is_err());
        assert!(compile(r#"{"type": "length", "name": "m", "invert": true, "limit": 3}"#).is_ok());
        assert!(compile(r#"{"type": "length", "name": "m", "limit": -1}"#).is_err());
    }
}
