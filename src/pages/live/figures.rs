//! The charts of the live page.

use std::collections::HashSet;

use capo_core::estimate::Estimate;
use capo_core::journal::SteerEvent;
use capo_core::reading::metrics::{Part, StudiedMetric};
use capo_core::reading::standing::Scored;
use leptos::prelude::*;

use super::overview::{Overview, Parts};
use super::pictures::Pictures;
use crate::charts::figure::Figure;
use crate::charts::map::{CandidateMap, MapData, MapPoint, map_table};
use crate::charts::objective::{ObjectiveChart, ObjectiveData, PoolColumn, objective_table};
use crate::charts::series::{Candidate, Leading, RoundValue};
use crate::charts::strip::{ConstraintStrip, StripData, strip_table};
use crate::charts::unit::Unit;
use crate::components::{Deferred, Gate, Term, Words, plate_letter};
use crate::live::Run;
use crate::run::readings;
use crate::run::series::{ConstraintSeries, RoundPoint, Series};
use crate::run::studied::Shown as _;
use crate::run::word::Word;

/// The objective by round.
#[component]
fn ObjectiveFigure(overview: Overview, open: Callback<String>) -> impl IntoView {
    let overview = overview.apart();
    let data = Memo::new(move |_| overview.read(objective).unwrap_or_default());
    let reading = Memo::new(move |_| {
        overview
            .read(|parts| readings::objective(&parts.drawn.series))
            .unwrap_or_default()
    });
    let name = Signal::derive(move || {
        overview
            .read(|parts| parts.drawn.series.objective.label())
            .unwrap_or_default()
    });
    // What is explained stays in place as long as it says the same.
    let latest = Memo::new(move |_| {
        let of = |parts: &Parts| {
            let quantity = parts.drawn.series.objective.quantity();
            let map = &parts.drawn.map;
            // Once the run has ended there is one best prompt, whoever leads by J.
            let returned = map
                .best
                .filter(|_| !parts.goes_on)
                .and_then(|best| map.place(best));
            let estimate = match returned {
                Some(best) => best.scored.objective,
                None => parts.drawn.series.latest()?.leading.as_ref()?.objective,
            };
            let (value, error) = (
                quantity.value(estimate.mean),
                quantity.error(estimate.standard_error),
            );
            Some((value, error, returned.is_some()))
        };
        overview.read(of).flatten()
    });
    let now = move || {
        let (value, error, is_returned) = latest.get()?;
        let by = if is_returned {
            view! { ", best prompt" }.into_any()
        } else {
            view! { ", best by " <Term word=Word::J/> }.into_any()
        };
        Some(view! {
            <b>{value}</b>
            " "
            <span class="quiet">"± " {error} {by}</span>
        })
    };
    view! {
        <Figure
            letter="A"
            name=name
            now=now
            reading=move || view! { <Words sentence=reading.get()/> }
            table=Signal::derive(move || data.with(objective_table))
        >
            <ObjectiveChart data=data label=Signal::derive(move || reading.get().to_string()) on_open=open/>
        </Figure>
    }
}

/// The objective, and a strip for each constraint, the most violated first; the order stays while a
/// pointer or the focus is inside, and while the run is replayed.
#[component]
pub(super) fn Strips(run: Run, overview: Overview, open: Callback<String>) -> impl IntoView {
    let held = RwSignal::new(false);
    let order = Memo::new(move |last: Option<&Vec<String>>| {
        let (wanted, is_replayed) = overview
            .read(|parts| (by_violation(&parts.drawn.series), parts.is_replayed))
            .unwrap_or_default();
        match last {
            Some(last) if (held.get() || is_replayed) && last.len() == wanted.len() => last.clone(),
            _ => wanted,
        }
    });
    let letter = move |metric: String| {
        Signal::derive(move || {
            let place = order.with(|order| order.iter().position(|other| *other == metric));
            plate_letter(1 + place.unwrap_or(0))
        })
    };
    view! {
        <div
            class="strips"
            class:many=move || order.with(|order| order.len() >= 5)
            class:few=move || order.with(|order| order.len() <= 1)
            on:pointerenter=move |_| held.set(true)
            on:pointerleave=move |_| held.set(false)
            on:focusin=move |_| held.set(true)
            on:focusout=move |_| held.set(false)
        >
            <Deferred>
                <ObjectiveFigure overview open/>
            </Deferred>
            <For each=move || order.get() key=Clone::clone let(metric)>
                <Deferred>
                    <StripFigure run overview open letter=letter(metric.clone()) metric=metric.clone()/>
                </Deferred>
            </For>
        </div>
    }
}

#[component]
fn StripFigure(
    run: Run,
    overview: Overview,
    open: Callback<String>,
    letter: Signal<&'static str>,
    metric: String,
) -> impl IntoView {
    let overview = overview.apart();
    let metric = StoredValue::new(metric);
    let data = Memo::new(move |_| {
        let pending = run.pending.get();
        let strip = |parts: &Parts| strip(parts, &metric.get_value(), pending.as_ref());
        overview.read(strip).flatten().unwrap_or_default()
    });
    let reading = Memo::new(move |_| {
        let of = |parts: &Parts| {
            let of = parts.drawn.series.constraint(&metric.get_value())?;
            Some(readings::constraint(&parts.drawn.series, of))
        };
        overview.read(of).flatten().unwrap_or_default()
    });
    let of_metric = move |read: &dyn Fn(&StudiedMetric) -> String| {
        overview
            .read(|parts| {
                parts
                    .drawn
                    .series
                    .constraint(&metric.get_value())
                    .map(|of| read(&of.metric))
            })
            .flatten()
            .unwrap_or_default()
    };
    let now = move || {
        overview.read(|parts| {
            let of = parts.drawn.series.constraint(&metric.get_value())?;
            let value = parts
                .drawn
                .series
                .latest()?
                .leading
                .as_ref()?
                .estimate(&of.metric)?
                .mean;
            let threshold = of.threshold()?;
            let quantity = of.metric.quantity();
            let distance = quantity.distance(threshold - value);
            let holds = value <= threshold;
            Some(view! {
                <b>{quantity.against(value, threshold)}</b>
                " "
                <Gate feasible=holds/>
                " on search"
                {if holds { format!(", slack {distance}") } else { format!(", {distance} over") }}
            })
        })
    };
    view! {
        <Figure
            letter=letter
            name=Signal::derive(move || of_metric(&StudiedMetric::label))
            now=now
            reading=move || view! { <Words sentence=reading.get()/> }
            table=Signal::derive(move || data.with(strip_table))
        >
            <ConstraintStrip data=data label=Signal::derive(move || reading.get().to_string()) on_open=open/>
        </Figure>
    }
}

/// Objective against the worst residual.
#[component]
pub(super) fn MapFigure(run: Run, overview: Overview, open: Callback<String>) -> impl IntoView {
    let overview = overview.apart();
    let data = Memo::new(move |_| overview.read(map).unwrap_or_default());
    let reading = Memo::new(move |_| {
        overview
            .read(|parts| parts.drawn.map_reading.clone())
            .unwrap_or_default()
    });
    let letter = overview.letter(1);
    let objective = Memo::new(move |_| {
        overview
            .read(|parts| parts.drawn.series.objective.label())
            .unwrap_or_default()
    });
    let now = move || {
        overview.read(|parts| {
            format!(
                "{} of {} feasible on search",
                parts.drawn.map.feasible(),
                parts.drawn.map.places.len()
            )
        })
    };
    view! {
        <Figure
            letter=letter
            name=Signal::derive(move || format!("{} against the worst residual", objective.get()))
            heading=move || view! { {objective} " against the worst " <Term word=Word::RESIDUAL/> }
            now=now
            reading=move || view! { <Words sentence=reading.get()/> }
            table=Signal::derive(move || data.with(map_table))
        >
            <CandidateMap data=data label=Signal::derive(move || reading.get().to_string()) on_open=open/>
            <Pictures run overview/>
        </Figure>
    }
}

/// Constraints, the one furthest over its threshold first.
fn by_violation(series: &Series) -> Vec<String> {
    let over = |of: &ConstraintSeries| {
        let value = series.latest()?.leading.as_ref()?.estimate(&of.metric)?.mean;
        Some((value - of.threshold()?) / scale(&of.metric))
    };
    let mut constraints: Vec<(f64, String)> = series
        .constraints
        .iter()
        .map(|of| (over(of).unwrap_or(f64::NEG_INFINITY), of.metric.name().to_owned()))
        .collect();
    constraints.sort_by(|a, b| b.0.total_cmp(&a.0));
    constraints.into_iter().map(|(_, name)| name).collect()
}

/// What a residual is divided by.
fn scale(metric: &StudiedMetric) -> f64 {
    match metric.part {
        Part::Constraint { scale, .. } => scale,
        Part::Objective | Part::Measured => 1.0,
    }
}

fn now(parts: &Parts) -> Option<u32> {
    parts
        .drawn
        .series
        .rounds
        .last()
        .map(|point| point.round)
        .filter(|_| parts.goes_on)
}

fn leading(point: &RoundPoint, value: &Estimate) -> Option<Leading> {
    Some(Leading {
        round: point.round,
        id: match &point.best[..] {
            [only] => Some(only.to_string()),
            _ => None,
        },
        value: value.mean,
        error: (value.standard_error > 0.0).then_some(value.standard_error),
        feasible: point.leading.as_ref()?.feasible,
    })
}

/// All prompts but the leading ones of a round, each in the round it was first beside them.
fn others(series: &Series, value: impl Fn(&Scored) -> Option<f64>) -> Vec<Candidate> {
    let of_rounds = series
        .rounds
        .iter()
        .flat_map(|point| point.others.iter().map(move |scored| (point.round, scored)));
    let arriving = series.closed() + 1;
    let arriving = series
        .arriving
        .iter()
        .map(move |scored| (arriving, scored.as_ref()));
    // Those that stay in the pool are scored again in each round.
    let mut seen = HashSet::new();
    of_rounds
        .chain(arriving)
        .filter(|(_, scored)| seen.insert(scored.candidate))
        .filter_map(|(round, scored)| {
            Some(Candidate {
                id: scored.candidate.to_string(),
                round,
                value: value(scored)?,
                feasible: scored.feasible,
            })
        })
        .collect()
}

fn objective(parts: &Parts) -> ObjectiveData {
    let series = &parts.drawn.series;
    let metric = &series.objective;
    let of = |point: &RoundPoint| leading(point, &point.leading.as_ref()?.objective);
    let best = |point: &RoundPoint| {
        let best = point.best_feasible.as_ref()?;
        Some(RoundValue {
            round: point.round,
            value: best.objective.mean,
        })
    };
    let mut best_feasible: Vec<RoundValue> = series.rounds.iter().filter_map(best).collect();
    best_feasible.dedup_by(|later, earlier| later.value <= earlier.value);
    let pool = |point: &RoundPoint| {
        let mut places: Vec<bool> = point.pool.iter().map(|place| place.feasible).collect();
        places.sort_by_key(|feasible| !feasible);
        PoolColumn {
            round: point.round,
            places,
        }
    };
    ObjectiveData {
        name: metric.phrase(),
        unit: Unit(metric.quantity()),
        axis: format!("{}, higher is better", metric.axis()),
        last_round: parts.last_round,
        now: now(parts),
        leading: series.rounds.iter().filter_map(of).collect(),
        others: others(series, |scored| Some(scored.objective.mean)),
        best_feasible,
        pool: series.rounds.iter().map(pool).collect(),
        also_in_range: Vec::new(),
    }
}

fn strip(parts: &Parts, metric: &str, pending: Option<&SteerEvent>) -> Option<StripData> {
    let series = &parts.drawn.series;
    let of = series.constraint(metric)?;
    let closed = series.closed();
    let next = |value: Option<&f64>| {
        value.map(|value| RoundValue {
            round: closed + 2,
            value: *value,
        })
    };
    let first = of.thresholds.iter().position(Option::is_some).unwrap_or(0);
    let mut threshold: Vec<RoundValue> = Vec::new();
    for (round, value) in (0_u32..).zip(&of.thresholds).skip(first) {
        if let Some(value) = value
            && threshold.last().is_none_or(|last| last.value != *value)
        {
            threshold.push(RoundValue { round, value: *value });
        }
    }
    if let Some(first) = threshold.first_mut() {
        first.round = 0;
    }
    let mut multiplier: Vec<RoundValue> = (0_u32..)
        .zip(&of.multipliers)
        .filter_map(|(round, value)| {
            Some(RoundValue {
                round,
                value: (*value)?,
            })
        })
        .collect();
    if let (Some(value), true) = (of.next_multiplier, parts.goes_on)
        && multiplier.last().is_none_or(|last| last.round <= closed)
    {
        multiplier.push(RoundValue {
            round: closed + 1,
            value,
        });
    }
    Some(StripData {
        name: of.metric.phrase(),
        unit: Unit(of.metric.quantity()),
        axis: of.metric.axis(),
        last_round: parts.last_round,
        now: now(parts),
        threshold,
        pending_threshold: next(pending.and_then(|pending| pending.thresholds.as_ref()?.get(metric))),
        leading: series
            .rounds
            .iter()
            .filter_map(|point| leading(point, point.leading.as_ref()?.estimate(&of.metric)?))
            .collect(),
        others: others(series, |scored| Some(scored.costs.get(metric)?.mean)),
        multiplier,
        pending_multiplier: next(pending.and_then(|pending| pending.multipliers.as_ref()?.get(metric))),
        cap: series.cap,
        also_in_range: Vec::new(),
        remark: None,
    })
}

fn map(parts: &Parts) -> MapData {
    let metric = &parts.drawn.series.objective;
    let places = parts.drawn.map.places.iter().filter_map(|place| {
        Some(MapPoint {
            id: place.scored.candidate.to_string(),
            parent: place.parents.first().map(ToString::to_string),
            round: place.round,
            objective: place.scored.objective.mean,
            worst_residual: place.worst_residual?,
            feasible: place.scored.feasible,
        })
    });
    MapData {
        objective: metric.phrase(),
        unit: Unit(metric.quantity()),
        axis: format!("{}, {}", metric.phrase(), metric.quantity().unit(&metric.spec)),
        points: places.collect(),
        course: parts.drawn.map.course.iter().map(ToString::to_string).collect(),
        best_name: if parts.goes_on {
            "best so far"
        } else {
            "best prompt"
        }
        .into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::fixture::finished;

    #[test]
    fn a_prompt_that_stays_in_the_pool_has_one_mark() {
        let series = Series::new(&finished()).unwrap();
        let listed: usize = series.rounds.iter().map(|point| point.others.len()).sum();
        let marks = others(&series, |scored| Some(scored.objective.mean));
        let ids: HashSet<&String> = marks.iter().map(|mark| &mark.id).collect();
        assert_eq!(ids.len(), marks.len());
        assert!(marks.len() < listed, "some are scored in several rounds");
    }
}
