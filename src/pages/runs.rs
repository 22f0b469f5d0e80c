//! A page.

use leptos::prelude::*;

/// The page.
#[component]
pub fn RunsPage() -> impl IntoView {
    view! { <h1>"RunsPage"</h1> }
}
