//! The fold over one run's journal, with what screens want beside it.

use std::cell::RefCell;
use std::sync::Arc;

use capo_core::budget::Budget;
use capo_core::journal::{Event, FailureEvent, JournalError, Status, SteerEvent, parse_line};
use capo_core::llm::FailureKind;
use capo_core::run_state::RunState;

use crate::run::activity::Activity;
use crate::run::overview::{Overview, Overviews};

/// See [`Folded::consumed`].
pub type Consumed = [f64; 4];

/// A run as far as its journal is read.
#[derive(Debug, Default)]
pub struct Folded {
    /// The fold every door shares.
    pub state: RunState,
    /// The log of what happened.
    pub activity: Activity,
    lines: u64,
    /// Lines until the first round closes, in case the study is replaced before.
    early: Vec<String>,
    /// The last line: whether a journal goes on from here is told by it.
    last: String,
    /// The last failure that was none of this page's own doing.
    failure: Option<FailureEvent>,
    overviews: RefCell<Overviews>,
}

impl Folded {
    /// Lines read.
    pub fn lines(&self) -> u64 {
        self.lines
    }

    /// The first line, the study.
    pub fn first(&self) -> Option<&str> {
        self.early.first().map(String::as_str)
    }

    /// The last line.
    pub fn last(&self) -> &str {
        &self.last
    }

    /// Whether the last thing that failed, failed because its provider was not reached.
    pub fn is_cut_off(&self) -> bool {
        let failure = self.failure.as_ref();
        failure.is_some_and(|failure| failure.kind == FailureKind::Unreachable)
    }

    /// The failure that ended the run, until it goes on. One that has not ended may have broken off for it, in these words:
    /// where its first rollouts alone were to be made, the journal does not say so.
    pub fn ended_by(&self, broke_off: Option<&str>) -> Option<&FailureEvent> {
        let failure = self.failure.as_ref()?;
        let ended = match self.state.finished() {
            Some(finished) => finished.status == Status::Failed,
            None => broke_off.is_some_and(|words| words.contains(&failure.message)),
        };
        ended.then_some(failure)
    }

    /// What it has consumed of what a budget limits, but for the time: rollouts, calls, tokens, dollars.
    pub fn consumed(&self) -> Consumed {
        let ledger = self.state.ledger();
        let total = ledger.usage().total();
        let counts = [ledger.rollouts(), total.calls, total.tokens()];
        let [rollouts, calls, tokens] = counts.map(|count| count as f64);
        [rollouts, calls, tokens, total.usd.unwrap_or_default()]
    }

    /// The largest share spent of what its budget limits now, but for the time, and how much of it since there was `before`; 0
    /// where it limits nothing.
    pub fn spent(&self, before: &Consumed) -> (f64, f64) {
        share(&self.state.budget(), &self.consumed(), before)
    }

    /// What charts and tables draw of it, made anew only when there is a new line; `None` before its
    /// study is known.
    pub fn overview(&self) -> Option<Arc<Overview>> {
        self.overviews.borrow_mut().after(self.lines, &self.state)
    }

    /// Says in the log that the run goes on, unless it begins.
    pub fn goes_on(&mut self, at: Option<f64>) {
        if self.lines > 0 {
            self.activity.resumed(&self.state, at);
        }
    }

    /// Takes in the next line (without its trace), seen `at` seconds after the run began; `None`
    /// when it is read from storage. Returns what a person changed by it.
    ///
    /// # Errors
    /// When it does not parse or does not fit those before; nothing is changed.
    pub fn take(&mut self, line: &str, at: Option<f64>) -> Result<Option<SteerEvent>, JournalError> {
        let number = self.lines as usize + 1;
        let event = parse_line(line, number)?;
        let early = self.state.rounds().is_empty();
        let fits = self.state.apply(&event, self.lines);
        fits.map_err(|reason| JournalError::Line { line: number, reason })?;
        if early {
            self.early.push(line.to_owned());
        }
        self.activity.follow(&event, &self.state, at);
        self.lines += 1;
        line.clone_into(&mut self.last);
        match event {
            Event::Failure(failure) if failure.kind != FailureKind::Stopped => {
                self.failure = Some(failure);
            }
            Event::Steer(steer) => return Ok(Some(steer)),
            _ => {}
        }
        Ok(None)
    }

    /// Everything so far once more under another study, whose thresholds are frozen. Only before the
    /// first round closes.
    ///
    /// # Errors
    /// As [`Folded::take`].
    pub fn under(&self, study: &str) -> Result<Self, JournalError> {
        let mut folded = Self::default();
        let others = self.early.iter().skip(1).map(String::as_str);
        for line in std::iter::once(study).chain(others) {
            folded.take(line, None)?;
        }
        Ok(folded)
    }
}

/// See [`Folded::spent`].
fn share(budget: &Budget, consumed: &Consumed, before: &Consumed) -> (f64, f64) {
    let counts = [budget.rollouts, budget.calls, budget.tokens];
    let [rollouts, calls, tokens] = counts.map(|limit| limit.map(|limit| limit as f64));
    let limits = [rollouts, calls, tokens, budget.usd];
    let shares = limits.into_iter().zip(consumed.iter().zip(before));
    let shares = shares.filter_map(|(limit, (now, before))| {
        let limit = limit?;
        Some((now / limit, (now - before).max(0.0) / limit))
    });
    let (spent, since) = shares
        .max_by(|(one, _), (other, _)| one.total_cmp(other))
        .unwrap_or_default();
    (spent.min(1.0), since)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_raised_budget_makes_less_of_what_was_spent_before_too() {
        let mut budget = Budget {
            rollouts: Some(100),
            calls: Some(1000),
            ..Budget::default()
        };
        let (before, now) = ([50.0, 100.0, 0.0, 0.0], [75.0, 200.0, 9.0, 0.5]);
        assert_eq!(share(&budget, &now, &before), (0.75, 0.25));
        budget.rollouts = Some(200);
        assert_eq!(share(&budget, &now, &before), (0.375, 0.125));
        // Now the calls are what ends it.
        budget.calls = Some(400);
        assert_eq!(share(&budget, &now, &before), (0.5, 0.25));
        assert_eq!(share(&Budget::default(), &now, &before), (0.0, 0.0));
    }
}
