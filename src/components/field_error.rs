//! Errors of form fields: what is wrong with what was typed.

use leptos::prelude::*;

/// Stands under a field while something is wrong with it. Read out once.
#[component]
pub fn FieldError(
    /// The id by which the field names it, if it does.
    #[prop(optional, into)]
    id: Option<String>,
    /// What is wrong.
    #[prop(into)]
    wrong: Signal<Option<String>>,
) -> impl IntoView {
    move || {
        wrong.get().map(|wrong| {
            view! {
                <p class="error" id=id.clone() role="alert">
                    {wrong}
                </p>
            }
        })
    }
}
