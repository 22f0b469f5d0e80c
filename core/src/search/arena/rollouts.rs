//! Running the rollouts of a batch concurrently.

use std::collections::{HashMap, VecDeque};
use std::pin::pin;
use std::task::Poll;

use futures::StreamExt;
use futures::future::{Either, poll_fn, select};
use futures::stream::FuturesUnordered;

use super::caller::MeteredCaller;
use super::{Arena, Halt};
use crate::journal::run_state::SetKey;
use crate::journal::{EffectName, Event, FailureEvent, LineId, PaidAnswer, RolloutEvent};
use crate::llm::{CallUsage, FailureKind, LlmError};
use crate::study::ids::CandidateId;
use crate::study::metric::{LARGEST_MEASUREMENT, Measurements, MetricSpec, shown};
use crate::study::usage::Usage;
use crate::study::workload::{Rollout, RolloutContext, RolloutError, Trace};

/// A rollout that is not in the journal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Wanted {
    pub candidate: CandidateId,
    pub set: SetKey,
    pub example: usize,
    pub repeat: u32,
}

/// A rollout that every try of this session failed at.
#[derive(Debug, Clone)]
pub(super) struct RolloutFailure {
    pub wanted: Wanted,
    pub kind: FailureKind,
    pub message: String,
    /// Whether the same rollout may succeed later.
    pub retryable: bool,
    /// Whether what fails is not everything: another rollout of the batch was made, and where this one may
    /// succeed later, since it was first begun.
    pub others_succeed: bool,
}

struct Answered {
    wanted: Wanted,
    answer: Result<Rollout, RolloutError>,
    usage: Usage,
    /// Tries of an external agent.
    tries: u32,
    answers: Vec<PaidAnswer>,
}

/// What became of a rollout.
enum Recorded {
    Made,
    /// To be tried again, or no more.
    Failed {
        kind: FailureKind,
        message: String,
        retryable: bool,
    },
}

impl Arena {
    /// Makes rollouts, at most `concurrency` at once, journaling each as it arrives, and returns those
    /// that could not be made. The first halt lets those under way end and starts no new one; a failed
    /// one is tried again after all others while tries are left. A spent budget halts only once nothing
    /// is under way any more: a rollout that fails gives its place back. What an earlier run made is not made again.
    pub(super) async fn run_rollouts(&self, wanted: Vec<Wanted>) -> Result<Vec<RolloutFailure>, Halt> {
        let mut waiting = VecDeque::from(self.take_over(wanted)?);
        let mut under_way = FuturesUnordered::new();
        let mut halt = None;
        let mut made = 0_u64;
        let mut tries: HashMap<Wanted, u32> = HashMap::new();
        // How many were made before each was first begun.
        let mut made_before: HashMap<Wanted, u64> = HashMap::new();
        let mut unmade: Vec<RolloutFailure> = Vec::new();
        loop {
            while halt.is_none() && under_way.len() < self.options.concurrency.max(1) {
                let Some(next) = waiting.front() else { break };
                match self.start_rollout(next.set.split) {
                    Ok(()) => {
                        made_before.entry(*next).or_insert(made);
                        under_way.extend(waiting.pop_front().map(|next| self.run_rollout(next)));
                    }
                    Err(Halt::Budget(_)) if !under_way.is_empty() => break,
                    Err(stopped) => halt = Some(stopped),
                }
            }
            let Some(answered) = self.flushing(under_way.next()).await? else {
                break;
            };
            let wanted = answered.wanted;
            match self.record_rollout(answered) {
                Ok(Recorded::Made) => made += 1,
                Ok(Recorded::Failed {
                    kind,
                    message,
                    retryable,
                }) => {
                    let tried = tries.entry(wanted).or_default();
                    *tried += 1;
                    // The journal counts no others.
                    if !kind.is_of_everything() {
                        *self.tries.borrow_mut().entry(self.effect(wanted)).or_default() += 1;
                    }
                    if *tried < self.tries() && kind != FailureKind::ContextLength {
                        waiting.push_back(wanted);
                        continue;
                    }
                    if kind.is_of_everything() {
                        let of = self.effect(wanted);
                        halt = halt.or_else(|| Some(self.failed(kind, &place(&of), &message)));
                        continue;
                    }
                    let failed = RolloutFailure {
                        others_succeed: made > if retryable { made_before[&wanted] } else { 0 },
                        wanted,
                        kind,
                        message,
                        retryable,
                    };
                    match self.too_many(&failed, &unmade, made) {
                        Some(stopped) => halt = halt.or(Some(stopped)),
                        None => unmade.push(failed),
                    }
                    // Nobody waits for the rest of a prompt that is discarded.
                    let discarded = self.exceeding(&unmade);
                    waiting.retain(|wanted| !discarded.contains(&wanted.candidate));
                }
                Err(stopped) => halt = halt.or(Some(stopped)),
            }
        }
        for failed in &mut unmade {
            let before = if failed.retryable {
                made_before[&failed.wanted]
            } else {
                0
            };
            failed.others_succeed = made > before;
        }
        self.hand_over()?;
        if halt == Some(Halt::Interrupted) {
            self.tell_of_batches_left();
        }
        halt.map_or(Ok(unmade), Err)
    }

    /// Reads a rollout back.
    pub(super) async fn read_rollout(&self, line: LineId) -> Result<RolloutEvent, Halt> {
        let reading = self.journal.borrow_mut().read(line);
        match reading.await? {
            Event::Rollout(rollout) => Ok(rollout),
            _ => Err(Halt::Replay("a line read back is not the rollout it was".into())),
        }
    }

    /// Waits for `future`. Whenever it is not ready, what was journaled is handed to the store
    /// first, so that a killed process loses no answer it had received.
    pub(super) async fn flushing<F: Future>(&self, future: F) -> Result<F::Output, Halt> {
        let mut future = pin!(future);
        poll_fn(|context| match future.as_mut().poll(context) {
            Poll::Ready(output) => Poll::Ready(Ok(output)),
            Poll::Pending => match self.hand_over() {
                Ok(()) => Poll::Pending,
                Err(error) => Poll::Ready(Err(Halt::Store(error))),
            },
        })
        .await
    }

    async fn run_rollout(&self, wanted: Wanted) -> Answered {
        let paid = self.journal.borrow().state().paid_answers(&self.effect(wanted));
        let prompt = self.prompt(wanted.candidate);
        let workload = self.problem.borrow().workloads()[usize::from(wanted.set.workload)].clone();
        let example = &workload.examples(wanted.set.split)[wanted.example];
        let caller = MeteredCaller::with_paid(self, paid, workload.agent_script(example));
        let purpose = format!("rollout/{}/{example}", workload.name());
        let context = RolloutContext {
            prompt: &prompt,
            example,
            repeat: wanted.repeat,
            seed: self.streams.number(&purpose, 0, u64::from(wanted.repeat)),
            caller: &caller,
        };
        // What does not notice that it was abandoned is dropped.
        let abandoned = self.options.control.abandoned();
        let mut answer = match select(workload.rollout(context), pin!(abandoned)).await {
            Either::Left((answer, _)) => answer,
            Either::Right(((), _)) => Err(LlmError::Interrupted {
                usage: CallUsage::default(),
            }
            .into()),
        };
        if let Ok(rollout) = &answer
            && let Err(problem) = self.check_measurements(wanted, &rollout.measurements)
        {
            let consumed = rollout.external_usage.clone();
            answer = Err(RolloutError::failed(FailureKind::Malformed, false, problem).after(consumed));
        }
        let (usage, tries) = match &answer {
            Ok(rollout) => caller.usage_with(&rollout.external_usage, true),
            Err(RolloutError::Failed { usage, .. }) => caller.usage_with(usage, false),
            Err(RolloutError::Llm(_)) => caller.usage_with(&Usage::default(), false),
        };
        Answered {
            wanted,
            answer,
            usage,
            tries,
            answers: caller.into_answers(),
        }
    }

    /// The name of a rollout in the journal.
    pub(super) fn effect(&self, wanted: Wanted) -> EffectName {
        let problem = self.problem.borrow();
        let workload = &problem.workloads()[usize::from(wanted.set.workload)];
        EffectName::Rollout {
            candidate: wanted.candidate,
            split: wanted.set.split,
            workload: workload.name().to_owned(),
            example: workload.examples(wanted.set.split)[wanted.example].clone(),
            repeat: wanted.repeat,
        }
    }

    /// Tries of one rollout in this session.
    pub(super) fn tries(&self) -> u32 {
        let problem = self.problem.borrow();
        let usual = if problem.workloads().iter().all(|workload| workload.tries_again()) {
            self.options.attempts
        } else {
            1
        };
        problem.study().failures.tries.unwrap_or(usual).max(1)
    }

    pub(super) fn check_measurements(
        &self,
        wanted: Wanted,
        measurements: &Measurements,
    ) -> Result<(), String> {
        let problem = self.problem.borrow();
        let workload = &problem.workloads()[usize::from(wanted.set.workload)];
        // Measurements that no metric speaks of are journaled too, and JSON has no NaN.
        let is_number = |value: f64| value.abs() <= LARGEST_MEASUREMENT;
        if let Some((metric, value)) = measurements.iter().find(|(_, value)| !is_number(**value)) {
            return Err(format!(
                "metric `{metric}` measured {value:e}; every measurement must be a finite number between \
                 -{LARGEST_MEASUREMENT:e} and {LARGEST_MEASUREMENT:e}"
            ));
        }
        let missing = |metric: &&MetricSpec| !measurements.contains_key(&metric.name);
        if let Some(metric) = workload.metrics().iter().find(missing) {
            return Err(format!("metric `{}` was not measured", metric.name));
        }
        let objective = problem.objective();
        if objective.workload == wanted.set.workload {
            let value = measurements[&objective.spec.name];
            if !(0.0..=1.0).contains(&value) {
                return Err(format!(
                    "objective `{}` measured {}, outside [0, 1]",
                    objective.spec.name,
                    shown(value)
                ));
            }
        }
        Ok(())
    }

    fn record_rollout(&self, answered: Answered) -> Result<Recorded, Halt> {
        let Answered {
            wanted,
            answer,
            usage,
            tries,
            answers,
        } = answered;
        let of = self.effect(wanted);
        let error = match answer {
            Ok(rollout) => {
                self.record_made(of, rollout.measurements, rollout.trace, usage, None)?;
                return Ok(Recorded::Made);
            }
            Err(error) => error,
        };
        self.return_rollout(wanted.set.split);
        let (kind, message, retryable) = match error {
            RolloutError::Llm(stopped @ (LlmError::Budget(_) | LlmError::Interrupted { .. })) => {
                return Err(self.record_stopped(of, stopped, usage, answers)?);
            }
            RolloutError::Llm(LlmError::Failed {
                kind,
                message,
                retryable,
                ..
            }) => {
                // Whether the next try may end otherwise lies with the call that failed, not with these. The answers
                // of a batch would come again from there, and count again.
                let answers = if retryable || self.batches.is_some() {
                    answers
                } else {
                    Vec::new()
                };
                self.journal_failure(of.clone(), kind, message.clone(), usage, Left::Answers(answers))?;
                (kind, message, retryable)
            }
            RolloutError::Failed {
                kind,
                message,
                retryable,
                keeps_answers,
                ..
            } => {
                let left = if keeps_answers {
                    Left::Answers(answers)
                } else {
                    Left::Tries(tries)
                };
                self.journal_failure(of.clone(), kind, message.clone(), usage, left)?;
                (kind, message, retryable)
            }
        };
        if kind.is_of_everything() && !retryable {
            return Err(self.failed(kind, &place(&of), &message));
        }
        Ok(Recorded::Failed {
            kind,
            message,
            retryable,
        })
    }

    /// Journals a rollout that was made, or one that counts as the worst value for the reason given.
    pub(super) fn record_made(
        &self,
        of: EffectName,
        measurements: Measurements,
        trace: Trace,
        usage: Usage,
        failed: Option<String>,
    ) -> Result<(), Halt> {
        let EffectName::Rollout {
            candidate,
            split,
            workload,
            example,
            repeat,
        } = of
        else {
            return Ok(());
        };
        let event = RolloutEvent {
            candidate,
            split,
            workload,
            example,
            repeat,
            measurements,
            trace,
            without_trace: false,
            usage,
            failed,
            reused_from: None,
        };
        Ok(self.journal.borrow_mut().record(&Event::Rollout(event))?)
    }

    /// Journals what an effect had consumed when the budget or a person stopped it, and says which.
    fn record_stopped(
        &self,
        of: EffectName,
        stopped: LlmError,
        usage: Usage,
        answers: Vec<PaidAnswer>,
    ) -> Result<Halt, Halt> {
        let (message, halt) = match stopped {
            LlmError::Budget(reason) => ("the budget was spent in the middle of it", Halt::Budget(reason)),
            _ => ("the run was interrupted in the middle of it", Halt::Interrupted),
        };
        // A budget of dollars that ended the run knew what it ended for.
        let usage = match &halt {
            Halt::Interrupted => self.with_usual_dollars(&usage),
            _ => usage,
        };
        if !usage.is_empty() || !answers.is_empty() {
            let message = message.to_owned();
            self.journal_failure(of, FailureKind::Stopped, message, usage, Left::Answers(answers))?;
        }
        Ok(halt)
    }

    /// Journals a failed call of critic or rewriter. `Ok` means that it may be tried again.
    pub(super) fn record_failure(
        &self,
        of: EffectName,
        what: &str,
        error: LlmError,
        usage: Usage,
    ) -> Result<(), Halt> {
        let LlmError::Failed {
            kind,
            message,
            retryable,
            ..
        } = error
        else {
            return Err(self.record_stopped(of, error, usage, Vec::new())?);
        };
        let tries = {
            let mut tries = self.tries.borrow_mut();
            let tries = tries.entry(of.clone()).or_default();
            *tries += 1;
            *tries
        };
        self.journal_failure(of, kind, message.clone(), usage, Left::Nothing)?;
        if retryable && tries < self.options.attempts {
            return Ok(());
        }
        Err(self.failed(kind, what, &message))
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
        left: Left,
    ) -> Result<(), Halt> {
        let mut journal = self.journal.borrow_mut();
        let attempt = journal.state().attempts(&of) + 1;
        let (mut tries, mut answer, mut answers) = (1, None, Vec::new());
        match left {
            Left::Nothing => {}
            Left::Tries(all) => tries = all,
            Left::Unusable(text) => answer = Some(text),
            Left::Answers(given) => answers = given,
        }
        let event = FailureEvent {
            of,
            kind,
            message,
            attempt,
            tries,
            usage,
            answer,
            answers,
        };
        Ok(journal.record(&Event::Failure(event))?)
    }
}

/// What a failed try leaves for the next one.
pub(super) enum Left {
    Nothing,
    /// So many tries of an external agent, of which nothing is left.
    Tries(u32),
    /// A rewriter's answer that could not be used.
    Unusable(String),
    /// What models answered before it failed, as far as it still holds.
    Answers(Vec<PaidAnswer>),
}

/// A rollout in words.
pub(super) fn place(of: &EffectName) -> String {
    match of {
        EffectName::Rollout {
            candidate,
            workload,
            example,
            ..
        } => {
            format!(
                "example `{example}` of `{workload}` (candidate {})",
                candidate.short()
            )
        }
        EffectName::Critique { .. } => "the critique".to_owned(),
        EffectName::Rewrite { .. } => "the rewrite".to_owned(),
    }
}
