//! Marks: what was measured. Shape first, colour second: a disc is feasible, an open diamond is not, a
//! dotted ring is not yet decided, a cross never came to be.

use std::collections::BTreeMap;

use leptos::{prelude::*, svg};

use super::{card::Cards, keyed::keyed, roving::Roving, scale::percent};

/// What a mark says about the thresholds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// They are kept.
    Disc,
    /// One of them is not.
    Diamond,
    /// Not known before all examples are answered.
    Ring,
    /// There is nothing to measure.
    Cross,
}

impl Shape {
    /// The shape of what is decided.
    pub fn of(feasible: bool) -> Self {
        if feasible { Self::Disc } else { Self::Diamond }
    }
}

/// How much a mark stands out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Weight {
    /// What the line joins, or what the chart is about.
    Strong,
    /// One of the others.
    Faint,
}

/// One candidate or one round in a chart.
#[derive(Clone, Debug, PartialEq)]
pub struct Mark {
    /// Tells the mark from all others of its chart.
    pub key: String,
    /// The id that opening the mark calls back with, if it stands for something that can be opened.
    pub id: Option<String>,
    /// The column it belongs to when arrow keys move.
    pub column: u32,
    /// From the left of the plot, 0 to 1.
    pub x: f64,
    /// From the top of the plot, 0 to 1.
    pub y: f64,
    /// Sideways shift in pixels, for marks of one round.
    pub shift: f64,
    /// What it says about the thresholds.
    pub shape: Shape,
    /// How much it stands out.
    pub weight: Weight,
    /// The radius of a disc in pixels; a diamond reaches a little farther.
    pub radius: f64,
    /// Whether a ring singles it out.
    pub ringed: bool,
    /// What it says, in a full sentence.
    pub sentence: String,
}

/// The radius of a strong mark in a plot with room, in pixels.
pub const STRONG: f64 = 4.8;
/// The radius of a faint mark in pixels.
pub const FAINT: f64 = 3.0;
/// The radius of a mark in columns too narrow for a strong one, in pixels.
pub const NARROW: f64 = 2.8;

/// The marks' keys in columns, each led by its strong marks; the order in which arrow keys move.
pub fn columns(marks: &[Mark]) -> Vec<Vec<String>> {
    let mut columns: BTreeMap<u32, (Vec<String>, Vec<String>)> = BTreeMap::new();
    for mark in marks {
        let (strong, faint) = columns.entry(mark.column).or_default();
        if mark.weight == Weight::Strong {
            strong
        } else {
            faint
        }
        .push(mark.key.clone());
    }
    columns
        .into_values()
        .map(|(strong, faint)| [strong, faint].concat())
        .collect()
}

/// The marks of one weight, in their order.
pub fn of_weight(marks: &[Mark], weight: Weight) -> Vec<Mark> {
    marks
        .iter()
        .filter(|mark| mark.weight == weight)
        .cloned()
        .collect()
}

/// Marks that update in place, one of them a tab stop. The last ones lie on top.
#[component]
pub fn Marks(
    /// The marks, faint ones first.
    #[prop(into)]
    marks: Signal<Vec<Mark>>,
    /// The chart's tab stop.
    roving: Roving,
) -> impl IntoView {
    // A card says more.
    let has_titles = use_context::<Cards>().is_none();
    keyed(
        marks,
        |mark| mark.key.clone(),
        move |mark| {
            let tab_index = move || mark.with(|mark| roving.tab_index(&mark.key));
            let sentence = move || mark.with(|mark| mark.sentence.clone());
            view! {
                <svg
                    x=move || percent(mark.with(|mark| mark.x))
                    y=move || percent(mark.with(|mark| mark.y))
                    overflow="visible"
                >
                    <g
                        role="img"
                        tabindex=tab_index
                        aria-label=sentence
                        data-point=move || mark.with(|mark| mark.key.clone())
                        data-id=move || mark.with(|mark| mark.id.clone())
                    >
                        {has_titles.then(|| svg::title().child(sentence))}
                        <circle
                            class="c-hit"
                            fill="none"
                            pointer-events="all"
                            cx=move || mark.with(|mark| mark.shift)
                            r=move || mark.with(reach)
                        />
                        <path
                            class=move || mark.with(|mark| class(mark.shape, mark.weight))
                            d=move || mark.with(|mark| outline(mark.shape, mark.radius, mark.shift))
                        />
                    </g>
                    {move || mark.with(|mark| mark.ringed).then(ring)}
                </svg>
            }
        },
    )
}

/// Single marks that are part of a labelled picture and not points of their own.
#[component]
pub fn Picture(
    /// From the left, 0 to 1.
    #[prop(into)]
    x: Signal<f64>,
    /// From the top, 0 to 1.
    #[prop(into)]
    y: Signal<f64>,
    /// Whether what it stands for keeps the thresholds.
    #[prop(into)]
    feasible: Signal<bool>,
    /// The radius of a disc in pixels.
    radius: f64,
) -> impl IntoView {
    view! {
        <svg x=move || percent(x.get()) y=move || percent(y.get()) overflow="visible">
            <path
                class=move || class(Shape::of(feasible.get()), Weight::Strong)
                d=move || outline(Shape::of(feasible.get()), radius, 0.0)
            />
        </svg>
    }
}

/// The hatch that land is drawn with. One per page: every chart refers to it.
#[component]
pub fn Hatch() -> impl IntoView {
    view! {
        <svg class="defs" width="0" height="0" aria-hidden="true">
            <defs>
                <pattern
                    id="hatch"
                    width="7"
                    height="7"
                    patternUnits="userSpaceOnUse"
                    patternTransform="rotate(45)"
                >
                    <line class="hatch-line" x1="0" y1="0" x2="0" y2="7" />
                </pattern>
            </defs>
        </svg>
    }
}

/// The class of a mark's shape.
pub fn class(shape: Shape, weight: Weight) -> &'static str {
    match (shape, weight) {
        (Shape::Disc, Weight::Strong) => "c-f",
        (Shape::Disc, Weight::Faint) => "c-f dim",
        (Shape::Diamond, Weight::Strong) => "c-i",
        (Shape::Diamond, Weight::Faint) => "c-i dim",
        (Shape::Ring, _) => "c-ghost",
        (Shape::Cross, _) => "c-cross",
    }
}

/// A circle, a diamond of about the same area, or a cross within it, around the origin as a path.
pub fn outline(shape: Shape, radius: f64, shift: f64) -> String {
    if shape == Shape::Diamond {
        let half = radius * 1.125;
        let (left, right) = (shift - half, shift + half);
        return format!("M{shift:.2} -{half:.2}L{right:.2} 0L{shift:.2} {half:.2}L{left:.2} 0Z");
    }
    if shape == Shape::Cross {
        let half = radius * 0.8;
        let (left, right) = (shift - half, shift + half);
        return format!(
            "M{left:.2} -{half:.2}L{right:.2} {half:.2}M{right:.2} -{half:.2}L{left:.2} {half:.2}"
        );
    }
    let (left, width) = (shift - radius, radius * 2.0);
    let half_turn = |width: f64| format!("a{radius:.2} {radius:.2} 0 1 0 {width:.2} 0");
    format!("M{left:.2} 0{}{}Z", half_turn(width), half_turn(-width))
}

/// The words beside a disc or a diamond.
pub fn verdict(feasible: bool) -> &'static str {
    if feasible {
        "feasible on search"
    } else {
        "not feasible on search"
    }
}

/// How far from its middle a mark answers to a pointer: strong ones offer the 24 pixels of a target,
/// faint ones stand too close together for that, but where it is a finger (`.c-hit` of `styles/charts.css`).
fn reach(mark: &Mark) -> f64 {
    match mark.weight {
        Weight::Strong if mark.radius >= STRONG => 12.0,
        _ => mark.radius + 2.0,
    }
}

fn ring() -> impl IntoView {
    view! { <circle class="c-ring" r="9" /> }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_led_by_their_strong_marks() {
        let mark = |key: &str, column, weight| Mark {
            key: key.to_owned(),
            id: None,
            column,
            x: 0.0,
            y: 0.0,
            shift: 0.0,
            shape: Shape::Disc,
            weight,
            radius: STRONG,
            ringed: false,
            sentence: String::new(),
        };
        let marks = [
            mark("b", 1, Weight::Faint),
            mark("seed", 0, Weight::Strong),
            mark("a", 1, Weight::Strong),
        ];
        assert_eq!(
            columns(&marks),
            [vec!["seed".to_owned()], vec!["a".to_owned(), "b".to_owned()]]
        );
    }

    #[test]
    fn shapes_are_paths_around_the_origin() {
        assert_eq!(
            outline(Shape::Diamond, 4.8, 0.0),
            "M0.00 -5.40L5.40 0L0.00 5.40L-5.40 0Z"
        );
        assert_eq!(
            outline(Shape::Cross, 2.5, 1.0),
            "M-1.00 -2.00L3.00 2.00M3.00 -2.00L-1.00 2.00"
        );
        assert_eq!(
            outline(Shape::Disc, 3.0, 1.5),
            "M-1.50 0a3.00 3.00 0 1 0 6.00 0a3.00 3.00 0 1 0 -6.00 0Z"
        );
    }
}
