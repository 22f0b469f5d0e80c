//! Axes and frames. Geometry is in percent of the plot, so that it stretches; text keeps its size.

use leptos::prelude::*;

use super::{
    measure::Size,
    scale::{Range, Rounds, percent, round_name},
    unit::Unit,
};

/// The ticks of a vertical value axis, with horizontal rules where a plot has no sides.
#[component]
pub fn ValueAxis(
    /// From the least to the greatest value that is drawn.
    #[prop(into)]
    range: Signal<Range>,
    /// How ticks are written.
    #[prop(into)]
    unit: Signal<Unit>,
    /// Whether rules cross the plot.
    #[prop(optional)]
    rules: bool,
    /// The title with its unit, at the top left.
    #[prop(into)]
    title: Signal<String>,
) -> impl IntoView {
    let tick = move |range: Range, value: f64| {
        let y = percent(range.from_top(value));
        let rule =
            rules.then(|| view! { <line class="c-grid" x1="0%" x2="100%" y1=y.clone() y2=y.clone() /> });
        view! {
            {rule}
            <text class="c-tick" x="0%" y=y dx="-6" dy="4" text-anchor="end">
                {unit.get().tick(value, range.step)}
            </text>
        }
    };
    let ticks = move || {
        let range = range.get();
        range
            .ticks()
            .into_iter()
            .map(|value| tick(range, value))
            .collect_view()
    };
    view! {
        <g aria-hidden="true">
            {ticks} <text class="c-axis" x="0%" y="0%" dy="-7">
                {move || title.get()}
            </text>
        </g>
    }
}

/// The ticks of a horizontal value axis, with its title below.
#[component]
pub fn WidthAxis(
    /// From the least to the greatest value that is drawn.
    #[prop(into)]
    range: Signal<Range>,
    /// How ticks are written.
    unit: Unit,
    /// The title, below.
    #[prop(into)]
    title: Signal<String>,
) -> impl IntoView {
    let tick = move |range: Range, value: f64| {
        let x = percent(range.place(value));
        view! {
            <text class="c-tick" x=x.clone() y="100%" dy="15" text-anchor="middle">
                {unit.tick(value, range.step)}
            </text>
            <svg x=x y="100%" overflow="visible">
                <line class="c-frame" y2="4" />
            </svg>
        }
    };
    let ticks = move || {
        let range = range.get();
        range
            .ticks()
            .into_iter()
            .map(|value| tick(range, value))
            .collect_view()
    };
    view! {
        <g aria-hidden="true">
            {ticks} <text class="c-axis" x="50%" y="100%" dy="31" text-anchor="middle">
                {move || title.get()}
            </text>
        </g>
    }
}

/// The rounds below a plot.
#[component]
pub fn RoundAxis(
    /// The rounds from left to right.
    #[prop(into)]
    rounds: Signal<Rounds>,
    /// The size of the plot.
    #[prop(into)]
    size: Signal<Size>,
) -> impl IntoView {
    let width = Memo::new(move |_| size.get().width);
    let tick = |rounds: Rounds, round: u32| {
        view! {
            <text class="c-tick" x=percent(rounds.centre(round)) y="100%" dy="15" text-anchor="middle">
                {round_name(round)}
            </text>
        }
    };
    let ticks = move || {
        let rounds = rounds.get();
        rounds
            .labelled(width.get())
            .into_iter()
            .map(|round| tick(rounds, round))
            .collect_view()
    };
    view! {
        <g aria-hidden="true">
            {ticks} <text class="c-axis" x="50%" y="100%" dy="30" text-anchor="middle">
                "round"
            </text>
        </g>
    }
}

/// The dotted line after the last closed round: right of it lies the future. Nothing when the run is over.
#[component]
pub fn NowLine(
    /// The rounds from left to right.
    #[prop(into)]
    rounds: Signal<Rounds>,
    /// The last closed round of a run that goes on.
    #[prop(into)]
    now: Signal<Option<u32>>,
    /// How far above the frame it starts, in percent of the plot's height, to meet the plot above.
    #[prop(default = 0)]
    above: u32,
) -> impl IntoView {
    let line = move |round| {
        let x = percent(rounds.get().left(round + 1));
        view! { <line class="c-now" x1=x.clone() x2=x y1=format!("-{above}%") y2="100%" /> }
    };
    move || now.get().map(line)
}

/// The frame around a plot.
#[component]
pub fn Frame() -> impl IntoView {
    view! { <rect class="c-frame" width="100%" height="100%" /> }
}
