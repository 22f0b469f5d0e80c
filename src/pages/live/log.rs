//! What happened, the latest first.

use leptos::prelude::*;

use super::overview::Overview;
use crate::components::Words;
use crate::format;
use crate::live::Run;
use crate::run::activity::{Entry, Kind};

/// Which entries are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Filter {
    All,
    Only(Kind),
}

/// The activity of a run, and a voice for what matters of it.
#[component]
pub(super) fn Log(run: Run, overview: Overview) -> impl IntoView {
    let letter = overview.letter(4);
    let filter = RwSignal::new(Filter::All);
    let entries = Memo::new(move |_| {
        run.read(|folded| {
            let wanted = |entry: &&Entry| match filter.get() {
                Filter::All => true,
                Filter::Only(kind) => entry.kind == kind,
            };
            let entries: Vec<Entry> = folded.activity.entries().iter().filter(wanted).cloned().collect();
            entries
        })
    });
    let spoken = move || {
        run.read(|folded| {
            let last = folded.activity.entries().iter().rfind(|entry| entry.announce)?;
            Some(last.headline.to_string())
        })
    };
    let count = move |kind| run.read(|folded| folded.activity.count(kind));
    let choice = move |this: Filter, words: String| {
        view! {
            <button
                type="button"
                aria-pressed=move || (filter.get() == this).to_string()
                on:click=move |_| filter.set(this)
            >
                {words}
            </button>
        }
    };
    let latest_first = move || entries.get().into_iter().enumerate().rev().collect::<Vec<_>>();
    view! {
        <section class="plate" id=move || format!("plate-{}", letter.get()) tabindex="-1" aria-labelledby="log-title">
            <header>
                <h2 class="pt" id="log-title">
                    <span class="letter" aria-hidden="true">{move || letter.get()}</span>
                    "Activity"
                </h2>
                <span class="now">
                    <span class="seg" role="group" aria-label="Filter">
                        {choice(Filter::All, "All".into())}
                        {move || choice(Filter::Only(Kind::Failure), format!("Failures {}", count(Kind::Failure)))}
                        {move || choice(Filter::Only(Kind::Steering), format!("Steering {}", count(Kind::Steering)))}
                    </span>
                </span>
            </header>
            <Show
                when=move || entries.with(|entries| !entries.is_empty())
                fallback=move || {
                    match filter.get() {
                        Filter::Only(Kind::Failure) => "No failures. Every example has an answer.",
                        Filter::Only(_) => "Nothing was changed by hand.",
                        Filter::All => "Nothing has happened yet.",
                    }
                }
            >
                <ol class="log" reversed tabindex="0" aria-label="Activity, the latest first">
                    <For each=latest_first key=|(place, entry)| (*place, entry.detail.to_string()) let((_, entry))>
                        <li>
                            <time>{entry.at.map(format::clock)}</time>
                            <span>
                                <Words sentence=entry.headline/>
                            </span>
                            {(!entry.detail.is_empty())
                                .then(|| {
                                    view! {
                                        <span class="why">
                                            <Words sentence=entry.detail/>
                                        </span>
                                    }
                                })}
                        </li>
                    </For>
                </ol>
            </Show>
            <p class="sr" role="status" aria-live="polite">{spoken}</p>
        </section>
    }
}
