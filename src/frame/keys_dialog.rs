//! The keys of this tab: whose they are, another in place of one, and those kept on this device.

use leptos::html::Dialog;
use leptos::prelude::*;
use leptos_router::components::A;

use super::keys::{KeysShown, TabKeys};
use super::remember::Remember;
use crate::components::{KeyField, close_dialog, open_dialog};
use crate::keys::Destination;

/// Shows the keys that this tab holds; opened from the top bar.
#[component]
pub fn KeysDialog() -> impl IntoView {
    let keys = expect_context::<TabKeys>();
    let KeysShown(shown) = expect_context();
    let dialog = NodeRef::<Dialog>::new();
    Effect::new(move |_| {
        if shown.get() && dialog.get().is_some() {
            open_dialog(dialog);
        }
    });
    let close = move || close_dialog(dialog);
    // A key that is being deleted letter by letter keeps its field as long as the dialog is open.
    let listed = Memo::new(move |before: Option<&Vec<Destination>>| {
        let mut listed = keys.with(|keys| keys.destinations().cloned().collect::<Vec<_>>());
        if shown.get() {
            listed.extend(before.into_iter().flatten().cloned());
        }
        listed.sort();
        listed.dedup();
        listed
    });
    view! {
        <dialog node_ref=dialog aria-labelledby="keys-title" on:close=move |_| shown.set(false)>
            <div class="sheet">
                <h2 id="keys-title">"Keys of this tab"</h2>
                <p>"They lie in the memory of this tab, and each goes to the server it was typed for only."</p>
                <Show
                    when=move || listed.with(|listed| !listed.is_empty())
                    fallback=move || {
                        view! {
                            <p>
                                "None yet. A key is typed beside its model, in "
                                <A href="/study" on:click=move |_| close()>
                                    "New study"
                                </A> "."
                            </p>
                        }
                    }
                >
                    <For each=move || listed.get() key=Clone::clone let(to)>
                        <KeyField to within="tab-key"/>
                    </For>
                </Show>
                <Remember/>
                <footer>
                    <button type="button" autofocus on:click=move |_| close()>
                        "Close"
                    </button>
                </footer>
            </div>
        </dialog>
    }
}
