//! Counters of spending against the budget, effects under way included.

use std::cell::Cell;

use crate::journal::run_state::Ledger;
use crate::study::budget::Spent;

/// What the run has spent, effects under way included.
#[derive(Debug)]
pub(super) struct Spending {
    pub(super) rollouts: Cell<u64>,
    pub(super) search_rollouts: Cell<u64>,
    pub(super) calls: Cell<u64>,
    pub(super) tokens: Cell<u64>,
    /// Dollars of known price of effects that are not journaled yet.
    pub(super) under_way_usd: Cell<f64>,
    /// Effects under way with an answer of unknown price.
    pub(super) under_way_unpriced: Cell<u32>,
    pub(super) started: f64,
}

impl Spending {
    pub(super) fn from_ledger(ledger: &Ledger, now: f64) -> Self {
        let spent = ledger.spent();
        Self {
            rollouts: Cell::new(spent.rollouts),
            search_rollouts: Cell::new(ledger.search_rollouts),
            calls: Cell::new(spent.calls),
            tokens: Cell::new(spent.tokens),
            under_way_usd: Cell::new(0.0),
            under_way_unpriced: Cell::new(0),
            started: now,
        }
    }

    pub(super) fn rollouts(&self) -> u64 {
        self.rollouts.get()
    }

    pub(super) fn spent(&self, ledger: &Ledger, now: f64) -> Spent {
        Spent {
            rollouts: self.rollouts.get(),
            calls: self.calls.get(),
            tokens: self.tokens.get(),
            usd: (self.under_way_unpriced.get() == 0)
                .then(|| ledger.spent().usd)
                .flatten()
                .map(|usd| usd + self.under_way_usd.get()),
            seconds: now - self.started,
        }
    }
}
