//! A race as it is shown: one line for each method, what all of them came to and spent, and their best prompts.

use capo_core::reading::metrics::{self, StudiedMetric};
use capo_core::reading::progress::Progress;
use leptos::prelude::*;
use leptos_router::components::A;

use super::dash;
use super::race::{Entry, Group, Lane, Returned, Standing, course, doing, reading, spent};
use crate::charts::bands::{Bands, BandsData};
use crate::charts::figure::Figure;
use crate::charts::overlay::MOST_IN_ONE_PLOT;
use crate::charts::unit::Unit;
use crate::components::{DiffText, plate_letter};
use crate::diff::PromptDiff;
use crate::format;
use crate::live::Run;
use crate::run::studied::Shown as _;
use crate::studies;

/// The best prompt of a method.
#[derive(Debug, Clone, PartialEq, Eq)]
struct BestPrompt {
    run: String,
    /// "GEPA, seed 1: 71.3%, holds on the held-out examples".
    words: String,
    text: String,
}

/// The compared runs by method. Figure A of the page.
#[component]
pub(super) fn ByMethod(
    chosen: StoredValue<Vec<Run>>,
    names: Memo<Vec<String>>,
    /// Their seeds, where their studies are known.
    seeds: Vec<Option<u64>>,
    groups: Vec<Group>,
) -> impl IntoView {
    let run = move |place: usize| chosen.with_value(|chosen| chosen[place]);
    let unknown: Vec<usize> = (0..seeds.len()).filter(|place| seeds[*place].is_none()).collect();
    let lanes = Memo::new(move |_| {
        let lane = |(method, places): &Group| {
            let entries = places
                .iter()
                .filter_map(|place| Some(entry(run(*place), seeds[*place]?)));
            Lane {
                method: studies::method_name(method),
                entries: entries.collect(),
            }
        };
        groups.iter().map(lane).collect::<Vec<Lane>>()
    });
    let objective = Memo::new(move |_| {
        let of_run = |run: &Run| run.read(|folded| metrics::objective(&folded.state));
        chosen.with_value(|chosen| chosen.iter().find_map(of_run))
    });
    let unit = move || {
        objective.with(|objective| {
            Unit(
                objective
                    .as_ref()
                    .map_or(Unit::default().0, StudiedMetric::quantity),
            )
        })
    };
    let name = Signal::derive(move || {
        objective
            .with(|objective| objective.as_ref().map(StudiedMetric::label))
            .unwrap_or_default()
    });
    // Where there are no held-out examples, those of the search.
    let held_out = Memo::new(move |_| {
        let is_held_out = |returned: &Returned| returned.held_out.is_some();
        lanes.with(|lanes| lanes.iter().any(|lane| lane.returned().any(is_held_out)))
    });
    let data = Memo::new(move |_| BandsData {
        unit: unit(),
        axis: objective.with(|objective| {
            let axis = objective.as_ref().map(StudiedMetric::axis);
            axis.map_or_else(String::new, |axis| format!("{axis}, higher is better"))
        }),
        lines: lanes.with(|lanes| lanes.iter().map(Lane::line).collect()),
    });
    let said = Memo::new(move |_| {
        let said = lanes.with(|lanes| reading(lanes, unit()));
        let unknown = names.with(|names| {
            unknown
                .iter()
                .map(|place| names[*place].clone())
                .collect::<Vec<_>>()
        });
        match &unknown[..] {
            [] => said,
            unknown => format!(
                "{said} Left out altogether, for their studies are not known: {}.",
                format::listed(unknown)
            ),
        }
    });
    let best = Memo::new(move |_| {
        let (unit, held_out) = (unit(), held_out.get());
        lanes.with(|lanes| {
            lanes
                .iter()
                .filter_map(|lane| best_of(lane, unit, held_out))
                .collect::<Vec<_>>()
        })
    });
    let rows = move || {
        let (unit, held_out) = (unit(), held_out.get());
        lanes.with(|lanes| {
            let shares_plot = lanes.len() <= MOST_IN_ONE_PLOT;
            let rows = lanes.iter().zip(1..);
            rows.map(|(lane, number)| row(lane, number, shares_plot, unit, held_out))
                .collect_view()
        })
    };
    let together = move || {
        lanes.with(|lanes| {
            let entries = || lanes.iter().flat_map(|lane| &lane.entries);
            view! {
                <tr>
                    <th scope="row">"Together"</th>
                    <td>{format::counted(entries().count(), "run")}</td>
                    <td colspan="3"></td>
                    {consumed(&spent(entries()))}
                </tr>
            }
        })
    };
    let prompts = move || {
        best.with(|best| {
            let first = best.first().map(|first| first.text.clone()).unwrap_or_default();
            best.iter()
                .enumerate()
                .map(|(place, best)| prompt(best, (place > 0).then_some(&first)))
                .collect_view()
        })
    };
    let against = move || best.with(|best| (best.len() > 1).then_some("word by word against the first"));
    view! {
        <Figure
            letter=plate_letter(0)
            name
            unit=Signal::stored("by method and rollouts".to_owned())
            reading=move || said.get()
            table=Signal::derive(move || data.with(BandsData::table))
        >
            <Bands data label=said/>
        </Figure>
        <section class="plate" aria-label="Methods">
            <div class="scroll" tabindex="0" role="group" aria-label="Methods, scrolls sideways">
                <table class="mid sticky-1">
                    <thead>
                        <tr>
                            <th scope="col">"Method"</th>
                            <th scope="col">"Seeds"</th>
                            <th scope="col" class="num">
                                "Feasible"
                                <small>"on search examples"</small>
                            </th>
                            <th scope="col" class="num">
                                "Holds"
                                <small>"on held-out examples"</small>
                            </th>
                            <th scope="col" class="num">
                                {name}
                                <small>
                                    {move || if held_out.get() { "held out" } else { "on search examples" }}
                                    ", ± one standard error over seeds"
                                </small>
                            </th>
                            {["Rollouts", "Calls", "Tokens", "Spent"]
                                .map(|head| view! { <th scope="col" class="num">{head}</th> })}
                        </tr>
                    </thead>
                    <tbody>{rows}</tbody>
                    <tfoot>{together}</tfoot>
                </table>
            </div>
        </section>
        <section class="plate" aria-labelledby="best-of-methods">
            <header>
                <h2 class="pt" id="best-of-methods">
                    "Best prompt of each method"
                </h2>
                <span class="now">{against}</span>
            </header>
            {move || best.with(Vec::is_empty).then(|| view! { <p class="empty">"No run has ended yet."</p> })}
            {prompts}
        </section>
    }
}

fn entry(run: Run, seed: u64) -> Entry {
    let (doing, standing) = doing(&run.phase.get(), run.status());
    run.read(|folded| {
        let state = &folded.state;
        let overview = folded.overview();
        Entry {
            id: run.id(),
            seed,
            doing,
            standing,
            course: overview.map_or_else(Vec::new, |overview| course(state, &overview.series.rounds)),
            progress: Progress::of(state),
            returned: Returned::of(state).filter(|_| standing == Standing::Ended),
        }
    })
}

/// Rollouts, calls, tokens and dollars.
fn consumed(spent: &Progress) -> impl IntoView + use<> {
    view! {
        <td class="num">{format::count(spent.rollouts)}</td>
        <td class="num">{format::count(spent.calls)}</td>
        <td class="num">{format::tokens(spent.tokens)}</td>
        <td class="num">{format::dollars(spent.usd)}</td>
    }
}

fn row(lane: &Lane, number: usize, shares_plot: bool, unit: Unit, held_out: bool) -> impl IntoView + use<> {
    let dash = shares_plot.then(|| dash(number));
    // One that returned no prompt has none that is feasible.
    let share = |is_so: fn(&Returned) -> bool| match lane.ended() {
        0 => format::NOTHING.to_owned(),
        all => format!(
            "{} of {all}",
            lane.returned().filter(|returned| is_so(returned)).count()
        ),
    };
    let feasible = share(|returned| returned.feasibility.search);
    let holds = if held_out {
        share(|returned| returned.feasibility.held_out == Some(true))
    } else {
        format::NOTHING.to_owned()
    };
    let reached = lane.reached(held_out);
    let caveat = lane
        .caveat(held_out)
        .map(|words| view! { <div class="note">{words}</div> });
    view! {
        <tr>
            <th scope="row">
                <span class="series-list">{dash} <b>{lane.method.clone()}</b></span>
            </th>
            <td>{lane.doing()}</td>
            <td class="num">{feasible}</td>
            <td class="num">{holds}</td>
            <td class="num">
                {reached.map_or_else(|| format::NOTHING.to_owned(), |reached| unit.0.estimate(&reached))} {caveat}
            </td>
            {consumed(&spent(lane.entries.iter()))}
        </tr>
    }
}

fn best_of(lane: &Lane, unit: Unit, held_out: bool) -> Option<BestPrompt> {
    let (entry, returned) = lane.best(held_out)?;
    Some(BestPrompt {
        run: entry.id.clone(),
        words: format!(
            "{}, seed {}: {}, {}",
            lane.method,
            entry.seed,
            unit.0.optional(entry.reached(held_out)),
            returned.feasibility.words()
        ),
        text: returned.prompt.clone(),
    })
}

/// A prompt, with what the first one has and it has not.
fn prompt(best: &BestPrompt, first: Option<&String>) -> impl IntoView + use<> {
    let diff = first.map(|first| PromptDiff::new(first, &best.text));
    let counted = diff.as_ref().map(PromptDiff::words);
    let text = match diff {
        Some(diff) => view! { <DiffText diff/> }.into_any(),
        None => best.text.clone().into_any(),
    };
    view! {
        <details class="fold" open>
            <summary>{best.words.clone()}</summary>
            <div class="prompt inset">{text}</div>
        </details>
        <p class="reading">
            {counted} " " <A href=format!("/run/{}/result", best.run)>"See the result"</A>
        </p>
    }
}
