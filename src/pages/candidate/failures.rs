//! Plate E: failures by kind, and what was done about them.

use capo_core::ids::CandidateId;
use indexmap::IndexMap;
use leptos::prelude::*;

use super::page::Page;
use crate::components::{Plate, Spacer, Toggle, Viewport, Window};
use crate::format;
use crate::run::activity::{Activity, FailureRow, failure_rows};
use crate::run::pool::Gate;

/// Failures of the selected prompt, or of the whole run.
#[component]
pub(super) fn FailuresPlate(page: Page) -> impl IntoView {
    let whole = RwSignal::new(false);
    let of = move || {
        let selected = page.selected.get();
        selected.filter(|_| !whole.get())
    };
    let rows = Memo::new(move |_| {
        let of = of();
        page.run
            .read(|folded| failure_rows(folded.activity.failures(), of))
    });
    let messages = Memo::new(move |_| {
        let of = of();
        page.run.read(|folded| messages(&folded.activity, of))
    });
    let window = Window::over(Signal::derive(move || messages.with(Vec::len)));
    let drawn = move || window.rows(messages, Clone::clone);
    let none = move || {
        if answered(page) {
            "No failures. Every example has an answer."
        } else {
            "No failures so far."
        }
    };
    view! {
        <Plate
            letter="E"
            title=|| "Failures"
            beside=move || {
                view! {
                    <span class="seg" role="group" aria-label="Failures of">
                        <Toggle chosen=whole this=false>"This prompt"</Toggle>
                        <Toggle chosen=whole this=true>"Whole run"</Toggle>
                    </span>
                }
            }
        >
            <Show
                when=move || rows.with(|rows| !rows.is_empty())
                fallback=move || view! { <p class="quiet small">{none}</p> }
            >
                <div class="scroll" tabindex="0" role="group" aria-label="Failures, scrolls sideways">
                    <table>
                        <thead>
                            <tr>
                                <th scope="col">"Kind"</th>
                                <th scope="col" class="num">"Times"</th>
                                <th scope="col">"What was done"</th>
                            </tr>
                        </thead>
                        <tbody>
                            {move || rows.get().into_iter().map(|row| view! { <Row row/> }).collect_view()}
                        </tbody>
                    </table>
                </div>
                <p class="reading">"A failure is never a score."</p>
                <details class="fold">
                    <summary>"What went wrong, in full"</summary>
                    <Viewport window class="small" name="What went wrong, in full">
                        <ul>
                            {window.list_spacer(Spacer::Above)}
                            <For each=drawn key=Clone::clone let(message)>
                                <li>{message}</li>
                            </For>
                            {window.list_spacer(Spacer::Below)}
                        </ul>
                    </Viewport>
                </details>
            </Show>
        </Plate>
    }
}

#[component]
fn Row(row: FailureRow) -> impl IntoView {
    view! {
        <tr>
            <th scope="row">{row.kind}</th>
            <td class="num">{format::count(row.times as u64)}</td>
            <td class="quiet">{row.done}</td>
        </tr>
    }
}

/// Whether the selected prompt was measured on all examples of its round.
fn answered(page: Page) -> bool {
    page.row(|_, row| !matches!(row.gate, Gate::Undecided(_)))
        .unwrap_or(false)
}

/// The distinct messages, each with how often it came.
fn messages(activity: &Activity, of: Option<CandidateId>) -> Vec<String> {
    let mut times: IndexMap<&str, usize> = IndexMap::new();
    for failure in activity.failures() {
        if of.is_none_or(|of| failure.candidate() == of) {
            *times.entry(&failure.message).or_default() += 1;
        }
    }
    let written = |(message, times): (&str, usize)| match times {
        1 => message.to_owned(),
        times => format!("{message} ({times} times)"),
    };
    times.into_iter().map(written).collect()
}
