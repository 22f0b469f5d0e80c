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

/// Counts failed tries in a row, so that a study does not spend hours on a provider that is down:
/// each client gives up once there are as many as it accepts. A success resets the count. A refused
/// key gives the model up at once and for all clients: it will be refused every time.
#[derive(Debug, Default)]
pub(crate) struct Breaker {
    state: RefCell<Tries>,
}

#[derive(Debug, Default)]
struct Tries {
    failed_in_a_row: u32,
    /// When the last counted try failed.
    counted_at: Option<Instant>,
    /// The last counted failure.
    last: Option<(FailureKind, String)>,
    /// The failure that told that the key is refused.
    key_refused: Option<(FailureKind, String)>,
}

impl Tries {
    fn count(&mut self, kind: FailureKind, message: &str) {
        self.failed_in_a_row = self.failed_in_a_row.saturating_add(1);
        self.last = Some((kind, message.to_owned()));
    }
}

impl Breaker {
    /// A try was answered.
    pub(crate) fn succeeded(&self) {
        self.state.borrow_mut().failed_in_a_row = 0;
    }

    /// A try that started at `started` failed. Tries under way together count once: a provider that
    /// stumbles for a moment under many calls has failed once. A request that does not fit the
    /// model's context says nothing about the provider; one that came too fast is a matter for the
    /// limiter. Neither counts.
    pub(crate) fn failed(&self, failure: &Failure, message: &str, started: Instant) {
        if matches!(failure.kind, FailureKind::ContextLength | FailureKind::RateLimit) {
            return;
        }
        let mut state = self.state.borrow_mut();
        if failure.key_refused {
            state
                .key_refused
                .get_or_insert_with(|| (failure.kind, message.to_owned()));
        }
        if state.counted_at.is_none_or(|counted_at| counted_at <= started) {
            state.count(failure.kind, message);
            state.counted_at = Some(Instant::now());
        }
    }

    /// A call gave up on being slowed down. That counts like one failed try.
    pub(crate) fn gave_up(&self, message: &str) {
        self.state.borrow_mut().count(FailureKind::RateLimit, message);
    }

    /// Why a client that gives up after `abort_after` failed tries in a row has nothing more to ask,
    /// if so: the kind of the last failure and a message that names it.
    pub(crate) fn given_up(&self, abort_after: u32) -> Option<(FailureKind, String)> {
        let state = self.state.borrow();
        if let Some((kind, message)) = &state.key_refused {
            return Some((*kind, format!("given up: {message}")));
        }
        let count = state.failed_in_a_row;
        let (kind, message) = state.last.as_ref().filter(|_| count >= abort_after)?;
        Some((
            *kind,
            format!("given up after {count} failed tries in a row, the last: {message}"),
        ))
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
    fn failures_in_a_row_give_it_up_and_a_success_resets_them() {
        let breaker = Breaker::default();
        breaker.failed(&of(FailureKind::Provider), "HTTP 500", Instant::now());
        breaker.failed(&of(FailureKind::Timeout), "no answer", Instant::now());
        assert_eq!(breaker.given_up(3), None);
        breaker.succeeded();
        for _ in 0..2 {
            breaker.failed(&of(FailureKind::Timeout), "no answer", Instant::now());
        }
        assert_eq!(breaker.given_up(3), None);
        breaker.failed(&of(FailureKind::Provider), "HTTP 500", Instant::now());
        let (kind, message) = breaker.given_up(3).unwrap();
        assert_eq!(kind, FailureKind::Provider);
        assert_eq!(
            message,
            "given up after 3 failed tries in a row, the last: HTTP 500"
        );
    }

    #[test]
    fn each_client_gives_up_after_its_own_number_of_failures() {
        let breaker = Breaker::default();
        breaker.failed(&of(FailureKind::Provider), "HTTP 500", Instant::now());
        assert!(breaker.given_up(1).is_some());
        assert_eq!(breaker.given_up(50), None);
        // The patient one got through: the provider is up again for everybody.
        breaker.succeeded();
        assert_eq!(breaker.given_up(1), None);
    }

    #[test]
    fn a_refused_key_stays_refused() {
        let breaker = Breaker::default();
        breaker.failed(&refused_key(), "the key was refused", Instant::now());
        let given_up = breaker.given_up(50).unwrap();
        // Calls that were under way come back.
        breaker.succeeded();
        assert_eq!(breaker.given_up(50).as_ref(), Some(&given_up));
        breaker.failed(&of(FailureKind::Timeout), "no answer", Instant::now());
        assert_eq!(breaker.given_up(1), Some(given_up));
    }

    #[test]
    fn slow_downs_and_long_requests_do_not_count_but_a_call_that_gives_up_does() {
        let breaker = Breaker::default();
        for _ in 0..10 {
            breaker.failed(&of(FailureKind::RateLimit), "429", Instant::now());
            breaker.failed(&of(FailureKind::ContextLength), "too long", Instant::now());
        }
        assert_eq!(breaker.given_up(1), None);
        breaker.gave_up("429");
        assert_eq!(breaker.given_up(1).unwrap().0, FailureKind::RateLimit);
    }

    #[test]
    fn a_refused_key_gives_it_up_at_once_but_what_is_not_allowed_only_counts() {
        let breaker = Breaker::default();
        breaker.failed(&of(FailureKind::Authentication), "not allowed", Instant::now());
        assert_eq!(breaker.given_up(50), None);
        breaker.failed(&refused_key(), "the key was refused", Instant::now());
        let (kind, message) = breaker.given_up(50).unwrap();
        assert_eq!(kind, FailureKind::Authentication);
        assert_eq!(message, "given up: the key was refused");
    }

    #[test]
    fn tries_under_way_together_count_once() {
        let breaker = Breaker::default();
        let started = Instant::now();
        for _ in 0..10 {
            breaker.failed(&of(FailureKind::Provider), "HTTP 500", started);
        }
        assert_eq!(breaker.given_up(2), None);
        breaker.failed(&of(FailureKind::Provider), "HTTP 500", Instant::now());
        assert!(breaker.given_up(2).is_some());
    }
}
