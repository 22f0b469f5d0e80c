//! Plate F: prompts × examples.

use capo_core::ids::CandidateId;
use capo_core::metric::{Direction, PROMPT_LENGTH};
use capo_core::reading::metrics::StudiedMetric;
use capo_core::workload::Split;
use leptos::prelude::*;

use super::address::TraceAddress;
use super::page::{Page, Parts};
use crate::charts::heat::{Heat, HeatCell, HeatData, HeatExample, HeatRow, Shading};
use crate::charts::unit::{Unit, short};
use crate::components::{Plate, Toggle, Viewport, Window};
use crate::format::{self, NOTHING, Quantity};
use crate::run::heat::{Heat as Values, Row};
use crate::run::pool::Gate;
use crate::run::studied::Shown as _;

/// Columns drawn at once; beyond them the examples are shown page by page.
const COLUMNS: usize = 150;

/// Which metric, which examples, which prompts; each cell opens its trace.
#[component]
pub(super) fn HeatPlate(page: Page) -> impl IntoView {
    let first = RwSignal::new(0_usize);
    let examples = Memo::new(move |_| page.table.read(|values| values.examples.len()).unwrap_or(0));
    let start = Memo::new(move |_| {
        first
            .get()
            .min(examples.get().saturating_sub(1) / COLUMNS * COLUMNS)
    });
    let metric = Memo::new(move |_| {
        page.read(|parts| metric(parts, page.table.metric.get()))
            .flatten()
    });
    let data = Memo::new(move |_| {
        let start = start.get();
        metric
            .get()
            .and_then(|metric| {
                page.table
                    .read(|values| page.read(|parts| data(parts, values, &metric, start)))
                    .flatten()
            })
            .unwrap_or_default()
    });
    let window = Window::over(Signal::derive(move || data.with(|data| data.rows.len())));
    let unit = move || data.with(legend);
    let current = Signal::derive(move || current(page));
    let open = Callback::new(move |(candidate, example): HeatCell| open(page, &candidate, example));
    let order = move || {
        if page.table.everyone.get() {
            "Prompts in the order in which they were written."
        } else {
            "The selected prompt first, then the pool, its ancestors, the seed."
        }
    };
    let label = move || {
        data.with(|data| {
            format!(
                "{} of {} prompts on {} examples",
                format::label(&data.metric),
                data.rows.len(),
                data.examples.len()
            )
        })
    };
    view! {
        <Plate
            letter="F"
            title=move || view! { "Prompts × examples " <span class="unit">{unit}</span> }
            beside=move || view! { <Choices page/> }
        >
            <Show
                when=move || data.with(|data| !data.rows.is_empty() && !data.examples.is_empty())
                fallback=|| view! { <p class="empty">"No prompt was measured on these examples."</p> }
            >
                <Viewport window name="Prompts and examples, scrolls both ways">
                    <Heat data=data label=Signal::derive(label) window=window current=current on_open=open/>
                </Viewport>
                <Pages first start examples/>
                <p class="reading">
                    {order} " An outlined cell is open at the side. Arrow keys move, Enter opens a trace."
                </p>
            </Show>
        </Plate>
    }
}

fn metric(parts: &Parts, name: Option<String>) -> Option<StudiedMetric> {
    match name {
        Some(name) => parts.all.iter().find(|metric| metric.name() == name).cloned(),
        None => parts.metrics.first().cloned(),
    }
}

fn data(parts: &Parts, values: &Values, metric: &StudiedMetric, start: usize) -> HeatData {
    let shown = start..(start + COLUMNS).min(values.examples.len());
    let examples = values.examples[shown.clone()].iter().map(|example| HeatExample {
        id: example.id.clone(),
        name: example.id.clone(),
    });
    let row = |row: &Row| HeatRow {
        id: row.candidate.to_string(),
        name: name(parts, row.candidate),
        feasible: parts
            .rows
            .get(&row.candidate)
            .is_some_and(|row| row.gate == Gate::Feasible),
        mean: row.estimate.map_or_else(
            || NOTHING.to_owned(),
            |estimate| metric.quantity().value(estimate.mean),
        ),
        values: row.values[shown.clone()].to_vec(),
    };
    HeatData {
        metric: metric.phrase(),
        shading: shading(metric, &values.rows),
        examples: examples.collect(),
        rows: values.rows.iter().map(row).collect(),
    }
}

fn name(parts: &Parts, candidate: CandidateId) -> String {
    if parts.seed == Some(candidate) {
        "seed".into()
    } else {
        short(&candidate.to_string())
    }
}

/// Solved or not where examples are one or the other, else five shades up to the highest value.
fn shading(metric: &StudiedMetric, rows: &[Row]) -> Shading {
    let values = || rows.iter().flat_map(|row| row.values.iter().copied().flatten());
    let either = values().all(|value| value == 0.0 || value == 1.0);
    if metric.spec.direction == Direction::Objective && either {
        return Shading::Solved;
    }
    let step = match metric.quantity() {
        Quantity::Rate => 0.25,
        _ => nice_step(values().fold(0.0, f64::max) / 5.0),
    };
    Shading::Steps {
        unit: Unit(metric.quantity()),
        bounds: [step, 2.0 * step, 3.0 * step, 4.0 * step],
    }
}

/// The nearest of 1, 2 and 5 times a power of ten that is not below; 1 for nothing.
fn nice_step(least: f64) -> f64 {
    if least <= 0.0 || !least.is_finite() {
        return 1.0;
    }
    let power = 10_f64.powf(least.log10().floor());
    let steps = [1.0, 2.0, 5.0, 10.0].map(|step| step * power);
    steps
        .into_iter()
        .find(|step| *step >= least * (1.0 - 1e-9))
        .unwrap_or(10.0 * power)
}

fn legend(data: &HeatData) -> String {
    match data.shading {
        Shading::Solved => format!("{} · filled: solved, dotted: not", data.metric),
        Shading::Steps { .. } => format!("{} · darker: more", data.metric),
    }
}

/// The cell of the open trace.
fn current(page: Page) -> Option<HeatCell> {
    let split = page.table.split.get();
    let selected = page.selected.get()?;
    page.address.with(|address| {
        let trace = address.trace.as_ref().filter(|trace| trace.split == split)?;
        let candidate = match &trace.of {
            Some(of) => page.read(|parts| parts.named(of)).flatten()?,
            None => selected,
        };
        Some((candidate.to_string(), trace.example.clone()))
    })
}

fn open(page: Page, candidate: &str, example: String) {
    let split = page.table.split.get_untracked();
    let selected = page.selected.get_untracked().map(|selected| selected.to_string());
    // Named only where it is needed to tell two examples of one id apart.
    let several = page.run.peek(|folded| {
        folded
            .state
            .study()
            .is_some_and(|started| started.workloads.len() > 1)
    });
    let workload = untrack(|| {
        page.table.read(|values| {
            let mut examples = values.examples.iter();
            let found = examples.find(|other| other.id == example);
            found.map(|example| example.workload.clone())
        })
    });
    let workload = workload.flatten().filter(|_| several);
    page.go(|address| {
        let trace = TraceAddress {
            of: Some(candidate.to_owned()).filter(|of| Some(of) != selected.as_ref()),
            ..TraceAddress::first(example, workload, split)
        };
        address.open(Some(trace))
    });
}

#[component]
fn Choices(page: Page) -> impl IntoView {
    let table = page.table;
    let metrics = Memo::new(move |_| {
        // The length of a prompt is the same for every example.
        page.read(|parts| {
            let shown = parts.all.iter().filter(|metric| metric.name() != PROMPT_LENGTH);
            shown
                .map(|metric| (metric.name().to_owned(), metric.label()))
                .collect::<Vec<_>>()
        })
        .unwrap_or_default()
    });
    let chosen = Memo::new(move |_| {
        let metric = page.read(|parts| metric(parts, table.metric.get())).flatten();
        metric.map(|metric| metric.spec.name)
    });
    let of_metric = move |(name, words): (String, String)| {
        let own = name.clone();
        view! {
            <button
                type="button"
                aria-pressed=move || chosen.with(|chosen| chosen.as_ref() == Some(&own)).to_string()
                on:click=move |_| table.metric.set(Some(name.clone()))
            >
                {words}
            </button>
        }
    };
    let prompts = move || page.read(|parts| parts.rows.len()).unwrap_or(0);
    let held_out = move || page.read(|parts| parts.finished).unwrap_or(false);
    view! {
        <div class="row">
            <span class="seg" role="group" aria-label="Measurement">
                {move || metrics.get().into_iter().map(of_metric).collect_view()}
            </span>
            <span class="seg" role="group" aria-label="Prompts">
                <Toggle chosen=table.everyone this=false>"Near"</Toggle>
                <Toggle chosen=table.everyone this=true>"All " {prompts}</Toggle>
            </span>
            <Show when=held_out>
                <span class="seg" role="group" aria-label="Examples">
                    <Toggle chosen=table.split this=Split::Optimize>"Search"</Toggle>
                    <Toggle chosen=table.split this=Split::Evaluate>"Held out"</Toggle>
                </span>
            </Show>
        </div>
    }
}

/// The way through more examples than are drawn at once.
#[component]
fn Pages(first: RwSignal<usize>, start: Memo<usize>, examples: Memo<usize>) -> impl IntoView {
    let end = move || (start.get() + COLUMNS).min(examples.get());
    view! {
        <Show when=move || { examples.get() > COLUMNS }>
            <div class="row">
                <button
                    type="button"
                    disabled=move || start.get() == 0
                    on:click=move |_| first.set(start.get_untracked().saturating_sub(COLUMNS))
                >
                    "‹ Solved by more"
                </button>
                <span class="note">
                    "examples " {move || start.get() + 1} " to " {end} " of " {move || examples.get()}
                </span>
                <button
                    type="button"
                    disabled=move || { end() >= examples.get() }
                    on:click=move |_| first.set(start.get_untracked() + COLUMNS)
                >
                    "Solved by fewer ›"
                </button>
            </div>
        </Show>
    }
}

#[cfg(test)]
mod tests {
    use super::nice_step;

    #[test]
    fn shades_change_at_round_values() {
        assert_eq!(nice_step(0.31), 0.5);
        assert_eq!(nice_step(2.0), 2.0);
        assert_eq!(nice_step(7.0), 10.0);
        assert_eq!(nice_step(0.0), 1.0);
    }
}
