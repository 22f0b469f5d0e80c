//! A page.

use leptos::prelude::*;

/// The page.
#[component]
pub fn ResultPage() -> impl IntoView {
    view! { <h1>"ResultPage"</h1> }
}
