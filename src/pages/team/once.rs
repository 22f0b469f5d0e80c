//! Secrets that are shown once.

use leptos::prelude::*;

use crate::components::Copy;

/// A secret with a button that copies it, once there is one.
#[component]
pub(super) fn Once(
    /// What it is and what becomes of it.
    what: &'static str,
    /// What it is called.
    label: &'static str,
    secret: RwSignal<Option<String>>,
) -> impl IntoView {
    let select = move |event: web_sys::FocusEvent| {
        event_target::<web_sys::HtmlInputElement>(&event).select();
    };
    view! {
        <div role="status">
            <Show when=move || secret.with(Option::is_some)>
                <div class="msg info">
                    <b>{what}</b>
                    <div class="row">
                        <input
                            class="code once"
                            type="text"
                            readonly
                            aria-label=label
                            prop:value=move || secret.get().unwrap_or_default()
                            on:focus=select
                        />
                        <Copy text=secret words="Copy" spoken="It is on the clipboard." otherwise="Select the text."/>
                    </div>
                </div>
            </Show>
        </div>
    }
}
