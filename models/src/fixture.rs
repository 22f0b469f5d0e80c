//! A study and a workload for tests: nobody runs it.

use std::rc::Rc;

use capo_core::llm::Role;
use capo_core::metric::MetricSpec;
use capo_core::problem::Problem;
use capo_core::study::{Format, Study};
use capo_core::workload::{Rollout, RolloutContext, RolloutError, Split, Workload};
use futures::future::LocalBoxFuture;

/// Two rounds of one parent with one child on three examples, two held out, at most ten answers
/// in a dialogue.
pub(crate) const STUDY: &str = r#"
    [study]
    name = "small"
    rounds = 2
    [workload]
    kind = "dialogues"
    [prompt]
    text = "Help."
    [objective]
    metric = "success"
    [models.agent]
    provider = "simulated"
    [method]
    parents = 1
    children = 1
"#;

/// The study joined with its workload.
pub(crate) fn problem(study: &str) -> Problem {
    problem_of(study, 10)
}

/// The same with at most so many answers in a dialogue.
pub(crate) fn problem_of(study: &str, answers: u64) -> Problem {
    let study = Study::parse(study, Format::Toml).unwrap();
    Problem::new(study, vec![Rc::new(Dialogues::new(answers))]).unwrap()
}

struct Dialogues {
    answers: u64,
    metrics: [MetricSpec; 2],
    optimize: [String; 3],
    evaluate: [String; 2],
}

impl Dialogues {
    fn new(answers: u64) -> Self {
        Self {
            answers,
            metrics: [
                MetricSpec::objective("success", "The agent helped."),
                MetricSpec::prompt_length(),
            ],
            optimize: ["a", "b", "c"].map(Into::into),
            evaluate: ["d", "e"].map(Into::into),
        }
    }
}

impl Workload for Dialogues {
    fn name(&self) -> &'static str {
        "dialogues"
    }

    fn metrics(&self) -> &[MetricSpec] {
        &self.metrics
    }

    fn examples(&self, split: Split) -> &[String] {
        match split {
            Split::Optimize => &self.optimize,
            Split::Evaluate => &self.evaluate,
        }
    }

    fn fingerprint(&self) -> String {
        String::new()
    }

    fn description(&self) -> String {
        "Dialogues.".into()
    }

    fn max_calls(&self) -> Vec<(Role, u64)> {
        vec![(Role::Agent, self.answers), (Role::Judge, 0)]
    }

    fn rollout<'a>(&'a self, _: RolloutContext<'a>) -> LocalBoxFuture<'a, Result<Rollout, RolloutError>> {
        unreachable!("what a run would cost is said without running it")
    }
}
