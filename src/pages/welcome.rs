//! The first page: one button that runs the help-desk study.

use leptos::prelude::*;
use leptos_router::NavigateOptions;
use leptos_router::components::A;
use leptos_router::hooks::use_navigate;

use crate::components::page_title;
use crate::live::{NewRun, Runs};
use crate::storage::{RunRecord, Storage};
use crate::studies;

/// What Capo is, the demonstration, and the runs kept here.
#[component]
pub fn WelcomePage() -> impl IntoView {
    page_title(|| "The best prompt that keeps within your limits".into());
    view! {
        <div class="welcome">
            <section aria-labelledby="welcome-title">
                <h1 id="welcome-title">"The best prompt that keeps within your limits"</h1>
                <p class="lede">
                    "Give Capo a system prompt, examples and thresholds. It rewrites the prompt round after \
                     round, leaning harder on whatever is still over its threshold and easing off what is \
                     inside, until the best prompt that keeps them all is found."
                </p>
                <div class="row">
                    <RunHelpDesk/>
                    <span class="note">
                        "Simulated models, no key needed." <br/>
                        "Under a minute, $0.00, nothing leaves this tab."
                    </span>
                </div>
                <p class="row welcome-links">
                    <A href="/study">"Set up your own study"</A>
                    <span class="quiet">"·"</span>
                    <A href="/runs">"Open a journal"</A>
                    <span class="quiet">"·"</span>
                    <A href="/dynamics">"See how multipliers behave"</A>
                </p>
            </section>
        </div>
        <YourRuns/>
    }
}

/// Starts the built-in study and goes to where it can be watched.
#[component]
fn RunHelpDesk() -> impl IntoView {
    let runs = expect_context::<Runs>();
    let navigate = use_navigate();
    let failed = RwSignal::new(None);
    let run = move |_| match demonstration() {
        Ok(new) => {
            let run = runs.begin(new);
            navigate(&format!("/run/{}", run.id()), NavigateOptions::default());
        }
        Err(message) => failed.set(Some(message)),
    };
    view! {
        <button type="button" class="primary" on:click=run>
            <svg viewBox="0 0 12 12" aria-hidden="true">
                <path d="M2 0.8L11 6 2 11.2z"/>
            </svg>
            "Run the help-desk study"
        </button>
        {move || failed.get().map(|message: String| view! { <p role="alert" class="error">{message}</p> })}
    }
}

fn demonstration() -> Result<NewRun, String> {
    let study = studies::help_desk().map_err(|error| error.to_string())?;
    Ok(NewRun {
        name: "Help desk".into(),
        method: study.study.method.clone(),
        about: studies::about(&study),
        study: studies::to_toml(&study)?,
        files: Default::default(),
        keys: Default::default(),
    })
}

/// The runs kept in this browser, the latest few.
#[component]
fn YourRuns() -> impl IntoView {
    let runs = LocalResource::new(|| async { Storage::open().await?.runs().await });
    let list = move |runs: &[RunRecord]| {
        if runs.is_empty() {
            return view! {
                <p class="quiet">
                    "None in this browser yet. A run is kept here as it goes, so that it can be closed at any \
                     moment and taken up again without paying for anything twice. A journal written by the \
                     command line can be dropped anywhere on this page."
                </p>
            }
            .into_any();
        }
        let latest = runs.iter().take(5).map(|run| {
            let (href, name, about) = (format!("/run/{}", run.id), run.name.clone(), run.about.clone());
            view! {
                <li>
                    <A href=href>{name}</A>
                    " "
                    <span class="quiet">{about}</span>
                </li>
            }
        });
        let latest = latest.collect_view();
        view! { <ul class="plain">{latest}</ul> }.into_any()
    };
    view! {
        <section class="welcome-runs" aria-labelledby="your-runs">
            <h2 id="your-runs">"Your runs"</h2>
            {move || {
                runs.get()
                    .map(|runs| match &runs {
                        Ok(runs) => list(runs),
                        Err(error) => {
                            view! {
                                <p class="quiet">
                                    "This browser keeps nothing for this page (" {error.to_string()}
                                    "). Runs go on in memory: download their journals."
                                </p>
                            }
                                .into_any()
                        }
                    })
            }}
        </section>
    }
}
