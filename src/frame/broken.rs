//! The screen after a panic: shown when the page's own module ends by a defect.

use std::panic::{PanicHookInfo, set_hook};

use leptos::prelude::document;
use web_sys::Element;

/// From here on a panic is told on the page, beside the console: nothing on it answers afterwards.
pub(super) fn say_when_broken() {
    set_hook(Box::new(|panic: &PanicHookInfo<'_>| {
        console_error_panic_hook::hook(panic);
        // A page without a body has nobody who reads it.
        let _ = tell();
    }));
}

/// Puts the words above everything else, by the browser's own means: the module is of no more use.
fn tell() -> Option<()> {
    const ID: &str = "broken";
    if document().get_element_by_id(ID).is_some() {
        return Some(());
    }
    let message = element("div", "")?;
    message.set_id(ID);
    message.set_class_name("msg");
    message.set_attribute("role", "alert").ok()?;
    let way_out = element("p", "")?;
    let reload = element("a", "Reload the page")?;
    // To the same address, past the router.
    reload.set_attribute("href", "").ok()?;
    reload.set_attribute("rel", "external").ok()?;
    way_out.append_child(&reload).ok()?;
    for part in [
        element("b", "This page has failed and shows nothing new from here on.")?,
        element(
            "p",
            "The journal of every run is kept, with everything answered so far. After a reload a run goes on where \
             its journal ends: nothing that was answered is paid for again, but calls under way now are. What the defect says stands in the browser\u{2019}s console.",
        )?,
        way_out,
    ] {
        message.append_child(&part).ok()?;
    }
    document().body()?.prepend_with_node_1(&message).ok()
}

fn element(name: &str, text: &str) -> Option<Element> {
    let element = document().create_element(name).ok()?;
    element.set_text_content(Some(text));
    Some(element)
}
