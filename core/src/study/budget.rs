//! Budgets: what a run may spend.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::error::StudyError;

/// Upper bounds on a whole run, all sessions of it together; what is left out is unlimited.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Budget {
    /// Rollouts, exactly: a budget of 300 makes 300, never 301. Held-out evaluation included.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rollouts: Option<u64>,
    /// Model calls of all roles, exactly.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub calls: Option<u64>,
    /// Tokens read and written; no call starts once they are spent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tokens: Option<u64>,
    /// US dollars; no call starts once they are spent, and none of a model whose price is unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usd: Option<f64>,
    /// Seconds since this session of the run began, waiting included; a resumed run starts anew.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seconds: Option<f64>,
}

impl Budget {
    /// Whether nothing is bounded.
    pub fn is_unlimited(&self) -> bool {
        *self == Self::default()
    }

    pub(crate) fn check(&self) -> Result<(), StudyError> {
        for (key, zero) in [
            ("budget.rollouts", self.rollouts == Some(0)),
            ("budget.calls", self.calls == Some(0)),
            ("budget.tokens", self.tokens == Some(0)),
        ] {
            if zero {
                return Err(StudyError::invalid(
                    key,
                    "a budget of 0 allows nothing; raise it, or leave it out for no bound",
                ));
            }
        }
        for (key, bound) in [("budget.usd", self.usd), ("budget.seconds", self.seconds)] {
            if bound.is_some_and(|bound| !bound.is_finite() || bound <= 0.0) {
                return Err(StudyError::invalid(
                    key,
                    "must be a finite number above 0; leave it out for no bound",
                ));
            }
        }
        Ok(())
    }

    /// Why a budget of `limit` dollars cannot be kept when nobody knows `what`.
    pub fn unpriced(limit: f64, what: &str) -> String {
        format!(
            "{what} is unknown, so a budget of ${limit:.2} cannot be kept; state the model's `price` \
             (an external agent: report `usage.usd`), or drop `usd`"
        )
    }

    /// The first bound that `spent` has reached, in words, for a run that wants to start one more
    /// effect. Rollouts are not looked at here: the arena counts them with those held back for the
    /// final evaluation.
    ///
    /// ```
    /// use capo_core::budget::{Budget, Spent};
    ///
    /// let budget = Budget { calls: Some(300), ..Budget::default() };
    /// let spent = |calls| Spent { rollouts: 0, calls, tokens: 0, usd: None, seconds: 0.0 };
    /// assert_eq!(budget.reached(&spent(299)), None);
    /// assert_eq!(budget.reached(&spent(300)).as_deref(), Some("300 of 300 model calls"));
    /// ```
    pub fn reached(&self, spent: &Spent) -> Option<String> {
        let counted = |name: &str, limit: Option<u64>, spent: u64| {
            limit
                .filter(|limit| spent >= *limit)
                .map(|limit| format!("{spent} of {limit} {name}"))
        };
        counted("model calls", self.calls, spent.calls)
            .or_else(|| counted("tokens", self.tokens, spent.tokens))
            .or_else(|| {
                let limit = self.usd?;
                match spent.usd {
                    Some(usd) => (usd >= limit).then(|| format!("${usd:.4} of ${limit:.4}")),
                    None => Some(Self::unpriced(limit, "the price of a call")),
                }
            })
            .or_else(|| {
                let limit = self.seconds?;
                (spent.seconds >= limit).then(|| format!("{:.0} of {limit:.0} seconds", spent.seconds))
            })
    }
}

/// What a run has spent so far.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Spent {
    /// Rollouts made or under way.
    pub rollouts: u64,
    /// Model calls made or under way.
    pub calls: u64,
    /// Tokens read and written.
    pub tokens: u64,
    /// US dollars; `None` when the price of a call is unknown.
    pub usd: Option<f64>,
    /// Seconds since this session began.
    pub seconds: f64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn says_which_bound_is_reached() {
        let budget = Budget {
            calls: Some(3),
            usd: Some(1.0),
            ..Budget::default()
        };
        let mut spent = Spent {
            rollouts: 0,
            calls: 2,
            tokens: 0,
            usd: Some(0.5),
            seconds: 0.0,
        };
        assert_eq!(budget.reached(&spent), None);
        spent.calls = 3;
        assert_eq!(budget.reached(&spent).unwrap(), "3 of 3 model calls");
        spent.calls = 0;
        spent.usd = None;
        assert!(
            budget
                .reached(&spent)
                .unwrap()
                .contains("price of a call is unknown")
        );
    }
}
