//! The ledger: what a run spent, search and evaluation apart.

use indexmap::IndexMap;

use crate::journal::{EffectName, FailureEvent, ReusedFrom};
use crate::llm::Role;
use crate::study::budget::Spent;
use crate::study::usage::{RoleUsage, Usage};
use crate::study::workload::Split;

/// What a run spent, search and held-out evaluation apart, each by role.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Ledger {
    /// Rollouts of the search.
    pub search_rollouts: u64,
    /// Rollouts of the held-out evaluation.
    pub evaluation_rollouts: u64,
    search: Usage,
    evaluation: Usage,
    dollars: Dollars,
    reused: Reused,
}

/// What was taken over from earlier runs. Nothing of it counts as spent.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Reused {
    /// Rollouts, held-out ones included.
    pub rollouts: u64,
    /// Critiques.
    pub critiques: u64,
    /// Rewrites.
    pub rewrites: u64,
    /// What all of them had consumed in the runs that paid for them.
    pub usage: Usage,
}

impl Reused {
    /// Rollouts, critiques and rewrites together.
    pub fn effects(&self) -> u64 {
        self.rollouts + self.critiques + self.rewrites
    }
}

/// Dollars as a budget bounds them.
///
/// A try that failed may have cost dollars that nobody knows: an agent that crashed says nothing of what it had
/// consumed. No run with one failure could keep a budget of dollars otherwise, so each such try counts as many as its
/// role took on average: for a call of known price, or for a rollout where calls are not told.
#[derive(Debug, Clone, Default, PartialEq)]
struct Dollars {
    /// By role: calls of known price, and what they cost.
    priced: IndexMap<Role, (u64, f64)>,
    /// By role: calls of failed tries of unknown price, and tries of unknown price that tell no calls.
    unpriced: IndexMap<Role, (u64, u64)>,
    /// Whether something that did not fail has no price.
    unknown: bool,
}

impl Dollars {
    fn priced(&mut self, role: Role, usage: RoleUsage) -> bool {
        let Some(usd) = usage.usd else { return false };
        let (calls, sum) = self.priced.entry(role).or_default();
        *calls = calls.saturating_add(usage.calls);
        *sum += usd;
        true
    }

    fn made(&mut self, usage: &Usage) {
        for (role, usage) in usage.iter() {
            self.unknown |= !self.priced(role, usage);
        }
    }

    fn failed(&mut self, usage: &Usage, tries: u32) {
        for (role, usage) in usage.iter() {
            if !self.priced(role, usage) {
                let (calls, silent) = self.unpriced.entry(role).or_default();
                *calls = calls.saturating_add(usage.calls);
                *silent += if usage.calls == 0 { u64::from(tries) } else { 0 };
            }
        }
    }

    /// The sum; `None` where something that did not fail has no price. What has no average yet counts nothing.
    fn spent(&self, rollouts: u64) -> Option<f64> {
        let known: f64 = self.priced.values().map(|(_, usd)| usd).sum();
        let estimated: f64 = self
            .unpriced
            .keys()
            .map(|role| self.estimate(*role, rollouts).unwrap_or(0.0))
            .sum();
        (!self.unknown).then_some(known + estimated)
    }

    fn estimate(&self, role: Role, rollouts: u64) -> Option<f64> {
        let (priced_calls, usd) = self.priced.get(&role)?;
        let (calls, silent) = self.unpriced.get(&role)?;
        let of_rollout = (rollouts > 0).then(|| usd / rollouts as f64);
        let of_call = (*priced_calls > 0).then(|| usd / *priced_calls as f64);
        let of_call = of_call.or(of_rollout).filter(|_| *calls > 0).unwrap_or(0.0);
        Some(of_call * *calls as f64 + of_rollout.unwrap_or(0.0) * *silent as f64)
    }
}

impl Ledger {
    pub(super) fn rollout(&mut self, split: Split, usage: &Usage) {
        self.dollars.made(usage);
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

    /// Counts a critique or a rewrite, which `count` names: as spent, or as taken over.
    pub(super) fn search(
        &mut self,
        usage: &Usage,
        from: Option<&ReusedFrom>,
        count: fn(&mut Reused) -> &mut u64,
    ) {
        if let Some(from) = from {
            self.reuse(from, count);
            return;
        }
        self.dollars.made(usage);
        self.search.merge(usage);
    }

    pub(super) fn reuse(&mut self, from: &ReusedFrom, count: fn(&mut Reused) -> &mut u64) {
        *count(&mut self.reused) += 1;
        self.reused.usage.merge(&from.usage);
    }

    /// What was taken over from earlier runs.
    pub fn reused(&self) -> &Reused {
        &self.reused
    }

    pub(super) fn failure(&mut self, event: &FailureEvent) {
        self.dollars.failed(&event.usage, event.tries);
        match event.of {
            EffectName::Rollout {
                split: Split::Evaluate,
                ..
            } => self.evaluation.merge(&event.usage),
            _ => self.search.merge(&event.usage),
        }
    }

    /// Everything as a budget bounds it, but for the time, which no journal tells.
    pub(crate) fn spent(&self) -> Spent {
        let total = self.usage().total();
        Spent {
            rollouts: self.rollouts(),
            calls: total.calls,
            tokens: total.tokens(),
            usd: self.dollars.spent(self.rollouts()),
            seconds: 0.0,
        }
    }

    /// What calls of a role cost on average, and what the role took for a rollout; `None` where nothing is known.
    pub(crate) fn average_usd(&self, role: Role) -> (Option<f64>, Option<f64>) {
        let (calls, usd) = self.dollars.priced.get(&role).copied().unwrap_or_default();
        let of = |count: u64| (count > 0 && usd > 0.0).then(|| usd / count as f64);
        (of(calls), of(self.rollouts()))
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::llm::FailureKind;

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

    fn failed(usage: Usage, tries: u32) -> FailureEvent {
        FailureEvent {
            of: EffectName::Rollout {
                candidate: crate::study::ids::CandidateId::of("prompt"),
                split: Split::Optimize,
                workload: "desk".to_owned(),
                example: "1".to_owned(),
                repeat: 0,
            },
            kind: FailureKind::Tool,
            message: "crashed".to_owned(),
            attempt: 1,
            tries,
            usage,
            answer: None,
            answers: Vec::new(),
        }
    }

    #[test]
    fn tries_of_unknown_price_cost_as_much_as_rollouts_on_average() {
        let mut ledger = Ledger::default();
        ledger.failure(&failed(of(0, None), 3));
        // Nothing is known of any price: nothing counts against the budget, and nobody says $0.
        assert_eq!(
            (ledger.spent().usd, ledger.usage().total().usd),
            (Some(0.0), None)
        );
        ledger.rollout(Split::Optimize, &of(0, Some(0.5)));
        ledger.rollout(Split::Evaluate, &of(0, Some(0.25)));
        assert_eq!(ledger.spent().usd, Some(0.75 + 3.0 * 0.375));
        assert_eq!(
            ledger.usage().total().usd,
            None,
            "a sum with an unknown part is unknown"
        );
    }

    #[test]
    fn calls_of_unknown_price_cost_as_much_as_the_roles_other_calls() {
        let mut ledger = Ledger::default();
        ledger.rollout(Split::Optimize, &of(4, Some(1.0)));
        ledger.failure(&failed(of(2, None), 1));
        ledger.failure(&failed(of(1, Some(0.125)), 1));
        assert_eq!(ledger.spent().usd, Some(1.125 + 2.0 * 1.125 / 5.0));
        assert_eq!(ledger.spent().calls, 7);
        // Where no call was told with a price, rollouts are what there is to go by.
        let mut ledger = Ledger::default();
        ledger.rollout(Split::Optimize, &of(0, Some(0.5)));
        ledger.failure(&failed(of(2, None), 1));
        ledger.failure(&failed(of(0, None), 1));
        assert_eq!(ledger.spent().usd, Some(0.5 + 2.0 * 0.5 + 0.5));
    }

    #[test]
    fn a_rollout_of_unknown_price_leaves_the_sum_unknown() {
        let mut ledger = Ledger::default();
        ledger.rollout(Split::Optimize, &of(1, Some(1.0)));
        ledger.rollout(Split::Optimize, &of(1, None));
        assert_eq!((ledger.spent().usd, ledger.usage().total().usd), (None, None));
    }
}
