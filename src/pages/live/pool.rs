//! The pool as a table.

use std::cmp::Ordering;

use capo_core::ids::CandidateId;
use leptos::prelude::*;
use leptos_router::components::A;

use super::overview::{Overview, Parts};
use crate::components::Gate as GateMark;
use crate::format::{self, NOTHING};
use crate::live::Run;
use crate::run::pool::{Gate, Place, Row};
use crate::run::studied::Studied;

/// What the table is sorted by.
#[derive(Debug, Clone, PartialEq, Eq)]
enum By {
    Lagrangian,
    Metric(String),
    Round,
}

/// The pool, or every prompt of the run.
#[component]
pub(super) fn PoolPlate(run: Run, overview: Overview) -> impl IntoView {
    let all = RwSignal::new(false);
    let by = RwSignal::new(By::Lagrangian);
    let letter = overview.letter(3);
    let about = move || overview.read(about);
    let metrics = Memo::new(move |_| overview.read(metrics).unwrap_or_default());
    let rows = Memo::new(move |_| {
        overview
            .read(|parts| rows(parts, all.get(), &by.get()))
            .unwrap_or_default()
    });
    let waiting = move || {
        overview
            .read(|parts| parts.drawn.pool.waiting)
            .filter(|waiting| *waiting > 0 && !all.get())
    };
    let everything = move || overview.read(|parts| parts.drawn.pool.rows.len());
    view! {
        <section class="plate" id=move || format!("plate-{}", letter.get()) tabindex="-1" aria-labelledby="pool-title">
            <header>
                <h2 class="pt" id="pool-title">
                    <span class="letter" aria-hidden="true">{move || letter.get()}</span>
                    <span>"Pool " <span class="unit">{about}</span></span>
                </h2>
                <span class="now">
                    <span class="seg" role="group" aria-label="Show">
                        <button
                            type="button"
                            aria-pressed=move || (!all.get()).to_string()
                            on:click=move |_| all.set(false)
                        >
                            "This round"
                        </button>
                        <button
                            type="button"
                            aria-pressed=move || all.get().to_string()
                            on:click=move |_| all.set(true)
                        >
                            "All " {everything}
                        </button>
                    </span>
                </span>
            </header>
            <div class="scroll" tabindex="0" role="group" aria-label="Pool, scrolls sideways">
                <table class="sticky-1">
                    <thead>
                        <tr>
                            <th scope="col">"Prompt"</th>
                            <th scope="col">"Gate"</th>
                            <Sorted by this=By::Lagrangian>
                                <span class="math">"J"</span>
                            </Sorted>
                            <For each=move || metrics.get() key=Clone::clone let(metric)>
                                <Sorted by this=By::Metric(metric.name.clone())>
                                    {metric.label.clone()} <small>{metric.note.clone()}</small>
                                </Sorted>
                            </For>
                            <Sorted by this=By::Round>"Round"</Sorted>
                            <th scope="col">"Parent"</th>
                            <th scope="col">"State"</th>
                        </tr>
                    </thead>
                    <tbody>
                        <For each=move || rows.get() key=Clone::clone let(row)>
                            <TableRow run row/>
                        </For>
                        {move || {
                            waiting()
                                .map(|waiting| {
                                    view! {
                                        <tr>
                                            <th scope="row">{waiting} " more"</th>
                                            <td colspan="9" class="quiet">
                                                "written by the rewriter, waiting to be evaluated"
                                            </td>
                                        </tr>
                                    }
                                })
                        }}
                    </tbody>
                </table>
            </div>
        </section>
    }
}

/// "6 kept, 4 of 8 children of round 5 so far".
fn about(parts: &Parts) -> String {
    let pool = &parts.drawn.pool;
    let kept = format!("{} kept", pool.kept);
    if pool.children == 0 {
        return kept;
    }
    format!(
        "{kept}, {} of {} children of round {} so far",
        pool.measured, pool.children, pool.round
    )
}

/// A column for a metric.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Column {
    name: String,
    label: String,
    note: String,
}

fn metrics(parts: &Parts) -> Vec<Column> {
    let series = &parts.drawn.series;
    let column = |metric: &Studied, threshold: Option<f64>| {
        let unit = metric.quantity.unit(&metric.spec);
        let limit = threshold.map(|threshold| format!(", {}", metric.quantity.limit(threshold)));
        Column {
            name: metric.name().to_owned(),
            label: metric.label(),
            note: format!("{unit} ± SE{}", limit.unwrap_or_default()),
        }
    };
    let constraints = series
        .constraints
        .iter()
        .map(|of| column(&of.metric, of.threshold()));
    std::iter::once(column(&series.objective, None))
        .chain(constraints)
        .collect()
}

/// A row as it is shown.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Shown {
    candidate: CandidateId,
    leading: bool,
    /// None while it is measured; examples measured and in all then.
    feasible: Option<bool>,
    progress: Option<(usize, usize)>,
    lagrangian: String,
    /// Value, error, and whether it is over its threshold, by metric.
    values: Vec<Option<(String, String, bool)>>,
    round: String,
    parent: Option<CandidateId>,
    state: &'static str,
}

fn rows(parts: &Parts, all: bool, by: &By) -> Vec<Shown> {
    let pool = &parts.drawn.pool;
    let mut rows: Vec<&Row> = if all {
        pool.rows.iter().collect()
    } else {
        pool.of_now().collect()
    };
    let key = |row: &Row| match by {
        By::Lagrangian => row.lagrangian,
        By::Metric(metric) => row.estimates.get(metric).map(|estimate| estimate.mean),
        By::Round => Some(f64::from(row.round)),
    };
    // Costs from the lowest, everything else from the highest; what has no value comes last.
    let ascending = matches!(by, By::Metric(metric) if metric != parts.drawn.series.objective.name());
    rows.sort_by(|a, b| match (key(a), key(b)) {
        (Some(a), Some(b)) if ascending => a.total_cmp(&b),
        (Some(a), Some(b)) => b.total_cmp(&a),
        (Some(_), None) => Ordering::Less,
        (None, Some(_)) => Ordering::Greater,
        (None, None) => Ordering::Equal,
    });
    let best = parts.drawn.map.best;
    rows.into_iter().map(|row| shown(parts, row, best)).collect()
}

fn shown(parts: &Parts, row: &Row, best: Option<CandidateId>) -> Shown {
    let series = &parts.drawn.series;
    let value = |metric: &Studied, threshold: Option<f64>| {
        let estimate = row.estimates.get(metric.name())?;
        let over = row.missed.iter().any(|missed| missed == metric.name());
        let quantity = metric.quantity;
        let value = match threshold {
            Some(threshold) if over => quantity.bare_against(estimate.mean, threshold),
            _ => quantity.bare(estimate.mean),
        };
        let error = (estimate.standard_error > 0.0).then(|| quantity.error(estimate.standard_error));
        Some((value, error.unwrap_or_default(), over))
    };
    let constraints = series
        .constraints
        .iter()
        .map(|of| value(&of.metric, of.threshold()));
    let (feasible, progress) = match row.gate {
        Gate::Feasible => (Some(true), None),
        Gate::NotFeasible => (Some(false), None),
        Gate::Undecided(progress) => (None, Some((progress.done, progress.of))),
    };
    Shown {
        candidate: row.candidate,
        leading: best == Some(row.candidate),
        feasible,
        progress,
        lagrangian: row
            .lagrangian
            .map_or_else(|| NOTHING.to_owned(), format::lagrangian),
        values: std::iter::once(value(&series.objective, None))
            .chain(constraints)
            .collect(),
        round: crate::run::rounds::name(row.round),
        parent: row.parents.first().copied(),
        state: match row.place {
            Place::InPool => "in pool",
            Place::NewChild => "new child",
            Place::Evaluating(_) => "evaluating",
            Place::Waiting => "waiting",
            Place::Left => "left the pool",
        },
    }
}

#[component]
fn Sorted(by: RwSignal<By>, this: By, children: Children) -> impl IntoView {
    let ascending = matches!(this, By::Metric(_));
    let mine = this.clone();
    let sorted = Memo::new(move |_| by.with(|by| *by == mine));
    let direction = move || {
        sorted
            .get()
            .then_some(if ascending { "ascending" } else { "descending" })
    };
    view! {
        <th scope="col" class="num" aria-sort=direction>
            <button type="button" class="sort" on:click=move |_| by.set(this.clone())>
                {children()}
            </button>
        </th>
    }
}

#[component]
fn TableRow(run: Run, row: Shown) -> impl IntoView {
    let address = move |candidate: CandidateId| format!("/run/{}/candidate/{candidate}", run.id());
    let gate = match (row.feasible, row.progress) {
        (Some(feasible), _) => view! { <GateMark feasible=feasible/> }.into_any(),
        (None, Some((done, of))) => {
            view! { <span class="gate"><span class="m w"></span>{done} " of " {of}</span> }.into_any()
        }
        (None, None) => NOTHING.into_any(),
    };
    let evaluating = row.feasible.is_none();
    let cell = move |value: Option<(String, String, bool)>| match value {
        Some((value, error, over)) => view! {
            <td class="num" class:is-i=over>
                {over.then(|| view! { <span class="m i"></span> })}
                {value}
                {(!error.is_empty()).then(|| view! { <span class="quiet">" ± " {error}</span> })}
            </td>
        }
        .into_any(),
        None if evaluating => view! { <td class="num"><span class="skel"></span></td> }.into_any(),
        None => view! { <td class="num">{NOTHING}</td> }.into_any(),
    };
    let parent = row.parent.map(|parent| {
        view! { <A href=address(parent) attr:class="id">{format::id(&parent)}</A> }
    });
    view! {
        <tr class:selected=row.leading>
            <th scope="row">
                <A href=address(row.candidate) attr:class="id">{format::id(&row.candidate)}</A>
            </th>
            <td>{gate}</td>
            <td class="num">{row.lagrangian}</td>
            {row.values.into_iter().map(cell).collect_view()}
            <td class="num">{row.round}</td>
            <td>{parent}</td>
            <td>{row.state}</td>
        </tr>
    }
}
