//! Usage: what work consumed, by role.

use std::ops::AddAssign;

use indexmap::IndexMap;
use serde::{Deserialize, Serialize};

use crate::llm::{CallUsage, Role};

/// The most dollars or seconds that one effect is believed to have taken.
const LARGEST: f64 = 1e9;

/// What the calls of one role consumed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct RoleUsage {
    /// Model calls made, failed ones included.
    pub calls: u64,
    /// Tokens read.
    pub input_tokens: u64,
    /// Tokens written.
    pub output_tokens: u64,
    /// US dollars; `None` as soon as the price of one call is unknown.
    #[serde(deserialize_with = "Option::deserialize")]
    pub usd: Option<f64>,
    /// Seconds the answers took, summed over calls (calls overlap, so this is not elapsed time).
    pub seconds: f64,
}

impl RoleUsage {
    /// Nothing, at a known price of 0.
    pub const ZERO: Self = Self {
        calls: 0,
        input_tokens: 0,
        output_tokens: 0,
        usd: Some(0.0),
        seconds: 0.0,
    };

    /// What can be believed of it: a price or a time that is no number, negative or absurdly high is
    /// unknown.
    pub(crate) fn credible(self) -> Self {
        let within = |number: &f64| (0.0..=LARGEST).contains(number);
        Self {
            usd: self.usd.filter(within),
            seconds: Some(self.seconds).filter(within).unwrap_or(0.0),
            ..self
        }
    }

    /// Tokens read and written. A server may claim any number of them.
    pub fn tokens(&self) -> u64 {
        self.input_tokens.saturating_add(self.output_tokens)
    }
}

impl From<CallUsage> for RoleUsage {
    fn from(call: CallUsage) -> Self {
        Self {
            calls: 1,
            input_tokens: call.input_tokens,
            output_tokens: call.output_tokens,
            usd: call.usd,
            seconds: call.seconds,
        }
    }
}

impl AddAssign for RoleUsage {
    fn add_assign(&mut self, other: Self) {
        // A provider may claim any number of tokens; a sum at its limit is enough to stop a run.
        self.calls = self.calls.saturating_add(other.calls);
        self.input_tokens = self.input_tokens.saturating_add(other.input_tokens);
        self.output_tokens = self.output_tokens.saturating_add(other.output_tokens);
        self.usd = self.usd.zip(other.usd).map(|(a, b)| a + b);
        self.seconds += other.seconds;
    }
}

/// Usage of every role that was asked something.
///
/// ```
/// use capo_core::llm::{CallUsage, Role};
/// use capo_core::usage::Usage;
///
/// let mut usage = Usage::default();
/// usage.add(Role::Agent, CallUsage { input_tokens: 100, output_tokens: 20, usd: Some(0.002), seconds: 1.5 });
/// assert_eq!(usage.total().usd, Some(0.002));
/// // One call of unknown price, and the sum is unknown too, not 0.
/// usage.add(Role::Judge, CallUsage { usd: None, ..CallUsage::default() });
/// assert_eq!(usage.total().usd, None);
/// assert_eq!(usage.role(Role::Agent).usd, Some(0.002));
/// ```
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Usage {
    by_role: IndexMap<Role, RoleUsage>,
}

impl Usage {
    /// Whether no role was asked anything.
    pub fn is_empty(&self) -> bool {
        self.by_role.is_empty()
    }

    /// Adds one role's share.
    pub fn add(&mut self, role: Role, usage: impl Into<RoleUsage>) {
        *self.by_role.entry(role).or_insert(RoleUsage::ZERO) += usage.into().credible();
    }

    /// Adds everything in `other`.
    pub fn merge(&mut self, other: &Self) {
        for (&role, &usage) in &other.by_role {
            self.add(role, usage);
        }
    }

    /// One role's share.
    pub fn role(&self, role: Role) -> RoleUsage {
        self.by_role.get(&role).copied().unwrap_or(RoleUsage::ZERO)
    }

    /// The roles that were asked something, with their shares.
    pub fn iter(&self) -> impl Iterator<Item = (Role, RoleUsage)> + '_ {
        self.by_role.iter().map(|(&role, &usage)| (role, usage))
    }

    /// The sum over roles.
    pub fn total(&self) -> RoleUsage {
        let mut total = RoleUsage::ZERO;
        for usage in self.by_role.values() {
            total += *usage;
        }
        total
    }
}
