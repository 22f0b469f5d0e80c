//! The way to all runs.

use leptos::prelude::*;
use leptos_router::components::A;

use crate::storage::runs_of_report;

/// Leads to the list of runs; in a report, which has none, to the runs in it.
#[component]
pub fn AllRuns() -> impl IntoView {
    let (address, words) = match runs_of_report().as_slice() {
        [] => ("/runs".to_owned(), "All runs kept in this browser"),
        [run] => (format!("/run/{run}/result"), "The run of this report"),
        runs => (
            format!("/compare?runs={}", runs.join(",")),
            "All runs of this report",
        ),
    };
    view! { <A href=address>{words}</A> }
}
