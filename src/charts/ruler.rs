//! The ruler of a run's header: rounds as long strokes, children as short ones, and how far it is.

use leptos::prelude::*;

use super::scale::{Rounds, percent, round_name};

/// What the ruler shows.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct RulerData {
    /// The last round planned.
    pub last_round: u32,
    /// Children of one round; their evaluations are the short strokes.
    pub children: u32,
    /// Rounds done, the one under way as a fraction: 4.55 is the middle of round 5.
    pub done: f64,
}

/// More strokes than this would touch each other on a phone.
const MOST_STROKES: u32 = 120;

/// The width that the names of rounds are chosen for, in pixels: the ruler's on a phone.
const RULER: f64 = 300.0;

/// One picture with a pointer at the present.
#[component]
pub fn RoundRuler(
    /// What it shows.
    #[prop(into)]
    data: Signal<RulerData>,
    /// How far the run is, in one sentence.
    #[prop(into)]
    label: Signal<String>,
) -> impl IntoView {
    let scale = Memo::new(move |_| {
        let RulerData {
            last_round, children, ..
        } = data.get();
        (last_round.max(1), children)
    });
    let strokes = move || {
        let (last, children) = scale.get();
        strokes(last, children).into_iter().map(stroke).collect_view()
    };
    let done = move || {
        let data = data.get();
        percent((data.done / f64::from(data.last_round.max(1))).clamp(0.0, 1.0))
    };
    view! {
        <div class="ruler">
            <svg role="img" aria-label=move || label.get()>
                <line class="c-frame" x1="0%" x2="100%" y1="26" y2="26" />
                <line class="c-lamtop" x1="0%" x2=done y1="26" y2="26" />
                {strokes}
                <svg x=done y="16" overflow="visible">
                    <path class="c-here" d="M-5 -9L5 -9L0 0Z" />
                </svg>
            </svg>
        </div>
    }
}

/// A stroke of the ruler; rounds have a name.
#[derive(Clone, Debug, PartialEq)]
struct Stroke {
    x: f64,
    name: Option<String>,
    is_round: bool,
}

fn strokes(last: u32, children: u32) -> Vec<Stroke> {
    let children = if last.saturating_mul(children) <= MOST_STROKES {
        children.max(1)
    } else {
        1
    };
    let labelled = Rounds { last }.labelled(RULER);
    (0..=last * children)
        .map(|stroke| {
            let round = stroke / children;
            let is_round = stroke % children == 0;
            Stroke {
                x: f64::from(stroke) / f64::from(last * children),
                name: (is_round && labelled.contains(&round)).then(|| round_name(round)),
                is_round,
            }
        })
        .collect()
}

fn stroke(stroke: Stroke) -> impl IntoView {
    let x = percent(stroke.x);
    let (class, top) = if stroke.is_round {
        ("c-cap", "16")
    } else {
        ("c-frame", "21")
    };
    let name = stroke.name.map(|name| {
        view! {
            <text class="c-tick" x=x.clone() y="40" text-anchor="middle">
                {name}
            </text>
        }
    });
    view! {
        <line class=class x1=x.clone() x2=x.clone() y1=top y2="26" />
        {name}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn children_are_short_strokes_between_rounds() {
        let strokes = strokes(6, 8);
        assert_eq!(strokes.len(), 49);
        assert_eq!(strokes.iter().filter(|stroke| stroke.is_round).count(), 7);
        assert_eq!(strokes[0].name.as_deref(), Some("seed"));
    }

    #[test]
    fn a_long_run_shows_its_rounds_only() {
        assert!(strokes(60, 8).iter().all(|stroke| stroke.is_round));
        assert!(
            strokes(60, 8)
                .iter()
                .filter(|stroke| stroke.name.is_some())
                .count()
                <= 9
        );
    }
}
