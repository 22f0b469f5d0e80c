//! Keyboard focus when a region of the page opens and closes.

use leptos::html::ElementType;
use leptos::prelude::*;
use wasm_bindgen::JsCast;
use web_sys::{Element, HtmlElement};

/// Gives the focus to the title of a section or an aside that somebody opens, and back when that closes: to what had it,
/// else to what a selector finds.
pub fn hold_focus<T>(title: NodeRef<T>, otherwise: &'static str)
where
    T: ElementType,
    T::Output: JsCast + Clone + 'static,
{
    let focused = || {
        let active = document().active_element()?.dyn_into::<HtmlElement>().ok()?;
        (active.tag_name() != "BODY").then_some(active)
    };
    // None when the page was opened with this address: nobody's focus is taken then.
    let opener = StoredValue::new_local(focused());
    Effect::new(move |_| {
        if let Some(title) = title.get()
            && opener.with_value(Option::is_some)
        {
            // An element that is gone by now takes no focus.
            let _ = title.unchecked_ref::<HtmlElement>().focus();
        }
    });
    on_cleanup(move || {
        let title = title.try_get_untracked().flatten();
        let region = title.and_then(|title| {
            let title = title.unchecked_into::<Element>();
            title.closest("section, aside").ok().flatten()
        });
        let inside = region
            .zip(focused())
            .is_some_and(|(region, focused)| region.contains(Some(&focused)));
        if !inside && focused().is_some() {
            return;
        }
        let opener = opener
            .try_get_value()
            .flatten()
            .filter(|opener| opener.is_connected());
        let other = || {
            let other = document().query_selector(otherwise).ok()??;
            other.dyn_into::<HtmlElement>().ok()
        };
        if let Some(element) = opener.or_else(other) {
            // As above.
            let _ = element.focus();
        }
    });
}
