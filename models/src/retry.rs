//! When to try again, how long to wait before, and when to stop trying at all.

use std::cell::RefCell;
use std::time::Duration;

use capo_core::llm::FailureKind;

use crate::failure::Failure;
use crate::time::Instant;

/// The mean wait before the first retry is half of this.
pub(crate) const FIRST_WAIT: Duration = Duration::from_secs(1);

/// No wait of our own choosing is longer.
const LONGEST_WAIT: Duration = Duration::from_mins(1);

/// A provider that asks for more than this is not waited for.
pub(crate) const LONGEST_ASKED: Duration = Duration::from_mins(5);

/// How a failed try is repeated.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Backoff {
    /// How often a call is repeated; 0 for never.
    pub(crate) retries: u32,
    /// The upper bound of the first wait; it doubles with every retry.
    pub(crate) first_wait: Duration,
}

impl Backoff {
    /// How long to wait before retry number `retry` (from 1), or `None` to give up.
    ///
    /// Exponential with full jitter: uniform between 0 and the doubled bound, which spreads out
    /// callers that failed together (Brooker, *Exponential backoff and jitter*, AWS 2015). What
    /// the provider asked for is waited in full, and up to a tenth more for the same reason.
    /// `jitter` is uniform in [0, 1).
    pub(crate) fn wait(&self, retry: u32, asked: Option<Duration>, jitter: f64) -> Option<Duration> {
        if retry > self.retries {
            return None;
        }
        if let Some(asked) = asked {
            return (asked <= LONGEST_ASKED).then(|| asked.mul_f64(1.0 + 0.1 * jitter));
        }
        let doublings = (retry.max(1) - 1).min(16);
        let bound = self.first_wait.saturating_mul(1 << doublings).min(LONGEST_WAIT);
        Some(bound.mul_f64(jitter))
    }
}

/// Gives up a model after many failed tries in a row, so that a study does not spend hours on a
/// provider that is down. A success resets the count. A refused key gives it up at once: it will
/// be refused every time. Once given up, it stays so, whatever calls under way still bring.
#[derive(Debug, Default)]
pub(crate) struct Breaker {
    state: RefCell<Tries>,
}

#[derive(Debug, Default)]
struct Tries {
    failed_in_a_row: u32,
    /// When the last counted try failed.
    counted_at: Option<Instant>,
    /// Why the model is given up, once it is.
    opened: Option<(FailureKind, String)>,
}

impl Tries {
    fn count(&mut self, kind: FailureKind, message: &str, abort_after: u32) {
        self.failed_in_a_row = self.failed_in_a_row.saturating_add(1);
        let count = self.failed_in_a_row;
        if count >= abort_after {
            self.opened.get_or_insert_with(|| {
                let message = format!("given up after {count} failed tries in a row, the last: {message}");
                (kind, message)
            });
        }
    }
}

impl Breaker {
    /// A try was answered.
    pub(crate) fn succeeded(&self) {
        self.state.borrow_mut().failed_in_a_row = 0;
    }

    /// A try that started at `started` failed; the model is given up after `abort_after` in a row.
    /// Tries under way together count once: a provider that stumbles for a moment under many calls
    /// has failed once. A request that does not fit the model's context says nothing about the
    /// provider; one that came too fast is a matter for the limiter. Neither counts.
    pub(crate) fn failed(&self, failure: &Failure, message: &str, started: Instant, abort_after: u32) {
        if matches!(failure.kind, FailureKind::ContextLength | FailureKind::RateLimit) {
            return;
        }
        let mut state = self.state.borrow_mut();
        if failure.key_refused {
            state
                .opened
                .get_or_insert_with(|| (failure.kind, format!("given up: {message}")));
        }
        if state.counted_at.is_none_or(|counted_at| counted_at <= started) {
            state.count(failure.kind, message, abort_after);
            state.counted_at = Some(Instant::now());
        }
    }

    /// A call gave up on being slowed down. That counts like one failed try.
    pub(crate) fn gave_up(&self, message: &str, abort_after: u32) {
        self.state
            .borrow_mut()
            .count(FailureKind::RateLimit, message, abort_after);
    }

    /// Why the model is given up, if it is: the kind of the failure that did it and a message that
    /// names it.
    pub(crate) fn open(&self) -> Option<(FailureKind, String)> {
        self.state.borrow().opened.clone()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const BACKOFF: Backoff = Backoff {
        retries: 5,
        first_wait: FIRST_WAIT,
    };

    #[test]
    fn zero_retries_means_none() {
        let never = Backoff {
            retries: 0,
            ..BACKOFF
        };
        assert_eq!(never.wait(1, None, 0.5), None);
        assert_eq!(never.wait(1, Some(Duration::ZERO), 0.5), None);
    }

    #[test]
    fn what_the_provider_asks_for_is_waited_in_full() {
        let asked = Duration::from_secs(20);
        assert_eq!(BACKOFF.wait(1, Some(asked), 0.0), Some(asked));
        assert_eq!(BACKOFF.wait(1, Some(Duration::from_hours(1)), 0.0), None);
    }

    proptest! {
        #[test]
        fn waits_double_and_stay_below_their_bound(retry in 1_u32..40, jitter in 0.0..1.0) {
            let backoff = Backoff { retries: 40, ..BACKOFF };
            let wait = backoff.wait(retry, None, jitter).unwrap().as_secs_f64();
            let bound = f64::from(2_u32.pow((retry - 1).min(6))).min(60.0);
            prop_assert!((wait - bound * jitter).abs() < 1e-6);
        }
    }

    fn of(kind: FailureKind) -> Failure {
        Failure {
            kind,
            ..Failure::malformed("")
        }
    }

    fn refused_key() -> Failure {
        Failure {
            key_refused: true,
            ..of(FailureKind::Authentication)
        }
    }

    #[test]
    fn failures_in_a_row_open_the_breaker_and_a_success_resets_it() {
        let breaker = Breaker::default();
        breaker.failed(&of(FailureKind::Provider), "HTTP 500", Instant::now(), 3);
        breaker.failed(&of(FailureKind::Timeout), "no answer", Instant::now(), 3);
        assert_eq!(breaker.open(), None);
        breaker.succeeded();
        for _ in 0..2 {
            breaker.failed(&of(FailureKind::Timeout), "no answer", Instant::now(), 3);
        }
        assert_eq!(breaker.open(), None);
        breaker.failed(&of(FailureKind::Provider), "HTTP 500", Instant::now(), 3);
        let (kind, message) = breaker.open().unwrap();
        assert_eq!(kind, FailureKind::Provider);
        assert_eq!(
            message,
            "given up after 3 failed tries in a row, the last: HTTP 500"
        );
    }

    #[test]
    fn once_given_up_it_stays_so_for_the_same_reason() {
        let down = Breaker::default();
        down.failed(&of(FailureKind::Provider), "HTTP 500", Instant::now(), 1);
        let refused = Breaker::default();
        refused.failed(&refused_key(), "the key was refused", Instant::now(), 50);
        for breaker in [down, refused] {
            let given_up = breaker.open().unwrap();
            // Calls that were under way come back.
            breaker.succeeded();
            assert_eq!(breaker.open().as_ref(), Some(&given_up));
            breaker.failed(&of(FailureKind::Timeout), "no answer", Instant::now(), 1);
            assert_eq!(breaker.open(), Some(given_up));
        }
    }

    #[test]
    fn slow_downs_and_long_requests_do_not_count_but_a_call_that_gives_up_does() {
        let breaker = Breaker::default();
        for _ in 0..10 {
            breaker.failed(&of(FailureKind::RateLimit), "429", Instant::now(), 1);
            breaker.failed(&of(FailureKind::ContextLength), "too long", Instant::now(), 1);
        }
        assert_eq!(breaker.open(), None);
        breaker.gave_up("429", 1);
        assert_eq!(breaker.open().unwrap().0, FailureKind::RateLimit);
    }

    #[test]
    fn a_refused_key_opens_it_at_once_but_what_is_not_allowed_only_counts() {
        let breaker = Breaker::default();
        breaker.failed(
            &of(FailureKind::Authentication),
            "not allowed",
            Instant::now(),
            50,
        );
        assert_eq!(breaker.open(), None);
        breaker.failed(&refused_key(), "the key was refused", Instant::now(), 50);
        let (kind, message) = breaker.open().unwrap();
        assert_eq!(kind, FailureKind::Authentication);
        assert_eq!(message, "given up: the key was refused");
    }

    #[test]
    fn tries_under_way_together_count_once() {
        let breaker = Breaker::default();
        let started = Instant::now();
        for _ in 0..10 {
            breaker.failed(&of(FailureKind::Provider), "HTTP 500", started, 2);
        }
        assert_eq!(breaker.open(), None);
        breaker.failed(&of(FailureKind::Provider), "HTTP 500", Instant::now(), 2);
        assert!(breaker.open().is_some());
    }
}
