//! The card beside the mark that is pointed at or has the focus: what its page has to say of it, else its sentence.

use std::time::Duration;

use leptos::{ev, html::Div, prelude::*};
use wasm_bindgen::JsCast;
use web_sys::{Element, Event, Node};

use super::focus::{focus, found};

/// How long a card stays that nothing points at any more: time to reach it.
const LINGERS: Duration = Duration::from_millis(300);

/// What a page has to say of its charts' marks, as a context. Without it their sentences are titles.
#[derive(Clone, Copy)]
pub struct Cards {
    /// The card of a mark by its id, where there is more to say than its sentence.
    pub of: Callback<String, Option<AnyView>>,
    /// Called with the id of a mark on which the space bar is pressed.
    pub pin: Callback<String>,
    /// Where the one card is shown that is.
    shown: RwSignal<Option<RwSignal<Option<Beside>>>>,
}

impl Cards {
    /// Of callbacks for what they say and for pinning.
    pub fn new(of: Callback<String, Option<AnyView>>, pin: Callback<String>) -> Self {
        Self {
            of,
            pin,
            shown: RwSignal::new(None),
        }
    }
}

/// What a card stands beside.
#[derive(Clone, PartialEq)]
struct Beside {
    point: String,
    id: Option<String>,
    sentence: String,
}

/// Pixels from the left edge of the window to a mark's middle, and to the mark from the upper or the lower edge,
/// whichever is farther: there the card stands.
#[derive(Clone, Copy, Default, PartialEq)]
struct Place {
    x: f64,
    y: f64,
    is_above: bool,
}

/// The card of a chart.
#[derive(Clone, Copy)]
pub struct Card {
    cards: Option<Cards>,
    chart: NodeRef<Div>,
    beside: RwSignal<Option<Beside>>,
    place: RwSignal<Place>,
    /// Whether it keeps up with its mark, frame by frame.
    follows: StoredValue<bool>,
}

impl Card {
    /// Of the chart that will be drawn there, not shown yet.
    pub(super) fn of(chart: NodeRef<Div>) -> Self {
        let card = Self {
            cards: use_context(),
            chart,
            beside: RwSignal::new(None),
            place: RwSignal::default(),
            follows: StoredValue::new(false),
        };
        if card.cards.is_some() {
            let pressed = window_event_listener(ev::keydown, move |event| {
                if event.key() == "Escape" && !card.is_within(&event) && card.close() {
                    event.prevent_default();
                }
            });
            let tapped = window_event_listener(ev::pointerdown, move |event| {
                if !card.is_within(&event) {
                    card.close();
                }
            });
            on_cleanup(move || {
                pressed.remove();
                tapped.remove();
            });
        }
        card
    }

    /// Shows what there is to say of a point.
    pub(super) fn show(self, point: &Element) {
        let Some((cards, key)) = self.cards.zip(point.get_attribute("data-point")) else {
            return;
        };
        if let Some(other) = cards.shown.get_untracked().filter(|other| *other != self.beside) {
            // Its chart may be gone.
            let _ = other.try_set(None);
        }
        cards.shown.set(Some(self.beside));
        self.beside.set(Some(Beside {
            point: key,
            id: point.get_attribute("data-id"),
            sentence: point.get_attribute("aria-label").unwrap_or_default(),
        }));
        self.put();
        if !self.follows.get_value() {
            self.follows.set_value(true);
            self.follow();
        }
    }

    /// Stays beside its mark, whatever is scrolled, resized or drawn anew, as long as it is shown.
    fn follow(self) {
        request_animation_frame(move || {
            if self.beside.try_with_untracked(Option::is_some) == Some(true) {
                self.put();
                self.follow();
            } else {
                // The page may be left by then.
                let _ = self.follows.try_update_value(|follows| *follows = false);
            }
        });
    }

    /// Shows it, and whether it was not shown before.
    pub(super) fn shows_only_now(self, point: &Element) -> bool {
        let key = point.get_attribute("data-point");
        let shown = || self.beside.get_untracked().map(|beside| beside.point);
        let was_shown = shown() == key;
        self.show(point);
        !was_shown && shown() == key
    }

    /// Closes it in a while, unless it or a point is pointed at by then. Where a point has the focus, it returns there.
    pub(super) fn leave(self) {
        // What had the focus may be taken away with its chart.
        if self.beside.try_with_untracked(Option::is_some) != Some(true) {
            return;
        }
        let look = move || {
            let chart = self.chart.try_get_untracked().flatten();
            let find = |selector: &str| chart.as_ref()?.query_selector(selector).ok().flatten();
            let is_open = self.beside.try_with_untracked(Option::is_some) == Some(true);
            let held = "[data-point]:hover, .mark-card:hover, .mark-card:focus-within";
            if is_open && find(held).is_none() {
                match find("[data-point]:focus-visible") {
                    Some(point) => self.show(&point),
                    None => self.beside.set(None),
                }
            }
        };
        set_timeout(look, LINGERS);
    }

    /// Closes it, and gives the focus that was in it back to its mark; false where it is closed.
    pub(super) fn close(self) -> bool {
        let Some(beside) = self.beside.get_untracked() else {
            return false;
        };
        if let Some(chart) = self.chart.get_untracked()
            && let Ok(Some(_)) = chart.query_selector(".mark-card:focus-within")
            && let Some(point) = found(&chart, &beside.point)
        {
            focus(&point);
        }
        self.beside.set(None);
        true
    }

    /// Pins a point; false where there is nothing to pin.
    pub(super) fn pins(self, point: &Element) -> bool {
        let pinned = self.cards.zip(point.get_attribute("data-id"));
        pinned.map(|(cards, id)| cards.pin.run(id)).is_some()
    }

    fn is_within(self, event: &Event) -> bool {
        let target = event.target().and_then(|target| target.dyn_into::<Node>().ok());
        let chart = self.chart.get_untracked();
        chart.is_some_and(|chart| chart.contains(target.as_ref()))
    }

    fn put(self) {
        // The page may be left by then.
        let beside = self.beside.try_get_untracked().flatten();
        let chart = self.chart.try_get_untracked().flatten();
        let Some(point) = chart
            .zip(beside)
            .and_then(|(chart, beside)| found(&chart, &beside.point))
        else {
            return;
        };
        let height = window().inner_height().ok().and_then(|height| height.as_f64());
        let mark = point.get_bounding_client_rect();
        let (above, below) = (mark.y(), height.unwrap_or_default() - mark.y() - mark.height());
        let place = Place {
            x: mark.x() + mark.width() / 2.0,
            y: height.unwrap_or_default() - above.max(below),
            is_above: above > below,
        };
        if self
            .place
            .try_get_untracked()
            .is_some_and(|before| before != place)
        {
            self.place.set(place);
        }
    }
}

/// The card, beside a mark as long as that is drawn. Its mark says its sentence, so nothing announces it.
#[component]
pub(super) fn MarkCard(card: Card, points: Signal<Vec<Vec<String>>>) -> impl IntoView {
    let beside = Memo::new(move |_| {
        let beside = card.beside.get()?;
        let is_drawn = points.with(|points| points.iter().flatten().any(|point| *point == beside.point));
        is_drawn.then_some(beside)
    });
    let words = move |beside: Beside| {
        let of_page = card.cards.zip(beside.id).and_then(|(cards, id)| cards.of.run(id));
        of_page.unwrap_or_else(|| view! { <p aria-hidden="true">{beside.sentence}</p> }.into_any())
    };
    let shown = move |beside: Beside| {
        view! {
            <div
                class="mark-card"
                class:above=move || card.place.get().is_above
                style:--x=move || format!("{}px", card.place.get().x)
                style:--y=move || format!("{}px", card.place.get().y)
            >
                {words(beside)}
            </div>
        }
    };
    move || beside.get().map(shown)
}
