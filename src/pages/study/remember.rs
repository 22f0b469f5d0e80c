//! Keys remembered on this device, and taken out again.

use leptos::html::Dialog;
use leptos::prelude::*;
use wasm_bindgen_futures::spawn_local;

use super::form::Form;
use super::passphrase::{Done, PassphraseDialog, Purpose};
use crate::format;
use crate::vault;

/// The switch that remembers keys, and the way to those remembered.
#[component]
pub(super) fn Remember() -> impl IntoView {
    let form = expect_context::<Form>();
    let kept = RwSignal::new(false);
    let unlocked = RwSignal::new(false);
    let said = RwSignal::new(None::<String>);
    let (passphrase, question) = (NodeRef::<Dialog>::new(), NodeRef::<Dialog>::new());
    let purpose = RwSignal::new(Purpose::Keep);
    spawn_local(async move {
        // A browser that keeps nothing has kept no keys.
        let there = vault::is_kept().await.unwrap_or_default();
        // The page may be gone by now.
        let _ = kept.try_set(there);
    });
    let open = move |dialog: NodeRef<Dialog>| {
        if let Some(dialog) = dialog.get_untracked() {
            // Fails only when it is open already.
            let _ = dialog.show_modal();
        }
    };
    let ask = move |what: Purpose| {
        purpose.set(what);
        open(passphrase);
    };
    let change = move |event| {
        if event_target_checked(&event) {
            ask(Purpose::Keep);
        } else {
            open(question);
        }
    };
    let forget = Callback::new(move |()| {
        spawn_local(async move {
            let words = match vault::forget().await {
                Ok(()) => {
                    let _ = kept.try_set(false);
                    "Forgotten on this device. This tab still holds them.".to_owned()
                }
                Err(error) => error.to_string(),
            };
            let _ = said.try_set(Some(words));
        });
    });
    let done = Callback::new(move |done: Done| {
        kept.set(true);
        unlocked.set(true);
        said.set(Some(match done {
            Done::Kept => "Kept, encrypted. The passphrase is kept nowhere.".into(),
            Done::Unlocked(homeless) => unlocked_words(&untrack(|| form.keys.names()), &homeless),
        }));
    });
    // The box shows what is, not what was about to be.
    let closed = Callback::new(move |()| kept.notify());
    view! {
        <label class="choice">
            <input type="checkbox" prop:checked=move || kept.get() on:change=change/>
            <span>"Remember on this device, encrypted with a passphrase"</span>
        </label>
        <Show when=move || kept.get() && !unlocked.get()>
            <p>
                <button type="button" class="link" on:click=move |_| ask(Purpose::Unlock)>
                    "Unlock the keys kept here"
                </button>
            </p>
        </Show>
        <Show when=move || kept.get() && unlocked.get()>
            <p>
                <button type="button" class="link" on:click=move |_| ask(Purpose::Keep)>
                    "Keep the keys of this tab anew"
                </button>
            </p>
        </Show>
        {move || said.get().map(|words| view! { <p role="status">{words}</p> })}
        <PassphraseDialog dialog=passphrase purpose done closed/>
        <ForgetDialog dialog=question forget closed/>
    }
}

/// Asks once; the safe answer has the focus.
#[component]
fn ForgetDialog(dialog: NodeRef<Dialog>, forget: Callback<()>, closed: Callback<()>) -> impl IntoView {
    let close = move || {
        if let Some(dialog) = dialog.get_untracked() {
            dialog.close();
        }
    };
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
