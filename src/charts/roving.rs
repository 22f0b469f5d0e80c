//! One tab stop per chart: arrows move between its points, Enter opens one, the space bar pins it, Escape leaves.

use leptos::{ev, html::Div, prelude::*};
use wasm_bindgen::JsCast;
use web_sys::{Element, PointerEvent};

use super::{
    card::{Card, MarkCard},
    focus::{focus, found, leave},
};

/// Which point of a chart has its tab stop. Points are ordered in columns (rounds), the leading point of
/// each column first.
#[derive(Clone, Copy)]
pub struct Roving {
    columns: Signal<Vec<Vec<String>>>,
    visited: RwSignal<Option<String>>,
    stop: Memo<Option<String>>,
}

impl Roving {
    /// Starts at the first point; returns to it when the visited point is gone.
    pub fn over(columns: Signal<Vec<Vec<String>>>) -> Self {
        let visited = RwSignal::new(None);
        let stop = Memo::new(move |_| {
            columns.with(|columns| {
                visited
                    .get()
                    .filter(|visited| columns.iter().flatten().any(|point| point == visited))
                    .or_else(|| columns.iter().flatten().next().cloned())
            })
        });
        Self {
            columns,
            visited,
            stop,
        }
    }

    /// 0 for the point with the tab stop, −1 for all others.
    pub fn tab_index(self, point: &str) -> i32 {
        if self.stop.with(|stop| stop.as_deref() == Some(point)) {
            0
        } else {
            -1
        }
    }

    fn keydown(self, event: &ev::KeyboardEvent, open: Option<Callback<String>>) {
        if event.ctrl_key() || event.alt_key() || event.meta_key() {
            return;
        }
        let Some(point) = point_of(event) else { return };
        let key = event.key();
        if key == "Enter" {
            if let (Some(open), Some(id)) = (open, point.get_attribute("data-id")) {
                event.prevent_default();
                open.run(id);
            }
        } else if key == "Escape" {
            event.prevent_default();
            leave(&point);
        } else if let Some(current) = point.get_attribute("data-point") {
            let next = self
                .columns
                .with_untracked(|columns| next(columns, &current, &key));
            if let Some(next) = next {
                event.prevent_default();
                self.focus(&point, &next);
            }
        }
    }

    fn focus(self, from: &Element, point: &str) {
        self.visited.set(Some(point.to_owned()));
        let chart = from.closest(".chart").ok().flatten();
        if let Some(point) = chart.and_then(|chart| found(&chart, point)) {
            focus(&point);
        }
    }

    fn focused(self, point: &Element) {
        if let Some(point) = point.get_attribute("data-point") {
            self.visited.set(Some(point));
        }
    }
}

/// The group around a chart's plots: named by one sentence, one stop for the Tab key. A point carries
/// `data-point` (its key) and, where it stands for something that can be opened, `data-id`.
#[component]
pub fn Chart(
    /// The chart's reading in one sentence.
    #[prop(into)]
    label: Signal<String>,
    /// The order of its points.
    roving: Roving,
    /// Called with the id of a point that Enter or a click opens.
    #[prop(optional_no_strip)]
    on_open: Option<Callback<String>>,
    children: Children,
) -> impl IntoView {
    let chart = NodeRef::<Div>::new();
    let card = Card::of(chart);
    let clicked = move |event: ev::MouseEvent| {
        let Some(point) = point_of(&event) else {
            return card.leave();
        };
        // A finger does not hover: its first tap shows the card.
        if by_finger(&event) && card.shows_only_now(&point) {
            return;
        }
        if let (Some(open), Some(id)) = (on_open, point.get_attribute("data-id")) {
            open.run(id);
        }
    };
    let pointed = move |event: ev::PointerEvent| match point_of(&event) {
        _ if by_finger(&event) => {}
        Some(point) => card.show(&point),
        None => card.leave(),
    };
    let focused = move |event: ev::FocusEvent| {
        let Some(point) = point_of(&event) else { return };
        roving.focused(&point);
        if point.matches(":focus-visible") == Ok(true) {
            card.show(&point);
        }
    };
    let pressed = move |event: ev::KeyboardEvent| match event.key().as_str() {
        "Escape" if card.close() => event.prevent_default(),
        " " if point_of(&event).is_some_and(|point| card.pins(&point)) => event.prevent_default(),
        _ => roving.keydown(&event, on_open),
    };
    view! {
        <div
            class="chart"
            role="group"
            aria-label=move || label.get()
            node_ref=chart
            on:keydown=pressed
            on:focusin=focused
            on:focusout=move |_| card.leave()
            on:pointerover=pointed
            on:pointerleave=move |_| card.leave()
            on:click=clicked
        >
            {children()}
            <MarkCard card=card points=roving.columns />
        </div>
    }
}

/// Whether a finger pointed.
fn by_finger(event: &ev::MouseEvent) -> bool {
    let event = event.dyn_ref::<PointerEvent>();
    event.is_some_and(|event| event.pointer_type() == "touch")
}

fn point_of(event: &web_sys::Event) -> Option<Element> {
    let element = event.target()?.dyn_into::<Element>().ok()?;
    element.closest("[data-point]").ok().flatten()
}

/// The point that a key leads to. Left and right go to the neighbouring column, from its leading point
/// again to a leading point; up and down stay in the column.
fn next(columns: &[Vec<String>], current: &str, key: &str) -> Option<String> {
    let column = columns
        .iter()
        .position(|column| column.iter().any(|point| point == current))?;
    let row = columns[column].iter().position(|point| point == current)?;
    let in_column = |column: usize| {
        let points = columns.get(column)?;
        points.get(row.min(points.len().saturating_sub(1)))
    };
    match key {
        "ArrowLeft" => in_column(column.checked_sub(1)?),
        "ArrowRight" => in_column(column + 1),
        "ArrowUp" => columns[column].get(row.checked_sub(1)?),
        "ArrowDown" => columns[column].get(row + 1),
        "Home" => columns.first()?.first(),
        "End" => columns.last()?.first(),
        _ => None,
    }
    .cloned()
}

#[cfg(test)]
mod tests {
    use super::next;

    fn columns() -> Vec<Vec<String>> {
        [&["seed"][..], &["a", "b", "c"], &["d", "e"]]
            .map(|column| column.iter().map(ToString::to_string).collect())
            .to_vec()
    }

    #[test]
    fn arrows_move_between_rounds_and_within_one() {
        let columns = columns();
        let go = |from: &str, key: &str| next(&columns, from, key);
        assert_eq!(go("seed", "ArrowRight").as_deref(), Some("a"));
        assert_eq!(go("c", "ArrowRight").as_deref(), Some("e"));
        assert_eq!(go("b", "ArrowUp").as_deref(), Some("a"));
        assert_eq!(go("b", "ArrowDown").as_deref(), Some("c"));
        assert_eq!(go("b", "Home").as_deref(), Some("seed"));
        assert_eq!(go("b", "End").as_deref(), Some("d"));
    }

    #[test]
    fn the_ends_hold() {
        let columns = columns();
        assert_eq!(next(&columns, "seed", "ArrowLeft"), None);
        assert_eq!(next(&columns, "e", "ArrowRight"), None);
        assert_eq!(next(&columns, "c", "ArrowDown"), None);
        assert_eq!(next(&columns, "seed", "x"), None);
    }
}
