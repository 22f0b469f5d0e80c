//! Whether the next effect may start.

use std::cell::Cell;

use super::{Arena, Halt, Phase};
use crate::budget::Spent;
use crate::run_state::Ledger;
use crate::usage::{RoleUsage, Usage};
use crate::workload::Split;

/// What the run has spent, effects under way included.
#[derive(Debug)]
pub(super) struct Spending {
    rollouts: Cell<u64>,
    search_rollouts: Cell<u64>,
    calls: Cell<u64>,
    tokens: Cell<u64>,
    usd: Cell<Option<f64>>,
    started: f64,
}

impl Spending {
    pub(super) fn from_ledger(ledger: &Ledger, now: f64) -> Self {
        let total = ledger.usage().total();
        Self {
            rollouts: Cell::new(ledger.rollouts()),
            search_rollouts: Cell::new(ledger.search_rollouts),
            calls: Cell::new(total.calls),
            tokens: Cell::new(total.input_tokens + total.output_tokens),
            usd: Cell::new(total.usd),
            started: now,
        }
    }

    fn spent(&self, now: f64) -> Spent {
        Spent {
            rollouts: self.rollouts.get(),
            calls: self.calls.get(),
            tokens: self.tokens.get(),
            usd: self.usd.get(),
            seconds: now - self.started,
        }
    }
}

impl Arena {
    /// Lets a rollout start and counts it, or says why not.
    pub(super) fn start_rollout(&self, split: Split) -> Result<(), Halt> {
        self.may_start()?;
        self.spending.rollouts.set(self.spending.rollouts.get() + 1);
        if split == Split::Optimize {
            self.spending
                .search_rollouts
                .set(self.spending.search_rollouts.get() + 1);
        }
        Ok(())
    }

    /// Gives back a rollout that did not come about.
    pub(super) fn return_rollout(&self, split: Split) {
        self.spending.rollouts.set(self.spending.rollouts.get() - 1);
        if split == Split::Optimize {
            self.spending
                .search_rollouts
                .set(self.spending.search_rollouts.get() - 1);
        }
    }

    /// Lets a model call start and counts it, or says why not.
    pub(super) fn start_call(&self) -> Result<(), String> {
        self.within_budget()?;
        self.spending.calls.set(self.spending.calls.get() + 1);
        Ok(())
    }

    /// Counts what a call consumed.
    pub(super) fn end_call(&self, usage: RoleUsage) {
        let spending = &self.spending;
        spending
            .tokens
            .set(spending.tokens.get() + usage.input_tokens + usage.output_tokens);
        spending
            .usd
            .set(spending.usd.get().zip(usage.usd).map(|(spent, usd)| spent + usd));
    }

    /// Counts what an external agent reports of its own calls.
    pub(super) fn count_external(&self, usage: &Usage) {
        let (total, spending) = (usage.total(), &self.spending);
        spending.calls.set(spending.calls.get() + total.calls);
        spending
            .tokens
            .set(spending.tokens.get() + total.input_tokens + total.output_tokens);
        spending
            .usd
            .set(spending.usd.get().zip(total.usd).map(|(spent, usd)| spent + usd));
    }

    /// Whether any new effect may start. Critiques and rewrites stop with the rollouts: what they
    /// would lead to could not be measured any more.
    pub(super) fn may_start(&self) -> Result<(), Halt> {
        if let Some(halt) = &*self.halted.borrow() {
            return Err(halt.clone());
        }
        if self.options.control.is_interrupted() {
            return Err(Halt::Interrupted);
        }
        self.rollouts_left()
            .and_then(|()| self.within_budget())
            .map_err(Halt::Budget)
    }

    fn rollouts_left(&self) -> Result<(), String> {
        let Some(limit) = self.journal.borrow().state().budget().rollouts else {
            return Ok(());
        };
        let spent = self.spending.rollouts.get();
        let held_back = self.held_back_rollouts(limit);
        if spent + held_back < limit {
            return Ok(());
        }
        let reserve = if held_back > 0 {
            format!(" ({held_back} held back for the final evaluation)")
        } else {
            String::new()
        };
        Err(format!("{spent} of {limit} rollouts{reserve}"))
    }

    fn within_budget(&self) -> Result<(), String> {
        let budget = self.journal.borrow().state().budget();
        if budget.is_unlimited() {
            return Ok(());
        }
        let spent = self.spending.spent(self.options.clock.seconds());
        match budget.reached(&self.with_reserve(spent)) {
            None => Ok(()),
            Some(reason) => Err(reason),
        }
    }

    /// Rollouts the final evaluation will need: the seed prompt and the returned one on every
    /// held-out example.
    fn evaluation_rollouts(&self) -> u64 {
        let problem = self.problem.borrow();
        let examples: usize = problem
            .workloads()
            .iter()
            .map(|workload| workload.examples(Split::Evaluate).len())
            .sum();
        2 * examples as u64 * u64::from(problem.study().study.repeats)
    }

    /// Rollouts the search must leave for the final evaluation; none when that would take more than
    /// half of the budget (the result then says that it was not evaluated).
    pub(crate) fn held_back_rollouts(&self, limit: u64) -> u64 {
        let needed = self.evaluation_rollouts();
        if self.phase.get() == Phase::Search && 2 * needed <= limit {
            needed
        } else {
            0
        }
    }

    /// During the search, adds to calls, tokens and dollars what the final evaluation will cost at
    /// the average of the rollouts so far, at most half of what was spent.
    fn with_reserve(&self, mut spent: Spent) -> Spent {
        let done = self.spending.search_rollouts.get();
        if self.phase.get() == Phase::Search && done > 0 {
            let share = (self.evaluation_rollouts() as f64 / done as f64).min(0.5);
            spent.calls += (spent.calls as f64 * share) as u64;
            spent.tokens += (spent.tokens as f64 * share) as u64;
            spent.usd = spent.usd.map(|usd| usd * (1.0 + share));
        }
        spent
    }
}
