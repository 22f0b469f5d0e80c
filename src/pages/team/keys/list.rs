//! All shared keys, and the form for another or a changed one.

use std::time::Duration;

use capo_api::{KeyShown, LimitScope, UsageShown};
use leptos::prelude::*;
use wasm_bindgen::JsCast;
use web_sys::HtmlElement;

use super::super::list::{List, Listing};
use super::super::removal::Removal;
use super::fields::{FIRST, KeyForm};
use super::usage::is_today;
use super::written::{asked, limits, title};
use crate::format::{NOTHING, dollars};
use crate::team::Server;

/// All keys, each with what was used of it today.
#[component]
pub(super) fn KeyList(used: Listing<UsageShown>) -> impl IntoView {
    let key = |key: &KeyShown| key.name.clone();
    let listing = Listing::new(key, async |server: Server| server.keys().await);
    // The name of the key that is being changed.
    let changing = RwSignal::new(None::<String>);
    let cells = move |key: KeyShown| {
        let name = key.name.clone();
        let off = listing.without(&key);
        let of_removed = name.clone();
        let gone = Callback::new(move |()| {
            changing.update(|changing| {
                changing.take_if(|changing| *changing == of_removed);
            });
            off.run(());
        });
        let key = listing.row(key);
        let text = |words: fn(&KeyShown) -> String| move || key.with(words);
        let shut = move || {
            let is_usable = key.with(|key| key.is_usable);
            (!is_usable).then(
                || view! { <div class="note is-i">"cannot be opened with the server’s master key"</div> },
            )
        };
        let of_key = name.clone();
        let today = move || {
            let rows = used.rows();
            let mut today = rows
                .into_iter()
                .filter(|used| used.scope == LimitScope::Key && used.name == of_key && is_today(used));
            today.next().map_or_else(
                || NOTHING.to_owned(),
                |used| format!("{}, {}", dollars(Some(used.usd)), asked(used.requests)),
            )
        };
        let of_change = name.clone();
        let change = move |_| {
            changing.set(Some(of_change.clone()));
            focus_later(FIRST.to_owned());
        };
        let (of_removal, of) = (name.clone(), format!("the key {name}"));
        let remove = async move |server: Server| server.delete_key(&of_removal).await;
        let consequence = "What asks with it is refused from then on. What it cost stays known.";
        let buttons = view! {
            <div class="row">
                <button type="button" class="link" id=button_id(&name) on:click=change>
                    "Change"
                    <span class="sr">" " {of.clone()}</span>
                </button>
                <Removal words=("Delete", "Deleting…") of consequence remove gone/>
            </div>
        };
        let named = view! { <code>{name}</code> {shut} };
        vec![
            named.into_any(),
            text(provider).into_any(),
            text(models).into_any(),
            text(|key| or_nothing(key.settings.projects.join(", "))).into_any(),
            text(|key| limits(key.limits)).into_any(),
            today.into_any(),
            buttons.into_any(),
        ]
    };
    let form = move || {
        let before = changing.get().and_then(|name| {
            let rows = untrack(|| listing.rows());
            rows.into_iter().find(|key| key.name == name)
        });
        let done = Callback::new(move |()| {
            if let Some(name) = changing.get_untracked() {
                changing.set(None);
                focus_later(button_id(&name));
            }
        });
        let heading = match &before {
            Some(key) => format!("Change the key {}", key.name),
            None => "Add a key".to_owned(),
        };
        view! {
            <h3>{heading}</h3>
            <KeyForm before done/>
        }
    };
    let columns = &[
        "Name",
        "Provider",
        "Models",
        "Projects",
        "Limits a day",
        "Used today (UTC)",
        "",
    ];
    let empty = "None. With one, members ask models without having the provider’s key.";
    view! {
        <List id="keys" title="Keys" listing columns empty cells>
            {form}
        </List>
    }
}

fn provider(key: &KeyShown) -> String {
    let title = title(&key.settings.provider);
    match &key.settings.base_url {
        Some(address) => format!("{title}, {address}"),
        None => title.to_owned(),
    }
}

fn models(key: &KeyShown) -> String {
    let names = key.settings.models.iter().map(|model| model.name.as_str());
    or_nothing(names.collect::<Vec<_>>().join(", "))
}

fn or_nothing(text: String) -> String {
    if text.is_empty() { NOTHING.to_owned() } else { text }
}

fn button_id(key: &str) -> String {
    format!("change-key-{key}")
}

/// Moves the focus to an element that is drawn in a task of its own.
fn focus_later(id: String) {
    let focus = move || {
        let element = document().get_element_by_id(&id);
        if let Some(element) = element.and_then(|element| element.dyn_into::<HtmlElement>().ok()) {
            // What is in the page takes the focus.
            let _ = element.focus();
        }
    };
    set_timeout(focus, Duration::ZERO);
}
