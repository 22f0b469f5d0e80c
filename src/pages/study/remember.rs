//! Keys remembered on this device, and taken out again.

use leptos::html::Dialog;
use leptos::prelude::*;
use wasm_bindgen_futures::spawn_local;

use super::form::Form;
use crate::vault;

/// Letters a passphrase must have at least.
const LEAST: usize = 8;

/// What the dialog is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Purpose {
    Keep,
    Unlock,
}

/// The switch that remembers keys, and the way to those remembered.
#[component]
pub(super) fn Remember() -> impl IntoView {
    let form = expect_context::<Form>();
    let kept = RwSignal::new(false);
    let unlocked = RwSignal::new(false);
    let said = RwSignal::new(None::<String>);
    let dialog = NodeRef::<Dialog>::new();
    let purpose = RwSignal::new(Purpose::Keep);
    spawn_local(async move {
        // A browser that keeps nothing has kept no keys.
        let there = vault::is_kept().await.unwrap_or_default();
        // The page may be gone by now.
        let _ = kept.try_set(there);
    });
    let ask = move |what: Purpose| {
        purpose.set(what);
        if let Some(dialog) = dialog.get_untracked() {
            // Fails only when it is open already.
            let _ = dialog.show_modal();
        }
    };
    let change = move |event| {
        if event_target_checked(&event) {
            ask(Purpose::Keep);
        } else {
            spawn_local(async move {
                match vault::forget().await {
                    Ok(()) => {
                        kept.set(false);
                        said.set(Some(
                            "Forgotten on this device. This tab still holds them.".into(),
                        ));
                    }
                    Err(error) => said.set(Some(error.to_string())),
                }
            });
        }
    };
    let done = Callback::new(move |what: Purpose| {
        kept.set(true);
        unlocked.set(true);
        said.set(Some(match what {
            Purpose::Keep => "Kept, encrypted. The passphrase is kept nowhere.".into(),
            Purpose::Unlock => {
                let names = untrack(|| form.keys.names());
                format!("Taken out: {}.", names.join(", "))
            }
        }));
    });
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
        <PassphraseDialog dialog purpose kept done/>
    }
}

#[component]
fn PassphraseDialog(
    dialog: NodeRef<Dialog>,
    purpose: RwSignal<Purpose>,
    kept: RwSignal<bool>,
    done: Callback<Purpose>,
) -> impl IntoView {
    let form = expect_context::<Form>();
    let first = RwSignal::new(String::new());
    let second = RwSignal::new(String::new());
    let busy = RwSignal::new(false);
    let failed = RwSignal::new(None::<String>);
    let close = move || {
        if let Some(dialog) = dialog.get_untracked() {
            dialog.close();
        }
    };
    let closed = move |_| {
        for field in [first, second] {
            field.set(String::new());
        }
        failed.set(None);
        // The box shows what is, not what was about to be.
        kept.notify();
    };
    let keeps = move || purpose.get() == Purpose::Keep;
    let problem = move || first.with(|first| second.with(|second| objection(purpose.get(), first, second)));
    let go = move |_| {
        let (what, passphrase) = (purpose.get_untracked(), first.get_untracked());
        busy.set(true);
        spawn_local(async move {
            let result = match what {
                Purpose::Keep => vault::remember(&form.keys.now(), &passphrase).await,
                Purpose::Unlock => vault::recall(&passphrase)
                    .await
                    .map(|keys| form.keys.extend(keys)),
            };
            // The page may be gone by now.
            let _ = busy.try_set(false);
            match result {
                Ok(()) => {
                    done.run(what);
                    close();
                }
                Err(error) => failed.set(Some(error.to_string())),
            }
        });
    };
    let field = move |id: &'static str, label: &'static str, value: RwSignal<String>| {
        view! {
            <div class="field">
                <label for=id>{label}</label>
                <input
                    id=id
                    type="password"
                    autocomplete="off"
                    aria-describedby="passphrase-why"
                    prop:value=move || value.get()
                    on:input=move |event| value.set(event_target_value(&event))
                />
            </div>
        }
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
        <dialog node_ref=dialog aria-labelledby="passphrase-title" on:close=closed>
            <div class="sheet">
                <h2 id="passphrase-title">{title}</h2>
                <p>{explanation}</p>
                {field("passphrase", "Passphrase", first)}
                <Show when=keeps>
                    {field("passphrase-again", "The same once more", second)}
                    <Strength passphrase=first/>
                </Show>
                <p class="note" id="passphrase-why">
                    {problem}
                </p>
                {move || {
                    failed.get().map(|message| view! { <div class="msg" role="alert"><b>{message}</b></div> })
                }}
                <footer>
                    <button type="button" autofocus on:click=move |_| close()>
                        "Cancel"
                    </button>
                    <button
                        type="button"
                        disabled=move || busy.get() || problem().is_some()
                        on:click=go
                    >
                        {move || if keeps() { "Remember" } else { "Unlock" }}
                    </button>
                </footer>
            </div>
        </dialog>
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
