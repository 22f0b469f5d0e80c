//! When to try an agent again that failed, and waiting for one that asks to slow down.

use std::cell::Cell;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::pin::pin;
use std::time::Duration;

use capo_core::llm::LlmError;
use capo_core::workload::Caller;
use futures::future::{Either, select};
use futures_timer::Delay;
use web_time::Instant;

/// How often a request is tried again unless the study says otherwise, as for models.
pub(super) const RETRIES: u32 = 5;

/// The upper bound of the first wait; it doubles with every further one. Tests do not wait as long.
const FIRST: Duration = Duration::from_millis(if cfg!(test) { 50 } else { 1000 });

/// No wait of our own choosing is longer.
const LONGEST: Duration = Duration::from_mins(1);

/// An agent that asks for more than this is not waited for.
pub(super) const LONGEST_ASKED: Duration = Duration::from_mins(5);

/// How often one that waits looks whether the budget lets the run go on.
const GLANCE: Duration = Duration::from_millis(500);

/// How often a failed request is repeated, and until when no request may be sent at all: what the
/// agent tells one rollout it tells all.
#[derive(Debug, Default)]
pub(super) struct Pace {
    retries: u32,
    until: Cell<Option<Instant>>,
}

impl Pace {
    pub(super) fn new(retries: u32) -> Self {
        Self {
            retries,
            until: Cell::default(),
        }
    }

    /// How long to wait before retry number `retry` (from 1) of one rollout; `None` to give up.
    ///
    /// Exponential with full jitter, uniform between 0 and the doubled bound, so that rollouts which
    /// failed together come back apart. What the agent asks for is waited in full, and up to a tenth
    /// more. `jitter` is uniform in [0, 1).
    pub(super) fn waiting(&self, retry: u32, asked: Option<Duration>, jitter: f64) -> Option<Duration> {
        if retry > self.retries {
            return None;
        }
        if let Some(asked) = asked {
            return (asked <= LONGEST_ASKED).then(|| asked.mul_f64(1.0 + 0.1 * jitter));
        }
        let doublings = (retry.max(1) - 1).min(16);
        let bound = FIRST.saturating_mul(1 << doublings).min(LONGEST);
        Some(bound.mul_f64(jitter))
    }

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
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn waits_as_asked_and_not_for_ever() {
        let pace = Pace::new(5);
        let asked = Duration::from_secs(20);
        assert_eq!(pace.waiting(1, Some(asked), 0.0), Some(asked));
        assert_eq!(pace.waiting(5, Some(asked), 1.0), Some(asked + asked / 10));
        assert_eq!(pace.waiting(6, Some(asked), 0.0), None);
        assert_eq!(pace.waiting(1, Some(Duration::from_hours(1)), 0.0), None);
        assert_eq!(Pace::new(0).waiting(1, None, 0.5), None);
        assert_eq!(Pace::new(0).waiting(1, Some(Duration::ZERO), 0.5), None);
    }

    proptest! {
        #[test]
        fn waits_double_and_stay_below_their_bound(retry in 1_u32..40, jitter in 0.0..1.0) {
            let wait = Pace::new(40).waiting(retry, None, jitter).unwrap().as_secs_f64();
            let bound = (FIRST.as_secs_f64() * f64::from(2_u32.pow((retry - 1).min(16)))).min(60.0);
            prop_assert!((wait - bound * jitter).abs() < 1e-6);
        }
    }

    #[test]
    fn jitter_differs_and_lies_below_one() {
        let drawn: Vec<f64> = (0..100).map(|_| jitter()).collect();
        assert!(drawn.iter().all(|fraction| (0.0..1.0).contains(fraction)));
        assert!(drawn.iter().any(|fraction| *fraction > 0.5) && drawn.iter().any(|fraction| *fraction < 0.5));
    }
}
