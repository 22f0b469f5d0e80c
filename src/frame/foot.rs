//! What stands below all pages.

use leptos::prelude::*;

use super::shortcuts::Shortcuts;
use crate::storage::is_report;

/// Where keys and journals stay, and the list of keys.
#[component]
pub fn Foot() -> impl IntoView {
    let shortcuts = expect_context::<Shortcuts>();
    view! {
        <footer class="foot">
            {if is_report() {
                view! { <span>"A report: it shows what lies in this file, asks nobody and keeps nothing."</span> }
                    .into_any()
            } else {
                view! {
                    <span>"Keys stay in this tab and go to their provider only."</span>
                    <span>"Journal: kept in this browser, written after every effect."</span>
                }
                    .into_any()
            }}
            <button type="button" class="link" on:click=move |_| shortcuts.show()>
                "Keyboard"
            </button>
        </footer>
    }
}
