//! Long tables and lists of which only what is in view is drawn.

use std::ops::Range;

use leptos::html::Div;
use leptos::prelude::*;
use wasm_bindgen::JsCast;
use web_sys::HtmlElement;

/// Rows drawn before and after those in view, so that a fast finger finds no gap.
const AROUND: usize = 10;

/// The height of a row before any was measured, and of the region before it was scrolled; in pixels.
const ROW: f64 = 33.0;
const REGION: f64 = 640.0;

/// The rows of a `.viewport` that are drawn. Rows may differ in height: each is measured when it is
/// drawn first, and until then taken to be as tall as those known.
#[derive(Clone, Copy)]
pub struct Window {
    /// The region that scrolls.
    region: NodeRef<Div>,
    count: Signal<usize>,
    view: RwSignal<View>,
    heights: RwSignal<Heights>,
    drawn: Memo<Range<usize>>,
}

/// What of the rows is in view, in pixels.
#[derive(Debug, Clone, Copy, PartialEq)]
struct View {
    top: f64,
    height: f64,
}

impl Window {
    /// A window on so many rows.
    pub fn over(count: impl Into<Signal<usize>>) -> Self {
        let count = count.into();
        let region = NodeRef::<Div>::new();
        let view = RwSignal::new(View {
            top: 0.0,
            height: REGION,
        });
        let heights = RwSignal::new(Heights::default());
        let drawn = Memo::new(move |_| heights.with(|heights| heights.in_view(count.get(), view.get())));
        Effect::new(move |_| {
            drawn.track();
            // Once the rows are there.
            request_animation_frame(move || measure(region, drawn, heights));
        });
        Self {
            region,
            count,
            view,
            heights,
            drawn,
        }
    }

    /// The rows to draw.
    pub fn drawn(self) -> Range<usize> {
        self.drawn.get()
    }

    /// What is to be drawn of these rows.
    pub fn rows<T, R>(self, rows: Memo<Vec<T>>, read: impl Fn(&T) -> R) -> Vec<R>
    where
        T: Send + Sync + 'static,
    {
        let drawn = self.drawn();
        rows.with(|rows| rows.get(drawn).unwrap_or_default().iter().map(read).collect())
    }

    fn scrolled(self) {
        if let Some(region) = self.region.get_untracked() {
            self.view.set(View {
                top: f64::from(region.scroll_top()),
                height: f64::from(region.client_height()).max(ROW),
            });
        }
    }

    /// Scrolls so that a row is drawn.
    pub fn reveal(self, row: usize) {
        if self.drawn.with_untracked(|drawn| drawn.contains(&row)) {
            return;
        }
        let top = self.heights.with_untracked(|heights| heights.room(&(0..row)));
        self.view.update(|view| view.top = top);
        if let Some(region) = self.region.get_untracked() {
            region.set_scroll_top(top as i32);
        }
    }

    fn above(self) -> f64 {
        let drawn = self.drawn.get();
        self.heights.with(|heights| heights.room(&(0..drawn.start)))
    }

    fn below(self) -> f64 {
        let (drawn, count) = (self.drawn.get(), self.count.get());
        self.heights.with(|heights| heights.room(&(drawn.end..count)))
    }

    /// The room of the rows of a table that are not drawn, above or below those that are.
    pub fn table_spacer(self, place: Spacer) -> impl IntoView {
        let room = move || self.room(place);
        view! {
            <tr class="spacer" aria-hidden="true" style:--room=room>
                <td class="room"></td>
            </tr>
        }
    }

    /// The same of a list.
    pub fn list_spacer(self, place: Spacer) -> impl IntoView {
        let room = move || self.room(place);
        view! { <li class="spacer" aria-hidden="true" style:--room=room></li> }
    }

    fn room(self, place: Spacer) -> String {
        let room = match place {
            Spacer::Above => self.above(),
            Spacer::Below => self.below(),
        };
        format!("{room:.0}px")
    }
}

/// The region that scrolls, with the rows in it.
#[component]
pub fn Viewport(
    /// On the rows.
    window: Window,
    /// What it is, for those who hear it.
    name: &'static str,
    /// How it differs from others.
    #[prop(optional)]
    class: &'static str,
    /// The table or the list.
    children: Children,
) -> impl IntoView {
    view! {
        <div
            class=format!("viewport {class}")
            tabindex="0"
            role="group"
            aria-label=name
            node_ref=window.region
            on:scroll=move |_| window.scrolled()
        >
            {children()}
        </div>
    }
}

/// Which rows a spacer stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Spacer {
    /// Those above the rows drawn.
    Above,
    /// Those below.
    Below,
}

/// Measures the rows drawn, unless the region has gone by now.
fn measure(region: NodeRef<Div>, drawn: Memo<Range<usize>>, heights: RwSignal<Heights>) {
    let (Some(Some(region)), Some(drawn)) = (region.try_get_untracked(), drawn.try_get_untracked()) else {
        return;
    };
    let measured = measured(&region, drawn.start);
    if heights.with_untracked(|heights| heights.differ(&measured)) {
        heights.update(|heights| heights.note(&measured));
    }
}

/// The heights of the rows between the spacers, with their places.
fn measured(region: &HtmlElement, first: usize) -> Vec<(usize, f64)> {
    // The selector is one.
    let spacer = region.query_selector(".spacer").ok().flatten();
    let mut next = spacer.and_then(|spacer| spacer.next_element_sibling());
    let mut measured = Vec::new();
    while let Some(row) = next.filter(|row| !row.class_list().contains("spacer")) {
        if let Some(row) = row.dyn_ref::<HtmlElement>() {
            measured.push((first + measured.len(), f64::from(row.offset_height())));
        }
        next = row.next_element_sibling();
    }
    measured
}

/// Heights of rows, as far as they were measured; in pixels.
#[derive(Debug, Clone, Default, PartialEq)]
struct Heights(Vec<Option<f64>>);

impl Heights {
    fn known(&self, row: usize) -> Option<f64> {
        self.0.get(row).copied().flatten()
    }

    fn usual(&self) -> f64 {
        let known = || self.0.iter().copied().flatten();
        match known().count() {
            0 => ROW,
            count => known().sum::<f64>() / count as f64,
        }
    }

    fn differ(&self, measured: &[(usize, f64)]) -> bool {
        let mut drawn = measured.iter().filter(|(_, height)| *height > 0.0);
        drawn.any(|(row, height)| {
            let known = self.known(*row);
            known.is_none_or(|known| (known - height).abs() >= 1.0)
        })
    }

    fn note(&mut self, measured: &[(usize, f64)]) {
        for (row, height) in measured.iter().filter(|(_, height)| *height > 0.0) {
            if self.0.len() <= *row {
                self.0.resize(row + 1, None);
            }
            self.0[*row] = Some(*height);
        }
    }

    /// The rows in view and some around them.
    fn in_view(&self, count: usize, view: View) -> Range<usize> {
        let usual = self.usual();
        let height = |row: usize| self.known(row).unwrap_or(usual);
        let (mut below, mut first) = (0.0, 0);
        while first < count && below + height(first) <= view.top {
            below += height(first);
            first += 1;
        }
        let mut last = first;
        while last < count && below < view.top + view.height {
            below += height(last);
            last += 1;
        }
        // Scrolled past the end, as when rows have gone: the last ones are in view.
        let first = first.min(count.saturating_sub(1));
        first.saturating_sub(AROUND)..(last + AROUND).min(count)
    }

    /// The room that rows take.
    fn room(&self, rows: &Range<usize>) -> f64 {
        let usual = self.usual();
        let known = self
            .0
            .get(rows.start..rows.end.min(self.0.len()))
            .unwrap_or_default();
        let unknown = rows.len() - known.len();
        known.iter().map(|height| height.unwrap_or(usual)).sum::<f64>() + unknown as f64 * usual
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(top: f64) -> View {
        View { top, height: 330.0 }
    }

    #[test]
    fn only_what_is_in_view_is_drawn_and_some_around_it() {
        let heights = Heights::default();
        assert_eq!(heights.in_view(5_000, at(0.0)), 0..20);
        assert_eq!(heights.in_view(5_000, at(3_300.0)), 90..120);
        assert_eq!(heights.in_view(3, at(0.0)), 0..3);
        assert_eq!(heights.in_view(0, at(0.0)), 0..0);
    }

    #[test]
    fn spacers_and_rows_always_make_up_the_whole() {
        let mut heights = Heights::default();
        heights.note(&[(0, 66.0), (1, 20.0), (7, 100.0)]);
        let whole = heights.room(&(0..200));
        for top in [0.0, 50.0, 1_000.0, 9_000.0] {
            let drawn = heights.in_view(200, at(top));
            let rows: f64 = drawn.clone().map(|row| heights.room(&(row..row + 1))).sum();
            let spacers = heights.room(&(0..drawn.start)) + heights.room(&(drawn.end..200));
            assert!((rows + spacers - whole).abs() < 1e-6, "at {top}: {drawn:?}");
        }
    }

    #[test]
    fn a_list_that_shrank_shows_its_end() {
        let drawn = Heights::default().in_view(12, at(9_000.0));
        assert_eq!(drawn, 1..12);
    }

    #[test]
    fn tall_rows_fill_the_view_with_fewer() {
        let mut heights = Heights::default();
        heights.note(&(0..40).map(|row| (row, 110.0)).collect::<Vec<_>>());
        assert_eq!(heights.in_view(40, at(1_100.0)), 0..23);
        assert!(!heights.differ(&[(3, 110.4)]));
        assert!(heights.differ(&[(3, 140.0)]));
        assert!(
            !heights.differ(&[(3, 0.0)]),
            "a hidden row has no height of its own"
        );
    }
}
