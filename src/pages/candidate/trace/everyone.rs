//! One example, all prompts.

use capo_core::ids::CandidateId;
use capo_core::metric::PROMPT_LENGTH;
use capo_core::reading::measured;
use capo_core::run_state::RunState;
use leptos::prelude::*;
use leptos_router::components::A;

use super::super::address::TraceAddress;
use super::super::page::Page;
use super::place::Located;
use crate::components::Gate as GateMark;
use crate::format::{self, NOTHING, Quantity};
use crate::run::pool::Gate;

/// What a prompt measured on the example.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Line {
    candidate: CandidateId,
    feasible: Option<bool>,
    values: Vec<String>,
}

/// Every prompt that was run on the example, each with a way to its trace.
#[component]
pub(super) fn Everyone(page: Page, located: Located) -> impl IntoView {
    let located = StoredValue::new(located);
    let metrics = located.with_value(|located| page.run.peek(|folded| names(&folded.state, located)));
    let lines = Memo::new(move |_| {
        let lines = located.with_value(|located| page.run.read(|folded| lines(&folded.state, located)));
        let gate = |line: Line| {
            let gate = page.read(|parts| parts.rows.get(&line.candidate).map(|row| row.gate));
            Line {
                feasible: match gate.flatten() {
                    Some(Gate::Feasible) => Some(true),
                    Some(Gate::NotFeasible) => Some(false),
                    Some(Gate::Undecided(_)) | None => None,
                },
                ..line
            }
        };
        lines.into_iter().map(gate).collect::<Vec<_>>()
    });
    view! {
        <div class="scroll" tabindex="0" role="group" aria-label="All prompts on this example, scrolls sideways">
            <table class="sticky-1">
                <thead>
                    <tr>
                        <th scope="col">"Prompt"</th>
                        <th scope="col">"Gate" <small>"on search examples"</small></th>
                        {metrics
                            .into_iter()
                            .map(|metric| view! { <th scope="col" class="num">{metric}</th> })
                            .collect_view()}
                    </tr>
                </thead>
                <tbody>
                    <For each=move || lines.get() key=Clone::clone let(line)>
                        <LineRow page line/>
                    </For>
                </tbody>
            </table>
        </div>
    }
}

#[component]
fn LineRow(page: Page, line: Line) -> impl IntoView {
    let candidate = line.candidate;
    let href = move || {
        let selected = page.selected.get();
        page.address.with(|address| {
            let trace = address.trace.clone().map(|trace| TraceAddress {
                of: (selected != Some(candidate)).then(|| candidate.to_string()),
                everyone: false,
                ..trace
            });
            address.open(trace).href()
        })
    };
    let value = |value: String| view! { <td class="num">{value}</td> };
    view! {
        <tr>
            <th scope="row">
                <A href=href scroll=false attr:class="id" attr:title=candidate.to_string()>
                    {format::id(&candidate)}
                </A>
            </th>
            <td class="nw">{line.feasible.map(|feasible| view! { <GateMark feasible/> })}</td>
            {line.values.into_iter().map(value).collect_view()}
        </tr>
    }
}

fn names(state: &RunState, located: &Located) -> Vec<String> {
    let record = state
        .study()
        .and_then(|started| started.workloads.get(&located.workload));
    let metrics = record.map_or(&[][..], |record| &record.metrics);
    let shown = metrics.iter().filter(|spec| spec.name != PROMPT_LENGTH);
    shown.map(|spec| format::label(&spec.name)).collect()
}

fn lines(state: &RunState, located: &Located) -> Vec<Line> {
    let record = state
        .study()
        .and_then(|started| started.workloads.get(&located.workload));
    let Some(record) = record else { return Vec::new() };
    let table = state.rollouts();
    let line = |(position, (candidate, _)): (usize, (&CandidateId, _))| {
        let row = table.row(position, located.set)?;
        let repeats = row.repeats(located.example);
        if repeats == 0 {
            return None;
        }
        let shown = (0..).zip(&record.metrics);
        let values = shown
            .filter(|(_, spec)| spec.name != PROMPT_LENGTH)
            .map(|(place, spec): (usize, _)| {
                measured::mean(&row, place, located.example, repeats).map_or_else(
                    || NOTHING.to_owned(),
                    |mean| Quantity::of(spec).measurement(spec, mean),
                )
            });
        Some(Line {
            candidate: *candidate,
            feasible: None,
            values: values.collect(),
        })
    };
    state.candidates().enumerate().filter_map(line).collect()
}
