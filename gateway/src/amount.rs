//! Money in whole numbers, so that sums are exact and every store agrees on them.

use capo_models::prices::{Cached, Price};
use serde::{Deserialize, Serialize};

/// An amount in nano-dollars (US dollars × 10⁻⁹), from 0 to [`NanoUsd::MAX`]; arithmetic stays in this range.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(from = "u64")]
pub struct NanoUsd(u64);

impl NanoUsd {
    /// No money.
    pub const ZERO: Self = Self(0);
    /// 2⁵³ − 1, about nine million dollars: up to there JavaScript, and so Cloudflare's storage, represents every whole
    /// number.
    pub const MAX: Self = Self((1 << 53) - 1);

    /// The number of nano-dollars.
    pub fn get(self) -> u64 {
        self.0
    }

    /// `usd` dollars, rounded to the nearest nano-dollar; `None` for what is negative or no number.
    pub fn from_usd(usd: f64) -> Option<Self> {
        (usd >= 0.0).then(|| Self::from((usd * 1e9).round() as u64))
    }

    /// Dollars, for screens only.
    pub fn usd(self) -> f64 {
        self.0 as f64 / 1e9
    }

    /// The sum.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self::from(self.0.saturating_add(other.0))
    }

    /// The difference, 0 at least.
    #[must_use]
    pub fn minus(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }
}

impl From<u64> for NanoUsd {
    fn from(nano_usd: u64) -> Self {
        Self(nano_usd.min(Self::MAX.0))
    }
}

/// What a token costs, in whole pico-dollars (10⁻¹²): $1 per million tokens is 1,000,000.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Rates {
    input: u64,
    cached_input: u64,
    cache_write: u64,
    output: u64,
}

impl Rates {
    /// The rates of a price, to six decimals of a dollar per million tokens; `None` if it is negative, not finite, or
    /// beyond a million dollars per million tokens.
    pub(crate) fn new(price: &Price) -> Option<Self> {
        let rate = |usd: f64| (0.0..=1e6).contains(&usd).then(|| (usd * 1e6).round() as u64);
        Some(Self {
            input: rate(price.input)?,
            cached_input: rate(price.cached_input.unwrap_or(price.input))?,
            cache_write: rate(price.cache_write.unwrap_or(price.input))?,
            output: rate(price.output)?,
        })
    }

    /// What tokens cost, rounded up to a nano-dollar. `cached` ones are part of `input`.
    pub(crate) fn cost(&self, input: u64, cached: Cached, output: u64) -> NanoUsd {
        let read = cached.read.min(input);
        let written = cached.written.min(input - read);
        let plain = (input - read - written, self.input);
        let cached = [(read, self.cached_input), (written, self.cache_write)];
        sum(&[plain, cached[0], cached[1], (output, self.output)])
    }

    /// The most that so many tokens can cost, whatever the provider's cache does; rounded up to a nano-dollar.
    pub(crate) fn upper_bound(&self, input: u64, output: u64) -> NanoUsd {
        let dearest = self.input.max(self.cached_input).max(self.cache_write);
        sum(&[(input, dearest), (output, self.output)])
    }
}

/// The sum of tokens times pico-dollars.
fn sum(terms: &[(u64, u64)]) -> NanoUsd {
    let product = |&(tokens, rate): &(u64, u64)| u128::from(tokens) * u128::from(rate);
    let nano_usd = terms.iter().map(product).sum::<u128>().div_ceil(1000);
    NanoUsd::from(u64::try_from(nano_usd).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cached_tokens_have_their_own_rates() {
        let price = r#"{"input":0.25,"output":2.0,"cached_input":0.025,"cache_write":0.3}"#;
        let rates = Rates::new(&serde_json::from_str(price).unwrap()).unwrap();
        let cost = |input, read, written, output| rates.cost(input, Cached { read, written }, output).get();
        assert_eq!(
            cost(1000, 400, 100, 50),
            500 * 250 + 400 * 25 + 100 * 300 + 50 * 2000
        );
        assert_eq!(cost(10, 99, 99, 0), 250, "no more than was read");
        assert_eq!(rates.upper_bound(1000, 50).get(), 1000 * 300 + 50 * 2000);
    }

    #[test]
    fn amounts_are_rounded_up_and_stay_in_range() {
        let rates = |input| Rates::new(&Price { input, ..Price::FREE });
        assert_eq!(rates(0.0001).unwrap().upper_bound(1, 0).get(), 1);
        assert_eq!(rates(1e6).unwrap().upper_bound(u64::MAX, 0), NanoUsd::MAX);
        assert_eq!(NanoUsd::MAX.plus(NanoUsd::MAX), NanoUsd::MAX);
        for wrong in [-1.0, f64::NAN, f64::INFINITY] {
            assert!(rates(wrong).is_none());
        }
        assert_eq!(
            [0.25, -0.1, f64::NAN].map(NanoUsd::from_usd),
            [Some(NanoUsd(250_000_000)), None, None]
        );
    }
}
