//! The lower half of a constraint strip: the multiplier that answered the cost, between 0 and its cap.
//! Where a method knows no cap, the axis grows with the multiplier.

use leptos::prelude::*;

use super::{
    axis::{NowLine, RoundAxis},
    keyed::keyed,
    labels::{Anchor, Label, Labels},
    measure::Size,
    scale::{Rounds, percent, round_name},
    series::RoundValue,
    unit::fixed,
};

/// Steps narrower than this, in pixels, carry no values of their own.
const ROOM_FOR_A_VALUE: f64 = 30.0;
/// Below this many pixels under the cap a step's value stands inside the step.
const ROOM_UNDER_THE_CAP: f64 = 16.0;

/// The multiplier by round: steps from 0 to the cap, rounds at the cap as a black band under it.
#[component]
pub fn MultiplierPlot(
    /// The rounds from left to right.
    #[prop(into)]
    rounds: Signal<Rounds>,
    /// The multiplier that each round used.
    #[prop(into)]
    used: Signal<Vec<RoundValue>>,
    /// The greatest value that it may take, positive; none where it may take any.
    #[prop(into)]
    cap: Signal<Option<f64>>,
    /// A value set by hand that waits for a round to start.
    #[prop(into)]
    pending: Signal<Option<RoundValue>>,
    /// The last closed round of a run that goes on.
    #[prop(into)]
    now: Signal<Option<u32>>,
    /// The size of the plot.
    #[prop(into)]
    size: Signal<Size>,
) -> impl IntoView {
    let top = Memo::new(move |last: Option<&f64>| {
        cap.get().unwrap_or_else(|| {
            let used = used.with(|used| used.iter().map(|step| step.value).fold(0.0, f64::max));
            let most = pending.get().map_or(used, |pending| used.max(pending.value));
            ceiling(most).max(last.copied().unwrap_or_default())
        })
    });
    let labels = Memo::new(move |_| {
        let waits = pending
            .get()
            .map(|pending| waiting_label(pending, rounds.get(), top.get()));
        let words = used.with(|used| labels(used, rounds.get(), cap.get(), top.get(), size.get()));
        words.into_iter().chain(waits).collect::<Vec<_>>()
    });
    let steps = keyed(
        used,
        |step| step.round.to_string(),
        move |step| {
            let left = move || percent(rounds.get().left(step.get().round));
            let right = move || percent(rounds.get().left(step.get().round + 1));
            let width = move || percent(rounds.get().width());
            let level = move || level(step.get().value, top.get());
            let at_cap = move || cap.get().is_some_and(|cap| step.get().value >= cap);
            let band = move || at_cap().then(|| band(&left(), &width()));
            view! {
                <rect
                    class="c-lam"
                    x=left
                    y=move || percent(level())
                    width=width
                    height=move || percent(1.0 - level())
                />
                <line
                    class="c-lamtop"
                    x1=left
                    x2=right
                    y1=move || percent(level())
                    y2=move || percent(level())
                />
                {band}
            }
        },
    );
    let waiting = move || {
        pending
            .get()
            .map(|pending| waiting(pending, rounds.get(), top.get()))
    };
    let cap_line = move || {
        let cap = cap.get()?;
        Some(view! {
            <line class="c-cap" x1="0%" x2="100%" y1="0%" y2="0%" />
            <line class="c-cap" x1="0%" x2="100%" y1="-2.5" y2="-2.5" />
            <text class="c-label b" x="100%" y="0%" dx="6" dy="4">
                {format!("cap {}", number(cap))}
            </text>
        })
    };
    view! {
        <svg>
            <g aria-hidden="true">
                {cap_line}
                <line class="c-frame" x1="0%" x2="100%" y1="100%" y2="100%" />
                <line class="c-frame" x1="0%" x2="0%" y1="0%" y2="100%" />
                <text class="c-tick" x="0%" y="0%" dx="-6" dy="4" text-anchor="end">
                    {move || number(top.get())}
                </text>
                <text class="c-tick" x="0%" y="100%" dx="-6" dy="4" text-anchor="end">
                    "0"
                </text>
                {steps}
                {waiting}
                <Labels labels=labels />
                <NowLine rounds=rounds now=now above=20 />
            </g>
            <RoundAxis rounds=rounds size=size />
        </svg>
    }
}

/// Where the axis ends for multipliers without a cap: the power of two that is not below them.
fn ceiling(most: f64) -> f64 {
    most.max(1.0).log2().ceil().exp2()
}

/// The place of a multiplier from the top of the axis, which stands at `top`.
fn level(value: f64, top: f64) -> f64 {
    if top > 0.0 {
        (1.0 - value / top).clamp(0.0, 1.0)
    } else {
        1.0
    }
}

fn band(left: &str, width: &str) -> impl IntoView + use<> {
    view! { <rect class="c-sat" x=left.to_owned() y="0" width=width.to_owned() height="7" /> }
}

fn waiting(pending: RoundValue, rounds: Rounds, top: f64) -> impl IntoView {
    let level = level(pending.value, top);
    view! {
        <rect
            class="c-lampend"
            x=percent(rounds.left(pending.round))
            y=percent(level)
            width=percent(rounds.width())
            height=percent(1.0 - level)
        />
    }
}

fn waiting_label(pending: RoundValue, rounds: Rounds, top: f64) -> Label {
    Label {
        class: "c-label acc",
        x: rounds.centre(pending.round),
        y: level(pending.value, top),
        dx: 0.0,
        dy: -5.0,
        anchor: Anchor::Middle,
        text: format!("→ {}", fixed(pending.value, 2)),
    }
}

/// A cap without needless decimals.
fn number(cap: f64) -> String {
    fixed(cap, if cap.fract() == 0.0 { 0 } else { 2 })
}

/// The values above the steps, or the peak and the last one where steps are narrow; and the words for
/// the rounds at the cap.
fn labels(used: &[RoundValue], rounds: Rounds, cap: Option<f64>, top: f64, size: Size) -> Vec<Label> {
    let is_at_cap = |step: &RoundValue| cap.is_some_and(|cap| step.value >= cap);
    let value = |step: &RoundValue, anchor, text: String| {
        let y = level(step.value, top);
        let (x, dx) = match anchor {
            Anchor::End => (rounds.left(step.round + 1), -2.0),
            _ => (rounds.centre(step.round), 0.0),
        };
        let dy = if y * size.height < ROOM_UNDER_THE_CAP {
            14.0
        } else {
            -5.0
        };
        Label {
            class: "c-label",
            x,
            y,
            dx,
            dy,
            anchor,
            text,
        }
    };
    let below_cap: Vec<_> = used.iter().filter(|step| !is_at_cap(step)).collect();
    let values: Vec<_> = if rounds.width() * size.width >= ROOM_FOR_A_VALUE {
        below_cap
            .into_iter()
            .map(|step| value(step, Anchor::Middle, fixed(step.value, 2)))
            .collect()
    } else {
        let is_ever_at_cap = below_cap.len() < used.len();
        let last = below_cap
            .last()
            .filter(|last| Some(last.round) == used.last().map(|last| last.round));
        let peak = used
            .iter()
            .max_by(|a, b| a.value.total_cmp(&b.value))
            .filter(|peak| !is_ever_at_cap && peak.value > 0.0);
        let has_room = |peak: &&RoundValue| {
            last.is_none_or(|last| {
                f64::from(last.round - peak.round) * rounds.width() * size.width > 2.0 * ROOM_FOR_A_VALUE
            })
        };
        let peak = peak
            .filter(has_room)
            .map(|peak| value(peak, Anchor::Middle, format!("peak {}", fixed(peak.value, 2))));
        let last = last.map(|last| value(last, Anchor::End, fixed(last.value, 2)));
        peak.into_iter().chain(last).collect()
    };
    let words = cap.and_then(|cap| at_cap(used, rounds, cap));
    values.into_iter().chain(words).collect()
}

/// When the multiplier stands at its cap, or last stood there.
fn at_cap(used: &[RoundValue], rounds: Rounds, cap: f64) -> Option<Label> {
    let end = used.iter().rposition(|step| step.value >= cap)?;
    let start = used[..end]
        .iter()
        .rposition(|step| step.value < cap)
        .map_or(0, |below| below + 1);
    let (from, to) = (used[start].round, used[end].round);
    let text = if end + 1 == used.len() {
        format!("at cap from round {}", round_name(from))
    } else if from == to {
        format!("at cap in round {}", round_name(from))
    } else {
        format!("at cap, rounds {} to {}", round_name(from), round_name(to))
    };
    let (x, dx, anchor) = if rounds.left(from) < 0.6 {
        (rounds.left(from), 4.0, Anchor::Start)
    } else {
        (rounds.left(to + 1), -4.0, Anchor::End)
    };
    Some(Label {
        class: "c-label",
        x,
        y: 0.0,
        dx,
        dy: 21.0,
        anchor,
        text,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn used(values: &[f64]) -> Vec<RoundValue> {
        (1..)
            .zip(values)
            .map(|(round, value)| RoundValue { round, value: *value })
            .collect()
    }

    fn texts(values: &[f64], last: u32) -> Vec<String> {
        let size = Size {
            width: 280.0,
            height: 68.0,
        };
        labels(&used(values), Rounds { last }, Some(10.0), 10.0, size)
            .into_iter()
            .map(|label| label.text)
            .collect()
    }

    #[test]
    fn wide_steps_carry_their_values_and_narrow_ones_peak_and_last() {
        assert_eq!(texts(&[1.0, 2.52, 0.0], 6), ["1.00", "2.52", "0.00"]);
        assert_eq!(
            texts(&[1.0, 7.0, 5.0, 4.0, 3.0, 2.0, 1.5, 1.2, 0.9], 24),
            ["peak 7.00", "0.90"]
        );
    }

    #[test]
    fn without_a_cap_no_round_is_at_it_and_the_axis_holds_every_multiplier() {
        let size = Size {
            width: 280.0,
            height: 68.0,
        };
        let used = used(&[1.0, 14.0]);
        let texts: Vec<String> = labels(&used, Rounds { last: 6 }, None, ceiling(14.0), size)
            .into_iter()
            .map(|label| label.text)
            .collect();
        assert_eq!(texts, ["1.00", "14.00"]);
        assert_eq!(ceiling(14.0), 16.0);
        assert_eq!(ceiling(0.0), 1.0);
        assert_eq!(level(16.0, ceiling(16.0)), 0.0);
    }

    #[test]
    fn rounds_at_the_cap_are_named_in_words() {
        assert_eq!(texts(&[1.0, 10.0, 10.0], 6), ["1.00", "at cap from round 2"]);
        assert_eq!(texts(&[10.0, 1.0], 6), ["1.00", "at cap in round 1"]);
        assert_eq!(texts(&[10.0, 10.0, 1.0], 24), ["1.00", "at cap, rounds 1 to 2"]);
    }
}
