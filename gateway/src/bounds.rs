//! Rate limits as token buckets over a clock that the adapter reads, and how much at a time.

use std::collections::HashMap;
use std::num::NonZeroU32;
use std::time::Duration;

/// Requests a second of each caller, unless an operator says otherwise; 0 for no bound.
pub const DEFAULT_RATE: u32 = 50;

/// Calls to models of one member under way at a time.
pub const CALLS_OF_MEMBER: usize = 256;

/// For how many seconds' worth one may ask at once.
const BURST: Duration = Duration::from_secs(4);

/// How many callers' worth may come from one address: a team often shares one.
const CALLERS_OF_ADDRESS: u32 = 4;

/// How many callers' worth of calls to models may: a search in a browser makes many at a time.
const CALLS_OF_ADDRESS: u32 = 16;

/// Requests after which those who have not asked for a while are forgotten.
const SWEEP: u32 = 4096;

/// How often callers and addresses may ask, and how often they have lately.
#[derive(Debug)]
pub struct Rates {
    /// By the hash of what they sign in with, else by the network that they ask from.
    callers: Buckets,
    /// By network.
    addresses: Buckets,
    /// Of calls to models, by network.
    calls: Buckets,
    counted: u32,
}

impl Rates {
    /// With so many requests a second of each caller.
    pub fn new(rate: NonZeroU32) -> Self {
        Self {
            callers: Buckets::new(rate, 1),
            addresses: Buckets::new(rate, CALLERS_OF_ADDRESS),
            calls: Buckets::new(rate, CALLS_OF_ADDRESS),
            counted: 0,
        }
    }

    /// Counts a request of a caller, or without one a call to a model, `now` after a moment that stays the same. Whoever
    /// makes credentials up is counted by address.
    ///
    /// # Errors
    /// In how many seconds, 1 at least, it may come again.
    pub fn count(&mut self, network: &str, caller: Option<&str>, now: Duration) -> Result<(), u64> {
        self.counted += 1;
        if self.counted == SWEEP {
            self.counted = 0;
            for buckets in [&mut self.callers, &mut self.addresses, &mut self.calls] {
                buckets.full_at.retain(|_, full_at| *full_at > now);
            }
        }
        let counted = match caller {
            // What is refused to one caller is not counted to those who share the address.
            Some(caller) => self
                .callers
                .take(caller, now)
                .and_then(|()| self.addresses.take(network, now)),
            None => self.calls.take(network, now),
        };
        // Rounded up, and nobody is refused who need not wait.
        counted.map_err(|wait| wait.as_secs() + u64::from(wait.subsec_nanos() > 0))
    }
}

/// Buckets of one size.
#[derive(Debug)]
struct Buckets {
    /// After which there is one request more in a bucket.
    interval: Duration,
    /// When each is full that is not.
    full_at: HashMap<String, Duration>,
}

impl Buckets {
    /// For so many times the rate.
    fn new(rate: NonZeroU32, times: u32) -> Self {
        Self {
            interval: Duration::from_secs(1) / rate.get().saturating_mul(times),
            full_at: HashMap::new(),
        }
    }

    /// Takes a request out of a bucket; where there is none, says how long it takes until there is.
    fn take(&mut self, name: &str, now: Duration) -> Result<(), Duration> {
        let latest = now + BURST;
        let known = self.full_at.get(name).copied().unwrap_or(now);
        // Where the clock was set back, a bucket is empty, and no emptier than that.
        let before = known.clamp(now, latest);
        let after = before + self.interval;
        let wait = after.saturating_sub(latest);
        let (full_at, taken) = if wait.is_zero() {
            (after, Ok(()))
        } else {
            (before, Err(wait))
        };
        self.full_at.insert(name.to_owned(), full_at);
        taken
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: Duration = Duration::from_hours(1);

    fn rates(rate: u32) -> Rates {
        Rates::new(NonZeroU32::new(rate).unwrap())
    }

    /// How many requests are answered at once, and after what the next may come.
    fn at_once<T>(mut count: impl FnMut() -> Result<(), T>) -> (u32, T) {
        let mut answered = 0;
        loop {
            match count() {
                Ok(()) => answered += 1,
                Err(wait) => return (answered, wait),
            }
        }
    }

    #[test]
    fn after_a_burst_there_is_what_the_rate_gives() {
        for rate in [1, 3, 50, 999] {
            let mut rates = rates(rate);
            let mut ada = |now| at_once(|| rates.count("net", Some("ada"), now));
            assert_eq!(ada(HOUR), (4 * rate, 1));
            assert_eq!(ada(HOUR), (0, 1), "what is refused is not counted");
            assert_eq!(ada(HOUR + Duration::from_millis(1_001)), (rate, 1));
            assert_eq!(ada(2 * HOUR), (4 * rate, 1), "no pause gives more");
        }
    }

    #[test]
    fn a_clock_that_is_set_back_leaves_buckets_empty_and_lets_them_fill() {
        let mut buckets = Buckets::new(NonZeroU32::new(2).unwrap(), 1);
        let mut ada = |now| at_once(|| buckets.take("ada", now));
        let half = Duration::from_millis(500);
        assert_eq!(ada(HOUR), (8, half));
        assert_eq!(ada(Duration::ZERO), (0, half));
        assert_eq!(ada(half / 2), (0, half / 2));
        assert_eq!(ada(2 * half), (2, half));
    }

    #[test]
    fn an_address_has_four_callers_worth_and_calls_to_models_are_counted_apart() {
        let mut rates = rates(1);
        let mut count = |caller: Option<&str>| rates.count("net", caller, HOUR);
        assert_eq!(at_once(|| count(Some("ada"))).0, 4);
        assert_eq!(at_once(|| count(Some("bea"))).0, 4);
        let mut guesses = (0_u32..).map(|guess| guess.to_string());
        assert_eq!(at_once(|| count(guesses.next().as_deref())), (8, 1));
        assert_eq!(at_once(|| count(None)), (64, 1));
        assert_eq!(rates.count("other", Some("cy"), HOUR), Ok(()));
    }

    #[test]
    fn who_has_not_asked_for_a_while_is_forgotten() {
        let mut rates = rates(1);
        for request in 1..SWEEP {
            let from = request.to_string();
            assert_eq!(rates.count(&from, Some(&from), HOUR), Ok(()));
        }
        assert_eq!(rates.count("net", Some("ada"), HOUR + BURST), Ok(()));
        assert_eq!(
            (rates.callers.full_at.len(), rates.addresses.full_at.len()),
            (1, 1)
        );
    }
}
