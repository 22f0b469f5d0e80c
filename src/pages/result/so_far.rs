//! In place of the verdict while there is none.

use leptos::prelude::*;
use leptos_router::components::A;

use crate::components::Words;
use crate::live::{Phase, Run};
use crate::storage::is_report;

/// That the run is not finished, and the best so far.
#[component]
pub(super) fn SoFar(run: Run) -> impl IntoView {
    let best = Memo::new(move |_| {
        let best = run.read(|folded| Some(folded.overview()?.best.clone()));
        best.unwrap_or_default()
    });
    let state = move || match run.phase.get() {
        Phase::Running | Phase::Pausing => "The run goes on.",
        Phase::Queued(_) if run.is_on_server() => "The run waits on the server.",
        Phase::Queued(_) => "The run waits for its turn.",
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
