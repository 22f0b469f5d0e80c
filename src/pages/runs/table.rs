//! The table of runs.

use leptos::ev;
use leptos::prelude::*;
use leptos_router::NavigateOptions;
use leptos_router::components::A;
use leptos_router::hooks::use_navigate;

use super::baseline::Against;
use super::listed::Listed;
use super::rows::{Column, Next, Order, Row, arranged, shared_range};
use crate::charts::scale::Range;
use crate::charts::spark::{Spark, SparkData, SparkPoint};
use crate::charts::unit::Unit;
use crate::components::{Gate, date_and_time, removing};
use crate::format::{self, Quantity};
use crate::frame::imports::{Imports, Reading};
use crate::frame::keys::TabKeys;
use crate::frame::table_keys::move_by_rows;
use crate::live::Runs;
use crate::storage::RunRecord;
use crate::studies;

/// Columns of the table, for cells that go across.
const COLUMNS: usize = 11;

/// What the objectives of all runs are shown as: they lie in [0, 1].
const UNIT: Unit = Unit(Quantity::Rate);

/// All runs, and journals on their way.
#[component]
pub(super) fn RunTable(
    listed: Listed,
    /// Set to the run whose budget is to be raised.
    raised: RwSignal<Option<RunRecord>>,
) -> impl IntoView {
    let imports = expect_context::<Imports>();
    let order = RwSignal::new(Order::default());
    let rows = Memo::new(move |_| {
        let rows = listed.rows().and_then(Result::ok).unwrap_or_default();
        listed
            .looked_for
            .with(|looked_for| arranged(&rows, looked_for, order.get()))
    });
    let range = Memo::new(move |_| rows.with(|rows| shared_range(rows)));
    let objective = Memo::new(move |_| rows.with(|rows| shared_objective(rows)));
    let ids = Memo::new(move |_| {
        rows.with(|rows| -> Vec<String> { rows.iter().map(|row| row.record.id.clone()).collect() })
    });
    let course = move || format!("{} by round", objective.get());
    let best = move || format!("Best {}", objective.with(|objective| objective.to_lowercase()));
    let nothing = move || nothing(listed, ids.with(Vec::is_empty), imports.readings().is_empty());
    let header = move |by: Column, name: Signal<String>| view! { <Sortable by name order/> };
    let fixed = |name: &'static str| Signal::stored(name.to_owned());
    view! {
        <div class="scroll" tabindex="0" role="group" aria-label="Runs, scrolls sideways">
            <table class="mid runs">
                <thead>
                    <tr>
                        <th class="col-check">
                            <span class="sr">"Select"</span>
                        </th>
                        {header(Column::Name, fixed("Run"))} {header(Column::State, fixed("State"))}
                        {header(Column::Method, fixed("Method"))} <th scope="col">
                            {course}
                            <small>
                                {move || bounds(range.get())} ", "
                                <span aria-hidden="true">"● feasible on search ◇ not"</span>
                            </small>
                        </th> {header(Column::Best, Signal::derive(best))}
                        {header(Column::Gate, fixed("Gate on search"))} {header(Column::Spent, fixed("Spent"))}
                        {header(Column::Time, fixed("Ran for"))} {header(Column::Date, fixed("Date"))} <th scope="col">
                            <span class="sr">"Action"</span>
                        </th>
                    </tr>
                </thead>
                <tbody on:keydown=move |event| move_by_rows(&event)>
                    <For each=move || ids.get() key=Clone::clone let(id)>
                        <RunRow listed rows objective range raised id/>
                    </For>
                    <For each=move || imports.readings() key=|reading| reading.id let(reading)>
                        <ReadingRow id=reading.id name=reading.name/>
                    </For>
                </tbody>
            </table>
        </div>
        {nothing}
        <MoreOnServer listed/>
    }
}

/// The way to more of the team's runs, and why the server lists none.
#[component]
fn MoreOnServer(listed: Listed) -> impl IntoView {
    view! {
        {move || listed.refused().map(|why| view! { <p class="note is-i" role="status">{why}</p> })}
        <Show when=move || listed.has_more()>
            <p class="reading">
                <button type="button" class="link" on:click=move |_| listed.ask_more()>
                    "More of the team’s runs"
                </button>
            </p>
        </Show>
    }
}

/// What stands below a table without rows.
fn nothing(listed: Listed, is_empty: bool, nothing_read: bool) -> Option<AnyView> {
    let words = match listed.rows() {
        None => "Reading the list of runs.".to_owned(),
        Some(Err(error)) => format!(
            "This browser keeps nothing for this page ({error}). Runs go on in memory: download their journals."
        ),
        Some(Ok(rows)) if rows.is_empty() && nothing_read => {
            "None in this browser yet. A run is kept here as it goes, so it can be closed at any moment. \
             A journal written by the command line can be dropped anywhere on this page."
                .to_owned()
        }
        Some(Ok(rows)) if !rows.is_empty() && is_empty => "No run of this name.".to_owned(),
        Some(Ok(_)) => return None,
    };
    Some(view! { <p class="empty">{words}</p> }.into_any())
}

#[component]
fn Sortable(by: Column, name: Signal<String>, order: RwSignal<Order>) -> impl IntoView {
    let sort = move || {
        let order = order.get();
        (order.by == by).then_some(if order.descending {
            "descending"
        } else {
            "ascending"
        })
    };
    let class = match by {
        Column::Best | Column::Spent | Column::Time | Column::Date => "num",
        Column::Name | Column::State | Column::Method | Column::Gate => "",
    };
    view! {
        <th scope="col" class=class aria-sort=sort>
            <button
                type="button"
                class="sort"
                on:click=move |_| order.update(|order| *order = order.pressed(by))
            >
                {name}
            </button>
        </th>
    }
}

#[component]
fn RunRow(
    listed: Listed,
    rows: Memo<Vec<Row>>,
    objective: Memo<String>,
    range: Memo<Range>,
    raised: RwSignal<Option<RunRecord>>,
    id: String,
) -> impl IntoView {
    let id = StoredValue::new(id);
    // The row goes before its memo when a run is deleted: what it showed last stays until then.
    let row = Memo::new(move |last: Option<&Option<Row>>| {
        let found = rows.with(|rows| rows.iter().find(|row| row.record.id == id.get_value()).cloned());
        found.or_else(|| last.cloned().flatten())
    });
    let text =
        move |read: fn(&Row) -> String| move || row.with(|row| row.as_ref().map(read)).unwrap_or_default();
    let is_picked = move || {
        listed
            .selected
            .with(|selected| selected.contains(&id.get_value()))
    };
    let pick = move |_| {
        listed.selected.update(|selected| {
            let id = id.get_value();
            if !selected.remove(&id) {
                selected.insert(id);
            }
        });
    };
    let spark = Memo::new(move |_| {
        row.with(|row| row.as_ref().map(|row| spark(row, &objective.get(), range.get())))
            .unwrap_or_default()
    });
    let has_course = Memo::new(move |_| spark.with(|spark| !spark.points.is_empty()));
    let gate = Memo::new(move |_| row.with(|row| row.as_ref().and_then(Row::gate)));
    let state = Memo::new(move |_| {
        row.with(|row| {
            row.as_ref()
                .map(|row| (row.state, !row.record.progress.at_cap.is_empty()))
        })
    });
    let tags = move || {
        let (state, at_cap) = state.get()?;
        let at_cap = at_cap.then(|| view! { " " <span class="tag cap">"at cap"</span> });
        Some(view! {
            <span class=state.class()>{state.words()}</span>
            {at_cap}
        })
    };
    let against = Memo::new(move |_| row.with(|row| listed.against(&row.as_ref()?.record)));
    let is_baseline = Memo::new(move |_| against.get() == Some(Against::Itself));
    let differs = move |read: fn(Against) -> Option<String>| {
        move || {
            let words = against.get().and_then(read)?;
            Some(view! { <div class="note">{words} <span class="sr">" against the baseline"</span></div> })
        }
    };
    let next =
        Memo::new(move |_| row.with(|row| row.as_ref().map(|row| row.next(listed.may_order(&row.record)))));
    view! {
        <tr class:pick=is_picked>
            <td class="col-check">
                <label class="hit">
                    <input
                        type="checkbox"
                        prop:checked=is_picked
                        on:change=pick
                        aria-label=move || format!("Select {}", text(|row| row.record.name.clone())())
                    />
                </label>
            </td>
            <th scope="row">
                <A href=format!("/run/{}", id.get_value())>
                    <b>{text(|row| row.record.name.clone())}</b>
                </A>
                <Show when=move || is_baseline.get()>" " <span class="tag plain">"baseline"</span></Show>
                <div class="note">{text(Row::note)}</div>
            </th>
            <td class="nw">{tags}</td>
            <td>{text(|row| studies::method_name(&row.record.method))}</td>
            <td>
                <Show when=move || has_course.get() fallback=|| view! { <span class="note">"no round yet"</span> }>
                    <Spark data=spark/>
                </Show>
            </td>
            <td class="num">
                {text(|row| Quantity::Rate.optional(row.record.progress.best))} {differs(Against::best)}
            </td>
            <td class="nw">
                {move || match gate.get() {
                    Some(feasible) => view! { <Gate feasible/> }.into_any(),
                    None => format::NOTHING.into_any(),
                }}
            </td>
            <td class="num">{text(spent)} {differs(Against::spent)}</td>
            <td class="num nw">{text(|row| format::lasted(row.record.times.last()))}</td>
            <td class="num nw">{text(|row| date_and_time(&js_sys::Date::new(&row.record.touched.into())))}</td>
            <td class="nw">
                {move || next.get().map(|next| view! { <NextAction next listed raised id=id.get_value()/> })}
            </td>
        </tr>
    }
}

#[component]
fn NextAction(next: Next, listed: Listed, raised: RwSignal<Option<RunRecord>>, id: String) -> impl IntoView {
    let runs = expect_context::<Runs>();
    let keys = expect_context::<TabKeys>();
    let navigate = use_navigate();
    let address = format!("/run/{id}");
    match next {
        Next::Open => view! { <A href=address>"Open"</A> }.into_any(),
        Next::Resume(round) => {
            let resume = move |_| {
                runs.resume(&id, &keys.now());
                navigate(&address, NavigateOptions::default());
            };
            view! {
                <button type="button" class="link" on:click=resume>
                    "Resume at round " {round}
                </button>
            }
            .into_any()
        }
        Next::RaiseBudget => view! {
            <button type="button" class="link" on:click=move |_| raised.set(untrack(|| listed.record(&id)))>
                "Raise budget"
            </button>
        }
        .into_any(),
    }
}

/// A journal on its way.
#[component]
fn ReadingRow(id: u32, name: String) -> impl IntoView {
    let imports = expect_context::<Imports>();
    let reading = Memo::new(move |_| imports.readings().into_iter().find(|reading| reading.id == id));
    let how_far = move || reading.get().as_ref().map_or_else(String::new, how_far);
    let share = move || {
        let share = reading.get().map_or(0, |reading| percent(&reading));
        format!("{share}%")
    };
    let cancel = move |event: ev::MouseEvent| removing(&event, || imports.cancel(id));
    view! {
        <tr class="reading-file" aria-busy="true">
            <td></td>
            <th scope="row" colspan=(COLUMNS - 2).to_string()>
                <b>{name.clone()}</b>
                <div class="note" role="status">
                    {how_far}
                </div>
                <div
                    class="progress"
                    role="progressbar"
                    aria-label=format!("Reading {name}")
                    aria-valuemin="0"
                    aria-valuemax="100"
                    aria-valuenow=move || reading.get().map_or(0, |reading| percent(&reading)).to_string()
                >
                    <i style:--share=share></i>
                </div>
            </th>
            <td class="nw">
                <button type="button" class="link" on:click=cancel>
                    "Cancel"
                </button>
            </td>
        </tr>
    }
}

/// "reading the journal, 3,120 lines, 62%".
fn how_far(reading: &Reading) -> String {
    if reading.how_far.of == 0 {
        return "reading the journal".to_owned();
    }
    format!(
        "reading the journal, {} lines, {}%",
        format::count(reading.how_far.lines),
        percent(reading)
    )
}

fn percent(reading: &Reading) -> u64 {
    reading.how_far.read * 100 / reading.how_far.of.max(1)
}

/// The objective that all runs share, as a title; "Objective" when they differ.
fn shared_objective(rows: &[Row]) -> String {
    let mut objectives = rows.iter().map(|row| row.record.objective.as_str());
    match objectives.next() {
        Some(first) if !first.is_empty() && objectives.all(|other| other == first) => format::label(first),
        _ => "Objective".to_owned(),
    }
}

fn spark(row: &Row, objective: &str, range: Range) -> SparkData {
    let points = (0..).zip(&row.record.progress.by_round);
    SparkData {
        name: objective.to_lowercase(),
        unit: UNIT,
        points: points
            .map(|(round, (value, feasible))| SparkPoint {
                round,
                value: *value,
                feasible: *feasible,
            })
            .collect(),
        low: range.low,
        high: range.high,
    }
}

/// Dollars; an en dash before anything is spent.
fn spent(row: &Row) -> String {
    match row.record.progress.rollouts {
        0 => format::NOTHING.to_owned(),
        _ => format::dollars(row.record.progress.usd),
    }
}

/// "35 to 90%".
fn bounds(range: Range) -> String {
    let (low, high) = (UNIT.tick(range.low, 0.01), UNIT.tick(range.high, 0.01));
    format!("{low} to {high}%")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::worker::protocol::HowFar;

    #[test]
    fn a_journal_on_its_way_says_how_far_it_is() {
        let mut reading = Reading {
            id: 1,
            name: "airline-nine.jsonl".into(),
            how_far: HowFar::default(),
        };
        assert_eq!(
            (how_far(&reading).as_str(), percent(&reading)),
            ("reading the journal", 0)
        );
        reading.how_far = HowFar {
            lines: 3120,
            read: 620_000,
            of: 1_000_000,
        };
        assert_eq!(how_far(&reading), "reading the journal, 3,120 lines, 62%");
    }

    #[test]
    fn the_edges_of_the_courses_stand_in_the_header() {
        assert_eq!(bounds(Range::around([0.41, 0.84], (0.0, 1.0))), "35 to 90%");
    }
}
