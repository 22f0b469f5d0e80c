//! Sections that are folded away, and what unfolds them.

use leptos::prelude::*;
use web_sys::Element;

use super::field;
use super::form::Form;
use super::problem::Problem;
use crate::components::unique_id;

/// A section that is folded away: its summary says what is set in it.
#[component]
pub(super) fn Folded(
    /// What it sets.
    title: &'static str,
    /// What is set.
    #[prop(into)]
    set: Signal<String>,
    /// What stands above the fields.
    #[prop(into)]
    lead: ViewFnOnce,
    children: Children,
) -> impl IntoView {
    let name = unique_id("fold");
    let named_by = name.clone();
    view! {
        <section class="folded" aria-labelledby=named_by>
            <details>
                <summary>
                    <h3 id=name>{title}</h3>
                    <span class="note">{set}</span>
                </summary>
                <div class="lead">{lead.run()}</div>
                <div class="stack">{children()}</div>
            </details>
        </section>
    }
}

/// Unfolds whatever the element of an id is folded away in.
fn unfold(id: &str) {
    let mut inside = document().get_element_by_id(id);
    while let Some(element) = inside {
        inside = element.closest("details:not([open])").ok().flatten();
        if let Some(fold) = &inside {
            // One that went away meanwhile holds nothing to see.
            let _ = fold.set_attribute("open", "");
        }
    }
}

/// Unfolds what a link within the page leads to, before the browser follows it.
pub(super) fn unfold_for_link(event: &web_sys::MouseEvent) {
    let link = event_target::<Element>(event)
        .closest("a[href^='#']")
        .ok()
        .flatten();
    if let Some(address) = link.and_then(|link| link.get_attribute("href")) {
        unfold(address.trim_start_matches('#'));
    }
}

/// Unfolds the fields in which something comes to be wrong; one that is folded away again stays so.
pub(super) fn unfold_problems(form: Form) {
    Effect::new(move |before: Option<Vec<String>>| {
        let of = |problem: &Problem| field::id(&problem.key);
        let fields: Vec<String> = form.problems.with(|problems| problems.iter().map(of).collect());
        let mut wrong = fields.clone();
        wrong.retain(|field| !before.iter().flatten().any(|known| known == field));
        // Some of the fields are made by what has changed with the problems.
        request_animation_frame(move || wrong.iter().for_each(|field| unfold(field)));
        fields
    });
}
