//! The page of a run that goes on, or went on: charts, steering, pool, activity; of one that rests after any of its rounds.

mod actions;
mod bar;
mod figures;
mod log;
mod overview;
mod pictures;
mod pool;
mod replay;
mod steer;

use leptos::prelude::*;
use leptos_router::NavigateOptions;
use leptos_router::hooks::use_navigate;

use self::bar::RunBar;
use self::figures::{MapFigure, Strips};
use self::log::Log;
use self::overview::Overview;
use self::pool::PoolPlate;
use self::replay::{ReplayBar, Replaying};
use self::steer::Steer;
use crate::components::{Deferred, PinnedPrompts, Pins, RunKeys, RunNotices, page_title, with_run};
use crate::live::Run;
use crate::pages::result::CheckPlate;
use crate::storage::is_report;

/// The table of the pool takes the whole width when it has columns for more constraints than this.
const MOST_BESIDE: usize = 2;

/// The live page of the run its address names.
#[component]
pub fn LivePage() -> impl IntoView {
    with_run(|run| match untrack(|| run.check()) {
        None => view! { <Live run/> }.into_any(),
        Some(_) => view! {
            <RunBar run/>
            <RunNotices run/>
            <RunKeys run/>
            <CheckPlate check=run/>
        }
        .into_any(),
    })
}

#[component]
fn Live(run: Run) -> impl IntoView {
    page_title(move || {
        let name = run
            .record
            .with(|record| record.as_ref().map(|record| record.name.clone()));
        let rounds = run.read(|folded| folded.state.rounds().len());
        format!("{}, round {rounds}", name.unwrap_or_default())
    });
    let replaying = Replaying::of(run);
    let overview = Overview::of(run, replaying.seen);
    let pins = Pins::of(run, replaying.seen);
    let navigate = use_navigate();
    let open = Callback::new(move |candidate: String| {
        let address = format!("/run/{}/candidate/{candidate}", run.id());
        navigate(&address, NavigateOptions::default());
    });
    let crowded = move || {
        let constraints = overview.read(|parts| parts.drawn.series.constraints.len());
        constraints.is_some_and(|constraints| constraints > MOST_BESIDE)
    };
    // Without any there is nothing to map or to steer.
    let constrained = Memo::new(move |_| {
        let constraints = overview.read(|parts| !parts.drawn.series.constraints.is_empty());
        constraints.unwrap_or(true)
    });
    view! {
        <RunBar run/>
        <RunNotices run/>
        <Show when=|| !is_report()>
            <Deferred>
                <RunKeys run/>
            </Deferred>
        </Show>
        <div class="g g-run" class:even=move || !constrained.get()>
            <Strips run overview open/>
            <Show when=move || constrained.get()>
                <div class="stack">
                    <Deferred>
                        <MapFigure run overview open/>
                    </Deferred>
                    <Show when=|| !is_report()>
                        <Deferred>
                            <Steer run overview/>
                        </Deferred>
                    </Show>
                </div>
            </Show>
        </div>
        <PinnedPrompts pins/>
        <div class="g g-run" class:even=crowded>
            <Deferred>
                <PoolPlate run overview/>
            </Deferred>
            <Deferred>
                <Log run overview/>
            </Deferred>
        </div>
        <ReplayBar replaying/>
    }
}
