//! One rollout by the external agent: request, wait, response, checks.

use capo_core::llm::{FailureKind, Role};
use capo_core::metric::{Measurements, MetricSpec, PROMPT_LENGTH, prompt_length};
use capo_core::usage::Usage;
use capo_core::workload::{Rollout, RolloutContext, RolloutError, Split, Trace, Workload};
use futures::FutureExt;
use futures::future::LocalBoxFuture;
use serde_json::json;

use super::External;
use super::protocol::{PROTOCOL, Request, Response, WireUsage};
use crate::outside::{Answer, Party, SEED_BITS, measured, parse};

impl Workload for External {
    fn name(&self) -> &str {
        super::NAME
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
            let (_, example) = self.examples.get(id)?;
            // The agent is told the split.
            Some(json!([self.asked, split, example.fields]).to_string())
        };
        self.examples(split).iter().map(content).collect()
    }

    fn description(&self) -> String {
        self.description.clone()
    }

    fn max_calls(&self) -> Vec<(Role, u64)> {
        // The agent's own calls are not made through Capo.
        Vec::new()
    }

    fn tries_again(&self) -> bool {
        self.outside.tries_again()
    }

    fn rollout<'a>(
        &'a self,
        context: RolloutContext<'a>,
    ) -> LocalBoxFuture<'a, Result<Rollout, RolloutError>> {
        self.run(context).boxed_local()
    }
}

impl External {
    async fn run(&self, context: RolloutContext<'_>) -> Result<Rollout, RolloutError> {
        let request = self.request(context)?;
        let read = |answer: &Answer, elapsed: f64| self.rollout_of(answer, elapsed, context.prompt);
        self.outside.ask(context.caller, &request, read).await
    }

    fn request(&self, context: RolloutContext<'_>) -> Result<String, RolloutError> {
        let (split, example) = self
            .examples
            .get(context.example)
            .ok_or_else(|| crate::unknown_example(super::NAME, context.example))?;
        let request = Request {
            protocol: PROTOCOL,
            prompt: context.prompt.to_owned(),
            example_id: example.id.clone(),
            example: example.fields.clone(),
            split: (*split).into(),
            repeat: context.repeat,
            seed: context.seed & SEED_BITS,
        };
        serde_json::to_string(&request)
            .map_err(|error| self.outside.failed(FailureKind::Malformed, false, error))
    }

    fn rollout_of(&self, answer: &Answer, elapsed: f64, prompt: &str) -> Result<Rollout, RolloutError> {
        let unknown = || Party::Agent.unsaid(elapsed);
        let malformed = |problem: String| self.outside.malformed(&answer.secrets, &problem);
        let unaccounted = |problem: String| malformed(problem).after(unknown());
        let expected = format!("a response of protocol {PROTOCOL}");
        let response: Response = parse(answer, &expected).map_err(unaccounted)?;
        if response.protocol != PROTOCOL {
            let problem = format!("it speaks protocol {}, Capo speaks {PROTOCOL}", response.protocol);
            let error = self.outside.failed(FailureKind::Malformed, false, problem);
            return Err(error.after(unknown()));
        }
        let external_usage = consumed(response.usage, elapsed).map_err(unaccounted)?;
        let malformed = |problem: String| malformed(problem).after(external_usage.clone());
        let mut measurements = Measurements::new();
        for spec in self.specs.iter().filter(|spec| spec.name != PROMPT_LENGTH) {
            let value = measured(spec, &spec.name, &response.measurements).map_err(malformed)?;
            measurements.insert(spec.name.clone(), value);
        }
        measurements.insert(PROMPT_LENGTH.to_owned(), prompt_length(prompt));

        let trace = Trace {
            messages: response.messages.into_iter().map(Into::into).collect(),
            outcome: response.outcome,
            details: response.details,
        };
        let trace = answer.secrets.redacted_trace(trace).map_err(malformed)?;
        Ok(Rollout {
            measurements,
            trace,
            external_usage,
        })
    }
}

/// What the agent says it consumed in a rollout that took so many seconds; one that says nothing
/// consumed something unknown.
fn consumed(reported: Option<WireUsage>, elapsed: f64) -> Result<Usage, String> {
    let Some(reported) = reported else {
        return Ok(Party::Agent.unsaid(elapsed));
    };
    if let Some(problem) = reported.problem() {
        return Err(problem);
    }
    let mut usage = Usage::default();
    usage.add(Role::Agent, reported.into_role_usage(elapsed));
    Ok(usage)
}
