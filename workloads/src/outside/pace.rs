//! Waiting: for somebody who asks to slow down, and between tries, while the run goes on.

use std::cell::Cell;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::pin::pin;
use std::time::Duration;

use capo_core::llm::LlmError;
use capo_core::workload::Caller;
use futures::future::{Either, select};
use futures_timer::Delay;
use web_time::Instant;

/// How often one that waits looks whether the budget lets the run go on.
const GLANCE: Duration = Duration::from_millis(500);

/// Until when no request may be sent at all: what one rollout is told all are.
#[derive(Debug, Default)]
pub(super) struct Pace {
    until: Cell<Option<Instant>>,
    /// When somebody was last told of a wait, until a try is answered.
    pub(super) told: Cell<Option<Instant>>,
}

impl Pace {
    /// Lets nobody begin for a while.
    pub(super) fn hold(&self, wait: Duration) {
        let until = Instant::now() + wait;
        self.until.set(self.until.get().max(Some(until)));
    }

    /// Waits until requests may be sent, or until the run wants no more of them.
    pub(super) async fn wait(&self, caller: &dyn Caller) -> Result<(), LlmError> {
        while let Some(until) = self.until.get() {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            sleep(left.min(GLANCE), caller).await?;
        }
        caller.may_go_on()
    }
}

/// Waits, or until the run wants no more.
pub(super) async fn sleep(wait: Duration, caller: &dyn Caller) -> Result<(), LlmError> {
    let until = Instant::now() + wait;
    loop {
        caller.may_go_on()?;
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Ok(());
        }
        unless_interrupted(caller, Delay::new(left.min(GLANCE))).await;
    }
}

/// What comes of `waiting`, or nothing once the run was interrupted.
pub(super) async fn unless_interrupted<T>(
    caller: &dyn Caller,
    waiting: impl Future<Output = T>,
) -> Option<T> {
    match select(pin!(waiting), caller.interrupted()).await {
        Either::Left((output, _)) => Some(output),
        Either::Right(_) => None,
    }
}

/// A fresh random number. It only spreads waiting over time and names processes: no answer, score or
/// file depends on it.
pub(super) fn random() -> u64 {
    RandomState::new().build_hasher().finish()
}

/// A fresh random fraction in [0, 1).
pub(super) fn jitter() -> f64 {
    (random() >> 11) as f64 / (1_u64 << 53) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jitter_differs_and_lies_below_one() {
        let drawn: Vec<f64> = (0..100).map(|_| jitter()).collect();
        assert!(drawn.iter().all(|fraction| (0.0..1.0).contains(fraction)));
        assert!(drawn.iter().any(|fraction| *fraction > 0.5) && drawn.iter().any(|fraction| *fraction < 0.5));
    }
}
