//! A page.

use leptos::prelude::*;

/// The page.
#[component]
pub fn DynamicsPage() -> impl IntoView {
    view! { <h1>"DynamicsPage"</h1> }
}
