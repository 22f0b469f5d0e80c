//! What a run has spent, effects under way included.

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
    /// Those that are known.
    pub(super) usd: Cell<f64>,
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
            usd: Cell::new(ledger.known_usd()),
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
            usd: ledger
                .spent()
                .usd
                .map(|_| self.usd.get() + ledger.estimated_usd()),
            seconds: now - self.started,
        }
    }
}
