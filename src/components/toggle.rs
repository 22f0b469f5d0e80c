//! A few things of which one is chosen.

use leptos::prelude::*;

/// A button that chooses something, and is pressed as long as that is chosen.
#[component]
pub fn Toggle<T: Copy + PartialEq + Send + Sync + 'static>(
    /// What is chosen.
    chosen: RwSignal<T>,
    /// What this button chooses.
    this: T,
    /// What it says.
    children: Children,
) -> impl IntoView {
    view! {
        <button
            type="button"
            aria-pressed=move || (chosen.get() == this).to_string()
            on:click=move |_| chosen.set(this)
        >
            {children()}
        </button>
    }
}
