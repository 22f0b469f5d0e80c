//! Consumption per rollout, mean and standard error, to forecast what more of them take.

use crate::study::usage::Usage;

/// Mean and standard error of numbers that come one by one (Welford 1962). One that is unknown, told as NaN, leaves both
/// unknown.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Spread {
    count: u64,
    mean: f64,
    squares: f64,
}

impl Spread {
    fn add(&mut self, value: f64) {
        self.count += 1;
        let before = value - self.mean;
        self.mean += before / self.count as f64;
        self.squares += before * (value - self.mean);
    }

    /// Their mean; NaN where it is unknown.
    pub fn mean(&self) -> f64 {
        self.mean
    }

    /// s/√n with ddof = 1; NaN where it is unknown, as of a single number.
    pub fn standard_error(&self) -> f64 {
        let count = self.count as f64;
        (self.squares / (count - 1.0) / count).sqrt()
    }
}

/// What the rollouts of a workload took, in earlier runs where they were taken over. Failed tries are no part of it.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct PerRollout {
    /// All of them together, by role.
    pub usage: Usage,
    /// How many there are.
    pub rollouts: u64,
    /// Model calls of each.
    pub calls: Spread,
    /// Tokens of each, read and written.
    pub tokens: Spread,
    /// US dollars of each.
    pub usd: Spread,
    /// Seconds of each, summed over its calls.
    pub seconds: Spread,
}

impl PerRollout {
    pub(super) fn add(&mut self, usage: &Usage) {
        let total = usage.total();
        self.usage.merge(usage);
        self.rollouts += 1;
        self.calls.add(total.calls as f64);
        self.tokens.add(total.tokens() as f64);
        self.usd.add(total.usd.unwrap_or(f64::NAN));
        self.seconds.add(total.seconds);
    }
}
