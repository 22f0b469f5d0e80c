//! What stands below all pages.

use leptos::prelude::*;

use super::shortcuts::Shortcuts;
use crate::components::Glossary;
use crate::storage::is_report;

/// Where keys and journals stay, the glossary, and the list of keys.
#[component]
pub fn Foot() -> impl IntoView {
    let shortcuts = expect_context::<Shortcuts>();
    let glossary = expect_context::<Glossary>();
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
            <button type="button" class="link" on:click=move |_| glossary.show()>
                "Glossary"
            </button>
            <button type="button" class="link" on:click=move |_| shortcuts.show()>
                "Keyboard"
            </button>
        </footer>
    }
}
