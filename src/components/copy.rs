//! Text for the clipboard.

use gloo_timers::callback::Timeout;
use leptos::prelude::*;
use wasm_bindgen_futures::{JsFuture, spawn_local};

/// How long a button says that it has copied, in milliseconds.
const SAID: u32 = 4_000;

/// A button that puts a text on the clipboard and says so.
#[component]
pub fn Copy(
    /// The text, once there is one.
    #[prop(into)]
    text: Signal<Option<String>>,
    /// What the button says.
    words: &'static str,
    /// What is read out once it is copied.
    spoken: &'static str,
    /// What to do where the browser does not let the page copy.
    otherwise: &'static str,
    /// Whether it is what the page is for.
    #[prop(optional)]
    primary: bool,
) -> impl IntoView {
    let said = RwSignal::new(None::<Result<(), ()>>);
    let copy = move |_| {
        let Some(text) = text.get_untracked() else {
            return;
        };
        spawn_local(async move {
            let copied = write(&text).await;
            // The page may be left by then, and later on, too.
            let _ = said.try_set(Some(copied));
            if copied.is_ok() {
                Timeout::new(SAID, move || {
                    let _ = said.try_set(None);
                })
                .forget();
            }
        });
    };
    let is_copied = move || said.get() == Some(Ok(()));
    let refused = move || {
        (said.get() == Some(Err(()))).then(|| {
            view! {
                <span class="note is-i" role="alert">
                    "This browser did not let the page copy. " {otherwise}
                </span>
            }
        })
    };
    view! {
        <button type="button" class:primary=primary on:click=copy>
            {move || if is_copied() { "Copied" } else { words }}
        </button>
        <span class="sr" role="status">{move || if is_copied() { spoken } else { "" }}</span>
        {refused}
    }
}

/// Writes to the clipboard. Pages that were not loaded over a secure connection have none.
async fn write(text: &str) -> Result<(), ()> {
    if !window().is_secure_context() {
        return Err(());
    }
    let promise = window().navigator().clipboard().write_text(text);
    JsFuture::from(promise).await.map(|_| ()).map_err(|_| ())
}
