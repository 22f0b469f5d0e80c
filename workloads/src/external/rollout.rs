//! One rollout by the external agent: request, wait, response, checks.

use std::pin::pin;
use std::time::Duration;

use capo_core::backoff::LONGEST_ASKED;
use capo_core::llm::{CallUsage, FailureKind, LlmError, Role};
use capo_core::metric::{Measurements, MetricSpec, PROMPT_LENGTH, prompt_length};
use capo_core::notice::{Notice, Wait};
use capo_core::usage::{RoleUsage, Usage};
use capo_core::workload::{Caller, Rollout, RolloutContext, RolloutError, Split, Trace, Workload};
use futures::FutureExt;
use futures::future::{Either, LocalBoxFuture, select};
use futures_timer::Delay;
use serde_json::{Value, json};
use web_time::Instant;

use super::http::NO_ANSWER;
use super::pace::{jitter, sleep, unless_interrupted};
use super::protocol::{PROTOCOL, Request, Response, WireUsage, without_nan};
use super::transport::{Answer, Unanswered, failed};
use super::{Agent, External};

/// Seeds on the wire fit what JavaScript's numbers hold exactly.
const SEED_BITS: u64 = (1 << 53) - 1;

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
        self.backoff.retries > 0
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
        let caller = context.caller;
        for tries in 1.. {
            let permit = match unless_interrupted(caller, self.permits.acquire()).await {
                Some(permit) => {
                    permit.map_err(|_| self.failed(FailureKind::Tool, false, "it was shut down"))?
                }
                None => return Err(interrupted()),
            };
            self.pace.wait(caller).await?;
            // The clock starts with the work, not with the wait for other rollouts.
            let start = Instant::now();
            let attempt = pin!(self.attempt(request.clone()));
            let answer = match select(attempt, caller.abandoned()).await {
                Either::Left((answer, _)) => Some(answer),
                Either::Right(_) => None,
            };
            let elapsed = start.elapsed().as_secs_f64();
            let Some(answer) = answer else {
                caller.consumed(&unknown(elapsed));
                return Err(interrupted());
            };
            drop(permit);
            let (error, asked, everybody) = match answer {
                Ok(answer) => match self.rollout_of(&answer, elapsed, context.prompt) {
                    Ok(rollout) => {
                        self.answered(start, caller);
                        return Ok(rollout);
                    }
                    Err(error) => (error, None, false),
                },
                Err(Unanswered::Failed(error)) => (error.after(unknown(elapsed)), None, false),
                Err(Unanswered::Refused(error)) => (error, None, false),
                Err(Unanswered::NotNow { asked, error }) => (error, asked, true),
            };
            let RolloutError::Failed { retryable, usage, .. } = &error else {
                return Err(error);
            };
            let Some(wait) = self.backoff.wait(tries, asked, jitter()).filter(|_| *retryable) else {
                return Err(given_up(error, tries, asked));
            };
            caller.consumed(usage);
            self.tell_waiting(&error, wait, asked.is_some(), tries, caller);
            if everybody {
                self.pace.hold(wait);
            } else {
                sleep(wait, caller).await?;
            }
        }
        unreachable!("tries are counted until a rollout or an error")
    }

    /// Says that a try failed and when the next one is made.
    fn tell_waiting(
        &self,
        error: &RolloutError,
        wait: Duration,
        is_asked: bool,
        tries: u32,
        caller: &dyn Caller,
    ) {
        let RolloutError::Failed { kind, message, .. } = error else {
            return;
        };
        self.pace.told.set(Some(Instant::now()));
        caller.tell(&Notice::Waiting(Wait {
            model: super::NAME.to_owned(),
            provider: "the agent".to_owned(),
            host: self.place(),
            // The journal calls it a failure of a tool that no connection came about; people are told which it is.
            kind: if message.contains(NO_ANSWER) {
                FailureKind::Unreachable
            } else {
                *kind
            },
            message: message.clone(),
            seconds: wait.as_secs_f64(),
            is_asked,
            next_try: Some((tries + 1, self.backoff.retries.saturating_add(1))),
        }));
    }

    /// Says that waiting is over, once a try is answered that began after it was told.
    fn answered(&self, started: Instant, caller: &dyn Caller) {
        if self.pace.told.get().is_some_and(|told| told <= started) {
            self.pace.told.set(None);
            caller.tell(&Notice::Answered {
                model: super::NAME.to_owned(),
                host: self.place(),
            });
        }
    }

    /// Where the agent is, in few words.
    fn place(&self) -> String {
        match &self.agent {
            Agent::Endpoint(endpoint) => endpoint.host().to_owned(),
            #[cfg(not(target_arch = "wasm32"))]
            Agent::Command(program) => program.shown().to_owned(),
        }
    }

    /// One request, answered in time or not.
    async fn attempt(&self, request: String) -> Result<Answer, Unanswered> {
        let exchange = std::pin::pin!(self.exchange(request));
        match select(exchange, Delay::new(self.timeout)).await {
            Either::Left((answer, _)) => answer,
            Either::Right(_) => {
                let problem = format!(
                    "no answer within {} s; raise workload.timeout if it needs longer",
                    self.timeout.as_secs_f64()
                );
                Err(Unanswered::Failed(self.failed(
                    FailureKind::Timeout,
                    true,
                    problem,
                )))
            }
        }
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
        serde_json::to_string(&request).map_err(|error| self.failed(FailureKind::Malformed, false, error))
    }

    async fn exchange(&self, request: String) -> Result<Answer, Unanswered> {
        match &self.agent {
            Agent::Endpoint(endpoint) => endpoint.exchange(request).await,
            #[cfg(not(target_arch = "wasm32"))]
            Agent::Command(program) => program.exchange(request).await,
        }
    }

    fn rollout_of(&self, answer: &Answer, elapsed: f64, prompt: &str) -> Result<Rollout, RolloutError> {
        let malformed =
            |problem: String| self.failed(FailureKind::Malformed, true, answer.secrets.redacted(&problem));
        let unaccounted = |problem: String| malformed(problem).after(unknown(elapsed));
        let response = parse(answer).map_err(unaccounted)?;
        if response.protocol != PROTOCOL {
            let problem = format!("it speaks protocol {}, Capo speaks {PROTOCOL}", response.protocol);
            let error = self.failed(FailureKind::Malformed, false, problem);
            return Err(error.after(unknown(elapsed)));
        }
        let external_usage = consumed(response.usage, elapsed).map_err(unaccounted)?;
        let malformed = |problem: String| malformed(problem).after(external_usage.clone());
        let mut measurements = Measurements::new();
        for spec in self.specs.iter().filter(|spec| spec.name != PROMPT_LENGTH) {
            let value = measured(spec, &response).map_err(malformed)?;
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

    fn failed(&self, kind: FailureKind, retryable: bool, problem: impl std::fmt::Display) -> RolloutError {
        let who = match &self.agent {
            Agent::Endpoint(endpoint) => endpoint.shown(),
            #[cfg(not(target_arch = "wasm32"))]
            Agent::Command(program) => program.shown(),
        };
        failed(kind, retryable, who, problem)
    }
}

/// The failure of a rollout's last try, with how often it was tried and why no longer.
fn given_up(mut error: RolloutError, tries: u32, asked: Option<Duration>) -> RolloutError {
    if let RolloutError::Failed { message, .. } = &mut error {
        if tries > 1 {
            *message = format!("{message} (tried {tries} times)");
        }
        if asked.is_some_and(|asked| asked > LONGEST_ASKED) {
            let most = LONGEST_ASKED.as_secs();
            *message = format!("{message} (longer than the {most} s that are waited)");
        }
    }
    error
}

/// The run was interrupted; what the rollout had consumed is counted.
fn interrupted() -> RolloutError {
    RolloutError::Llm(LlmError::Interrupted {
        usage: CallUsage::default(),
    })
}

/// What the agent says it consumed in a rollout that took so many seconds; one that says nothing
/// consumed something unknown.
fn consumed(reported: Option<WireUsage>, elapsed: f64) -> Result<Usage, String> {
    let Some(reported) = reported else {
        return Ok(unknown(elapsed));
    };
    if let Some(problem) = reported.problem() {
        return Err(problem);
    }
    Ok(of_agent(reported.into_role_usage(elapsed)))
}

/// What an agent consumed that worked so many seconds and does not say.
fn unknown(elapsed: f64) -> Usage {
    of_agent(RoleUsage {
        usd: None,
        seconds: elapsed,
        ..RoleUsage::ZERO
    })
}

fn of_agent(consumed: RoleUsage) -> Usage {
    let mut usage = Usage::default();
    usage.add(Role::Agent, consumed);
    usage
}

/// Reads a response. Numbers that JSON does not have become `null`, to be named later.
fn parse(answer: &Answer) -> Result<Response, String> {
    let text = std::str::from_utf8(&answer.bytes)
        .map_err(|error| format!("its answer is not UTF-8 at byte offset {}", error.valid_up_to()))?;
    serde_json::from_str(text).or_else(|error| {
        serde_json::from_str(&without_nan(text)).map_err(|_| {
            let shown = answer.secrets.tail(&answer.bytes);
            format!(
                "its answer is not a response of protocol {PROTOCOL}: {error}; the answer ends with: {shown}"
            )
        })
    })
}

fn measured(spec: &MetricSpec, response: &Response) -> Result<f64, String> {
    let name = &spec.name;
    let value = match response.measurements.get(name) {
        None => {
            let given: Vec<&str> = response.measurements.keys().map(String::as_str).collect();
            return Err(format!(
                "its answer has no measurement `{name}`; it has: {}",
                given.join(", ")
            ));
        }
        Some(Value::Null) => {
            return Err(format!(
                "measurement `{name}` is not a number (NaN, infinite or null)"
            ));
        }
        Some(Value::Bool(holds)) => f64::from(u8::from(*holds)),
        Some(value) => value
            .as_f64()
            .ok_or_else(|| format!("measurement `{name}` is not a number but {value}"))?,
    };
    if spec.min.is_some_and(|min| value < min) || spec.max.is_some_and(|max| value > max) {
        let bound = |bound: Option<f64>| bound.map_or("…".to_owned(), |bound| bound.to_string());
        return Err(format!(
            "measurement `{name}` is {value}, outside its range {} to {}",
            bound(spec.min),
            bound(spec.max)
        ));
    }
    Ok(value)
}
