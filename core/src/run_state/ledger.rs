//! What a run spent, search and evaluation apart.

use crate::budget::Spent;
use crate::journal::EffectName;
use crate::usage::Usage;
use crate::workload::Split;

/// What a run spent, search and held-out evaluation apart, each by role.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Ledger {
    /// Rollouts of the search.
    pub search_rollouts: u64,
    /// Rollouts of the held-out evaluation.
    pub evaluation_rollouts: u64,
    search: Usage,
    evaluation: Usage,
}

impl Ledger {
    pub(super) fn rollout(&mut self, split: Split, usage: &Usage) {
        match split {
            Split::Optimize => {
                self.search_rollouts += 1;
                self.search.merge(usage);
            }
            Split::Evaluate => {
                self.evaluation_rollouts += 1;
                self.evaluation.merge(usage);
            }
        }
    }

    pub(super) fn search(&mut self, usage: &Usage) {
        self.search.merge(usage);
    }

    pub(super) fn failure(&mut self, of: &EffectName, usage: &Usage) {
        match of {
            EffectName::Rollout {
                split: Split::Evaluate,
                ..
            } => self.evaluation.merge(usage),
            _ => self.search.merge(usage),
        }
    }

    /// Everything as a budget bounds it, but for the time, which no journal tells.
    pub(crate) fn spent(&self) -> Spent {
        let total = self.usage().total();
        Spent {
            rollouts: self.rollouts(),
            calls: total.calls,
            tokens: total.tokens(),
            usd: total.usd,
            seconds: 0.0,
        }
    }

    /// All rollouts.
    pub fn rollouts(&self) -> u64 {
        self.search_rollouts + self.evaluation_rollouts
    }

    /// What the search consumed.
    pub fn search_usage(&self) -> &Usage {
        &self.search
    }

    /// What the held-out evaluation consumed.
    pub fn evaluation_usage(&self) -> &Usage {
        &self.evaluation
    }

    /// Everything, by role.
    pub fn usage(&self) -> Usage {
        let mut usage = self.search.clone();
        usage.merge(&self.evaluation);
        usage
    }
}
