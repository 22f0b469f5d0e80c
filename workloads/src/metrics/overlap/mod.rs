//! Overlap of the answer's words with what was expected: ROUGE and its kin.

mod rouge;
mod squad;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::hash::Hash;

use capo_core::llm::FailureKind;
use capo_core::metric::MetricSpec;
use capo_core::workload::RolloutError;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::equality::{accepted, check_alternatives};
use super::{DefinitionError, Evaluator, Family, Finding, Rule, Sample, shown};
use crate::files::Sources;

/// The most words of the expected answers of an example, and of an answer.
const MOST_EXPECTED: usize = 10_000;
const MOST_ANSWERED: usize = 100_000;

/// The most pairs of a word of the answer and one of the expected answers: the longest sequence that both have takes as
/// many steps, and the whole run waits for it.
const MOST_PAIRS: usize = 20_000_000;

/// F1 of the answer's words, as the evaluation of SQuAD counts them: in lower case, without punctuation and the articles
/// a, an, the.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct F1 {
    /// The metric's name in this study.
    pub name: String,
    /// Template of the expected answer, such as `{{ answer }}`.
    pub expected: String,
    /// Splits the expected text into several accepted answers, such as `|`; the best of them counts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub alternatives: Option<String>,
    /// Measure 1 − value, a cost.
    #[serde(default)]
    pub invert: bool,
}

/// F-measure of ROUGE, as Google's `rouge_score` computes it without stemming: words are runs of a to z and digits, in
/// lower case.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Rouge {
    /// The metric's name in this study.
    pub name: String,
    /// Template of the expected text, such as `{{ summary }}`.
    pub expected: String,
    /// What is counted.
    #[serde(default)]
    pub variant: RougeKind,
    /// Splits the expected text into several, such as `|`; the best of them counts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub alternatives: Option<String>,
    /// Measure 1 − value, a cost.
    #[serde(default)]
    pub invert: bool,
}

/// What ROUGE counts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum RougeKind {
    /// Words.
    Rouge1,
    /// Pairs of neighbouring words.
    Rouge2,
    /// The longest sequence of words that both have in this order, with others between.
    #[default]
    RougeL,
}

/// The harmonic mean of the parts of the answer and of the reference that are shared; 0 where nothing is.
fn f_measure(shared: usize, answer: usize, reference: usize) -> f64 {
    if shared == 0 {
        return 0.0;
    }
    let (precision, recall) = (shared as f64 / answer as f64, shared as f64 / reference as f64);
    2.0 * precision * recall / (precision + recall)
}

/// How many of some things are among others, each as often as it is there.
fn shared<T: Eq + Hash>(some: impl Iterator<Item = T>, others: impl Iterator<Item = T>) -> usize {
    let mut left: HashMap<T, usize> = HashMap::new();
    for one in some {
        *left.entry(one).or_default() += 1;
    }
    others
        .filter(|other| match left.get_mut(other) {
            Some(count) if *count > 0 => {
                *count -= 1;
                true
            }
            _ => false,
        })
        .count()
}

/// Words of a text in the form that is compared.
type Form = fn(&str) -> Vec<String>;

/// The F-measure of an answer's words and a reference's.
type Measure = fn(&[String], &[String]) -> f64;

struct Overlap {
    form: Form,
    measure: Measure,
    /// The most pairs of words that `measure` may be given.
    most_pairs: usize,
    alternatives: Option<String>,
}

impl Overlap {
    fn evaluator(
        form: Form,
        measure: Measure,
        most_pairs: usize,
        alternatives: Option<&str>,
    ) -> Result<Evaluator, DefinitionError> {
        check_alternatives(alternatives)?;
        Ok(Evaluator::rule(Self {
            form,
            measure,
            most_pairs,
            alternatives: alternatives.map(str::to_owned),
        }))
    }

    fn references<'a>(&'a self, expected: &'a str) -> impl Iterator<Item = Vec<String>> {
        accepted(expected, self.alternatives.as_deref())
            .into_iter()
            .map(self.form)
    }
}

impl Rule for Overlap {
    fn check_reference(&self, reference: &str) -> Result<(), String> {
        let mut words = 0;
        for one in self.references(reference) {
            if one.is_empty() {
                return Err(format!(
                    "the expected answer {} holds no word in the form that is compared",
                    shown(reference)
                ));
            }
            words += one.len();
        }
        if words > MOST_EXPECTED {
            return Err(format!(
                "the expected answer has {words} words; at most {MOST_EXPECTED} are compared"
            ));
        }
        Ok(())
    }

    fn measure(&self, sample: &Sample<'_>) -> Result<Finding, RolloutError> {
        let answer = (self.form)(sample.answer);
        if answer.len() > MOST_ANSWERED {
            let problem = format!(
                "an answer of {} words is compared with nothing; at most {MOST_ANSWERED} are",
                answer.len()
            );
            return Err(RolloutError::failed(FailureKind::Malformed, false, problem));
        }
        let references: Vec<Vec<String>> = self.references(sample.expected()).collect();
        let expected: usize = references.iter().map(Vec::len).sum();
        if answer.len().saturating_mul(expected) > self.most_pairs {
            let problem = format!(
                "an answer of {} words is too long to be compared with {expected} expected ones; at most {} pairs of \
                 words are",
                answer.len(),
                self.most_pairs
            );
            return Err(RolloutError::failed(FailureKind::Malformed, false, problem));
        }
        let values = references
            .iter()
            .map(|reference| (self.measure)(&answer, reference));
        Ok(Finding::new(
            values.fold(0.0, f64::max),
            format!(
                "expected {}, got {}",
                shown(sample.expected()),
                shown(sample.answer)
            ),
        ))
    }
}

impl Family for F1 {
    fn reference(&self) -> Option<&str> {
        Some(&self.expected)
    }

    fn spec(&self) -> MetricSpec {
        MetricSpec::objective(
            &self.name,
            "F1 of the words that the answer shares with the expected one, without articles and punctuation.",
        )
    }

    fn compile(&self, _sources: &mut Sources<'_>) -> Result<Evaluator, DefinitionError> {
        Overlap::evaluator(squad::words, squad::f1, usize::MAX, self.alternatives.as_deref())
    }
}

impl Family for Rouge {
    fn reference(&self) -> Option<&str> {
        Some(&self.expected)
    }

    fn spec(&self) -> MetricSpec {
        let what = match self.variant {
            RougeKind::Rouge1 => "words",
            RougeKind::Rouge2 => "pairs of words",
            RougeKind::RougeL => "words in the same order",
        };
        MetricSpec::objective(
            &self.name,
            &format!("F-measure of the {what} that the answer shares with the expected text."),
        )
    }

    fn compile(&self, _sources: &mut Sources<'_>) -> Result<Evaluator, DefinitionError> {
        let (measure, most_pairs): (Measure, usize) = match self.variant {
            RougeKind::Rouge1 => (rouge::of_words, usize::MAX),
            RougeKind::Rouge2 => (rouge::of_pairs, usize::MAX),
            RougeKind::RougeL => (rouge::of_sequence, MOST_PAIRS),
        };
        Overlap::evaluator(rouge::words, measure, most_pairs, self.alternatives.as_deref())
    }
}
