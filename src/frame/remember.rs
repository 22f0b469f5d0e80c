//! Keys remembered on this device, and taken out again.

use leptos::html::Dialog;
use leptos::prelude::*;
use wasm_bindgen_futures::spawn_local;

use super::keys::TabKeys;
use super::passphrase::{Done, PassphraseDialog, Purpose};
use crate::components::{close_dialog, open_dialog};
use crate::format;
use crate::vault;

/// The keys kept on this device, for every place that asks for one.
#[derive(Clone, Copy)]
pub struct KeptKeys {
    /// Whether there are any.
    kept: RwSignal<bool>,
    /// Whether this tab has them.
    unlocked: RwSignal<bool>,
    said: RwSignal<Option<String>>,
    purpose: RwSignal<Purpose>,
    passphrase: NodeRef<Dialog>,
    question: NodeRef<Dialog>,
}

impl Default for KeptKeys {
    fn default() -> Self {
        let kept = RwSignal::new(false);
        spawn_local(async move {
            // A browser that keeps nothing has kept no keys.
            kept.set(vault::is_kept().await.unwrap_or_default());
        });
        Self {
            kept,
            unlocked: RwSignal::new(false),
            said: RwSignal::new(None),
            purpose: RwSignal::new(Purpose::Keep),
            passphrase: NodeRef::new(),
            question: NodeRef::new(),
        }
    }
}

impl KeptKeys {
    fn ask(self, what: Purpose) {
        self.purpose.set(what);
        open_dialog(self.passphrase);
    }
}

/// The dialogs that [`Remember`] and [`Unlock`] open, once for all pages: outside of their forms, being
/// forms of their own.
#[component]
pub fn KeptKeysDialogs() -> impl IntoView {
    let keys = expect_context::<TabKeys>();
    let all = expect_context::<KeptKeys>();
    let forget = Callback::new(move |()| {
        spawn_local(async move {
            let words = match vault::forget().await {
                Ok(()) => {
                    all.kept.set(false);
                    "Forgotten on this device. This tab still holds them.".to_owned()
                }
                Err(error) => error.to_string(),
            };
            all.said.set(Some(words));
        });
    });
    let done = Callback::new(move |done: Done| {
        all.kept.set(true);
        all.unlocked.set(true);
        all.said.set(Some(match done {
            Done::Kept => "Kept, encrypted. The passphrase is kept nowhere.".into(),
            Done::Unlocked(homeless) => unlocked_words(&untrack(|| keys.names()), &homeless),
        }));
    });
    // The box shows what is, not what was about to be.
    let closed = Callback::new(move |()| all.kept.notify());
    view! {
        <PassphraseDialog dialog=all.passphrase purpose=all.purpose done closed/>
        <ForgetDialog dialog=all.question forget closed/>
    }
}

/// The switch that remembers keys, and the way to those remembered.
#[component]
pub fn Remember() -> impl IntoView {
    let all = expect_context::<KeptKeys>();
    let change = move |event| {
        if event_target_checked(&event) {
            all.ask(Purpose::Keep);
        } else {
            open_dialog(all.question);
        }
    };
    view! {
        <label class="choice">
            <input type="checkbox" prop:checked=move || all.kept.get() on:change=change/>
            <span>"Remember on this device, encrypted with a passphrase"</span>
        </label>
        <Unlock/>
        <Show when=move || all.kept.get() && all.unlocked.get()>
            <p>
                <button type="button" class="link" on:click=move |_| all.ask(Purpose::Keep)>
                    "Keep the keys of this tab anew"
                </button>
            </p>
        </Show>
    }
}

/// The way to the keys kept here, where there are any that this tab does not have.
#[component]
pub fn Unlock() -> impl IntoView {
    let all = expect_context::<KeptKeys>();
    view! {
        <Show when=move || all.kept.get() && !all.unlocked.get()>
            <p>
                <button type="button" class="link" on:click=move |_| all.ask(Purpose::Unlock)>
                    "Unlock the keys kept here"
                </button>
            </p>
        </Show>
        {move || all.said.get().map(|words| view! { <p role="status">{words}</p> })}
    }
}

/// Asks once; the safe answer has the focus.
#[component]
fn ForgetDialog(dialog: NodeRef<Dialog>, forget: Callback<()>, closed: Callback<()>) -> impl IntoView {
    let close = move || close_dialog(dialog);
    view! {
        <dialog node_ref=dialog aria-labelledby="forget-title" on:close=move |_| closed.run(())>
            <div class="sheet">
                <h2 id="forget-title">"Forget the keys kept here?"</h2>
                <p>"They are deleted from this device and must be typed again in another tab. This tab still holds those it has."</p>
                <footer>
                    <button type="button" autofocus on:click=move |_| close()>
                        "Keep"
                    </button>
                    <button
                        type="button"
                        class="danger"
                        on:click=move |_| {
                            forget.run(());
                            close();
                        }
                    >
                        "Forget"
                    </button>
                </footer>
            </div>
        </dialog>
    }
}

/// Whose keys this tab holds now, and which could not be taken out.
fn unlocked_words(names: &[String], homeless: &[String]) -> String {
    let taken = match names {
        [] => "None was taken out.".to_owned(),
        names => format!("Taken out: {}.", names.join(", ")),
    };
    if homeless.is_empty() {
        return taken;
    }
    format!(
        "{taken} An older page kept {} without the server it is for: type it again beside its base URL.",
        format::listed(homeless)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_without_a_server_are_asked_for_again() {
        let words = unlocked_words(&["OpenAI".into()], &["AGENT_SERVER_KEY".into()]);
        assert!(words.starts_with("Taken out: OpenAI. "), "{words}");
        assert!(words.contains("AGENT_SERVER_KEY"), "{words}");
    }
}
