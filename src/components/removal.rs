//! Keyboard focus after its button goes: a browser drops it, and the next Tab would begin at the
//! top of the page.

use std::time::Duration;

use leptos::prelude::*;
use wasm_bindgen::JsCast;
use web_sys::{Element, Event, HtmlElement};

use super::in_turn;

/// Buttons of the page itself, but for those of questions that are not asked.
const BUTTONS: &str = "main button:enabled:not(dialog:not([open]) *)";
/// Whatever takes the focus in a group of fields.
const CONTROLS: &str = "button:enabled, input:enabled, select:enabled, textarea:enabled";

/// Does what a button says that goes by it, such as "Remove". The focus then goes to the button of the same name that
/// is in its place or was before it, else into the fields around it.
pub fn removing(event: &Event, remove: impl FnOnce()) {
    let button = event
        .current_target()
        .and_then(|target| target.dyn_into::<Element>().ok());
    removing_by(button, remove);
}

/// The same once a question was answered that the button had asked.
pub fn removing_by(button: Option<Element>, remove: impl FnOnce()) {
    let left = button.map(|button| {
        let name = name(&button);
        let twins = named(&name);
        let place = twins.iter().position(|twin| *twin == button);
        let around = button
            .parent_element()
            .and_then(|parent| parent.closest("[id]").ok().flatten());
        (name, place.unwrap_or_default(), around.map(|around| around.id()))
    });
    remove();
    let Some((name, place, around)) = left else { return };
    let focus = move || {
        if active().is_some() {
            return;
        }
        let mut twins = named(&name);
        twins.truncate(place + 1);
        let around = around.and_then(|id| document().get_element_by_id(&id));
        let in_fields = || around.and_then(|around| around.query_selector(CONTROLS).ok().flatten());
        let next = twins.pop().or_else(in_fields);
        if let Some(next) = next.and_then(|next| next.dyn_into::<HtmlElement>().ok()) {
            // One that is not shown takes none: then there is none, as before.
            let _ = next.focus();
        }
    };
    // The page is drawn anew in tasks of its own.
    set_timeout(move || in_turn(focus), Duration::ZERO);
}

/// What has the focus, unless nothing has: then the browser names the whole page.
fn active() -> Option<Element> {
    document()
        .active_element()
        .filter(|active| active.tag_name() != "BODY")
}

/// What a button says first; what follows says of what.
fn name(button: &Element) -> String {
    let first = button.first_child().and_then(|first| first.text_content());
    first.unwrap_or_default().trim().to_owned()
}

/// The buttons of a name that can be pressed, from the top of the page.
fn named(wanted: &str) -> Vec<Element> {
    let Ok(buttons) = document().query_selector_all(BUTTONS) else {
        return Vec::new();
    };
    let buttons = (0..buttons.length()).filter_map(|index| buttons.item(index)?.dyn_into::<Element>().ok());
    buttons.filter(|button| name(button) == wanted).collect()
}
