//! Failures injected on purpose, repeatable under a seed.

use std::fmt;
use std::str::FromStr;

use axum::http::StatusCode;
use capo_core::random::Streams;

/// One way to fail a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// Answers with this status (400 to 599) and an error body; 429 carries `Retry-After`.
    Status(StatusCode),
    /// Holds the connection open and does not answer.
    Timeout,
    /// Answers 200 with a completion whose JSON breaks off in the middle.
    Malformed,
    /// Answers 200 with a completion of neither text nor tool calls.
    Empty,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Status(status) => write!(f, "{}", status.as_u16()),
            Self::Timeout => f.write_str("timeout"),
            Self::Malformed => f.write_str("malformed"),
            Self::Empty => f.write_str("empty"),
        }
    }
}

/// Why a list of faults was not understood.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum FaultError {
    /// A part is not `FAULT=PROBABILITY`.
    #[error("{0:?} is not FAULT=PROBABILITY, such as 429=0.05")]
    Shape(String),
    /// The name before `=` is no fault.
    #[error("unknown fault {0:?}; use a status from 400 to 599, timeout, malformed or empty")]
    Name(String),
    /// The number after `=` is no probability.
    #[error("the probability of {name} is {value:?}; it must lie in 0 to 1")]
    Probability {
        /// Name of the fault, as it was given.
        name: String,
        /// The value, as it was given.
        value: String,
    },
    /// The probabilities leave no room.
    #[error("the probabilities add up to {0}; together they must not exceed 1")]
    Sum(f64),
}

/// How often each fault befalls a request, written `429=0.05,timeout=0.01`.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct FaultRates(Vec<(Fault, f64)>);

impl FromStr for FaultRates {
    type Err = FaultError;

    fn from_str(text: &str) -> Result<Self, FaultError> {
        let rates = text
            .split(',')
            .map(str::trim)
            .filter(|part| !part.is_empty())
            .map(|part| {
                let (name, value) = part
                    .split_once('=')
                    .ok_or_else(|| FaultError::Shape(part.into()))?;
                let fault = match name.trim() {
                    "timeout" => Fault::Timeout,
                    "malformed" => Fault::Malformed,
                    "empty" => Fault::Empty,
                    status => status
                        .parse()
                        .ok()
                        .filter(|code| (400..600).contains(code))
                        .and_then(|code| StatusCode::from_u16(code).ok())
                        .map(Fault::Status)
                        .ok_or_else(|| FaultError::Name(status.into()))?,
                };
                let rate = value
                    .trim()
                    .parse()
                    .ok()
                    .filter(|rate| (0.0..=1.0).contains(rate));
                let rate = rate.ok_or_else(|| FaultError::Probability {
                    name: fault.to_string(),
                    value: value.trim().into(),
                })?;
                Ok((fault, rate))
            })
            .collect::<Result<Vec<_>, FaultError>>()?;
        let sum: f64 = rates.iter().map(|&(_, rate)| rate).sum();
        // Sums such as ten times 0.1 may pass 1 by rounding alone.
        if sum > 1.0 + 1e-9 {
            Err(FaultError::Sum(sum))
        } else {
            Ok(Self(rates))
        }
    }
}

impl FaultRates {
    /// The fault, if any, of the `attempt`-th request with this body (counted from 0). It depends
    /// on nothing else, so neither arrival order nor concurrency changes a run.
    pub(super) fn draw(&self, seed: u64, body: &str, attempt: u64) -> Option<Fault> {
        // A number of 63 bits, brought to [0, 1).
        let number = Streams::new(seed).number(&format!("fault {body}"), 0, attempt);
        let mut rest = number as f64 / (1u64 << 63) as f64;
        self.0.iter().find_map(|&(fault, rate)| {
            let hit = rest < rate;
            rest -= rate;
            hit.then_some(fault)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_read_in_the_order_written() {
        let rates: FaultRates = "429=0.05, 500=0.02,timeout=0.01,malformed=0.01,empty=1e-2"
            .parse()
            .unwrap();
        let names: Vec<String> = rates
            .0
            .iter()
            .map(|(fault, rate)| format!("{fault} {rate}"))
            .collect();
        assert_eq!(
            names,
            [
                "429 0.05",
                "500 0.02",
                "timeout 0.01",
                "malformed 0.01",
                "empty 0.01"
            ]
        );
        assert_eq!("".parse(), Ok(FaultRates::default()));
    }

    #[test]
    fn rates_that_make_no_sense_are_refused_by_name() {
        for (text, part) in [
            ("429", "\"429\" is not"),
            ("200=0.1", "unknown fault \"200\""),
            ("slow=0.1", "unknown fault \"slow\""),
            ("500=1.5", "probability of 500"),
            ("500=NaN", "probability of 500"),
            ("500=0.6,empty=0.6", "add up to 1.2"),
        ] {
            let message = text.parse::<FaultRates>().unwrap_err().to_string();
            assert!(message.contains(part), "{text}: {message}");
        }
    }

    #[test]
    fn draws_follow_the_rates_and_repeat_under_the_seed() {
        let rates: FaultRates = "429=0.2,empty=0.1".parse().unwrap();
        let count = |seed: u64, fault| {
            (0..20_000)
                .filter(|&attempt| rates.draw(seed, "body", attempt) == Some(fault))
                .count()
        };
        let limited = count(1, Fault::Status(StatusCode::TOO_MANY_REQUESTS));
        // Five standard deviations of a binomial with n = 20,000.
        assert!(
            (3717..=4283).contains(&limited),
            "{limited} of 20000 at a rate of 0.2"
        );
        assert!((1787..=2213).contains(&count(1, Fault::Empty)));
        let draws = |seed| (0..100).map(move |attempt| rates.draw(seed, "body", attempt));
        assert!(draws.clone()(3).eq(draws.clone()(3)));
        assert!(!draws.clone()(3).eq(draws(4)));
    }
}
