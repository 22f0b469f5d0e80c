//! In place of the verdict while there is none.

use capo_core::reading::metrics;
use capo_core::run_state::RunState;
use leptos::prelude::*;
use leptos_router::components::A;

use crate::components::Words;
use crate::live::{Phase, Run};
use crate::run::map::Map;
use crate::run::readings;
use crate::run::sentence::Sentence;
use crate::run::studied::Shown as _;
use crate::storage::is_report;

/// That the run is not finished, and the best so far.
#[component]
pub(super) fn SoFar(run: Run) -> impl IntoView {
    let best = Memo::new(move |_| {
        run.read(|folded| Some(best(&folded.state, &folded.overview()?.map)))
            .unwrap_or_default()
    });
    let state = move || match run.phase.get() {
        Phase::Running | Phase::Pausing => "The run goes on.",
        Phase::Queued(_) => "The run waits on the server.",
        Phase::InAnotherTab => "The run goes on in another tab.",
        _ => "This run is not finished.",
    };
    let live = move || format!("/run/{}", run.id());
    view! {
        <section class="verdict" aria-label="So far">
            <p>
                {state} " " {move || view! { <Words sentence=best.get()/> }}
            </p>
            <div class="row">
                <span class="note">
                    "Held-out examples are measured once, when the run has ended. "
                    <A href=live>{if is_report() { "What it came to" } else { "Watch or resume it" }}</A>
                </span>
            </div>
        </section>
    }
}

/// "Best so far: c95e03, success 73.0%, feasible on the search examples."
fn best(state: &RunState, map: &Map) -> Sentence {
    let Some(objective) = metrics::objective(state) else {
        return Sentence::default();
    };
    match map.best.and_then(|best| map.place(best)) {
        Some(best) => Sentence::new("Best so far: ")
            .prompt(best.scored.candidate)
            .text(format!(
                ", {} {}, feasible on the search examples.",
                objective.phrase(),
                objective.quantity().value(best.scored.objective.mean)
            )),
        None if map.places.is_empty() => Sentence::new("The seed prompt is being measured."),
        None => readings::closest(state, map),
    }
}
