//! The texts sent to critic and rewriter, as minijinja templates in `core/src/search/templates/`.

use std::sync::LazyLock;

use minijinja::{Environment, UndefinedBehavior};
use serde::Serialize;

/// What stands for a number that is not finite; JSON has written it as null.
const NOT_FINITE: &str = "(not finite)";

/// A template of this crate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Template {
    /// The critic's message.
    Critic,
    /// The rewriter's message.
    Rewriter,
    /// The message of a rewriter that learned this task.
    Learned,
    /// Asks a rewriter once more.
    Retry,
    /// Feedback of the form trajectory.
    Trajectories,
    /// The Constraint-Injected baseline's prompt.
    Inject,
    /// Asks for two prompts in one.
    Combine,
    /// Asks for a prompt in other words.
    Paraphrase,
    /// Asks for a step of differential evolution.
    Differ,
}

impl Template {
    const ALL: [(Self, &'static str, &'static str); 9] = [
        (Self::Critic, "critic", include_str!("templates/critic.jinja")),
        (
            Self::Rewriter,
            "rewriter",
            include_str!("templates/rewriter.jinja"),
        ),
        (Self::Learned, "learned", include_str!("templates/learned.jinja")),
        (Self::Retry, "retry", include_str!("templates/retry.jinja")),
        (
            Self::Trajectories,
            "trajectories",
            include_str!("templates/trajectories.jinja"),
        ),
        (Self::Inject, "inject", include_str!("templates/inject.jinja")),
        (Self::Combine, "combine", include_str!("templates/combine.jinja")),
        (
            Self::Paraphrase,
            "paraphrase",
            include_str!("templates/paraphrase.jinja"),
        ),
        (Self::Differ, "differ", include_str!("templates/differ.jinja")),
    ];

    /// Renders the template.
    ///
    /// # Panics
    /// When the context lacks a name the template uses: both are fixed in this crate, and a test
    /// renders each of them.
    pub fn render(self, context: impl Serialize) -> String {
        static ENVIRONMENT: LazyLock<Environment<'static>> = LazyLock::new(|| {
            let mut environment = Environment::new();
            environment.set_undefined_behavior(UndefinedBehavior::Strict);
            let finite = |value: Option<f64>| value.filter(|value| value.is_finite());
            environment.add_filter("fixed", move |value: Option<f64>, digits: usize| {
                finite(value).map_or(NOT_FINITE.to_owned(), |value| format!("{value:.digits$}"))
            });
            environment.add_filter("signed", move |value: Option<f64>, digits: usize| {
                finite(value).map_or(NOT_FINITE.to_owned(), |value| format!("{value:+.digits$}"))
            });
            for (_, name, source) in Template::ALL {
                environment
                    .add_template(name, source)
                    .expect("the crate's own templates parse");
            }
            environment
        });
        let (_, name, _) = Self::ALL[self as usize];
        ENVIRONMENT
            .get_template(name)
            .and_then(|template| template.render(minijinja::value::Serde(context)))
            .expect("the crate's own contexts fit its templates")
            .trim()
            .to_owned()
    }
}

/// The objective of a prompt as critic and rewriter are told it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ObjectiveFacts {
    /// Name of the metric.
    pub metric: String,
    /// Its mean.
    pub value: f64,
}

/// A constraint in force on a prompt as critic and rewriter are told it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ConstraintFacts {
    /// Name of the metric.
    pub metric: String,
    /// Its unit.
    pub unit: String,
    /// What it measures.
    pub explanation: String,
    /// Mean cost.
    pub cost: f64,
    /// Threshold τ of the cost, in its unit.
    pub threshold: f64,
    /// What a cautious search adds to the mean cost for chance, in the metric's unit; 0 without caution.
    pub margin: f64,
    /// (cost + margin − τ)/s.
    pub residual: f64,
    /// λ.
    pub multiplier: f64,
}

/// A constraint in force as a learned rewriter is told it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct WeightedConstraint {
    /// Name of the metric.
    pub metric: String,
    /// Mean cost, in the metric's unit.
    pub cost: f64,
    /// τ, in the metric's unit.
    pub threshold: f64,
    /// λ ≥ 0.
    pub multiplier: f64,
}

impl From<ConstraintFacts> for WeightedConstraint {
    fn from(facts: ConstraintFacts) -> Self {
        Self {
            metric: facts.metric,
            cost: facts.cost,
            threshold: facts.threshold,
            multiplier: facts.multiplier,
        }
    }
}

/// Everything that a learned rewriter is told, p⁺ ~ π(· | p⁽⁰⁾, p⁽ᵈ⁻¹⁾, ξ⁽ᵈ⁻¹⁾, λ). Training and search give it this
/// one text.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RewriteFacts {
    /// The objective of the draft, or of the prompt where there is no draft.
    pub objective: ObjectiveFacts,
    /// The constraints in force with the costs of the same, in the study's order.
    pub constraints: Vec<WeightedConstraint>,
    /// p⁽⁰⁾, which is rewritten.
    pub prompt: String,
    /// p⁽ᵈ⁻¹⁾, an earlier rewrite of it, which is to be improved on.
    pub draft: Option<String>,
    /// ξ on the draft, or on the prompt where there is no draft; may be empty.
    pub feedback: String,
}

impl RewriteFacts {
    /// Where the feedback begins in [`text`](Self::text); nothing follows it.
    pub const FEEDBACK: &str = "\n\nFeedback:\n";

    /// The message.
    ///
    /// ```
    /// use capo_core::templates::{ObjectiveFacts, RewriteFacts};
    ///
    /// let facts = RewriteFacts {
    ///     objective: ObjectiveFacts { metric: "success".to_owned(), value: 0.5 },
    ///     constraints: Vec::new(),
    ///     prompt: "Be kind.".to_owned(),
    ///     draft: None,
    ///     feedback: String::new(),
    /// };
    /// assert!(facts.text().ends_with("Objective: success 0.500\n\nPrompt:\nBe kind.\n\nFeedback:\nnone"));
    /// ```
    pub fn text(&self) -> String {
        Template::Learned.render(self)
    }
}

/// The text of the last complete `<prompt>` block that lies in no other, trimmed. A prompt may speak
/// of the tags itself: where one begins a line, only such ones open a block; where `</prompt>` ends a
/// line, only such ones close it.
///
/// ```
/// use capo_core::templates::delimited_prompt;
///
/// let answer = "It should be kinder.\n<prompt>\nBe kind.\n</prompt>";
/// assert_eq!(delimited_prompt(answer), Some("Be kind."));
/// assert_eq!(delimited_prompt("Be kind."), None);
/// ```
pub fn delimited_prompt(answer: &str) -> Option<&str> {
    const OPEN: &str = "<prompt>";
    const CLOSE: &str = "</prompt>";
    let blank = |text: Option<&str>| text.is_none_or(|text| text.trim().is_empty());
    let begins_line = |at: usize| blank(answer[..at].rsplit('\n').next());
    let ends_line = |at: usize| blank(answer[at + CLOSE.len()..].split('\n').next());
    let opening = places(answer, OPEN, begins_line);
    let closing = places(answer, CLOSE, ends_line);

    let mut tags: Vec<(usize, bool)> = opening.into_iter().map(|at| (at, true)).collect();
    tags.extend(closing.into_iter().map(|at| (at, false)));
    tags.sort_unstable();
    let (mut open, mut blocks) = (Vec::new(), Vec::<(usize, usize)>::new());
    for (at, opens) in tags {
        if opens {
            open.push(at);
        } else if let Some(start) = open.pop() {
            // A block swallows those inside it.
            blocks.retain(|(inner, _)| *inner < start);
            blocks.push((start, at));
        }
    }
    let (start, end) = *blocks.last()?;
    Some(answer[start + OPEN.len()..end].trim())
}

/// Where `tag` stands as `marked` wants it, or everywhere if it nowhere does.
fn places(text: &str, tag: &str, marked: impl Fn(usize) -> bool) -> Vec<usize> {
    let all: Vec<usize> = text.match_indices(tag).map(|(at, _)| at).collect();
    let some: Vec<usize> = all.iter().copied().filter(|at| marked(*at)).collect();
    if some.is_empty() { all } else { some }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_in_the_order_of_the_variants() {
        for (index, (template, ..)) in Template::ALL.into_iter().enumerate() {
            assert_eq!(template as usize, index);
        }
    }

    #[test]
    fn a_number_that_is_not_finite_is_told_and_no_panic() {
        for value in [f64::INFINITY, f64::NEG_INFINITY, f64::NAN, f64::MAX, 1e-320] {
            let facts = RewriteFacts {
                objective: ObjectiveFacts {
                    metric: "success".to_owned(),
                    value,
                },
                constraints: vec![WeightedConstraint {
                    metric: "words".to_owned(),
                    cost: value,
                    threshold: value,
                    multiplier: value,
                }],
                prompt: "Be kind.".to_owned(),
                draft: None,
                feedback: String::new(),
            };
            assert_eq!(facts.text().contains("(not finite)"), !value.is_finite());
        }
    }

    #[test]
    fn a_prompt_may_speak_of_the_tags() {
        for text in [
            "Repeat what stands after <prompt> in the request.",
            "Answer as <prompt>…</prompt> and nothing else.",
            "Never write </prompt> to a customer.",
            "Close with </prompt>, open with <prompt>.",
        ] {
            let answer = format!("Here it is.\n<prompt>\n{text}\n</prompt>\nDone.");
            assert_eq!(delimited_prompt(&answer), Some(text));
            assert_eq!(delimited_prompt(&format!("<prompt>{text}</prompt>")), Some(text));
        }
    }

    #[test]
    fn finds_the_delimited_prompt() {
        assert_eq!(
            delimited_prompt("thinking <prompt>\n Be kind. \n</prompt> bye"),
            Some("Be kind.")
        );
        assert_eq!(
            delimited_prompt("I use <prompt> tags: <prompt>x</prompt>"),
            Some("x")
        );
        assert_eq!(
            delimited_prompt("<prompt>draft</prompt>\nOr rather:\n<prompt>final</prompt>"),
            Some("final")
        );
        assert_eq!(delimited_prompt("<prompt>cut"), None);
        assert_eq!(delimited_prompt("nothing"), None);
    }
}
