//! A threshold across a plot of rounds: water below it, where it holds, and hatched land above.

use leptos::prelude::*;

use super::{
    labels::{Anchor, Label, Labels},
    scale::{Scales, percent, round_name},
    series::{RoundValue, Segment, Segments, in_force},
    unit::Unit,
};

/// The two sides of the threshold, drawn below everything else. Nothing without a threshold.
#[component]
pub fn Sides(
    /// The scales of the plot.
    #[prop(into)]
    scales: Signal<Scales>,
    /// The threshold: its first value, and one more for each change by hand.
    #[prop(into)]
    steps: Signal<Vec<RoundValue>>,
) -> impl IntoView {
    let side = |span: Span| {
        let (x, width) = (percent(span.left), percent(span.right - span.left));
        let (y, rest) = (percent(span.y), percent(1.0 - span.y));
        view! {
            <rect class="c-water" x=x.clone() y=y.clone() width=width.clone() height=rest />
            <rect class="c-land" x=x.clone() y="0%" width=width.clone() height=y.clone() />
            <rect class="c-hatch" x=x y="0%" width=width height=y />
        }
    };
    move || {
        spans(&steps.get(), scales.get())
            .into_iter()
            .map(side)
            .collect_view()
    }
}

/// The threshold's line with its steps, its value at the right end outside the frame, and a pending
/// change in the round where it will apply.
#[component]
pub fn ThresholdLine(
    /// The scales of the plot.
    #[prop(into)]
    scales: Signal<Scales>,
    /// The threshold: its first value, and one more for each change by hand.
    #[prop(into)]
    steps: Signal<Vec<RoundValue>>,
    /// A change that waits for a round to start.
    #[prop(into)]
    pending: Signal<Option<RoundValue>>,
    /// How the threshold is written.
    #[prop(into)]
    unit: Signal<Unit>,
) -> impl IntoView {
    let lines = Memo::new(move |_| lines(&spans(&steps.get(), scales.get())));
    let labels = Memo::new(move |_| labels(&steps.get(), scales.get(), unit.get()));
    let waiting = move || {
        let (pending, scales) = (pending.get()?, scales.get());
        let from = steps
            .with(|steps| in_force(steps, pending.round))
            .unwrap_or(pending.value);
        Some(waiting(pending, from, scales, unit.get()))
    };
    view! {
        <Segments segments=lines class="c-thr" />
        <g aria-hidden="true">
            <Labels labels=labels />
            {waiting}
        </g>
    }
}

/// The two sides of a threshold that stands upright at a place from the left.
pub(super) fn upright_sides(place: f64) -> impl IntoView {
    let (left, rest) = (percent(place), percent(1.0 - place));
    view! {
        <rect class="c-water" x="0%" y="0%" width=left.clone() height="100%" />
        <rect class="c-land" x=left.clone() y="0%" width=rest.clone() height="100%" />
        <rect class="c-hatch" x=left y="0%" width=rest height="100%" />
    }
}

/// The line of a threshold that stands upright there.
pub(super) fn upright_line(place: f64) -> impl IntoView {
    let place = percent(place);
    view! { <line class="c-thr" x1=place.clone() x2=place y1="0%" y2="100%" /> }
}

/// A threshold over some columns of the plot.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Span {
    round: u32,
    left: f64,
    right: f64,
    y: f64,
}

fn spans(steps: &[RoundValue], scales: Scales) -> Vec<Span> {
    let end_of = |step: usize| {
        steps
            .get(step + 1)
            .map_or(1.0, |next| scales.rounds.left(next.round))
    };
    steps
        .iter()
        .enumerate()
        .map(|(number, step)| Span {
            round: step.round,
            left: if number == 0 {
                0.0
            } else {
                scales.rounds.left(step.round)
            },
            right: end_of(number),
            y: scales.range.from_top(step.value).clamp(0.0, 1.0),
        })
        .filter(|span| span.left < span.right)
        .collect()
}

fn lines(spans: &[Span]) -> Vec<Segment> {
    let level = spans.iter().map(|span| Segment {
        key: format!("from {}", span.round),
        from: (span.left, span.y),
        to: (span.right, span.y),
    });
    let steps = spans.windows(2).map(|pair| Segment {
        key: format!("step {}", pair[1].round),
        from: (pair[1].left, pair[0].y),
        to: (pair[1].left, pair[1].y),
    });
    level.chain(steps).collect()
}

fn labels(steps: &[RoundValue], scales: Scales, unit: Unit) -> Vec<Label> {
    let Some(last) = steps.last() else {
        return Vec::new();
    };
    let beside = |class, dy, text| Label {
        class,
        x: 1.0,
        y: scales.range.from_top(last.value).clamp(0.0, 1.0),
        dx: 6.0,
        dy,
        anchor: Anchor::Start,
        text,
    };
    let ends = [
        beside("c-tick", -2.0, "threshold".to_owned()),
        beside("c-label b", 11.0, unit.threshold(last.value)),
    ];
    let changes = steps.windows(2).map(|pair| Label {
        class: "c-label on-land",
        x: scales.rounds.left(pair[1].round),
        y: scales
            .range
            .from_top(pair[0].value.max(pair[1].value))
            .clamp(0.0, 1.0),
        dx: 4.0,
        dy: -5.0,
        anchor: Anchor::Start,
        text: format!("round {}", round_name(pair[1].round)),
    });
    ends.into_iter().chain(changes).collect()
}

fn waiting(pending: RoundValue, from: f64, scales: Scales, unit: Unit) -> impl IntoView {
    let (upper, lower) = (
        scales.range.from_top(from.max(pending.value)),
        scales.range.from_top(from.min(pending.value)),
    );
    let label = Label {
        class: "c-label acc",
        x: scales.rounds.centre(pending.round),
        y: upper,
        dx: 0.0,
        dy: -5.0,
        anchor: Anchor::Middle,
        text: format!("→ {}", unit.typed(pending.value)),
    };
    view! {
        <rect
            class="c-lampend"
            x=percent(scales.rounds.left(pending.round))
            y=percent(upper)
            width=percent(scales.rounds.width())
            height=percent(lower - upper)
        />
        {label.draw()}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::charts::scale::{Range, Rounds};
    use crate::format::Quantity;

    fn scales() -> Scales {
        Scales {
            rounds: Rounds { last: 9 },
            range: Range::around([0.0, 1.0], (0.0, 1.0)),
        }
    }

    #[test]
    fn a_change_by_hand_is_a_step_labelled_with_its_round() {
        let steps = [
            RoundValue { round: 0, value: 0.5 },
            RoundValue { round: 6, value: 0.4 },
        ];
        let spans = spans(&steps, scales());
        assert_eq!((spans[0].left, spans[0].right), (0.0, spans[1].left));
        assert_eq!(spans[1].right, 1.0);
        assert_eq!(lines(&spans).len(), 3);
        let labels = labels(&steps, scales(), Unit(Quantity::Rate));
        let texts: Vec<_> = labels.iter().map(|label| label.text.as_str()).collect();
        assert_eq!(texts, ["threshold", "≤ 40%", "round 6"]);
    }
}
