//! Exponential backoff with jitter: how long to wait before what failed is tried again.

use std::time::Duration;

/// The bound of the first wait unless a test asks for less: its mean is half of this.
pub const FIRST_WAIT: Duration = Duration::from_secs(1);

/// No wait of our own choosing is longer.
const LONGEST_WAIT: Duration = Duration::from_mins(1);

/// Who asks for more than this is not waited for.
pub const LONGEST_ASKED: Duration = Duration::from_mins(5);

/// How often a call of a model or of an external agent is repeated unless the study says otherwise.
pub const RETRIES: u32 = 5;

/// How a failed try is repeated.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Backoff {
    /// How often a call is repeated; 0 for never.
    pub retries: u32,
    /// The upper bound of the first wait; it doubles with every retry, up to a minute.
    pub first_wait: Duration,
}

impl Backoff {
    /// How long to wait before retry number `retry` (from 1), or `None` to give up.
    ///
    /// Exponential with full jitter: uniform between 0 and the doubled bound, which spreads out
    /// callers that failed together (Brooker, *Exponential backoff and jitter*, AWS 2015). What
    /// the other side asked for is waited in full, and up to a tenth more for the same reason.
    /// `jitter` is uniform in [0, 1).
    pub fn wait(&self, retry: u32, asked: Option<Duration>, jitter: f64) -> Option<Duration> {
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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const BACKOFF: Backoff = Backoff {
        retries: RETRIES,
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
    fn what_the_other_side_asks_for_is_waited_in_full_and_not_for_ever() {
        let asked = Duration::from_secs(20);
        assert_eq!(BACKOFF.wait(1, Some(asked), 0.0), Some(asked));
        assert_eq!(BACKOFF.wait(5, Some(asked), 1.0), Some(asked + asked / 10));
        assert_eq!(BACKOFF.wait(6, Some(asked), 0.0), None);
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
}
