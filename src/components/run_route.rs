//! The run an address names.

use std::time::Duration;

use leptos::prelude::*;
use leptos_router::NavigateOptions;
use leptos_router::hooks::{use_navigate, use_params_map};

use super::{AllRuns, Deferred, Message};
use crate::live::{NewRun, Phase, Run, Runs};

/// The run of this address, opened if it was not yet, and shown by the caller.
pub fn use_run() -> Memo<Option<Run>> {
    let params = use_params_map();
    let runs = expect_context::<Runs>();
    let id = Memo::new(move |_| params.with(|params| params.get("run")));
    Memo::new(move |_| id.get().map(|id| runs.show(&id)))
}

/// What begins a run and goes to where it can be watched. It does so once, however often it is asked to.
pub fn use_begin() -> impl Fn(NewRun) + Clone {
    let runs = expect_context::<Runs>();
    let navigate = use_navigate();
    let begun = StoredValue::new(false);
    move |new| {
        if begun.get_value() {
            return;
        }
        begun.set_value(true);
        let run = runs.begin(new);
        let navigate = navigate.clone();
        let watch = move || navigate(&format!("/run/{}", run.id()), NavigateOptions::default());
        // In a task of its own, so that neither is long.
        set_timeout(watch, Duration::ZERO);
    }
}

/// Shows a run once its journal is read, and until then how far that is, or why it cannot be.
pub fn with_run<V: IntoView + 'static>(
    show: impl Fn(Run) -> V + Copy + Send + Sync + 'static,
) -> impl IntoView {
    let run = use_run();
    // Only whether it is readable decides here, not what it does next.
    let state = Memo::new(move |_| {
        let run = run.get()?;
        Some((
            run,
            match run.phase.get() {
                Phase::Opening(read, of) => RunView::Opening(read, of),
                Phase::Unreadable(message) if run.is_unreadable() => RunView::Unreadable(message),
                _ => RunView::Open,
            },
        ))
    });
    move || match state.get() {
        // What stood here before is taken down in this task.
        Some((run, RunView::Open)) => view! { <Deferred>{show(run)}</Deferred> }.into_any(),
        Some((_, RunView::Opening(read, of))) => view! { <Opening read of/> }.into_any(),
        Some((_, RunView::Unreadable(message))) => view! { <Unreadable message/> }.into_any(),
        None => ().into_any(),
    }
}

#[derive(Clone, PartialEq)]
enum RunView {
    Opening(usize, usize),
    Open,
    Unreadable(String),
}

#[component]
fn Opening(read: usize, of: usize) -> impl IntoView {
    let share = format!("{:.0}%", 100.0 * read as f64 / of.max(1) as f64);
    view! {
        <div class="page-head">
            <h1>"Reading the journal"</h1>
            <p role="status">"reading the journal, " {read} " of " {of} " parts"</p>
        </div>
        <div class="progress" aria-hidden="true">
            <i style:--share=share></i>
        </div>
    }
}

#[component]
fn Unreadable(message: String) -> impl IntoView {
    view! {
        <div class="page-head">
            <h1>"This run cannot be shown"</h1>
        </div>
        <Message what=message>
            <p>
                <AllRuns/>
            </p>
        </Message>
    }
}
