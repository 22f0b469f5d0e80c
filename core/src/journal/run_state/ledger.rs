//! What a run spent, search and evaluation apart.

use indexmap::IndexMap;

use crate::journal::EffectName;
use crate::llm::Role;
use crate::study::budget::Spent;
use crate::study::usage::{RoleUsage, Usage};
use crate::study::workload::Split;

/// What a run spent, search and held-out evaluation apart, each by role.
///
/// A try that failed may have cost dollars that nobody knows: an agent that crashed says nothing of what it had
/// consumed, a call that was dropped is billed all the same. Each counts as many dollars as the role took on average
/// for a call of known price, or for a rollout where calls are not told; a budget of dollars could not be kept by
/// any run with one failure otherwise.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Ledger {
    /// Rollouts of the search.
    pub search_rollouts: u64,
    /// Rollouts of the held-out evaluation.
    pub evaluation_rollouts: u64,
    search: Account,
    evaluation: Account,
}

/// What one part of a run spent.
#[derive(Debug, Clone, Default, PartialEq)]
struct Account {
    /// Failed tries of unknown price with $0.
    usage: Usage,
    /// Failed tries of unknown price.
    unpriced: IndexMap<Role, Unpriced>,
}

/// Failed tries of unknown price.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct Unpriced {
    /// Their calls.
    calls: u64,
    /// Those that tell no calls.
    tries: u64,
}

impl Account {
    fn failure(&mut self, usage: &Usage) {
        for (role, usage) in usage.iter() {
            if usage.usd.is_none() {
                let unpriced = self.unpriced.entry(role).or_default();
                unpriced.calls = unpriced.calls.saturating_add(usage.calls);
                unpriced.tries += u64::from(usage.calls == 0);
            }
            let usd = usage.usd.or(Some(0.0));
            self.usage.add(role, RoleUsage { usd, ..usage });
        }
    }
}

impl Ledger {
    pub(super) fn rollout(&mut self, split: Split, usage: &Usage) {
        let rollouts = match split {
            Split::Optimize => &mut self.search_rollouts,
            Split::Evaluate => &mut self.evaluation_rollouts,
        };
        *rollouts += 1;
        self.account(split).usage.merge(usage);
    }

    pub(super) fn search(&mut self, usage: &Usage) {
        self.search.usage.merge(usage);
    }

    pub(super) fn failure(&mut self, of: &EffectName, usage: &Usage) {
        let split = match of {
            EffectName::Rollout { split, .. } => *split,
            EffectName::Critique { .. } | EffectName::Rewrite { .. } => Split::Optimize,
        };
        self.account(split).failure(usage);
    }

    fn account(&mut self, split: Split) -> &mut Account {
        match split {
            Split::Optimize => &mut self.search,
            Split::Evaluate => &mut self.evaluation,
        }
    }

    /// Everything as a budget bounds it, but for the time, which no journal tells.
    pub(crate) fn spent(&self) -> Spent {
        let total = self.known().total();
        Spent {
            rollouts: self.rollouts(),
            calls: total.calls,
            tokens: total.tokens(),
            usd: total.usd.map(|usd| usd + self.estimated_usd()),
            seconds: 0.0,
        }
    }

    /// US dollars of known price.
    pub(crate) fn known_usd(&self) -> f64 {
        self.known().iter().filter_map(|(_, usage)| usage.usd).sum()
    }

    /// US dollars that failed tries of unknown price are taken to have cost; 0 while nothing else has a price.
    pub(crate) fn estimated_usd(&self) -> f64 {
        let of = |account: &Account| -> f64 {
            let roles = account.unpriced.iter();
            roles
                .filter_map(|(role, unpriced)| self.estimate(*role, *unpriced))
                .sum()
        };
        of(&self.search) + of(&self.evaluation)
    }

    /// US dollars that calls and tries of a role cost at its average; `None` where there is none.
    fn estimate(&self, role: Role, unpriced: Unpriced) -> Option<f64> {
        let known = self.known().role(role);
        let unknown = [&self.search, &self.evaluation].map(|account| account.unpriced.get(&role));
        let unknown_calls: u64 = unknown.into_iter().flatten().map(|unpriced| unpriced.calls).sum();
        let share = |count: u64, of: u64| match (count, of) {
            (0, _) => Some(0.0),
            (_, 0) => None,
            _ => Some(count as f64 / of as f64),
        };
        let calls = share(unpriced.calls, known.calls.saturating_sub(unknown_calls));
        let tries = share(unpriced.tries, self.rollouts());
        Some(known.usd? * (calls? + tries?))
    }

    /// All rollouts.
    pub fn rollouts(&self) -> u64 {
        self.search_rollouts + self.evaluation_rollouts
    }

    /// What the search consumed.
    pub fn search_usage(&self) -> Usage {
        self.estimated(&self.search)
    }

    /// What the held-out evaluation consumed.
    pub fn evaluation_usage(&self) -> Usage {
        self.estimated(&self.evaluation)
    }

    /// Everything, by role.
    pub fn usage(&self) -> Usage {
        let mut usage = self.search_usage();
        usage.merge(&self.evaluation_usage());
        usage
    }

    /// Everything by role, failed tries of unknown price with $0.
    fn known(&self) -> Usage {
        let mut usage = self.search.usage.clone();
        usage.merge(&self.evaluation.usage);
        usage
    }

    fn estimated(&self, account: &Account) -> Usage {
        let mut usage = account.usage.clone();
        for (&role, &unpriced) in &account.unpriced {
            let usd = self.estimate(role, unpriced);
            usage.add(
                role,
                RoleUsage {
                    usd,
                    ..RoleUsage::ZERO
                },
            );
        }
        usage
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(calls: u64, usd: Option<f64>) -> Usage {
        let mut usage = Usage::default();
        usage.add(
            Role::Agent,
            RoleUsage {
                calls,
                usd,
                ..RoleUsage::ZERO
            },
        );
        usage
    }

    fn rollout() -> EffectName {
        EffectName::Rollout {
            candidate: crate::study::ids::CandidateId::of("prompt"),
            split: Split::Optimize,
            workload: "desk".to_owned(),
            example: "1".to_owned(),
            repeat: 0,
        }
    }

    #[test]
    fn a_failure_of_unknown_price_costs_as_much_as_the_others_on_average() {
        let mut ledger = Ledger::default();
        ledger.failure(&rollout(), &of(0, None));
        // Nothing is known of any price: nothing counts against the budget, and nobody says $0.
        assert_eq!(
            (ledger.spent().usd, ledger.usage().total().usd),
            (Some(0.0), None)
        );
        ledger.rollout(Split::Optimize, &of(0, Some(0.5)));
        ledger.rollout(Split::Evaluate, &of(0, Some(0.25)));
        let average = 0.75 / 2.0;
        assert_eq!(ledger.search_usage().total().usd, Some(0.5 + average));
        assert_eq!(ledger.evaluation_usage().total().usd, Some(0.25));
        assert_eq!(ledger.spent().usd, Some(0.75 + average));
        assert_eq!(ledger.usage().total().usd, Some(0.75 + average));
    }

    #[test]
    fn calls_of_unknown_price_cost_as_much_as_the_roles_other_calls() {
        let mut ledger = Ledger::default();
        ledger.rollout(Split::Optimize, &of(4, Some(1.0)));
        ledger.failure(&rollout(), &of(2, None));
        ledger.failure(&rollout(), &of(1, Some(0.125)));
        assert_eq!(ledger.spent().usd, Some(1.125 * (1.0 + 2.0 / 5.0)));
        assert_eq!(ledger.spent().calls, 7);
    }

    #[test]
    fn a_rollout_of_unknown_price_leaves_the_sum_unknown() {
        let mut ledger = Ledger::default();
        ledger.rollout(Split::Optimize, &of(1, Some(1.0)));
        ledger.rollout(Split::Optimize, &of(1, None));
        assert_eq!((ledger.spent().usd, ledger.usage().total().usd), (None, None));
    }
}
