//! A numbered section of the form.

use leptos::prelude::*;

/// Number, title and one sentence at the left, the fields at the right.
#[component]
pub(super) fn Section(
    /// From 1.
    number: u8,
    /// What it sets.
    title: &'static str,
    /// What stands below the title.
    #[prop(into)]
    lead: ViewFnOnce,
    /// Whether it needs the whole width where there is little.
    #[prop(optional)]
    full: bool,
    children: Children,
) -> impl IntoView {
    let id = format!("section-{number}");
    let named_by = id.clone();
    view! {
        <section aria-labelledby=named_by class:full=full>
            <div>
                <h2 id=id tabindex="-1">
                    <i>{number}</i>
                    {title}
                </h2>
                <div class="lead">{lead.run()}</div>
            </div>
            <div class="stack">{children()}</div>
        </section>
    }
}
