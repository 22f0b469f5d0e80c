//! The log of a run: what happened, the latest first.

use capo_core::journal::Status;
use capo_core::run_state::RunState;
use leptos::ev;
use leptos::html::Div;
use leptos::prelude::*;
use wasm_bindgen::JsCast;

use super::overview::Overview;
use crate::components::{Plate, Spacer, Toggle, Viewport, Window, Words};
use crate::format;
use crate::live::Run;
use crate::run::activity::{Entry, Kind};

/// Which entries are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Filter {
    All,
    Only(Kind),
}

impl Filter {
    fn shows(self, entry: &Entry) -> bool {
        match self {
            Self::All => true,
            Self::Only(kind) => entry.kind == kind,
        }
    }
}

/// The activity of a run, and a voice for what matters of it.
#[component]
pub(super) fn Log(run: Run, overview: Overview) -> impl IntoView {
    let overview = overview.apart();
    let letter = overview.letter(4);
    let filter = RwSignal::new(Filter::All);
    let spoken = move || {
        run.read(|folded| {
            let last = folded.activity.entries().iter().rfind(|entry| entry.announce)?;
            Some(last.headline.to_string())
        })
    };
    let failures = move || run.read(|folded| format!("Failures {}", folded.activity.failures().len()));
    let steering = move || run.read(|folded| format!("Steering {}", folded.activity.count(Kind::Steering)));
    view! {
        <Plate
            letter
            title=|| "Activity"
            beside=move || {
                view! {
                    <span class="now">
                        <span class="seg" role="group" aria-label="Filter">
                            <Toggle chosen=filter this=Filter::All>"All"</Toggle>
                            <Toggle chosen=filter this=Filter::Only(Kind::Failure)>{failures}</Toggle>
                            <Toggle chosen=filter this=Filter::Only(Kind::Steering)>{steering}</Toggle>
                        </span>
                    </span>
                }
            }
        >
            <Lines run filter/>
            <p class="sr" role="status" aria-live="polite">{spoken}</p>
        </Plate>
    }
}

/// The lines, the latest first. New ones wait while a pointer or the focus is inside.
#[component]
fn Lines(run: Run, filter: RwSignal<Filter>) -> impl IntoView {
    let held = RwSignal::new(false);
    let host = NodeRef::<Div>::new();
    let until = Memo::new(move |last: Option<&usize>| {
        let all = run.read(|folded| folded.activity.entries().len());
        // A run that was read anew begins with fewer.
        last.copied()
            .filter(|last| held.get() && *last <= all)
            .unwrap_or(all)
    });
    let count = move |from: usize| {
        run.read(|folded| {
            let entries = folded.activity.entries().get(from..).unwrap_or_default();
            entries.iter().filter(|entry| filter.get().shows(entry)).count()
        })
    };
    let waiting = move || Some(count(until.get())).filter(|waiting| *waiting > 0);
    let places = Memo::new(move |_| {
        let (until, filter) = (until.get(), filter.get());
        run.read(|folded| {
            let entries = folded.activity.entries().iter().take(until).enumerate();
            let shown = entries.filter(|(_, entry)| filter.shows(entry));
            let mut places: Vec<usize> = shown.map(|(place, _)| place).collect();
            places.reverse();
            places
        })
    });
    let window = Window::over(Signal::derive(move || places.with(Vec::len)));
    let drawn = move || window.rows(places, Clone::clone);
    let leaves = move |event: ev::FocusEvent| {
        let into = event
            .related_target()
            .and_then(|target| target.dyn_into::<web_sys::Node>().ok());
        let stays = host
            .get_untracked()
            .is_some_and(|host| host.contains(into.as_ref()) && into.is_some());
        if !stays {
            held.set(false);
        }
    };
    view! {
        <div
            node_ref=host
            on:pointerenter=move |_| held.set(true)
            on:pointerleave=move |_| held.set(false)
            on:focusin=move |_| held.set(true)
            on:focusout=leaves
        >
            {move || {
                waiting()
                    .map(|waiting| {
                        view! {
                            <button type="button" class="link log-wait" on:click=move |_| held.set(false)>
                                {format::count(waiting as u64)} " new"
                            </button>
                        }
                    })
            }}
            <Show
                when=move || places.with(|places| !places.is_empty())
                fallback=move || view! { <p class="quiet small">{move || run.read(|folded| nothing(filter.get(), &folded.state))}</p> }
            >
                <Viewport window class="log" name="Activity, the latest first">
                    <ol reversed>
                        {window.list_spacer(Spacer::Above)}
                        <For each=drawn key=|place| *place let(place)>
                            <Line run place/>
                        </For>
                        {window.list_spacer(Spacer::Below)}
                    </ol>
                </Viewport>
            </Show>
        </div>
    }
}

/// What stands in place of lines.
fn nothing(filter: Filter, state: &RunState) -> &'static str {
    let whole = state
        .finished()
        .is_some_and(|finished| matches!(finished.status, Status::Feasible | Status::Infeasible));
    match filter {
        Filter::Only(Kind::Failure) if whole => "No failures. Every example has an answer.",
        Filter::Only(Kind::Failure) => "No failures so far.",
        Filter::Only(_) => "Nothing was changed by hand.",
        Filter::All => "Nothing has happened yet.",
    }
}

/// A line; what it says may grow, as when a failure comes again.
#[component]
fn Line(run: Run, place: usize) -> impl IntoView {
    let entry = Memo::new(move |_| run.read(|folded| folded.activity.entries().get(place).cloned()));
    let failed = move || entry.with(|entry| entry.as_ref().is_some_and(|entry| entry.kind == Kind::Failure));
    let said = move || {
        let entry = entry.get()?;
        let why = (!entry.detail.is_empty()).then(|| {
            view! {
                <span class="why">
                    <Words sentence=entry.detail among_many=true/>
                </span>
            }
        });
        Some(view! {
            <time>{entry.at.map(format::clock)}</time>
            <span>
                <Words sentence=entry.headline among_many=true/>
            </span>
            {why}
        })
    };
    view! { <li class:failed=failed>{said}</li> }
}

#[cfg(test)]
mod tests {
    use capo_core::journal::Event;

    use super::*;
    use crate::run::fixture::{events, finished, fold};

    #[test]
    fn that_every_example_has_an_answer_is_said_at_the_end_only() {
        let failures = Filter::Only(Kind::Failure);
        assert!(nothing(failures, &finished()).contains("Every example"));
        let events = events(|_| {}, None);
        let closed = events.iter().position(|event| matches!(event, Event::Round(_)));
        let running = fold(&events[..closed.unwrap()]);
        assert_eq!(nothing(failures, &running), "No failures so far.");
    }
}
