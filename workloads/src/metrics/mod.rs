//! Metrics a study file can declare over one answer.
//!
//! A [`MetricDefinition`] is what the study file says; compiled, it becomes a [`Metric`], which
//! measures a [`Sample`]. Each family of metrics is one file: its settings, its pure functions,
//! its tests. A new one is a new file and its lines in the list below.

mod answer;
pub(crate) mod judging;
#[cfg(test)]
mod testing;
mod whitespace;

use capo_core::llm::{CallUsage, Finish, Role};
use capo_core::metric::{Direction, MetricSpec};
use capo_core::workload::{RolloutContext, RolloutError};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::files::Sources;

pub(crate) use crate::settings::DefinitionError;
pub use answer::visible;
pub use equality::normalize;
pub use json::SchemaSource;
pub use judge::{Combine, Grades};
pub use length::LengthUnit;
pub use numeric::{Extraction, boxed, extract, gold, is_correct};
pub use overlap::RougeKind;
pub use pattern::{Group, Occurrence};
pub use refusal::{Comparison, Phrases, Position};
pub use scorer::Scoring;
pub(crate) use scorer::TYPES as SCORERS;

/// Declares the families of metrics: of each module the types that study files choose between, with a sentence for
/// people. A type's name in study files is its variant's in snake_case, and each has the settings `name` and `invert`.
macro_rules! metrics {
    ($($module:ident { $($(#[doc = $meaning:literal])+ $variant:ident($settings:ident)),+ $(,)? })*) => {
        $(mod $module;
        pub use $module::{$($settings),+};)*

        /// One `[[workload.metric]]` of a study file.
        #[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
        #[serde(tag = "type", rename_all = "snake_case")]
        pub enum MetricDefinition {
            $($($(#[doc = $meaning])+ $variant($settings),)+)*
        }

        impl MetricDefinition {
            fn family(&self) -> &dyn Family {
                match self {
                    $($(Self::$variant(family) => family,)+)*
                }
            }

            /// The name the user chose.
            pub fn name(&self) -> &str {
                match self {
                    $($(Self::$variant(family) => &family.name,)+)*
                }
            }

            /// Whether 1 − value is wanted.
            fn invert(&self) -> bool {
                match self {
                    $($(Self::$variant(family) => family.invert,)+)*
                }
            }
        }
    };
}

metrics! {
    equality {
        /// The answer is exactly what is expected.
        Exact(Exact),
        /// The answer is what is expected, up to notation.
        Normalized(Normalized),
    }
    contains {
        /// The answer holds what is expected.
        Contains(Contains),
    }
    pattern {
        /// The answer matches a regular expression.
        Regex(Pattern),
    }
    overlap {
        /// How many words the answer shares with what is expected, as SQuAD counts them.
        F1(F1),
        /// How many words or sequences of words the answer shares with what is expected (ROUGE).
        Rouge(Rouge),
    }
    numeric {
        /// The answer's number is the expected one.
        Numeric(Numeric),
    }
    json {
        /// The answer is JSON.
        Json(Json),
        /// The answer is JSON that fits a schema.
        JsonSchema(JsonSchemaMetric),
    }
    length {
        /// How long the answer is.
        Length(Length),
    }
    refusal {
        /// Whether the agent declined.
        Refusal(Refusal),
    }
    resources {
        /// How long the answer took.
        Latency(Latency),
        /// What the answer cost.
        Dollars(Dollars),
    }
    similarity {
        /// How near the answer's meaning is to what is expected, by the vectors of an embedding model.
        Similarity(Similarity),
    }
    judge {
        /// What a judge model thinks of the answer.
        Judge(JudgeMetric),
    }
    scorer {
        /// What a program of your own says of the answer; not in a browser.
        Command(CommandScorer),
        /// What an HTTP endpoint of your own says of the answer.
        Http(HttpScorer),
    }
}

impl MetricDefinition {
    /// The template for what is expected of an example, if the metric compares with something.
    pub fn reference(&self) -> Option<&str> {
        self.family().reference()
    }

    /// Reads what the definition names and checks what can be checked without an answer.
    ///
    /// # Errors
    /// When a pattern, schema, list or number in the definition makes no sense.
    pub(crate) fn compile(&self, sources: &mut Sources<'_>) -> Result<Metric, DefinitionError> {
        let family = self.family();
        let mut spec = family.spec();
        if self.invert() {
            if (spec.min, spec.max) != (Some(0.0), Some(1.0)) {
                return Err(DefinitionError::new(
                    "invert",
                    "only a metric between 0 and 1 can be inverted; give it a `limit` first, or drop `invert`",
                ));
            }
            spec.direction = match spec.direction {
                Direction::Objective => Direction::Cost,
                Direction::Cost => Direction::Objective,
            };
            spec.explanation = format!("1 minus: {}", spec.explanation);
        }
        Ok(Metric {
            spec,
            agreement: family.agreement(),
            invert: self.invert(),
            evaluator: family.compile(sources)?,
        })
    }
}

/// What each family of metrics says about itself.
trait Family {
    /// The template for what is expected, if any.
    fn reference(&self) -> Option<&str> {
        None
    }

    /// Name, direction, unit and range, before inversion.
    fn spec(&self) -> MetricSpec;

    /// What is measured beside it: how far a judge that is asked several times agrees with itself.
    fn agreement(&self) -> Option<MetricSpec> {
        None
    }

    /// What measures it.
    fn compile(&self, sources: &mut Sources<'_>) -> Result<Evaluator, DefinitionError>;
}

/// How a metric gets its value.
enum Evaluator {
    /// By rule.
    Rule(Box<dyn Rule>),
    /// By asking the judge's model.
    Judge(Box<judge::Judge>),
    /// By asking for vectors.
    Similarity(Box<similarity::Nearness>),
    /// By asking a scorer.
    Score(Box<scorer::Score>),
}

impl Evaluator {
    fn rule(rule: impl Rule + 'static) -> Self {
        Self::Rule(Box::new(rule))
    }
}

/// A metric computed from one answer alone.
trait Rule {
    /// Whether the rendered reference is one this metric can compare with.
    fn check_reference(&self, _reference: &str) -> Result<(), String> {
        Ok(())
    }

    /// The value, before inversion.
    fn measure(&self, sample: &Sample<'_>) -> Result<Finding, RolloutError>;
}

/// One answer and what is known about it.
#[derive(Debug, Clone, Copy)]
pub struct Sample<'a> {
    /// The user message the agent answered.
    pub user: &'a str,
    /// The answer without its thinking, see [`visible`].
    pub answer: &'a str,
    /// What was expected, where the metric compares with something.
    pub reference: Option<&'a str>,
    /// Why the answer ended.
    pub finish: Finish,
    /// What the answer consumed.
    pub usage: CallUsage,
    /// What own scorers need to know and have said.
    pub scoring: &'a Scoring<'a>,
}

impl Sample<'_> {
    fn expected(&self) -> &str {
        self.reference.unwrap_or_default()
    }
}

/// A value and, in a few words, where it comes from.
#[derive(Debug, Clone, PartialEq)]
pub struct Finding {
    /// The value.
    pub value: f64,
    /// Such as `expected "72", got "70"`; empty when the value says it all.
    pub note: String,
    /// The grades of a judge that was asked several times.
    pub judged: Option<Grades>,
}

impl Finding {
    fn new(value: f64, note: impl Into<String>) -> Self {
        Self {
            value,
            note: note.into(),
            judged: None,
        }
    }

    /// 1 if it holds, else 0.
    fn holds(holds: bool, note: impl Into<String>) -> Self {
        Self::new(f64::from(u8::from(holds)), note)
    }
}

/// A metric ready to measure.
pub struct Metric {
    spec: MetricSpec,
    agreement: Option<MetricSpec>,
    invert: bool,
    evaluator: Evaluator,
}

impl Metric {
    /// Name, direction, unit and range.
    pub fn spec(&self) -> &MetricSpec {
        &self.spec
    }

    /// How far a judge agrees with itself, where it is asked several times.
    pub fn agreement(&self) -> Option<&MetricSpec> {
        self.agreement.as_ref()
    }

    /// The most calls of a role's model that one measurement makes.
    pub fn calls(&self, role: Role) -> u64 {
        match (&self.evaluator, role) {
            (Evaluator::Judge(judge), Role::Judge) => judge.calls(),
            (Evaluator::Similarity(_), Role::Embeddings) => similarity::CALLS,
            _ => 0,
        }
    }

    /// Whether it must know the example's columns.
    pub(crate) fn wants_columns(&self) -> bool {
        matches!(self.evaluator, Evaluator::Score(_))
    }

    /// Whether an example's reference is one this metric can compare with.
    ///
    /// # Errors
    /// Says what is wrong with it.
    pub(crate) fn check_reference(&self, reference: &str) -> Result<(), String> {
        match &self.evaluator {
            Evaluator::Rule(rule) => rule.check_reference(reference),
            Evaluator::Similarity(nearness) => nearness.check_reference(reference),
            Evaluator::Judge(_) | Evaluator::Score(_) => Ok(()),
        }
    }

    /// Measures one answer.
    ///
    /// # Errors
    /// When a judge gives no usable verdict, an embedding model no usable vector or a scorer no usable number, or a price that is to be measured is unknown.
    pub async fn measure(
        &self,
        sample: &Sample<'_>,
        context: &RolloutContext<'_>,
    ) -> Result<Finding, RolloutError> {
        let mut finding = match &self.evaluator {
            Evaluator::Rule(rule) => rule.measure(sample)?,
            Evaluator::Judge(judge) => judge.measure(sample, context).await?,
            Evaluator::Similarity(nearness) => nearness.measure(sample, context).await?,
            Evaluator::Score(score) => score.measure(sample, context).await?,
        };
        if self.invert {
            finding.value = 1.0 - finding.value;
        }
        Ok(finding)
    }
}

/// Text quoted and shortened for a note.
fn shown(text: &str) -> String {
    let text = text.trim();
    match shortened(text) {
        Some(start) => format!("{start:?}…"),
        None => format!("{text:?}"),
    }
}

/// The beginning of a text that is too long for a note.
fn shortened(text: &str) -> Option<&str> {
    const MOST: usize = 200;
    text.char_indices().nth(MOST).map(|(end, _)| &text[..end])
}
