//! Going through the rows of a table by keyboard.

use wasm_bindgen::JsCast;
use web_sys::{Element, HtmlElement, KeyboardEvent};

/// What can have the focus in a cell.
const FOCUSABLE: &str = "a, button, input";

/// Moves the focus by rows for the arrows up and down, by ten for PageUp and PageDown: to what stands in
/// the same column, else to the row's first link. A listener of a table's body.
pub fn move_by_rows(event: &KeyboardEvent) {
    let rows = match event.key().as_str() {
        "ArrowDown" => 1,
        "ArrowUp" => -1,
        "PageDown" => 10,
        "PageUp" => -10,
        _ => return,
    };
    let focused = event
        .target()
        .and_then(|target| target.dyn_into::<Element>().ok());
    let found = focused.and_then(|focused| beside(&focused, rows));
    if let Some(found) = found.and_then(|found| found.dyn_into::<HtmlElement>().ok()) {
        event.prevent_default();
        // What is in the page takes the focus.
        let _ = found.focus();
    }
}

/// What has the focus after so many rows down, or up.
fn beside(focused: &Element, rows: i32) -> Option<Element> {
    let cell = focused.closest("td, th").ok()??;
    let column =
        std::iter::successors(cell.previous_element_sibling(), Element::previous_element_sibling).count();
    let row = cell.closest("tr").ok()??;
    let next = |row: &Element| match rows {
        1.. => row.next_element_sibling(),
        _ => row.previous_element_sibling(),
    };
    let steps = rows.unsigned_abs() as usize;
    let row = std::iter::successors(next(&row), next).take(steps).last()?;
    let first = row.first_element_child();
    let cell = std::iter::successors(first, Element::next_element_sibling).nth(column);
    let there = cell.and_then(|cell| cell.query_selector(FOCUSABLE).ok().flatten());
    there.or_else(|| row.query_selector("a").ok().flatten())
}
