//! A small picture of one value against its threshold, beside the numbers in a table.

use leptos::prelude::*;

use super::{
    labels::{Anchor, Label},
    marks::Picture,
    scale::percent,
    unit::Unit,
};

/// What a bullet shows.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct BulletData {
    /// What the value is of, as "seed" or "human requests".
    pub name: String,
    /// What it is counted in.
    pub unit: Unit,
    /// The value; none while it is not measured.
    pub value: Option<f64>,
    /// One standard error of the value.
    pub error: Option<f64>,
    /// The threshold; none for the objective.
    pub threshold: Option<f64>,
    /// Whether the value's mark is a disc.
    pub feasible: bool,
    /// Another value to compare with, as the seed prompt's, drawn dashed.
    pub reference: Option<f64>,
    /// The value at the right end, positive; the left end is zero.
    pub reach: f64,
}

/// The value on its scale from zero: water up to the threshold and hatched land beyond.
#[component]
pub fn Bullet(
    /// What it shows.
    #[prop(into)]
    data: Signal<BulletData>,
    /// Whether the value is written below, as in a form; beside a table of numbers it is not.
    #[prop(optional)]
    captioned: bool,
) -> impl IntoView {
    // A caption needs the lower part; text keeps its size, so the picture gives way.
    let (height, middle) = if captioned { ("42%", 0.21) } else { ("100%", 0.5) };
    let at = move |value: f64| data.with(|data| place(value, data.reach));
    let sides = move || {
        let threshold = at(data.with(|data| data.threshold)?);
        let (left, rest) = (percent(threshold), percent(1.0 - threshold));
        Some(view! {
            <rect class="c-water" width=left.clone() height=height />
            <rect class="c-land" x=left.clone() width=rest.clone() height=height />
            <rect class="c-hatch" x=left width=rest height=height />
        })
    };
    let threshold = move || {
        let x = percent(at(data.with(|data| data.threshold)?));
        Some(view! { <line class="c-thr" x1=x.clone() x2=x y1="0%" y2=height /> })
    };
    let reference = move || {
        let x = percent(at(data.with(|data| data.reference)?));
        Some(view! { <line class="c-ghost" x1=x.clone() x2=x y1="10%" y2="90%" /> })
    };
    let error = move || {
        let (value, error) = data.with(|data| data.value.zip(data.error))?;
        let (from, to) = (percent(at(value - error)), percent(at(value + error)));
        let y = percent(middle);
        (error > 0.0).then(|| view! { <line class="c-se" x1=from x2=to y1=y.clone() y2=y /> })
    };
    let value = move || {
        let x = at(data.with(|data| data.value)?);
        Some(view! { <Picture x=x y=middle feasible=data.with(|data| data.feasible) radius=4.6 /> })
    };
    let written = move || captioned.then(|| data.with(caption).map(Label::draw));
    view! {
        <div class="bullet" class:captioned=captioned>
            <svg role="img" aria-label=move || data.with(sentence)>
                {sides} <rect class="c-frame" width="100%" height=height /> {threshold} {reference} {error}
                {value} {written}
            </svg>
        </div>
    }
}

/// The place of a value; what lies beyond an end stands at the end.
fn place(value: f64, reach: f64) -> f64 {
    if reach > 0.0 {
        (value / reach).clamp(0.0, 1.0)
    } else {
        0.0
    }
}

fn caption(data: &BulletData) -> Option<Label> {
    let value = data.value?;
    let x = place(value, data.reach);
    let anchor = match x {
        x if x < 0.2 => Anchor::Start,
        x if x > 0.8 => Anchor::End,
        _ => Anchor::Middle,
    };
    let text = format!("{} {}", data.name, data.unit.value(value));
    Some(Label {
        class: "c-tick",
        x,
        y: 1.0,
        dx: 0.0,
        dy: -4.0,
        anchor,
        text,
    })
}

fn sentence(data: &BulletData) -> String {
    let unit = data.unit;
    let value = data.value.map_or_else(
        || "not measured yet".to_owned(),
        |value| {
            data.threshold
                .map_or_else(|| unit.value(value), |limit| unit.value_beside(value, limit))
        },
    );
    let error = data
        .value
        .and(data.error)
        .map(|error| format!(" {}", unit.error(error)))
        .unwrap_or_default();
    let threshold = data
        .threshold
        .map(|threshold| {
            let gate = match data.value {
                Some(value) if value <= threshold => ", inside",
                Some(_) => ", over",
                None => "",
            };
            format!(", threshold {}{gate}", unit.threshold(threshold))
        })
        .unwrap_or_default();
    let reference = data
        .reference
        .map(|value| format!(", seed prompt {}", unit.value(value)))
        .unwrap_or_default();
    format!("{}: {value}{error}{threshold}{reference}", data.name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::Quantity;

    #[test]
    fn a_bullet_says_what_it_shows() {
        let data = BulletData {
            name: "Human requests".to_owned(),
            unit: Unit(Quantity::Rate),
            value: Some(0.3),
            error: Some(0.073),
            threshold: Some(0.35),
            feasible: true,
            reference: Some(0.7),
            reach: 1.0,
        };
        assert_eq!(
            sentence(&data),
            "Human requests: 30.0% ± 7.3, threshold ≤ 35%, inside, seed prompt 70.0%"
        );
        let unmeasured = BulletData {
            value: None,
            error: None,
            reference: None,
            ..data
        };
        assert_eq!(
            sentence(&unmeasured),
            "Human requests: not measured yet, threshold ≤ 35%"
        );
    }

    #[test]
    fn a_caption_stays_inside_the_picture() {
        let at = |value| {
            let data = BulletData {
                value: Some(value),
                reach: 1.0,
                ..BulletData::default()
            };
            caption(&data).map(|label| label.anchor)
        };
        assert_eq!(at(0.05), Some(Anchor::Start));
        assert_eq!(at(0.5), Some(Anchor::Middle));
        assert_eq!(at(1.4), Some(Anchor::End));
    }
}
