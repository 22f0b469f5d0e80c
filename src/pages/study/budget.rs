//! The form of the budget: what a run may spend.

use leptos::prelude::*;

use super::draft::DOLLARS;
use super::field::{Number, NumberField};
use super::prices::Prices;
use super::section::Section;

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
    view! {
        <Section number=6 title="Budget" lead=move || lead>
            <div class="fields">{fields}</div>
            <Prices/>
        </Section>
    }
}
