//! The network, newer versions of the page, and a tab that is about to close.

use leptos::ev;
use leptos::prelude::*;
use web_sys::{BeforeUnloadEvent, Event};

use super::keys::TabKeys;
use crate::live::{Pause, Phase, Run, Runs};
use crate::studies;

/// public/boot.js says so when a newer version is ready.
const UPDATE: &str = "capo-update";
/// What public/boot.js waits for to switch to it.
const ACCEPT: &str = "capo-accept-update";

/// Pauses runs that need the network while there is none, offers newer versions, and asks before a
/// tab with a running study is closed.
#[component]
pub fn Surroundings() -> impl IntoView {
    let (runs, keys) = (expect_context::<Runs>(), expect_context::<TabKeys>());
    let online = RwSignal::new(window().navigator().on_line());
    let update = RwSignal::new(false);
    let listeners = [
        window_event_listener_untyped("offline", move |_| {
            online.set(false);
            for run in runs.running().into_iter().filter(|run| needs_network(*run)) {
                run.pause(Pause::NoNetwork);
            }
        }),
        window_event_listener_untyped("online", move |_| {
            online.set(true);
            for run in runs.opened() {
                if run.phase.get_untracked() == Phase::Paused(Pause::NoNetwork) {
                    runs.resume(&run.id(), &keys.now());
                }
            }
        }),
        window_event_listener_untyped(UPDATE, move |_| update.set(true)),
    ];
    let closing = window_event_listener(ev::beforeunload, move |event: BeforeUnloadEvent| {
        if !runs.running().is_empty() {
            event.prevent_default();
        }
    });
    on_cleanup(move || {
        closing.remove();
        for listener in listeners {
            listener.remove();
        }
    });
    let accept = move |_| {
        if let Ok(event) = Event::new(ACCEPT) {
            // Nobody refuses it.
            let _ = window().dispatch_event(&event);
        }
    };
    view! {
        <Show when=move || !online.get()>
            <p class="banner offline" role="status">
                "No network. Runs on simulated models or servers of this device go on; others are paused and go on \
                 by themselves when it returns."
            </p>
        </Show>
        <Show when=move || update.get()>
            <p class="banner update" role="status">
                <span>
                    "A newer version of this page is ready. A running study would be interrupted and resumed."
                </span>
                <button type="button" on:click=accept>
                    "Reload now"
                </button>
                <button type="button" class="link" on:click=move |_| update.set(false)>
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
