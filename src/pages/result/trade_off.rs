//! Which stored prompt is the best under other thresholds.

use std::collections::BTreeMap;

use capo_core::reading::metrics::StudiedMetric;
use capo_core::reading::standing::Scored;
use leptos::prelude::*;

use crate::components::{FieldError, Plate, Words};
use crate::format::{Quantity, typed};
use crate::live::Run;
use crate::run::sentence::Sentence;
use crate::run::studied::Shown as _;
use crate::run::trade_off::TradeOff;

/// Thresholds to change, the stored prompt that wins under them, and every prompt that would as one of them moves.
#[component]
pub(super) fn TradeOffPlate(
    run: Run,
    /// The letter of the plate.
    letter: Signal<&'static str>,
) -> impl IntoView {
    let choice = Memo::new(move |_| run.read(|folded| TradeOff::of(&folded.state, &folded.overview()?.map)));
    let changed = RwSignal::new(BTreeMap::<usize, f64>::new());
    let thresholds = Memo::new(move |_| {
        let changed = changed.get();
        choice.with(|choice| {
            let own = choice.iter().flat_map(|choice| &choice.constraints).enumerate();
            own.map(|(place, (_, own))| changed.get(&place).copied().unwrap_or(*own))
                .collect::<Vec<f64>>()
        })
    });
    let fields = move || {
        let constraints = choice.with(|choice| choice.as_ref().map(|choice| choice.constraints.clone()));
        let constraints = constraints.unwrap_or_default().into_iter().enumerate();
        constraints
            .map(|(place, (metric, own))| view! { <ThresholdField place metric own changed/> })
            .collect_view()
    };
    let best = move || {
        let sentence = choice.with(|choice| Some(best(choice.as_ref()?, &thresholds.get())));
        sentence.map(|sentence| view! { <Words sentence/> })
    };
    let fronts = move || {
        let many = choice.with(|choice| choice.as_ref().map_or(0, |choice| choice.constraints.len()));
        (0..many)
            .map(|moved| view! { <Front choice thresholds moved/> })
            .collect_view()
    };
    view! {
        <Show when=move || choice.with(Option::is_some)>
            <Plate
                letter
                title=|| {
                    view! {
                        "Other thresholds "
                        <span class="unit">"no model is asked: prompts measured on every search example"</span>
                    }
                }
            >
                <div class="fields">{fields}</div>
                <p class="reading" role="status">{best}</p>
                {fronts}
            </Plate>
        </Show>
    }
}

#[component]
fn ThresholdField(
    place: usize,
    metric: StudiedMetric,
    own: f64,
    changed: RwSignal<BTreeMap<usize, f64>>,
) -> impl IntoView {
    let quantity = metric.quantity();
    let scale = if quantity == Quantity::Rate { 100.0 } else { 1.0 };
    let text = RwSignal::new(typed::text(Some(own * scale), false));
    let wrong = RwSignal::new(None::<String>);
    let input = move |event| {
        let bare = event_target_value(&event);
        let number = typed::number(&bare);
        text.set(bare);
        wrong.set(number.as_ref().err().cloned());
        // A blank field is the run's own threshold.
        if let Ok(number) = number {
            changed.update(|changed| {
                match number {
                    Some(number) => changed.insert(place, number / scale),
                    None => changed.remove(&place),
                };
            });
        }
    };
    let id = format!("other-threshold-{place}");
    let message = format!("{id}-error");
    let described = message.clone();
    view! {
        <div class="field">
            <label for=id.clone()>{format!("{} at most", metric.label())}</label>
            <div class="with-unit">
                <input
                    id=id
                    class="num"
                    type="text"
                    inputmode="decimal"
                    autocomplete="off"
                    aria-invalid=move || wrong.with(Option::is_some).then_some("true")
                    aria-describedby=move || wrong.with(Option::is_some).then(|| described.clone())
                    prop:value=move || text.get()
                    on:input=input
                />
                <span>{quantity.unit(&metric.spec)}</span>
            </div>
            <FieldError id=message wrong/>
        </div>
    }
}

/// "Under these thresholds 53182d is the best: success 60.8% ± 5.7, human requests 33.8% ± 5.5 …"
fn best(choice: &TradeOff, thresholds: &[f64]) -> Sentence {
    let Some(best) = choice.best(thresholds) else {
        return Sentence::new("No prompt of this run keeps them all on the search examples.");
    };
    let constraints = choice.constraints.iter().map(|(metric, _)| metric);
    let figures = std::iter::once(&choice.objective).chain(constraints);
    let figures: Vec<String> = figures.filter_map(|metric| figure(best, metric)).collect();
    let sentence = Sentence::new("Under these thresholds ")
        .prompt(best.candidate)
        .text(format!(
            " is the best: {} on the search examples, chance aside.",
            figures.join(", ")
        ));
    match choice.returned {
        // Other thresholds, or a study that asks for more than means.
        Some(returned) if returned != best.candidate => {
            sentence.text(" The run returned ").prompt(returned).text(".")
        }
        _ => sentence,
    }
}

fn figure(scored: &Scored, metric: &StudiedMetric) -> Option<String> {
    let estimate = scored.estimate(metric)?;
    Some(format!(
        "{} {}",
        metric.phrase(),
        metric.quantity().estimate(estimate)
    ))
}

/// The prompts that win as one threshold rises and the others stay.
#[component]
fn Front(choice: Memo<Option<TradeOff>>, thresholds: Memo<Vec<f64>>, moved: usize) -> impl IntoView {
    let metrics = choice.with_untracked(|choice| {
        let choice = choice.as_ref()?;
        let (metric, _) = choice.constraints.get(moved)?;
        Some([metric.clone(), choice.objective.clone()])
    });
    metrics.map(|metrics| {
        let [cost, objective] = metrics.clone().map(|metric| metric.label());
        let title = format!("{objective} against {}", metrics[0].phrase());
        let region = format!("{title}, scrolls sideways");
        let rows = move || {
            let front = choice.with(|choice| {
                let choice = choice.as_ref()?;
                let front = thresholds.with(|thresholds| choice.front(thresholds, moved));
                Some(front.into_iter().cloned().collect::<Vec<Scored>>())
            });
            let front = front.unwrap_or_default().into_iter();
            front.map(|scored| row(&scored, &metrics)).collect_view()
        };
        view! {
            <details class="fold">
                <summary>{title}</summary>
                <div class="scroll" tabindex="0" role="group" aria-label=region>
                    <table>
                        <thead>
                            <tr>
                                <th scope="col">"Wins from here on"</th>
                                <th scope="col" class="num">{cost}</th>
                                <th scope="col" class="num">{objective}</th>
                            </tr>
                        </thead>
                        <tbody>{rows}</tbody>
                    </table>
                </div>
            </details>
        }
    })
}

fn row(scored: &Scored, metrics: &[StudiedMetric; 2]) -> impl IntoView + use<> {
    let sentence = Sentence::default().prompt(scored.candidate);
    let cells = metrics.each_ref().map(|metric| {
        let estimate = scored.estimate(metric);
        estimate.map(|estimate| metric.quantity().estimate(estimate))
    });
    view! {
        <tr>
            <th scope="row">
                <Words sentence/>
            </th>
            {cells.map(|cell| view! { <td class="num">{cell}</td> })}
        </tr>
    }
}
