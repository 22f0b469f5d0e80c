//! Keyboard focus when the address changes: routes change without the browser loading a page, so
//! it moves the focus nowhere by itself.

use std::time::Duration;

use leptos::prelude::*;
use leptos_router::hooks::use_location;
use wasm_bindgen::JsCast;
use web_sys::{Element, HtmlElement};

use crate::components::in_turn;

/// Moves the focus to what the address names, else to the title of a page that was gone to. A focus that
/// somebody has inside of the page stays, as when candidates are leafed through by keyboard.
pub(super) fn follow_address() {
    let location = use_location();
    Effect::new(move |last: Option<(String, String)>| {
        let now = (location.pathname.get(), location.hash.get());
        let Some((path, hash)) = last else { return now };
        let (moved, named) = (path != now.0, hash != now.1);
        if moved || named {
            let target = now.1.trim_start_matches('#').to_owned();
            // The page is there once the router has had its task, and what the page draws in turn once
            // that has had its own.
            let after_router = move || in_turn(move || go(&target, moved));
            set_timeout(after_router, Duration::ZERO);
        }
        now
    });
}

/// Moves the focus to what the address names, once a page has drawn what it had to ask for first, unless somebody has put
/// it elsewhere meanwhile.
pub fn go_to_named(hash: &str) {
    let active = document().active_element();
    if active.is_none_or(|active| active.matches("body, #main, main h1").unwrap_or_default()) {
        go(hash.trim_start_matches('#'), false);
    }
}

fn go(target: &str, moved: bool) {
    let named = document()
        .get_element_by_id(target)
        .filter(|_| !target.is_empty());
    match named {
        Some(named) => focus(&named),
        None if moved && !is_inside() => {
            let title = document().query_selector("main h1").ok().flatten();
            if let Some(title) = title.or_else(|| document().get_element_by_id("main")) {
                focus(&title);
            }
        }
        None => {}
    }
}

/// Whether something inside of the page has the focus.
fn is_inside() -> bool {
    let active = document().active_element();
    active.is_some_and(|active| active.closest("main").is_ok_and(|main| main.is_some()))
}

/// Focuses an element, and makes it able to take the focus where it is not by itself.
fn focus(element: &Element) {
    let Some(element) = element.dyn_ref::<HtmlElement>() else {
        return;
    };
    if element.tab_index() < 0 && !element.has_attribute("tabindex") {
        // Fails for no attribute of this name.
        let _ = element.set_attribute("tabindex", "-1");
    }
    // An element that is not shown takes no focus: then it stays where it is.
    let _ = element.focus();
}
