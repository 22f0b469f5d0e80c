//! What stands below all pages.

use leptos::prelude::*;

use super::shortcuts::Shortcuts;

/// Where keys and journals stay, and the list of keys.
#[component]
pub fn Foot() -> impl IntoView {
    let shortcuts = expect_context::<Shortcuts>();
    view! {
        <footer class="foot">
            <span>"Keys stay in this tab and go to their provider only."</span>
            <span>"Journal: kept in this browser, written after every effect."</span>
            <button type="button" class="link" on:click=move |_| shortcuts.show()>
                "Keyboard"
            </button>
        </footer>
    }
}
