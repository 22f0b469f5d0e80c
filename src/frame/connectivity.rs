//! Connectivity: the network, newer versions of the page, and a tab that is about to close.

use gloo_timers::future::TimeoutFuture;
use leptos::ev;
use leptos::prelude::*;
use wasm_bindgen_futures::spawn_local;
use web_sys::{BeforeUnloadEvent, Event};

use super::keys::TabKeys;
use crate::format;
use crate::live::{Pause, Phase, Run, Runs, sweep};
use crate::storage::is_report;
use crate::studies;
use crate::team::Team;

/// public/boot.js says so when a newer version is ready.
const UPDATE: &str = "capo-update";
/// What public/boot.js waits for to switch to it.
const ACCEPT: &str = "capo-accept-update";

/// The page is in use, and not busy with itself, so long after it was opened, in milliseconds.
const SETTLED: u32 = 5_000;

/// Pauses runs that need the network while there is none, offers newer versions, and asks before a
/// tab with a running study is closed.
#[component]
pub fn Connectivity() -> impl IntoView {
    let (runs, keys) = (expect_context::<Runs>(), expect_context::<TabKeys>());
    let team = expect_context::<Team>();
    let online = RwSignal::new(window().navigator().on_line());
    let update = RwSignal::new(false);
    let look = move || {
        team.look_again();
        runs.look_at_server();
    };
    let listeners = [
        window_event_listener_untyped("offline", move |_| {
            online.set(false);
            for run in runs.running().into_iter().filter(|run| needs_network(*run)) {
                run.pause(Pause::NoNetwork);
            }
        }),
        window_event_listener_untyped("online", move |_| {
            online.set(true);
            look();
            for run in runs.opened() {
                if matches!(run.phase.get_untracked(), Phase::Paused(why) if why.passes()) {
                    runs.resume(&run.id(), &keys.now());
                }
            }
        }),
        window_event_listener(ev::storage, move |event| team.hear(&event)),
        // It comes up here from the document.
        window_event_listener_untyped("visibilitychange", move |_| {
            if !document().hidden() {
                look();
            }
        }),
        window_event_listener_untyped(UPDATE, move |_| update.set(true)),
    ];
    spawn_local(async {
        // Whoever opened the page first wants to use it.
        TimeoutFuture::new(SETTLED).await;
        // What is left over is in nobody's way, and tried again when the page is opened next.
        let _ = sweep().await;
    });
    let closing = window_event_listener(ev::beforeunload, move |event: BeforeUnloadEvent| {
        if !runs.running().is_empty() || !runs.unsaved().is_empty() {
            event.prevent_default();
        }
    });
    on_cleanup(move || {
        closing.remove();
        for listener in listeners {
            listener.remove();
        }
    });
    // Runs that a reload would take answers from, once somebody asked for it.
    let at_stake = RwSignal::new(Vec::<String>::new());
    let accept = move |_| {
        let unsaved = runs.unsaved();
        if at_stake.with_untracked(Vec::is_empty) && !unsaved.is_empty() {
            return at_stake.set(unsaved.iter().map(Run::name).collect());
        }
        if let Ok(event) = Event::new(ACCEPT) {
            // Nobody refuses it.
            let _ = window().dispatch_event(&event);
        }
    };
    view! {
        <Show when=move || !online.get() && !is_report()>
            <p class="banner offline" role="status">
                "No network. Runs on simulated models or servers of this device go on; others are paused and go on \
                 by themselves when it returns."
            </p>
        </Show>
        <Show when=move || update.get()>
            <p class="banner update" role="status">
                <span>
                    {move || {
                        let names = at_stake.get();
                        let names: Vec<&str> = names.iter().map(String::as_str).collect();
                        if names.is_empty() {
                            "A newer version of this page is ready. A running study would be interrupted and \
                             resumed."
                                .to_owned()
                        } else {
                            format!(
                                "{}: answers lie in the memory of this tab only. Open the run and download its \
                                 journal first; a reload loses them.",
                                format::listed(&names),
                            )
                        }
                    }}
                </span>
                <button type="button" on:click=accept>
                    {move || if at_stake.with(Vec::is_empty) { "Reload now" } else { "Reload and lose them" }}
                </button>
                <button
                    type="button"
                    class="link"
                    on:click=move |_| {
                        at_stake.set(Vec::new());
                        update.set(false);
                    }
                >
                    "Later"
                </button>
            </p>
        </Show>
    }
}

fn needs_network(run: Run) -> bool {
    run.peek(|folded| {
        folded
            .state
            .study()
            .is_some_and(|started| studies::needs_network(&started.study))
    })
}
