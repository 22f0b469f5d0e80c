//! A page.

use leptos::prelude::*;

/// The page.
#[component]
pub fn CandidatePage() -> impl IntoView {
    view! { <h1>"CandidatePage"</h1> }
}
