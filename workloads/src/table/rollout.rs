//! One question to the agent, one answer, measured.

use capo_core::llm::{ChatRequest, ChatResponse, Finish, Message, Role};
use capo_core::metric::{Measurements, MetricSpec, PROMPT_LENGTH, prompt_length};
use capo_core::usage::Usage;
use capo_core::workload::{Rollout, RolloutContext, RolloutError, Split, Trace, Workload};
use futures::FutureExt;
use futures::future::LocalBoxFuture;
use serde_json::{Map, Value, json};

use super::{Case, Table};
use crate::metrics::{Finding, Sample, Scoring, visible};

impl Workload for Table {
    fn name(&self) -> &str {
        &self.name
    }

    fn metrics(&self) -> &[MetricSpec] {
        &self.specs
    }

    fn examples(&self, split: Split) -> &[String] {
        match split {
            Split::Optimize => &self.optimize,
            Split::Evaluate => &self.evaluate,
        }
    }

    fn fingerprint(&self) -> String {
        self.fingerprint.clone()
    }

    fn contents(&self, split: Split) -> Option<Vec<String>> {
        let content = |id: &String| {
            let Case {
                user,
                references,
                columns,
            } = self.cases.get(id)?;
            Some(json!([self.measuring, user, references, columns]).to_string())
        };
        self.examples(split).iter().map(content).collect()
    }

    fn measures_dollars(&self) -> bool {
        self.measures_dollars
    }

    fn description(&self) -> String {
        let measured: Vec<String> = self
            .metrics
            .iter()
            .map(|metric| format!("`{}`: {}", metric.spec().name, metric.spec().explanation))
            .collect();
        format!(
            "The prompt is the system message of a chat model that answers one user message and has no tools. \
             The user message is made from this template: {:?}. Measured of each answer: {}",
            self.template,
            measured.join(" ")
        )
    }

    fn max_calls(&self) -> Vec<(Role, u64)> {
        let of_metrics = [Role::Judge, Role::Embeddings].map(|role| {
            let calls = self.metrics.iter().map(|metric| metric.calls(role));
            (role, calls.sum::<u64>())
        });
        let asked = of_metrics.into_iter().filter(|(_, calls)| *calls > 0);
        [(Role::Agent, 1)].into_iter().chain(asked).collect()
    }

    fn rollout<'a>(
        &'a self,
        context: RolloutContext<'a>,
    ) -> LocalBoxFuture<'a, Result<Rollout, RolloutError>> {
        self.run(context).boxed_local()
    }
}

impl Table {
    async fn run(&self, context: RolloutContext<'_>) -> Result<Rollout, RolloutError> {
        let case = self.case(context.example)?;
        let request = ChatRequest::new(vec![Message::system(context.prompt), Message::user(&case.user)]);
        let response = context.chat(Role::Agent, request).await?;
        let answer = visible(response.message.text());

        let mut measurements = Measurements::new();
        let mut outcome = Vec::from_iter(remark(&response, &answer));
        let mut judged = Map::new();
        let scoring = Scoring::of(case.columns.as_ref());
        for (metric, reference) in self.metrics.iter().zip(&case.references) {
            let sample = Sample {
                user: &case.user,
                answer: &answer,
                reference: reference.as_deref(),
                finish: response.finish,
                usage: response.usage,
                scoring: &scoring,
            };
            let finding = metric.measure(&sample, &context).await?;
            outcome.push(line(metric.spec(), &finding));
            measurements.insert(metric.spec().name.clone(), finding.value);
            if let (Some(spec), Some(grades)) = (metric.agreement(), finding.judged) {
                measurements.insert(spec.name.clone(), grades.agreement);
                judged.insert(metric.spec().name.clone(), json!(grades));
            }
        }
        measurements.insert(PROMPT_LENGTH.to_owned(), prompt_length(context.prompt));

        let trace = Trace {
            messages: vec![Message::user(&case.user), Message::Assistant(response.message)],
            outcome: outcome.join("\n"),
            details: if judged.is_empty() {
                Value::Null
            } else {
                json!({ JUDGED: judged })
            },
        };
        Ok(Rollout {
            measurements,
            trace,
            external_usage: Usage::default(),
        })
    }

    fn case(&self, example: &str) -> Result<&Case, RolloutError> {
        self.cases
            .get(example)
            .ok_or_else(|| crate::unknown_example(&self.name, example))
    }
}

/// Where the details of a rollout have the grades of judges that were asked several times, by metric.
pub(super) const JUDGED: &str = "judged";

/// What the critic should know beside the measurements.
fn remark(response: &ChatResponse, answer: &str) -> Option<String> {
    match response.finish {
        Finish::Length => Some("The answer was cut at the model's output limit.".to_owned()),
        Finish::Filter => Some("The provider's filter cut the answer.".to_owned()),
        Finish::Stop | Finish::ToolCalls => answer
            .trim()
            .is_empty()
            .then(|| "The answer is empty.".to_owned()),
    }
}

fn line(spec: &MetricSpec, finding: &Finding) -> String {
    let (name, value) = (&spec.name, finding.value);
    match finding.note.as_str() {
        "" => format!("{name} = {value}"),
        note => format!("{name} = {value}: {note}"),
    }
}
