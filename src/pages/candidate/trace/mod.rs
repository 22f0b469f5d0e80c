//! The drawer with the conversation of one rollout.

mod account;
mod everyone;
mod facts;
mod place;
mod talk;

use std::rc::Rc;

use capo_core::ids::CandidateId;
use capo_core::journal::{Event, LineId, RolloutEvent, parse_line};
use capo_core::metric::MetricSpec;
use capo_core::run_state::RunState;
use capo_core::workload::Split;
use leptos::ev;
use leptos::html::H2;
use leptos::prelude::*;
use leptos_router::components::A;
use wasm_bindgen::JsCast;
use web_sys::Element;

use self::account::account;
use self::everyone::Everyone;
use self::facts::{facts_table, measured};
use self::place::{Located, Place, locate};
use self::talk::talk;
use super::address::{Address, TraceAddress};
use super::page::Page;
use crate::components::{TryAgain, hold_focus};
use crate::format::{self, Quantity};
use crate::live::Run;
use crate::storage::Storage;

/// The open trace: a rollout, or its example over all prompts.
#[component]
pub(super) fn Drawer(page: Page) -> impl IntoView {
    let title = NodeRef::<H2>::new();
    hold_focus(title, ".heat td[tabindex=\"0\"]");
    let close = move || page.go(|address| address.open(None));
    let escape = window_event_listener(ev::keydown, move |event| {
        let elsewhere = event
            .target()
            .and_then(|target| target.dyn_into::<Element>().ok())
            .is_some_and(|target| matches!(target.closest("dialog, select"), Ok(Some(_))));
        // A chart or table that had the focus has taken the key for itself.
        if event.key() == "Escape" && !event.default_prevented() && !elsewhere {
            close();
        }
    });
    on_cleanup(move || escape.remove());
    let place = Memo::new(move |_| place(page));
    let everyone = Memo::new(move |_| {
        page.address
            .with(|address| address.trace.as_ref().is_some_and(|trace| trace.everyone))
    });
    let body = move || match (place.get(), everyone.get()) {
        (None, _) => ().into_any(),
        (Some(Place::NoPrompt), _) => {
            view! { <p class="empty">"This run has no such prompt."</p> }.into_any()
        }
        (Some(Place::NoExample), _) => {
            view! { <p class="empty">"The study has no such example."</p> }.into_any()
        }
        (Some(Place::Here(located)), true) => view! { <Everyone page located/> }.into_any(),
        (Some(Place::Here(located)), false) => view! { <Rollout page located/> }.into_any(),
    };
    view! {
        <aside class="drawer" aria-labelledby="trace-title">
            <header>
                <div class="row spread">
                    <h2 id="trace-title" tabindex="-1" node_ref=title>
                        <Title page place everyone/>
                    </h2>
                    <button type="button" aria-label="Close trace" on:click=move |_| close()>
                        "Close"
                    </button>
                </div>
                <Ways page place everyone/>
            </header>
            <div class="body">{body}</div>
        </aside>
    }
}

fn place(page: Page) -> Option<Place> {
    let selected = page.selected.get();
    page.address.with(|address| {
        let trace = address.trace.as_ref()?;
        let candidate = match &trace.of {
            Some(of) => page.read(|parts| parts.named(of)).flatten(),
            None => selected,
        };
        Some(page.run.read(|folded| locate(&folded.state, trace, candidate)))
    })
}

#[component]
fn Title(page: Page, place: Memo<Option<Place>>, everyone: Memo<bool>) -> impl IntoView {
    move || match place.get()? {
        Place::Here(located) => {
            let beside = if everyone.get() {
                view! { "with all prompts" }.into_any()
            } else {
                let candidate = located.candidate;
                let is_seed = page.read(|parts| parts.seed == Some(candidate)).unwrap_or(false);
                let seed = is_seed.then_some(" (seed)");
                view! {
                    "with " <span class="id" title=candidate.to_string()>{format::id(&candidate)}</span> {seed}
                }
                .into_any()
            };
            let held_out = (located.set.split == Split::Evaluate).then_some(", held out");
            Some(
                view! { {format!("Example {} ", located.id)} <span class="quiet">{beside} {held_out}</span> }
                    .into_any(),
            )
        }
        Place::NoPrompt | Place::NoExample => Some(view! { "No such trace" }.into_any()),
    }
}

/// To the neighbouring examples, to other repeats, to all prompts and back.
#[component]
fn Ways(page: Page, place: Memo<Option<Place>>, everyone: Memo<bool>) -> impl IntoView {
    let near = Memo::new(move |_| neighbours(page, place.get().as_ref()));
    let button = move |step: isize, words: &'static str| {
        let gone = move || near.with(|near| of_step(near, step).is_none());
        view! {
            <button type="button" disabled=gone on:click=move |_| self::step(page, step)>
                {words}
            </button>
        }
    };
    let other = move || {
        let address = page.address.get();
        let trace = address.trace.clone().map(|trace| TraceAddress {
            everyone: !trace.everyone,
            ..trace
        });
        let words = if everyone.get() {
            "One conversation"
        } else {
            "Same example, all prompts"
        };
        view! { <A href=address.open(trace).href() scroll=false attr:class="note">{words}</A> }
    };
    view! {
        <div class="row spread">
            <span class="row">{button(-1, "‹ Previous")} {button(1, "Next ›")}</span>
            {other}
        </div>
        <Repeats page place everyone/>
    }
}

#[component]
fn Repeats(page: Page, place: Memo<Option<Place>>, everyone: Memo<bool>) -> impl IntoView {
    let repeats = Memo::new(move |_| match place.get() {
        Some(Place::Here(located)) if !everyone.get() => (located.repeats, located.repeat),
        _ => (0, 0),
    });
    let choice = move |repeat: u32| {
        let go = move |_| {
            page.go(|address| {
                let trace = address.trace.clone();
                address.open(trace.map(|trace| TraceAddress { repeat, ..trace }))
            });
        };
        view! {
            <button
                type="button"
                aria-pressed=move || (repeats.get().1 == repeat).to_string()
                on:click=go
            >
                {repeat + 1}
            </button>
        }
    };
    move || {
        (repeats.get().0 > 1).then(|| {
            let all = (0..repeats.get().0).map(choice).collect_view();
            view! {
                <div class="row">
                    <span class="note">"Repeat"</span>
                    <span class="seg" role="group" aria-label="Repeat">{all}</span>
                </div>
            }
        })
    }
}

/// The examples before and after the open one.
type Near = (Option<String>, Option<String>);

fn of_step((before, after): &Near, step: isize) -> Option<&String> {
    if step < 0 { before.as_ref() } else { after.as_ref() }
}

/// In the order of the table of prompts and examples, or else of the split.
fn neighbours(page: Page, place: Option<&Place>) -> Near {
    let Some(Place::Here(located)) = place else {
        return (None, None);
    };
    let shown = page
        .table
        .read(|values| {
            let same = values
                .examples
                .iter()
                .filter(|example| example.workload == located.workload);
            same.map(|example| example.id.clone()).collect::<Vec<_>>()
        })
        .filter(|shown| page.table.split.get() == located.set.split && shown.contains(&located.id));
    let order = shown.unwrap_or_else(|| {
        page.run.peek(|folded| {
            let record = folded
                .state
                .study()
                .and_then(|started| started.workloads.get(&located.workload));
            record.map_or_else(Vec::new, |record| record.split(located.set.split).to_vec())
        })
    });
    let Some(at) = order.iter().position(|id| *id == located.id) else {
        return (None, None);
    };
    let before = at.checked_sub(1).and_then(|before| order.get(before).cloned());
    (before, order.get(at + 1).cloned())
}

/// Opens the trace of a neighbouring example, if there is one.
pub(super) fn step(page: Page, step: isize) {
    let near = untrack(|| neighbours(page, place(page).as_ref()));
    let Some(example) = of_step(&near, step).cloned() else {
        return;
    };
    page.go(|address: &Address| {
        let trace = address.trace.clone();
        address.open(trace.map(|trace| TraceAddress {
            example,
            repeat: 0,
            ..trace
        }))
    });
}

/// One rollout: what it measured, what was said.
#[component]
fn Rollout(page: Page, located: Located) -> impl IntoView {
    let Some(line) = located.line else {
        return view! { <p class="empty">"This prompt was not run on this example."</p> }.into_any();
    };
    let again = RwSignal::new(0_u32);
    let run = page.run;
    let read = LocalResource::new(move || {
        again.track();
        read(run, line)
    });
    let prompt = run.peek(|folded| prompt(&folded.state, &located));
    let metrics = run.peek(|folded| metrics(&folded.state, &located));
    let kind = run.peek(|folded| {
        let started = folded.state.study()?;
        capo_workloads::of(&started.study.workload)
    });
    let shown = move || match read.get() {
        None => view! { <p class="quiet" role="status">"Reading the trace."</p> }.into_any(),
        Some(Ok(rollout)) => {
            let (text, characters) = prompt.clone();
            let seen = kind
                .map(|kind| (kind.view)(&rollout.trace.details))
                .unwrap_or_default();
            let talk = if rollout.without_trace {
                view! { <p class="reading">"The journal was made without traces."</p> }.into_any()
            } else {
                talk(&rollout.trace.messages, &seen.user)
            };
            view! {
                {facts_table("What this rollout measured and cost", measured(&rollout, &metrics))}
                <Outcome rollout=Rc::clone(&rollout)/>
                {account(seen)}
                <details class="fold">
                    <summary>{format!("System prompt, {characters} characters")}</summary>
                    <div class="prompt inset">{text}</div>
                </details>
                {talk}
                <Details rollout/>
            }
            .into_any()
        }
        Some(Err(what)) => {
            view! { <TryAgain what again=move |()| again.update(|again| *again += 1)/> }.into_any()
        }
    };
    shown.into_any()
}

fn prompt(state: &RunState, located: &Located) -> (String, String) {
    let candidate = state.candidate(&located.candidate);
    candidate.map_or_else(Default::default, |candidate| {
        let thousands = candidate.characters as f64 / 1000.0;
        (candidate.prompt.to_string(), Quantity::Thousands.value(thousands))
    })
}

fn metrics(state: &RunState, located: &Located) -> Vec<MetricSpec> {
    let record = state
        .study()
        .and_then(|started| started.workloads.get(&located.workload));
    record.map_or_else(Vec::new, |record| record.metrics.clone())
}

/// The first rollout of a prompt on a held-out example. Its workload is named where there are several.
///
/// # Errors
/// Why it cannot be read, in words.
pub(in crate::pages) async fn held_out_rollout(
    run: Run,
    candidate: CandidateId,
    example: &str,
    workload: Option<String>,
) -> Result<Rc<RolloutEvent>, String> {
    let trace = TraceAddress::first(example.to_owned(), workload, Split::Evaluate);
    let line = run.peek(|folded| match locate(&folded.state, &trace, Some(candidate)) {
        Place::Here(located) => located.line,
        Place::NoPrompt | Place::NoExample => None,
    });
    read(run, line.ok_or("This prompt was not run on this example.")?).await
}

/// Reads a rollout's whole line from this browser.
async fn read(run: Run, line: LineId) -> Result<Rc<RolloutEvent>, String> {
    let kept = async { Storage::open().await?.line(&run.id(), line).await };
    let text = match kept.await {
        Ok(Some(text)) => Some(text),
        // What this browser does not keep of a run of the server comes from there.
        other => match run.line_on_server(line).await {
            Some(text) => Some(text?),
            None => other.map_err(|error| error.to_string())?,
        },
    };
    let Some(text) = text else {
        return Err(match run.refused.get_untracked() {
            Some(_) => {
                "This browser stores no more of this run, so this trace is only in the memory of the tab. \
                        Download the journal to read it."
                    .into()
            }
            None => "This trace is not stored yet. The run is just being written.".into(),
        });
    };
    match parse_line(&text, line as usize + 1) {
        Ok(Event::Rollout(rollout)) => Ok(Rc::new(rollout)),
        Ok(_) => Err(format!("Line {} of the journal is no rollout.", line + 1)),
        Err(error) => Err(error.to_string()),
    }
}

/// The workload's own account.
#[component]
fn Outcome(rollout: Rc<RolloutEvent>) -> impl IntoView {
    let outcome = rollout.trace.outcome.trim().to_owned();
    (!outcome.is_empty()).then(|| {
        view! {
            <dl class="feedback">
                <div>
                    <dt>"What came of it"</dt>
                    <dd>{outcome}</dd>
                </div>
            </dl>
        }
    })
}

/// Whatever else the workload recorded.
#[component]
fn Details(rollout: Rc<RolloutEvent>) -> impl IntoView {
    let details = &rollout.trace.details;
    let text = (!details.is_null())
        .then(|| serde_json::to_string_pretty(details).ok())
        .flatten();
    text.map(|text| {
        view! {
            <details class="fold">
                <summary>"Details the workload recorded"</summary>
                <pre class="code" tabindex="0">{text}</pre>
            </details>
        }
    })
}
