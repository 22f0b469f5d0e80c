//! Keyboard focus in charts.

use wasm_bindgen::JsCast;
use web_sys::Element;

/// The point of this key in a chart.
pub(super) fn found(chart: &Element, point: &str) -> Option<Element> {
    let point = point.replace('\\', "\\\\").replace('"', "\\\"");
    let selector = format!("[data-point=\"{point}\"]");
    chart.query_selector(&selector).ok().flatten()
}

/// Gives an HTML or an SVG element the focus.
pub(super) fn focus(element: &Element) {
    let focused = match element.dyn_ref::<web_sys::SvgElement>() {
        Some(element) => element.focus(),
        None => element
            .dyn_ref::<web_sys::HtmlElement>()
            .map_or(Ok(()), web_sys::HtmlElement::focus),
    };
    // An element that went away between two frames cannot take the focus; nothing is lost.
    drop(focused);
}

/// Moves the focus from a point to the plate around its chart, or nowhere when there is none.
pub(super) fn leave(point: &Element) {
    match point.closest(".plate") {
        Ok(Some(plate)) => focus(&plate),
        _ => {
            if let Some(element) = point.dyn_ref::<web_sys::SvgElement>() {
                // As above: an element that is gone has no focus to lose.
                let _ = element.blur();
            }
        }
    }
}
