//! The dialog that asks for a passphrase, to keep keys with or to take them out again.

use leptos::html::Dialog;
use leptos::prelude::*;
use wasm_bindgen_futures::spawn_local;

use super::keys::TabKeys;
use crate::components::close_dialog;
use crate::vault;

/// Letters a passphrase must have at least.
const LEAST: usize = 8;

/// What the dialog is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Purpose {
    /// To keep the keys of this tab.
    Keep,
    /// To take out those that are kept.
    Unlock,
}

/// What came of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Done {
    /// The keys of this tab are kept.
    Kept,
    /// The keys kept are in this tab; those of these variables belong to no known server.
    Unlocked(Vec<String>),
}

/// Asks for a passphrase.
#[component]
pub(super) fn PassphraseDialog(
    dialog: NodeRef<Dialog>,
    purpose: RwSignal<Purpose>,
    done: Callback<Done>,
    closed: Callback<()>,
) -> impl IntoView {
    let keys = expect_context::<TabKeys>();
    let first = RwSignal::new(String::new());
    let second = RwSignal::new(String::new());
    let busy = RwSignal::new(false);
    let failed = RwSignal::new(None::<String>);
    let close = move || close_dialog(dialog);
    let clear = move |_| {
        for field in [first, second] {
            field.set(String::new());
        }
        failed.set(None);
        closed.run(());
    };
    let keeps = move || purpose.get() == Purpose::Keep;
    let problem = move || first.with(|first| second.with(|second| objection(purpose.get(), first, second)));
    let go = move |event: leptos::ev::SubmitEvent| {
        event.prevent_default();
        if busy.get_untracked() || untrack(problem).is_some() {
            return;
        }
        let (what, passphrase) = (purpose.get_untracked(), first.get_untracked());
        busy.set(true);
        spawn_local(async move {
            let result = match what {
                Purpose::Keep => vault::remember(&keys.now(), &passphrase)
                    .await
                    .map(|()| Done::Kept),
                Purpose::Unlock => vault::recall(&passphrase).await.map(|content| {
                    keys.extend(content.keys);
                    Done::Unlocked(content.homeless)
                }),
            };
            // The page may be gone by now.
            let _ = busy.try_set(false);
            match result {
                Ok(what) => {
                    done.run(what);
                    close();
                }
                Err(error) => {
                    let _ = failed.try_set(Some(error.to_string()));
                }
            }
        });
    };
    let title = move || {
        if keeps() {
            "Remember the keys of this tab"
        } else {
            "Unlock the keys kept here"
        }
    };
    let explanation = move || {
        if keeps() {
            "They are encrypted with this passphrase (AES-GCM, PBKDF2 with 600,000 rounds) and kept in this browser. \
             Whoever forgets the passphrase types the keys again."
        } else {
            "They come into this tab’s memory and stay encrypted on this device."
        }
    };
    view! {
        <dialog node_ref=dialog aria-labelledby="passphrase-title" on:close=clear>
            <form class="sheet" on:submit=go>
                <h2 id="passphrase-title">{title}</h2>
                <p>{explanation}</p>
                <PassphraseField id="passphrase" label="Passphrase" value=first first=true/>
                <Show when=keeps>
                    <PassphraseField id="passphrase-again" label="The same once more" value=second/>
                    <Strength passphrase=first/>
                </Show>
                <p class="note" id="passphrase-why">
                    {problem}
                </p>
                {move || {
                    failed.get().map(|message| view! { <div class="msg" role="alert"><b>{message}</b></div> })
                }}
                <footer>
                    <button type="button" on:click=move |_| close()>
                        "Cancel"
                    </button>
                    <button type="submit" disabled=move || busy.get() || problem().is_some()>
                        {move || if keeps() { "Remember" } else { "Unlock" }}
                    </button>
                </footer>
            </form>
        </dialog>
    }
}

#[component]
fn PassphraseField(
    id: &'static str,
    label: &'static str,
    value: RwSignal<String>,
    /// Whether it has the focus when the dialog opens.
    #[prop(optional)]
    first: bool,
) -> impl IntoView {
    view! {
        <div class="field">
            <label for=id>{label}</label>
            <input
                id=id
                type="password"
                autocomplete="off"
                autofocus=first
                aria-describedby="passphrase-why"
                prop:value=move || value.get()
                on:input=move |event| value.set(event_target_value(&event))
            />
        </div>
    }
}

/// Why a passphrase does not do, if it does not.
fn objection(purpose: Purpose, first: &str, second: &str) -> Option<&'static str> {
    match purpose {
        _ if first.is_empty() => Some("Type a passphrase."),
        Purpose::Keep if first.chars().count() < LEAST => {
            Some("Use at least 8 characters; several words are best.")
        }
        Purpose::Keep if first != second => Some("Type the same passphrase twice."),
        Purpose::Keep | Purpose::Unlock => None,
    }
}

/// How hard a passphrase is to guess: a word, and a share of a bar.
fn strength(passphrase: &str) -> (&'static str, f64) {
    let kinds: [fn(char) -> bool; 4] = [
        |letter| letter.is_lowercase(),
        |letter| letter.is_uppercase(),
        |letter| letter.is_numeric(),
        |letter| !letter.is_alphanumeric(),
    ];
    let used = kinds.iter().filter(|kind| passphrase.chars().any(kind)).count();
    let distinct = passphrase
        .chars()
        .collect::<std::collections::BTreeSet<char>>()
        .len();
    // Length counts most; letters said again add little.
    let points = passphrase.chars().count().min(2 * distinct) + 2 * used;
    let word = match points {
        0..14 => "weak",
        14..22 => "fair",
        _ => "strong",
    };
    (word, (points as f64 / 28.0).min(1.0))
}

#[component]
fn Strength(passphrase: RwSignal<String>) -> impl IntoView {
    let judged = Memo::new(move |_| passphrase.with(|passphrase| strength(passphrase)));
    view! {
        <div class="strength">
            <div class="bar" aria-hidden="true">
                <i style:--share=move || format!("{:.0}%", 100.0 * judged.get().1)></i>
            </div>
            <span>{move || judged.get().0}</span>
        </div>
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn length_makes_a_passphrase_strong() {
        assert_eq!(strength("aaaaaaaaaaaaaaaaaaaaaaaa").0, "weak");
        assert_eq!(strength("Tr0ub4dor&3").0, "fair");
        assert_eq!(strength("correct horse battery staple").0, "strong");
    }

    #[test]
    fn a_passphrase_is_typed_twice_before_it_counts() {
        assert!(objection(Purpose::Keep, "long enough", "long enougj").is_some());
        assert_eq!(objection(Purpose::Keep, "long enough", "long enough"), None);
        assert!(objection(Purpose::Keep, "short", "short").is_some());
        assert_eq!(objection(Purpose::Unlock, "short", ""), None);
    }
}
