//! Running the rollouts of a batch concurrently.

use std::collections::VecDeque;
use std::pin::pin;
use std::task::Poll;

use futures::StreamExt;
use futures::future::poll_fn;
use futures::stream::FuturesUnordered;

use super::caller::MeteredCaller;
use super::{Arena, Halt};
use crate::ids::CandidateId;
use crate::journal::{EffectName, Event, FailureEvent, RolloutEvent};
use crate::llm::{FailureKind, LlmError};
use crate::metric::MetricSpec;
use crate::run_state::SetKey;
use crate::usage::Usage;
use crate::workload::{Rollout, RolloutContext, RolloutError};

/// A rollout that is not in the journal.
#[derive(Debug, Clone, Copy)]
pub(super) struct Wanted {
    pub candidate: CandidateId,
    pub set: SetKey,
    pub example: usize,
    pub repeat: u32,
}

struct Answered {
    wanted: Wanted,
    answer: Result<Rollout, RolloutError>,
    usage: Usage,
}

impl Arena {
    /// Makes rollouts, at most `concurrency` at once, journaling each as it arrives. The first halt
    /// lets those under way end and starts no new one; a failed one is tried again after all
    /// others while tries are left. A spent budget halts only once nothing is under way any more:
    /// a rollout that fails gives its place back.
    pub(super) async fn run_rollouts(&self, wanted: Vec<Wanted>) -> Result<(), Halt> {
        let mut waiting = VecDeque::from(wanted);
        let mut under_way = FuturesUnordered::new();
        let mut halt = None;
        loop {
            while halt.is_none() && under_way.len() < self.options.concurrency.max(1) {
                let Some(next) = waiting.front() else { break };
                match self.start_rollout(next.set.split) {
                    Ok(()) => under_way.extend(waiting.pop_front().map(|next| self.run_rollout(next))),
                    Err(Halt::Budget(_)) if !under_way.is_empty() => break,
                    Err(stopped) => halt = Some(stopped),
                }
            }
            let Some(answered) = self.flushing(under_way.next()).await? else {
                break;
            };
            match self.record_rollout(answered) {
                Ok(None) => {}
                Ok(Some(again)) => waiting.push_back(again),
                Err(stopped) => halt = halt.or(Some(stopped)),
            }
        }
        match halt {
            None => Ok(()),
            Some(halt) => {
                self.journal.borrow_mut().flush()?;
                Err(halt)
            }
        }
    }

    /// Waits for `future`. Whenever it is not ready, what was journaled is handed to the store
    /// first, so that a killed process loses no answer it had received.
    pub(super) async fn flushing<F: Future>(&self, future: F) -> Result<F::Output, Halt> {
        let mut future = pin!(future);
        poll_fn(|context| match future.as_mut().poll(context) {
            Poll::Ready(output) => Poll::Ready(Ok(output)),
            Poll::Pending => match self.journal.borrow_mut().flush() {
                Ok(()) => Poll::Pending,
                Err(error) => Poll::Ready(Err(Halt::Store(error))),
            },
        })
        .await
    }

    async fn run_rollout(&self, wanted: Wanted) -> Answered {
        let caller = MeteredCaller::new(self);
        let prompt = self.prompt(wanted.candidate);
        let workload = self.problem.borrow().workloads()[usize::from(wanted.set.workload)].clone();
        let example = &workload.examples(wanted.set.split)[wanted.example];
        let purpose = format!("rollout/{}/{example}", workload.name());
        let context = RolloutContext {
            prompt: &prompt,
            example,
            repeat: wanted.repeat,
            seed: self.streams.number(&purpose, 0, u64::from(wanted.repeat)),
            caller: &caller,
        };
        let mut answer = workload.rollout(context).await;
        if let Ok(rollout) = &answer
            && let Err(problem) = self.check_measurements(wanted, rollout)
        {
            let consumed = rollout.external_usage.clone();
            answer = Err(RolloutError::failed(FailureKind::Malformed, false, problem).after(consumed));
        }
        let mut usage = caller.usage();
        if let Ok(Rollout {
            external_usage: external,
            ..
        })
        | Err(RolloutError::Failed { usage: external, .. }) = &answer
        {
            usage.merge(external);
            self.count_external(external);
        }
        Answered {
            wanted,
            answer,
            usage,
        }
    }

    fn check_measurements(&self, wanted: Wanted, rollout: &Rollout) -> Result<(), String> {
        let problem = self.problem.borrow();
        let workload = &problem.workloads()[usize::from(wanted.set.workload)];
        // Measurements that no metric speaks of are journaled too, and JSON has no NaN.
        if let Some((metric, value)) = rollout.measurements.iter().find(|(_, value)| !value.is_finite()) {
            return Err(format!(
                "metric `{metric}` measured {value}; every measurement must be a finite number"
            ));
        }
        let missing = |metric: &&MetricSpec| !rollout.measurements.contains_key(&metric.name);
        if let Some(metric) = workload.metrics().iter().find(missing) {
            return Err(format!("metric `{}` was not measured", metric.name));
        }
        let objective = problem.objective();
        if objective.workload == wanted.set.workload {
            let value = rollout.measurements[&objective.spec.name];
            if !(0.0..=1.0).contains(&value) {
                return Err(format!(
                    "objective `{}` measured {value}, outside [0, 1]",
                    objective.spec.name
                ));
            }
        }
        Ok(())
    }

    fn record_rollout(&self, answered: Answered) -> Result<Option<Wanted>, Halt> {
        let Answered {
            wanted,
            answer,
            usage,
        } = answered;
        let (workload, example) = {
            let problem = self.problem.borrow();
            let workload = &problem.workloads()[usize::from(wanted.set.workload)];
            (
                workload.name().to_owned(),
                workload.examples(wanted.set.split)[wanted.example].clone(),
            )
        };
        match answer {
            Ok(rollout) => {
                let event = RolloutEvent {
                    candidate: wanted.candidate,
                    split: wanted.set.split,
                    workload,
                    example,
                    repeat: wanted.repeat,
                    measurements: rollout.measurements,
                    trace: rollout.trace,
                    usage,
                };
                self.journal.borrow_mut().record(&Event::Rollout(event))?;
                Ok(None)
            }
            Err(error) => {
                self.return_rollout(wanted.set.split);
                let place = format!(
                    "example `{example}` of `{workload}` (candidate {})",
                    wanted.candidate.short()
                );
                let of = EffectName::Rollout {
                    candidate: wanted.candidate,
                    split: wanted.set.split,
                    workload,
                    example,
                    repeat: wanted.repeat,
                };
                self.record_failure(of, &place, error, usage)
                    .map(|()| Some(wanted))
            }
        }
    }

    /// Journals a failed try. `Ok` means that the effect may be tried again.
    pub(super) fn record_failure(
        &self,
        of: EffectName,
        place: &str,
        error: RolloutError,
        usage: Usage,
    ) -> Result<(), Halt> {
        let (kind, message, retryable) = match error {
            RolloutError::Llm(LlmError::Budget(reason)) => {
                if !usage.is_empty() {
                    let message = "the budget was spent in the middle of it".to_owned();
                    self.journal_failure(of, FailureKind::Stopped, message, usage, None)?;
                }
                let interrupted = self.options.control.is_interrupted();
                return Err(if interrupted {
                    Halt::Interrupted
                } else {
                    Halt::Budget(reason)
                });
            }
            RolloutError::Llm(LlmError::Failed {
                kind,
                message,
                retryable,
                ..
            })
            | RolloutError::Failed {
                kind,
                message,
                retryable,
                ..
            } => (kind, message, retryable),
        };
        let tries = {
            let mut tries = self.tries.borrow_mut();
            let tries = tries.entry(of.clone()).or_default();
            *tries += 1;
            *tries
        };
        self.journal_failure(of, kind, message.clone(), usage, None)?;
        if retryable && tries < self.options.attempts {
            return Ok(());
        }
        Err(self.failed(kind, place, &message))
    }

    /// Stops everything for a failure that no further try mends.
    pub(super) fn failed(&self, kind: FailureKind, place: &str, message: &str) -> Halt {
        let halt = Halt::Failed {
            kind,
            message: format!("{place} failed: {message}"),
        };
        self.halted.borrow_mut().get_or_insert_with(|| halt.clone());
        halt
    }

    pub(super) fn journal_failure(
        &self,
        of: EffectName,
        kind: FailureKind,
        message: String,
        usage: Usage,
        answer: Option<String>,
    ) -> Result<(), Halt> {
        let mut journal = self.journal.borrow_mut();
        let attempt = journal.state().attempts(&of) + 1;
        let event = FailureEvent {
            of,
            kind,
            message,
            attempt,
            usage,
            answer,
        };
        Ok(journal.record(&Event::Failure(event))?)
    }
}
