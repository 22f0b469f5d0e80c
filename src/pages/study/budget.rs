//! The form of the budget: what a run may spend.

use capo_core::budget::Budget;
use leptos::prelude::*;

use super::draft::DOLLARS;
use super::field::{Number, NumberField};
use super::fold::Folded;
use super::form::Form;
use super::prices::Prices;
use crate::format;

/// Seconds in what the field counts in.
const MINUTE: f64 = 60.0;

/// The bounds of a run.
#[component]
pub(super) fn BudgetSection() -> impl IntoView {
    let lead = "Checked before every call. Reaching it ends the run with its best prompt so far; raise it and the run \
                goes on.";
    let bounds = [
        Number::new(
            "budget.rollouts",
            "Rollouts",
            |study| study.budget.rollouts.map(|bound| bound as f64),
            |study, value| study.budget.rollouts = value.map(|value| value as u64),
        )
        .counted(),
        Number::new(
            "budget.calls",
            "Calls",
            |study| study.budget.calls.map(|bound| bound as f64),
            |study, value| study.budget.calls = value.map(|value| value as u64),
        )
        .counted(),
        Number::new(
            "budget.tokens",
            "Tokens",
            |study| study.budget.tokens.map(|bound| bound as f64),
            |study, value| study.budget.tokens = value.map(|value| value as u64),
        )
        .counted(),
        Number::new(
            DOLLARS,
            "Dollars",
            |study| study.budget.usd,
            |study, value| study.budget.usd = value,
        )
        .in_unit("$", 1.0),
        Number::new(
            "budget.seconds",
            "Time",
            |study| study.budget.seconds,
            |study, value| study.budget.seconds = value,
        )
        .in_unit("min", 1.0 / MINUTE),
    ];
    let fields = bounds
        .into_iter()
        .map(|bound| view! { <NumberField number=bound.optional("no limit")/> })
        .collect_view();
    let set = expect_context::<Form>().memo(|study| most(&study.budget));
    view! {
        <Folded title="Budget" set lead=move || lead>
            <div class="fields">{fields}</div>
            <Prices/>
        </Folded>
    }
}

/// "At most 4,000 rollouts, $5.00".
fn most(budget: &Budget) -> String {
    let count = |bound: Option<u64>, of: &str| bound.map(|bound| format!("{} {of}", format::count(bound)));
    let bounds = [
        count(budget.rollouts, "rollouts"),
        count(budget.calls, "calls"),
        count(budget.tokens, "tokens"),
        budget.usd.map(|usd| format::dollars(Some(usd))),
        budget.seconds.map(format::span),
    ];
    let bounds: Vec<String> = bounds.into_iter().flatten().collect();
    if bounds.is_empty() {
        return "No limit".to_owned();
    }
    format!("At most {}", bounds.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_may_be_spent_is_said_in_a_line() {
        let mut budget = Budget::default();
        assert_eq!(most(&budget), "No limit");
        (budget.rollouts, budget.usd) = (Some(4000), Some(5.0));
        assert_eq!(most(&budget), "At most 4,000 rollouts, $5.00");
    }
}
