//! Files a person chooses.

use leptos::html::Input;
use leptos::prelude::*;
use web_sys::File;

/// A button that has the browser ask for files.
#[component]
pub fn Choose(
    /// What it says.
    words: &'static str,
    /// What the files are called.
    label: &'static str,
    /// The endings of their names, parted by commas; empty for any.
    accept: &'static str,
    /// Whether several may be chosen.
    #[prop(optional)]
    multiple: bool,
    /// Whether a folder is chosen, with all its files.
    #[prop(optional)]
    folder: bool,
    /// Whether none may be chosen now.
    #[prop(optional)]
    disabled: Signal<bool>,
    chosen: Callback<Vec<File>>,
) -> impl IntoView {
    let input = NodeRef::<Input>::new();
    let open = move |_| {
        if disabled.get_untracked() {
            return;
        }
        if let Some(input) = input.get_untracked() {
            input.click();
        }
    };
    let change = move |_| {
        let Some(input) = input.get_untracked() else {
            return;
        };
        let files = input.files();
        let files = files
            .iter()
            .flat_map(|files| (0..files.length()).filter_map(|place| files.get(place)));
        chosen.run(files.collect());
        // The same can be chosen again.
        input.set_value("");
    };
    view! {
        <button type="button" aria-disabled=move || disabled.get().then_some("true") on:click=open>
            {words}
        </button>
        <input
            node_ref=input
            type="file"
            accept=accept
            multiple=multiple
            prop:webkitdirectory=folder
            hidden
            aria-label=label
            on:change=change
        />
    }
}
