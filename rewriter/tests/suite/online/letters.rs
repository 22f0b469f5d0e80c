//! A world in which a prompt is as good as its share of the letter a.

use std::rc::Rc;

use capo_core::llm::Role;
use capo_core::metric::{MetricSpec, prompt_length};
use capo_core::problem::Problem;
use capo_core::study::{Format, Study};
use capo_core::usage::Usage;
use capo_core::workload::{Rollout, RolloutContext, RolloutError, Split, Trace, Workload};
use futures::FutureExt;
use futures::future::{LocalBoxFuture, ready};

pub(crate) fn problem(rounds: u32) -> Problem {
    let text = format!(
        "[study]\nname = \"letters\"\nmethod = \"dcapo\"\nrounds = {rounds}\nseed = 4\n[workload]\nkind = \"letters\"\n\
         [prompt]\ntext = \"bcd\"\n[objective]\nmetric = \"share_of_a\"\n\
         [[constraint]]\nmetric = \"prompt_length\"\nthreshold = 5.0\n[models.agent]\nprovider = \"none\"\n\
         [method]\nparents = 3\nchildren = 8\nlambda_init = 0.0\n[feedback]\nform = \"none\"\n"
    );
    let study = Study::parse(&text, Format::Toml).expect("a valid study");
    Problem::new(study, vec![Rc::new(Letters::new())]).expect("a valid problem")
}

struct Letters {
    metrics: [MetricSpec; 2],
    optimize: [String; 1],
    evaluate: [String; 1],
}

impl Letters {
    fn new() -> Self {
        Self {
            metrics: [
                MetricSpec::objective("share_of_a", "Share of the letter a."),
                MetricSpec::prompt_length(),
            ],
            optimize: ["one".to_owned()],
            evaluate: ["two".to_owned()],
        }
    }
}

impl Workload for Letters {
    fn name(&self) -> &'static str {
        "letters"
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
        "Letters.".into()
    }

    fn max_calls(&self) -> Vec<(Role, u64)> {
        Vec::new()
    }

    fn rollout<'a>(
        &'a self,
        context: RolloutContext<'a>,
    ) -> LocalBoxFuture<'a, Result<Rollout, RolloutError>> {
        let count = context.prompt.chars().count().max(1) as f64;
        let share = context.prompt.matches('a').count() as f64 / count;
        let measurements = [
            ("share_of_a".to_owned(), share),
            ("prompt_length".to_owned(), prompt_length(context.prompt)),
        ];
        ready(Ok(Rollout {
            measurements: measurements.into(),
            trace: Trace::default(),
            external_usage: Usage::default(),
        }))
        .boxed_local()
    }
}
