//! The footer of all pages.

use leptos::prelude::*;

use super::about::about;
use super::address::{base, use_page};
use super::shortcuts::Shortcuts;
use crate::components::Glossary;
use crate::storage::is_report;

/// What lies beside the page on its host, to read on: the method as its paper has it, and what the page does.
const DOCUMENTS: [(&str, &str); 2] = [("method.md", "The method"), ("playground.md", "Documentation")];

/// Where keys and journals stay, what the page shows, the list of keys, and what there is to read.
#[component]
pub fn Foot() -> impl IntoView {
    let shortcuts = expect_context::<Shortcuts>();
    let glossary = expect_context::<Glossary>();
    let page = use_page();
    let document = |(file, name): (&str, &'static str)| {
        view! { <a href=format!("{}/docs/{file}", base()) target="_blank">{name}</a> }
    };
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
            <button type="button" class="link" on:click=move |_| glossary.explain_page(about(&page.get_untracked()))>
                "Explain this page"
            </button>
            <button type="button" class="link" on:click=move |_| shortcuts.show()>
                "Keyboard"
            </button>
            {(!is_report()).then(|| DOCUMENTS.map(document))}
        </footer>
    }
}
