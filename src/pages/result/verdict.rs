//! What came of the run, in a sentence.

use leptos::prelude::*;

use crate::components::Words;
use crate::run::outcome::{self, Outcome};

/// The verdict, the gate, and what qualifies both.
#[component]
pub(super) fn Verdict(outcome: Memo<Option<Outcome>>) -> impl IntoView {
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
    let notes = move || outcome.with(|outcome| outcome.as_ref().map(notes));
    view! {
        <section class="verdict" aria-label="Verdict">
            <p>{verdict}</p>
            <div class="row">
                {tag} <span class="note">{notes}</span>
            </div>
        </section>
    }
}

fn notes(outcome: &Outcome) -> String {
    let caution = Some(outcome.caution.to_string()).filter(|caution| !caution.is_empty());
    let early = outcome
        .reason
        .as_ref()
        .map(|reason| format!("It ended early: {}.", reason.trim_end_matches('.')));
    let notes: Vec<String> = [outcome::gate(outcome), caution, early]
        .into_iter()
        .flatten()
        .collect();
    notes.join(" ")
}
