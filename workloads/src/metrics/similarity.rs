//! Semantic similarity of the answer to what was expected.
//!
//! A model makes vectors of both; the value is the cosine of the angle between them, 0 where it is negative. What is
//! expected of an example is asked about once, whichever prompts are measured on it: its vectors are kept for as long as
//! the workload is.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

use capo_core::llm::{ChatRequest, FailureKind, Role};
use capo_core::metric::MetricSpec;
use capo_core::workload::{RolloutContext, RolloutError};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tokio::sync::OnceCell;

use super::equality::{accepted, check_alternatives};
use super::{DefinitionError, Evaluator, Family, Finding, Sample, shown};
use crate::files::Sources;
use crate::vectors::normalized;

/// The most calls for one answer: about itself, and about what is expected.
pub(super) const CALLS: u64 = 2;

/// Cosine similarity of the answer and the expected text as the model of the role `embeddings` sees them; below 0 it is 0.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Similarity {
    /// The metric's name in this study.
    pub name: String,
    /// Template of the expected text, such as `{{ answer }}`.
    pub expected: String,
    /// Splits the expected text into several, such as `|`; the nearest of them counts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub alternatives: Option<String>,
    /// Measure 1 − value, a cost.
    #[serde(default)]
    pub invert: bool,
}

/// Vectors of some texts, of length 1.
type Vectors = Vec<Vec<f64>>;

/// Ready to ask for vectors.
pub(super) struct Nearness {
    name: String,
    alternatives: Option<String>,
    /// Those of expected texts. While one rollout asks for them, others wait.
    expected: RefCell<HashMap<String, Rc<OnceCell<Vectors>>>>,
}

impl Nearness {
    pub(super) fn check_reference(&self, reference: &str) -> Result<(), String> {
        if accepted(reference, self.alternatives.as_deref()).contains(&"") {
            return Err(format!("the expected answer {} is empty", shown(reference)));
        }
        Ok(())
    }

    /// The cosine with the nearest expected text. An empty answer is like none.
    pub(super) async fn measure(
        &self,
        sample: &Sample<'_>,
        context: &RolloutContext<'_>,
    ) -> Result<Finding, RolloutError> {
        if sample.answer.trim().is_empty() {
            return Ok(Finding::new(0.0, "the answer is empty"));
        }
        let expected = sample.expected();
        let known = Rc::clone(self.expected.borrow_mut().entry(expected.to_owned()).or_default());
        let texts = accepted(expected, self.alternatives.as_deref());
        let references = known.get_or_try_init(|| self.vectors(&texts, context)).await?;
        let answers = self.vectors(&[sample.answer], context).await?;
        let mut nearest: f64 = 0.0;
        for (answer, reference) in answers.iter().cycle().zip(references) {
            if answer.len() != reference.len() {
                let (one, other) = (answer.len(), reference.len());
                return Err(self.unusable(&format!("they have {one} numbers, and {other} before")));
            }
            let products = answer.iter().zip(reference).map(|(one, other)| one * other);
            // Rounding may carry the product of equal vectors past 1.
            nearest = nearest.max(products.sum::<f64>().min(1.0));
        }
        let note = format!("expected {}, got {}", shown(expected), shown(sample.answer));
        Ok(Finding::new(nearest, note))
    }

    async fn vectors(&self, texts: &[&str], context: &RolloutContext<'_>) -> Result<Vectors, RolloutError> {
        let request = ChatRequest::for_vectors(texts);
        let response = context.chat(Role::Embeddings, request).await?;
        let vectors: Vectors = serde_json::from_str(response.message.text())
            .map_err(|error| self.unusable(&format!("they do not read: {error}")))?;
        if vectors.len() != texts.len() {
            let (made, asked) = (vectors.len(), texts.len());
            return Err(self.unusable(&format!("there are {made} of {asked} texts")));
        }
        let vectors: Vectors = vectors.into_iter().map(normalized).collect();
        if vectors
            .iter()
            .any(|vector| vector.iter().all(|value| *value == 0.0))
        {
            return Err(self.unusable("one is zero and has no direction"));
        }
        Ok(vectors)
    }

    fn unusable(&self, problem: &str) -> RolloutError {
        let message = format!("metric `{}`: vectors cannot be compared: {problem}", self.name);
        RolloutError::failed(FailureKind::Malformed, false, message)
    }
}

impl Family for Similarity {
    fn reference(&self) -> Option<&str> {
        Some(&self.expected)
    }

    fn spec(&self) -> MetricSpec {
        MetricSpec::objective(
            &self.name,
            "How near the answer's meaning is to the expected text: the cosine of their vectors by an embedding model.",
        )
    }

    fn compile(&self, _sources: &mut Sources<'_>) -> Result<Evaluator, DefinitionError> {
        check_alternatives(self.alternatives.as_deref())?;
        Ok(Evaluator::Similarity(Box::new(Nearness {
            name: self.name.clone(),
            alternatives: self.alternatives.clone(),
            expected: RefCell::default(),
        })))
    }
}

#[cfg(test)]
mod tests {
    use capo_core::llm::{CallUsage, ChatResponse, Finish, LlmError, Message};
    use capo_core::workload::Caller;
    use futures::executor::block_on;
    use futures::future::{FutureExt, LocalBoxFuture};
    use serde_json::json;

    use super::super::testing::{USAGE, compile, measure, refused_reference};
    use super::super::{Metric, Scoring};
    use super::*;

    const DEFINITION: &str = r#"{"type": "similarity", "name": "near", "expected": "", "alternatives": "|"}"#;

    /// Makes these vectors of texts, and remembers which were asked for.
    struct Embedder {
        vectors: Vec<(&'static str, Vec<f64>)>,
        asked: RefCell<Vec<Vec<String>>>,
    }

    impl Caller for Embedder {
        fn call(
            &self,
            role: Role,
            request: ChatRequest,
        ) -> LocalBoxFuture<'_, Result<ChatResponse, LlmError>> {
            assert_eq!(role, Role::Embeddings);
            let texts = request.texts().unwrap();
            let vector = |text: &String| self.vectors.iter().find(|(known, _)| known == text);
            let vectors: Vec<&Vec<f64>> = texts
                .iter()
                .filter_map(vector)
                .map(|(_, vector)| vector)
                .collect();
            let Message::Assistant(message) = Message::assistant(json!(vectors).to_string()) else {
                unreachable!("an assistant message");
            };
            self.asked.borrow_mut().push(texts);
            let response = ChatResponse {
                message,
                finish: Finish::Stop,
                usage: CallUsage::default(),
                failed_tries: None,
            };
            async { Ok(response) }.boxed_local()
        }
    }

    fn embedder() -> Embedder {
        Embedder {
            vectors: vec![
                ("sofa", vec![0.1, -0.3, 0.7, 0.2]),
                ("couch", vec![0.4, 0.1, 0.5, -0.6]),
                ("far", vec![-1.0, 3.0, -7.0, -2.0]),
                ("same", vec![0.2, -0.6, 1.4, 0.4]),
                ("short", vec![1.0, 2.0]),
                ("nowhere", vec![0.0; 4]),
            ],
            asked: RefCell::default(),
        }
    }

    fn near(metric: &Metric, answer: &str, reference: &str, caller: &Embedder) -> Result<f64, RolloutError> {
        let sample = Sample {
            user: "",
            answer,
            reference: Some(reference),
            finish: Finish::Stop,
            usage: USAGE,
            scoring: &Scoring::default(),
        };
        let context = RolloutContext {
            prompt: "",
            example: "",
            repeat: 0,
            seed: 0,
            caller,
        };
        block_on(metric.measure(&sample, &context)).map(|finding| finding.value)
    }

    #[test]
    fn it_is_the_cosine_with_the_nearest_reference_and_never_negative() {
        let (metric, embedder) = (compile(DEFINITION).unwrap(), embedder());
        let of = |answer, reference| near(&metric, answer, reference, &embedder).unwrap();
        // As Python's floats have it: a·b / (|a| |b|).
        assert!((of("sofa", "couch") - 0.342_368_394_008_730_3).abs() < 1e-12);
        assert!((1.0 - 1e-12..=1.0).contains(&of("sofa", "same")));
        assert_eq!(of("sofa", "far"), 0.0);
        assert_eq!(of("sofa", "far|couch"), of("sofa", "couch"));
        assert_eq!(measure(DEFINITION, " \n", "couch").value, 0.0, "nobody is asked");
    }

    #[test]
    fn what_is_expected_is_asked_about_once() {
        let (metric, embedder) = (compile(DEFINITION).unwrap(), embedder());
        for answer in ["sofa", "same", "sofa"] {
            near(&metric, answer, "far | couch", &embedder).unwrap();
        }
        let asked = embedder.asked.into_inner();
        assert_eq!(
            asked,
            [vec!["far", "couch"], vec!["sofa"], vec!["same"], vec!["sofa"]]
        );
        assert_eq!(
            (metric.calls(Role::Embeddings), metric.calls(Role::Judge)),
            (2, 0)
        );
    }

    #[test]
    fn vectors_that_cannot_be_compared_are_a_failure_not_a_score() {
        for (answer, reference, problem) in [
            ("short", "couch", "they have 2 numbers, and 4 before"),
            ("nowhere", "couch", "one is zero"),
            ("sofa", "nowhere", "one is zero"),
            ("unheard", "couch", "there are 0 of 1 texts"),
        ] {
            let metric = compile(DEFINITION).unwrap();
            let error = near(&metric, answer, reference, &embedder())
                .unwrap_err()
                .to_string();
            assert!(
                error.starts_with("metric `near`: ") && error.contains(problem),
                "{error}"
            );
        }
    }

    #[test]
    fn an_empty_reference_is_refused() {
        assert!(
            refused_reference(DEFINITION, "couch|")
                .unwrap()
                .contains("is empty")
        );
        assert_eq!(refused_reference(DEFINITION, "couch|sofa"), None);
        assert!(
            compile(r#"{"type": "similarity", "name": "n", "expected": "", "alternatives": ""}"#).is_err()
        );
    }
}
