//! The circuit breaker: when to stop trying a provider at all.

use std::cell::RefCell;

use capo_core::llm::FailureKind;

use crate::failure::Failure;
use crate::time::Instant;

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
    use super::*;

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
