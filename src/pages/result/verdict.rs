//! What came of the run, in a sentence.

use leptos::prelude::*;

use crate::components::{BranchDialog, Words};
use crate::live::Run;
use crate::run::outcome::{self, Outcome};

/// The verdict, the gate, and what qualifies both.
#[component]
pub(super) fn Verdict(run: Run, outcome: Memo<Option<Outcome>>) -> impl IntoView {
    let branching = RwSignal::new(false);
    let has_rounds = Memo::new(move |_| run.read(|folded| !folded.state.rounds().is_empty()));
    let verdict = move || {
        let sentence = outcome.with(|outcome| outcome.as_ref().map(|outcome| outcome.verdict.clone()));
        sentence.map(|sentence| view! { <Words sentence/> })
    };
    let tag = move || {
        let kept = outcome.with(|outcome| outcome.as_ref()?.all_sat)?;
        let (class, mark, words) = if kept {
            ("tag is-f", "m f", "feasible")
        } else {
            ("tag is-i", "m i", "not feasible")
        };
        Some(view! { <span class=class><span class=mark aria-hidden="true"></span>{words}</span> })
    };
    let notes =
        move || outcome.with(|outcome| outcome.as_ref().map(|outcome| outcome::notes(outcome).join(" ")));
    view! {
        <section class="verdict" aria-label="Verdict">
            <p>{verdict}</p>
            <div class="row">
                {tag} <span class="note">{notes}</span>
                <Show when=move || has_rounds.get()>
                    <button type="button" on:click=move |_| branching.set(true)>
                        "Branch from a round…"
                    </button>
                </Show>
            </div>
        </section>
        <BranchDialog run asked=branching/>
    }
}
