//! Trade-offs: the best stored prompt under other thresholds.

use std::collections::BTreeMap;

use capo_core::reading::metrics::StudiedMetric;
use capo_core::reading::standing::Scored;
use leptos::prelude::*;
use leptos_router::NavigateOptions;
use leptos_router::hooks::use_navigate;

use crate::charts::figure::Figure;
use crate::charts::front::{Front, FrontAxis, FrontData, FrontPoint, front_table};
use crate::charts::scale::Range;
use crate::charts::unit::Unit;
use crate::components::{FieldError, Plate, Track, Words};
use crate::format::{self, Quantity, typed};
use crate::live::Run;
use crate::run::sentence::Sentence;
use crate::run::studied::Shown as _;
use crate::run::trade_off::TradeOff;

/// Thresholds to change, the stored prompt that wins under them, and for each cost a plot of every prompt that would as its
/// threshold moves.
#[component]
pub(super) fn TradeOffPlate(
    run: Run,
    /// The letters of its plate and of the plots, by their place among these.
    #[prop(into)]
    letter: Callback<usize, Signal<&'static str>>,
) -> impl IntoView {
    let navigate = use_navigate();
    let open = Callback::new(move |prompt: String| {
        let address = format!("/run/{}/candidate/{prompt}", run.id());
        navigate(&address, NavigateOptions::default());
    });
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
        let choice = choice.get()?;
        let field = |(place, (metric, own)): (usize, &(StudiedMetric, f64))| {
            let axis = axis(&choice, metric, Some(*own));
            let most = axis.range.high.min(axis.unit.natural_bounds().1);
            view! { <ThresholdField place metric=metric.clone() own=*own most changed/> }
        };
        let fields = choice.constraints.iter().enumerate().map(field);
        Some(fields.collect_view())
    };
    let best = move || {
        let sentence = choice.with(|choice| Some(best(choice.as_ref()?, &thresholds.get())));
        sentence.map(|sentence| view! { <Words sentence/> })
    };
    let many = Memo::new(move |_| {
        choice.with(|choice| choice.as_ref().map_or(0, |choice| choice.constraints.len()))
    });
    let fronts = move || {
        (0..many.get())
            .map(|moved| view! { <FrontFigure choice thresholds moved letter=letter.run(1 + moved) open/> })
            .collect_view()
    };
    view! {
        <Show when=move || choice.with(Option::is_some)>
            <Plate
                letter=letter.run(0)
                title=|| {
                    view! {
                        "Other thresholds "
                        <span class="unit">"no model is asked: prompts measured on every search example"</span>
                    }
                }
            >
                <div class="fields">{fields}</div>
                <p class="reading" role="status">{best}</p>
            </Plate>
            <div class="strips" class:few=move || many.get() == 1>{fronts}</div>
        </Show>
    }
}

#[component]
fn ThresholdField(
    place: usize,
    metric: StudiedMetric,
    own: f64,
    /// Where the slider ends.
    most: f64,
    changed: RwSignal<BTreeMap<usize, f64>>,
) -> impl IntoView {
    let quantity = metric.quantity();
    let scale = if quantity == Quantity::Rate { 100.0 } else { 1.0 };
    let text = RwSignal::new(typed::text(Some(own * scale), false));
    let wrong = RwSignal::new(None::<String>);
    let value = Signal::derive(move || Some(changed.with(|changed| *changed.get(&place).unwrap_or(&own))));
    let written = Signal::derive(move || value.get().map(|value| quantity.threshold(value)));
    let enter = move |bare: String| {
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
                    on:input=move |event| enter(event_target_value(&event))
                />
                <span>{quantity.unit(&metric.spec)}</span>
            </div>
            <Track
                name=format!("{} at most, by slider", metric.label())
                most=most * scale
                value=Signal::derive(move || value.get().map(|value| value * scale))
                written
                moved=move |value| enter(typed::text(Some(value), false))
            />
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
fn FrontFigure(
    choice: Memo<Option<TradeOff>>,
    thresholds: Memo<Vec<f64>>,
    moved: usize,
    letter: Signal<&'static str>,
    open: Callback<String>,
) -> impl IntoView {
    let data = Memo::new(move |_| {
        let thresholds = thresholds.get();
        let front = choice.with(|choice| front(choice.as_ref()?, &thresholds, moved));
        front.unwrap_or_default()
    });
    let name = move || {
        data.with(|data| {
            let objective = format::capitalized(&data.objective.name);
            format!("{objective} against {}", data.cost.name)
        })
    };
    let winners = move || {
        let thresholds = thresholds.get();
        choice.with(|choice| {
            choice
                .as_ref()
                .map_or(0, |choice| choice.front(&thresholds, moved).len())
        })
    };
    let reading = Memo::new(move |_| match winners() {
        0 => "No prompt keeps the other thresholds.".to_owned(),
        many => format!(
            "{} would win in turn as this threshold rises and the others stay. Bars are ± 1 standard error.",
            format::capitalized(&format::counted(many, "prompt"))
        ),
    });
    view! {
        <Figure
            letter
            name=Signal::derive(name)
            reading=move || reading.get()
            table=Signal::derive(move || data.with(front_table))
        >
            <Front data label=reading on_open=open/>
        </Figure>
    }
}

/// What is drawn of one cost. Of prompts that reach as much, the best one may cost more: it is drawn beside the front.
fn front(choice: &TradeOff, thresholds: &[f64], moved: usize) -> Option<FrontData> {
    let (metric, own) = choice.constraints.get(moved)?;
    let best = choice.best(thresholds);
    let wins = |scored: &Scored| best.is_some_and(|best| best.candidate == scored.candidate);
    let mut shown = choice.front(thresholds, moved);
    if !shown.iter().any(|scored| wins(scored)) {
        shown.extend(best);
    }
    let point = |scored: &Scored| {
        Some(FrontPoint {
            id: scored.candidate.to_string(),
            objective: scored.objective,
            cost: *scored.estimate(metric)?,
            wins: wins(scored),
        })
    };
    let mut points: Vec<FrontPoint> = shown.into_iter().filter_map(point).collect();
    points.sort_by(|a, b| a.cost.mean.total_cmp(&b.cost.mean));
    Some(FrontData {
        objective: axis(choice, &choice.objective, None),
        cost: axis(choice, metric, Some(*own)),
        threshold: *thresholds.get(moved)?,
        points,
    })
}

/// The axis of a metric, with room for every prompt's bars and for the run's own threshold: it stays as thresholds move.
fn axis(choice: &TradeOff, metric: &StudiedMetric, own: Option<f64>) -> FrontAxis {
    let unit = Unit(metric.quantity());
    let ends = choice.estimates(metric).flat_map(|estimate| {
        let error = estimate.standard_error;
        [estimate.mean - error, estimate.mean + error]
    });
    FrontAxis {
        name: metric.phrase(),
        title: format!("{}, {}", metric.phrase(), metric.quantity().unit(&metric.spec)),
        unit,
        range: Range::around(ends.chain(own), unit.natural_bounds()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::fixture::finished;
    use crate::run::map::Map;

    #[test]
    fn the_best_prompt_is_on_every_front_and_axes_stay_as_thresholds_move() {
        let state = finished();
        let choice = TradeOff::of(&state, &Map::new(&state)).unwrap();
        let own: Vec<f64> = choice.constraints.iter().map(|(_, own)| *own).collect();
        let lifted = vec![f64::INFINITY; own.len()];
        for moved in 0..own.len() {
            let [narrow, wide] = [&own, &lifted].map(|thresholds| front(&choice, thresholds, moved).unwrap());
            assert_eq!((&narrow.cost, &narrow.objective), (&wide.cost, &wide.objective));
            for (shown, thresholds) in [(&narrow, &own), (&wide, &lifted)] {
                let best = choice.best(thresholds).map(|best| best.candidate.to_string());
                let ringed: Vec<&String> = shown
                    .points
                    .iter()
                    .filter(|point| point.wins)
                    .map(|point| &point.id)
                    .collect();
                assert_eq!(ringed, best.iter().collect::<Vec<_>>());
                let places = shown
                    .points
                    .iter()
                    .map(|point| shown.cost.range.place(point.cost.mean));
                assert!(places.into_iter().all(|place| (0.0..=1.0).contains(&place)));
            }
        }
    }
}
