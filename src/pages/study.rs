//! A page.

use leptos::prelude::*;

/// The page.
#[component]
pub fn StudyPage() -> impl IntoView {
    view! { <h1>"StudyPage"</h1> }
}
