//! Direct labels: text of constant size at stretching places, dropped where it would collide.

use leptos::prelude::*;

use super::{measure::Size, scale::percent};

/// Which end of a text stands at its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Anchor {
    /// The text runs to the right of its place.
    Start,
    /// The text is centred on its place.
    Middle,
    /// The text runs to the left of its place.
    End,
}

impl Anchor {
    fn name(self) -> &'static str {
        match self {
            Self::Start => "start",
            Self::Middle => "middle",
            Self::End => "end",
        }
    }
}

/// A text of constant size, shifted by pixels from a place in the plot.
#[derive(Clone, Debug, PartialEq)]
pub struct Label {
    /// The classes that set its voice and what it stands on.
    pub class: &'static str,
    /// From the left of the plot, 0 to 1.
    pub x: f64,
    /// From the top of the plot, 0 to 1.
    pub y: f64,
    /// Shift to the right in pixels.
    pub dx: f64,
    /// Shift of the baseline downwards in pixels.
    pub dy: f64,
    /// Which end stands at the place.
    pub anchor: Anchor,
    /// What it says.
    pub text: String,
}

/// A rectangle in pixels: left, top, right, bottom.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Space(pub f64, pub f64, pub f64, pub f64);

impl Space {
    /// The square around a mark at a place of the plot.
    pub fn of_mark(x: f64, y: f64, reach: f64, size: Size) -> Self {
        let (x, y) = (x * size.width, y * size.height);
        Self(x - reach, y - reach, x + reach, y + reach)
    }

    fn meets(self, other: Self) -> bool {
        self.0 < other.2 && other.0 < self.2 && self.1 < other.3 && other.1 < self.3
    }
}

/// The height of a tick's line of text in pixels at the usual root size.
const LINE: f64 = 12.0;
/// The width of a digit or letter in pixels at the usual root size, on average.
const LETTER: f64 = 6.2;

impl Label {
    /// The label as SVG text.
    pub fn draw(self) -> impl IntoView {
        view! {
            <text
                class=self.class
                x=percent(self.x)
                y=percent(self.y)
                dx=self.dx
                dy=self.dy
                text-anchor=self.anchor.name()
            >
                {self.text}
            </text>
        }
    }

    /// The room that it takes in a plot of the given size, by the average width of a letter.
    pub fn space(&self, size: Size) -> Space {
        let width = self.text.chars().count() as f64 * LETTER;
        let baseline = self.y * size.height + self.dy;
        let x = self.x * size.width + self.dx;
        let left = match self.anchor {
            Anchor::Start => x,
            Anchor::Middle => x - width / 2.0,
            Anchor::End => x - width,
        };
        Space(left, baseline - LINE + 2.0, left + width, baseline + 2.0)
    }
}

/// A label with the places it may take, the best first. Without room at any it is dropped, unless it
/// must stay: then it takes the first.
#[derive(Clone, Debug, PartialEq)]
pub struct Wanted {
    /// The places.
    pub places: Vec<Label>,
    /// Whether it is never dropped.
    pub stays: bool,
}

/// Places labels in the order of their importance: each takes the first of its places where it meets
/// neither a taken space nor an earlier label, and stays within the plot.
pub fn arranged(wanted: Vec<Wanted>, mut taken: Vec<Space>, size: Size) -> Vec<Label> {
    let mut labels = Vec::new();
    for Wanted { places, stays } in wanted {
        let is_free = |label: &Label| {
            let space = label.space(size);
            space.0 >= 0.0
                && space.2 <= size.width
                && space.1 >= 0.0
                && space.3 <= size.height
                && !taken.iter().any(|taken| space.meets(*taken))
        };
        let free = places.iter().position(is_free).or(stays.then_some(0));
        if let Some(label) = free.and_then(|place| places.into_iter().nth(place)) {
            taken.push(label.space(size));
            labels.push(label);
        }
    }
    labels
}

/// Labels that change with their chart.
#[component]
pub fn Labels(
    /// Words and where they would best stand.
    #[prop(into)]
    labels: Signal<Vec<Label>>,
) -> impl IntoView {
    move || labels.get().into_iter().map(Label::draw).collect_view()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIZE: Size = Size {
        width: 300.0,
        height: 200.0,
    };

    fn label(text: &str, dx: f64) -> Label {
        Label {
            class: "c-label",
            x: 0.5,
            y: 0.5,
            dx,
            dy: 0.0,
            anchor: Anchor::Start,
            text: text.to_owned(),
        }
    }

    #[test]
    fn a_label_takes_the_first_free_place() {
        let wanted = |text: &str| Wanted {
            places: vec![label(text, 0.0), label(text, 60.0)],
            stays: false,
        };
        let labels = arranged(
            vec![wanted("first"), wanted("second"), wanted("third")],
            Vec::new(),
            SIZE,
        );
        let places: Vec<_> = labels
            .iter()
            .map(|label| (label.text.as_str(), label.dx))
            .collect();
        assert_eq!(places, [("first", 0.0), ("second", 60.0)]);
    }

    #[test]
    fn a_label_that_must_stay_is_never_dropped() {
        let everywhere = Space(0.0, 0.0, 300.0, 200.0);
        let wanted = |stays| Wanted {
            places: vec![label("seed", 0.0)],
            stays,
        };
        assert!(arranged(vec![wanted(false)], vec![everywhere], SIZE).is_empty());
        assert_eq!(arranged(vec![wanted(true)], vec![everywhere], SIZE).len(), 1);
    }
}
