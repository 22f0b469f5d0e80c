//! Asking: turn, wait, time, and trying again.

use std::pin::pin;
use std::time::Duration;

use capo_core::backoff::{self, Backoff, LONGEST_ASKED};
use capo_core::llm::{CallUsage, FailureKind, LlmError};
use capo_core::notice::{Notice, Wait};
use capo_core::usage::Usage;
use capo_core::workload::{Caller, RolloutError};
use futures::future::{Either, select};
use futures_timer::Delay;
use tokio::sync::Semaphore;
use web_time::Instant;

use super::Party;
#[cfg(not(target_arch = "wasm32"))]
use super::command::Program;
use super::http::{Endpoint, NO_ANSWER};
use super::pace::{Pace, jitter, sleep, unless_interrupted};
use super::transport::{Answer, MOST_TOLD, Secrets, Unanswered, cut, failed};
use crate::files::Sources;
use crate::settings::DefinitionError;

/// Seeds on the wire fit what JavaScript's numbers hold exactly.
pub(crate) const SEED_BITS: u64 = (1 << 53) - 1;

/// The longest time one answer may be given: a day.
const MOST_SECONDS: f64 = 86_400.0;

/// The seconds that an answer may take unless a study says otherwise.
pub(crate) fn usual_timeout() -> f64 {
    120.0
}

/// The answers that are asked for at a time unless a study says otherwise.
pub(crate) fn usual_concurrency() -> usize {
    4
}

/// The two ways to reach it.
pub(crate) enum Transport {
    Endpoint(Endpoint),
    #[cfg(not(target_arch = "wasm32"))]
    Command(Program),
}

impl Transport {
    #[cfg(target_arch = "wasm32")]
    pub(crate) fn command(
        _: &Party,
        _: &[String],
        _: &[String],
        _: &Sources<'_>,
    ) -> Result<Self, DefinitionError> {
        Err(DefinitionError::new(
            "command",
            "a browser cannot run commands; use an HTTP endpoint, or run the study with `capo`",
        ))
    }

    /// A program and its arguments, with the environment variables that it gets.
    #[cfg(not(target_arch = "wasm32"))]
    pub(crate) fn command(
        party: &Party,
        command: &[String],
        environment: &[String],
        sources: &Sources<'_>,
    ) -> Result<Self, DefinitionError> {
        let Some((program, arguments)) = command.split_first().filter(|(program, _)| !program.is_empty())
        else {
            return Err(DefinitionError::new(
                "command",
                "is empty; write it as [\"python3\", \"program.py\"]",
            ));
        };
        let directory = sources.directory().map(std::path::Path::to_path_buf);
        Ok(Self::Command(Program::new(
            party,
            program,
            arguments,
            environment,
            sources.variables(environment.iter().map(String::as_str)),
            directory,
        )))
    }

    /// What messages call it.
    fn who(&self) -> &str {
        match self {
            Self::Endpoint(endpoint) => &endpoint.who,
            #[cfg(not(target_arch = "wasm32"))]
            Self::Command(program) => &program.who,
        }
    }

    /// Where it is, in few words.
    fn place(&self) -> String {
        match self {
            Self::Endpoint(endpoint) => endpoint.host().to_owned(),
            #[cfg(not(target_arch = "wasm32"))]
            Self::Command(program) => program.shown().to_owned(),
        }
    }

    async fn exchange(&self, request: String) -> Result<Answer, Unanswered> {
        match self {
            Self::Endpoint(endpoint) => endpoint.exchange(request).await,
            #[cfg(not(target_arch = "wasm32"))]
            Self::Command(program) => program.exchange(request).await,
        }
    }
}

/// An endpoint or a command, and how patiently it is asked.
pub(crate) struct Outside {
    party: Party,
    transport: Transport,
    timeout: Duration,
    permits: Semaphore,
    backoff: Backoff,
    pace: Pace,
}

impl Outside {
    /// One that may take so many seconds for an answer, is asked so often again, 5 times unless stated, and for so
    /// many answers at a time.
    pub(crate) fn new(
        party: Party,
        transport: Transport,
        timeout: f64,
        retries: Option<u32>,
        concurrency: usize,
    ) -> Result<Self, DefinitionError> {
        if !timeout.is_finite() || timeout <= 0.0 || timeout > MOST_SECONDS {
            return Err(DefinitionError::new(
                "timeout",
                format!("must be above 0 and at most {MOST_SECONDS} seconds"),
            ));
        }
        if concurrency == 0 || concurrency > Semaphore::MAX_PERMITS {
            return Err(DefinitionError::new("concurrency", "must be at least 1"));
        }
        Ok(Self {
            party,
            transport,
            timeout: Duration::from_secs_f64(timeout),
            permits: Semaphore::new(concurrency),
            backoff: Backoff {
                retries: retries.unwrap_or(backoff::RETRIES),
                // Tests do not wait as long.
                first_wait: if cfg!(test) {
                    Duration::from_millis(50)
                } else {
                    backoff::FIRST_WAIT
                },
            },
            pace: Pace::default(),
        })
    }

    /// Whether what failed is tried again.
    pub(crate) fn tries_again(&self) -> bool {
        self.backoff.retries > 0
    }

    /// A failure of its own.
    pub(crate) fn failed(
        &self,
        kind: FailureKind,
        retryable: bool,
        problem: impl std::fmt::Display,
    ) -> RolloutError {
        failed(kind, retryable, self.transport.who(), problem)
    }

    /// An answer that cannot be used and may be another the next time, told without secrets.
    pub(crate) fn malformed(&self, secrets: &Secrets, problem: &str) -> RolloutError {
        // Cut last: a part of a secret would not be found.
        let problem = cut(&secrets.redacted(problem), MOST_TOLD);
        self.failed(FailureKind::Malformed, true, problem)
    }

    /// Asks until `read`, which is told how many seconds an answer took, makes something of one.
    pub(crate) async fn ask<T>(
        &self,
        caller: &dyn Caller,
        request: &str,
        read: impl Fn(&Answer, f64) -> Result<T, RolloutError>,
    ) -> Result<T, RolloutError> {
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
            let attempt = pin!(self.attempt(request.to_owned()));
            let answer = match select(attempt, caller.abandoned()).await {
                Either::Left((answer, _)) => Some(answer),
                Either::Right(_) => None,
            };
            let elapsed = start.elapsed().as_secs_f64();
            let Some(answer) = answer else {
                self.count(&self.party.unsaid(elapsed), caller);
                return Err(interrupted());
            };
            drop(permit);
            let (error, asked, everybody) = match answer {
                Ok(answer) => match read(&answer, elapsed) {
                    Ok(found) => {
                        self.answered(start, caller);
                        return Ok(found);
                    }
                    Err(error) => (error, None, false),
                },
                Err(Unanswered::Failed(error)) => (error.after(self.party.unsaid(elapsed)), None, false),
                Err(Unanswered::Refused(error)) => (error, None, false),
                Err(Unanswered::NotNow { asked, error }) => (error, asked, true),
            };
            let RolloutError::Failed { retryable, usage, .. } = &error else {
                return Err(error);
            };
            let Some(wait) = self.backoff.wait(tries, asked, jitter()).filter(|_| *retryable) else {
                return Err(given_up(error, tries, asked));
            };
            self.count(usage, caller);
            self.tell_waiting(&error, wait, asked.is_some(), tries, caller);
            if everybody {
                self.pace.hold(wait);
            } else {
                sleep(wait, caller).await?;
            }
        }
        unreachable!("tries are counted until an answer or an error")
    }

    /// Counts what a try consumed that came to nothing.
    fn count(&self, usage: &Usage, caller: &dyn Caller) {
        if self.party == Party::Agent {
            caller.consumed(usage);
        }
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
            model: self.model().to_owned(),
            provider: match self.party {
                Party::Agent => "the agent",
                Party::Scorer(_) => "the scorer",
            }
            .to_owned(),
            host: self.transport.place(),
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
                model: self.model().to_owned(),
                host: self.transport.place(),
            });
        }
    }

    /// What notices call it.
    fn model(&self) -> &'static str {
        match self.party {
            Party::Agent => "external",
            Party::Scorer(_) => "scorer",
        }
    }

    /// One request, answered in time or not.
    async fn attempt(&self, request: String) -> Result<Answer, Unanswered> {
        let exchange = pin!(self.transport.exchange(request));
        match select(exchange, Delay::new(self.timeout)).await {
            Either::Left((answer, _)) => answer,
            Either::Right(_) => {
                let problem = format!(
                    "no answer within {} s; raise {} if it needs longer",
                    self.timeout.as_secs_f64(),
                    self.party.setting("timeout")
                );
                Err(Unanswered::Failed(self.failed(
                    FailureKind::Timeout,
                    true,
                    problem,
                )))
            }
        }
    }
}

/// The failure of the last try, with how often it was tried and why no longer.
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
