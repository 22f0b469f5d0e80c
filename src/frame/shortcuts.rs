//! Single-letter shortcuts, and the dialog that lists them.

use std::collections::BTreeMap;

use leptos::ev;
use leptos::html::Dialog;
use leptos::prelude::*;
use wasm_bindgen::JsCast;
use web_sys::{Element, HtmlElement, KeyboardEvent};

use crate::storage::{keep_choice, kept_choice};

/// Where the choice to do without single letters is kept.
const OFF: &str = "capo.shortcuts";

/// What every page answers to, for the list.
const EVERYWHERE: [(&str, &str); 6] = [
    (
        "Tab",
        "skip link, top bar, actions, then plates in letter order; a chart is one stop",
    ),
    (
        "arrows",
        "within a chart or the heat table: Home and End first and last, Enter opens, the space bar pins a prompt to be \
         compared, Esc leaves; up and down in the list of runs",
    ),
    ("g, then a letter", "focus that plate"),
    ("t", "this plate as table, and back"),
    (
        "PageUp, PageDown",
        "ten rows of the heat table or the list of runs",
    ),
    ("?", "this list"),
];

/// A key of the page shown now.
#[derive(Clone)]
struct Shortcut {
    does: &'static str,
    run: Callback<()>,
}

/// The single letters that pages answer to.
#[derive(Clone, Copy)]
pub struct Shortcuts {
    known: RwSignal<BTreeMap<&'static str, Shortcut>>,
    on: RwSignal<bool>,
    open: RwSignal<bool>,
}

impl Default for Shortcuts {
    fn default() -> Self {
        Self {
            known: RwSignal::new(BTreeMap::new()),
            on: RwSignal::new(kept_choice(OFF).as_deref() != Some("off")),
            open: RwSignal::new(false),
        }
    }
}

impl Shortcuts {
    /// Shows the list.
    pub fn show(self) {
        self.open.set(true);
    }

    fn switch(self, on: bool) {
        self.on.set(on);
        keep_choice(OFF, (!on).then_some("off"));
    }
}

/// Answers to `key` as long as the caller's page is shown; `does` says what it does, for the list.
pub fn use_shortcut(key: &'static str, does: &'static str, run: impl Fn() + Send + Sync + 'static) {
    let Some(shortcuts) = use_context::<Shortcuts>() else {
        return;
    };
    let run = Callback::new(move |()| run());
    shortcuts.known.update(|known| {
        known.insert(key, Shortcut { does, run });
    });
    on_cleanup(move || {
        shortcuts.known.update(|known| {
            known.remove(key);
        });
    });
}

/// Listens for the keys of all pages. Mounted once.
#[component]
pub fn ShortcutKeys() -> impl IntoView {
    let shortcuts = expect_context::<Shortcuts>();
    // `g` was pressed and a plate's letter is expected.
    let going = RwSignal::new(false);
    let listener = window_event_listener(ev::keydown, move |event| {
        if !shortcuts.on.get_untracked() && event.key() != "?" {
            return;
        }
        if event.ctrl_key() || event.meta_key() || event.alt_key() || is_typing(&event) {
            return;
        }
        let key = event.key();
        if key == " " && is_pressed_by_space(&event) {
            return;
        }
        if going.get_untracked() {
            going.set(false);
            if focus_plate(&key.to_uppercase()) {
                event.prevent_default();
            }
            return;
        }
        let known = shortcuts
            .known
            .with_untracked(|known| known.get(key.as_str()).cloned());
        match (known, key.as_str()) {
            (Some(shortcut), _) => shortcut.run.run(()),
            (None, "?") => shortcuts.open.set(true),
            (None, "g") => going.set(true),
            (None, "t") => toggle_table(),
            _ => return,
        }
        event.prevent_default();
    });
    on_cleanup(move || listener.remove());
    view! { <Keyboard shortcuts/> }
}

/// Whether the key goes into a field, or steers something of its own.
fn is_typing(event: &KeyboardEvent) -> bool {
    let target = event
        .target()
        .and_then(|target| target.dyn_into::<Element>().ok());
    target.is_some_and(|target| {
        let own = match target.tag_name().as_str() {
            "INPUT" => target
                .get_attribute("type")
                .is_none_or(|kind| !matches!(kind.as_str(), "checkbox" | "radio" | "range")),
            "TEXTAREA" | "SELECT" => true,
            _ => target.has_attribute("contenteditable"),
        };
        own || target.closest("dialog").is_ok_and(|dialog| dialog.is_some())
    })
}

/// Whether the space bar presses what has the focus.
fn is_pressed_by_space(event: &KeyboardEvent) -> bool {
    let target = event
        .target()
        .and_then(|target| target.dyn_into::<Element>().ok());
    target.is_some_and(|target| {
        let pressed = target.closest("button, a, summary, input:not([type=range]), [role=button]");
        pressed.is_ok_and(|pressed| pressed.is_some())
    })
}

fn focus_plate(letter: &str) -> bool {
    let plate = document().get_element_by_id(&format!("plate-{letter}"));
    let Some(plate) = plate.and_then(|plate| plate.dyn_into::<HtmlElement>().ok()) else {
        return false;
    };
    // A plate can take the focus; the browser scrolls to it.
    plate.focus().is_ok()
}

/// Opens or closes the table of the plate that has the focus.
fn toggle_table() {
    let active = document().active_element();
    let plate = active.and_then(|active| active.closest(".plate").ok().flatten());
    let summary = plate.and_then(|plate| plate.query_selector(".astable > summary").ok().flatten());
    if let Some(summary) = summary.and_then(|summary| summary.dyn_into::<HtmlElement>().ok()) {
        summary.click();
    }
}

#[component]
fn Keyboard(shortcuts: Shortcuts) -> impl IntoView {
    let node = NodeRef::<Dialog>::new();
    Effect::new(move |_| {
        if let (true, Some(dialog)) = (shortcuts.open.get(), node.get())
            && !dialog.open()
        {
            // Fails only for a dialog that is open.
            let _ = dialog.show_modal();
        }
    });
    let here = move || {
        shortcuts.known.with(|known| {
            known
                .iter()
                .map(|(key, shortcut)| (*key, shortcut.does))
                .collect::<Vec<_>>()
        })
    };
    let row = |(key, does): (&'static str, &'static str)| {
        view! {
            <dt>
                <kbd>{if key == " " { "space" } else { key }}</kbd>
            </dt>
            <dd>{does}</dd>
        }
    };
    view! {
        <dialog node_ref=node aria-labelledby="keyboard-title" on:close=move |_| shortcuts.open.set(false)>
            <form method="dialog">
                <h2 id="keyboard-title">"Keyboard"</h2>
                <dl class="keys">
                    {EVERYWHERE.into_iter().map(row).collect_view()}
                    {move || here().into_iter().map(row).collect_view()}
                </dl>
                <label class="choice">
                    <input
                        type="checkbox"
                        prop:checked=move || shortcuts.on.get()
                        on:change=move |event| shortcuts.switch(event_target_checked(&event))
                    />
                    "Single letters do something"
                </label>
                <div class="row">
                    <button autofocus>"Close"</button>
                </div>
            </form>
        </dialog>
    }
}
