//! The last plate: what it cost, and the files to keep.

use capo_core::run_state::RunState;
use leptos::prelude::*;
use wasm_bindgen_futures::spawn_local;

use super::take_away::{Document, Taken, take};
use crate::components::Plate;
use crate::format::{count, counted, dollars, span, tokens};
use crate::live::{Run, Runs};
use crate::run::outcome::{self, Cost};

/// Calls, tokens and dollars by role.
#[component]
pub(super) fn CostsPlate(
    run: Run,
    /// The letter of the plate.
    letter: Signal<&'static str>,
) -> impl IntoView {
    let costs = Memo::new(move |_| run.read(|folded| outcome::costs(&folded.state)));
    let now = move || {
        let made = run.read(|folded| now(&folded.state));
        // A journal says nothing of time: only this browser knows how long it ran here.
        match run.elapsed() / 1000.0 {
            elapsed if elapsed >= 1.0 => format!("{made}, {} in this browser", span(elapsed)),
            _ => made,
        }
    };
    let ended = Memo::new(move |_| run.read(|folded| folded.state.finished().is_some()));
    let runs = expect_context::<Runs>();
    let failed = RwSignal::new(None::<String>);
    let offer = move |what: Taken| {
        spawn_local(async move {
            // The page may be left by then.
            let _ = failed.try_set(take(runs, run, what).await.err());
        });
    };
    let rows = move || {
        let costs = costs.get();
        let last = costs.len().saturating_sub(1);
        let row = |(place, cost): (usize, Cost)| view! { <Row cost is_sum=place == last/> };
        costs.into_iter().enumerate().map(row).collect_view()
    };
    view! {
        <Plate letter title=|| "What it cost" beside=move || view! { <span class="now quiet">{now}</span> }>
            <div class="scroll" tabindex="0" role="group" aria-label="What it cost, scrolls sideways">
                <table>
                    <thead>
                        <tr>
                            <th scope="col">"Role"</th>
                            <th scope="col" class="num">"Calls"</th>
                            <th scope="col" class="num">"Tokens"</th>
                            <th scope="col" class="num">"Dollars"</th>
                        </tr>
                    </thead>
                    <tbody>{rows}</tbody>
                </table>
            </div>
            <div class="row">
                <button type="button" on:click=move |_| offer(Taken::Journal)>
                    "Journal (JSONL)"
                </button>
                <Show when=move || ended.get()>
                    <button type="button" on:click=move |_| offer(Taken::Document(Document::Markdown))>
                        "Report (Markdown)"
                    </button>
                </Show>
            </div>
            {move || failed.get().map(|message| view! { <p class="note is-i" role="alert">{message}</p> })}
        </Plate>
    }
}

/// "3,114 rollouts, three failures".
fn now(state: &RunState) -> String {
    let rollouts = count(state.ledger().rollouts());
    let failures: u64 = state.failures().values().sum();
    match failures {
        0 => format!("{rollouts} rollouts"),
        failures => format!("{rollouts} rollouts, {}", counted(failures as usize, "failure")),
    }
}

#[component]
fn Row(cost: Cost, is_sum: bool) -> impl IntoView {
    let usage = cost.usage;
    let cells = [
        count(usage.calls),
        tokens(usage.input_tokens.saturating_add(usage.output_tokens)),
        dollars(usage.usd),
    ];
    let strong = move |text: String| {
        if is_sum {
            view! { <b>{text}</b> }.into_any()
        } else {
            text.into_any()
        }
    };
    view! {
        <tr>
            <th scope="row">{strong(cost.name)}</th>
            {cells.map(|cell| view! { <td class="num">{strong(cell)}</td> })}
        </tr>
    }
}
