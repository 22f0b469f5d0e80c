//! Paired differences against the seed prompt, and the table every comparison uses.

use capo_core::reading::comparison::Difference;
use leptos::prelude::*;

use crate::charts::interval::{Interval, IntervalData};
use crate::charts::unit::Unit;
use crate::components::Plate;
use crate::format::Quantity;
use crate::run::paired;
use crate::run::studied::Shown as _;

/// The best prompt minus the seed prompt on the held-out examples.
#[component]
pub(super) fn SeedPlate(
    differences: Memo<Vec<Difference>>,
    /// The letter of the plate.
    letter: Signal<&'static str>,
) -> impl IntoView {
    view! {
        <Show when=move || differences.with(|differences| !differences.is_empty())>
            <Plate
                letter
                title=|| "Against the seed prompt"
                beside=|| view! { <span class="now quiet">"best prompt − seed"</span> }
            >
                <Differences differences name="Differences to the seed prompt"/>
            </Plate>
        </Show>
    }
}

/// Differences with their 95% intervals, in numbers, as a picture and in words.
#[component]
pub(super) fn Differences(
    /// What to show.
    #[prop(into)]
    differences: Signal<Vec<Difference>>,
    /// What they are of.
    name: &'static str,
) -> impl IntoView {
    let rows = move || {
        let differences = differences.get();
        let reaches: Vec<f64> = differences.iter().map(|one| reach(one, &differences)).collect();
        differences
            .into_iter()
            .zip(reaches)
            .map(|(difference, reach)| view! { <Row difference reach/> })
            .collect_view()
    };
    view! {
        <div class="scroll" tabindex="0" role="group" aria-label=format!("{name}, scrolls sideways")>
            <table class="mid differences">
                <caption class="sr">{name}</caption>
                <thead>
                    <tr>
                        <th scope="col">"Paired by example"</th>
                        <th scope="col" class="num">"Difference"</th>
                        <th scope="col" class="num">"95% interval"</th>
                        <th scope="col" class="col-interval">"lower ← 0 → higher"</th>
                        <th scope="col">"Reading"</th>
                    </tr>
                </thead>
                <tbody>{rows}</tbody>
            </table>
        </div>
    }
}

#[component]
fn Row(difference: Difference, reach: f64) -> impl IntoView {
    let (mean, interval) = (paired::mean(&difference), paired::interval(&difference));
    let reading = paired::words(difference.verdict());
    let picture = difference.paired.interval.map(|ends| {
        let data = IntervalData {
            name: difference.metric.label(),
            unit: Unit(difference.metric.quantity()),
            difference: difference.paired.mean,
            low: ends.low,
            high: ends.high,
            reach,
        };
        view! { <Interval data/> }
    });
    view! {
        <tr>
            <th scope="row">{difference.metric.label()}</th>
            <td class="num"><b>{mean}</b></td>
            <td class="num quiet">{interval}</td>
            <td class="col-interval">{picture}</td>
            <td>{reading}</td>
        </tr>
    }
}

/// Where a picture ends: the furthest end of an interval and a tenth; rates share one scale.
fn reach(of: &Difference, all: &[Difference]) -> f64 {
    let furthest = |difference: &Difference| {
        let ends = difference.paired.interval;
        ends.map_or(difference.paired.mean.abs(), |ends| {
            ends.low.abs().max(ends.high.abs())
        })
    };
    let is_rate = |difference: &Difference| difference.metric.quantity() == Quantity::Rate;
    let furthest = if is_rate(of) {
        let rates = all.iter().filter(|one| is_rate(one));
        rates.map(furthest).fold(0.0, f64::max)
    } else {
        furthest(of)
    };
    1.1 * furthest
}
