//! The first page: one button that runs the help-desk study.

mod finished;

use std::time::Duration;

use capo_core::study::{Constraint, Study};
use leptos::prelude::*;
use leptos_router::components::A;

use self::finished::FinishedRun;
use crate::charts::map::CandidateMap;
use crate::components::{Icon, Message, PLAY, page_title, use_begin};
use crate::format::{self, Quantity};
use crate::keys::Keys;
use crate::live::{NewRun, Runs, prepare_worker};
use crate::storage::RunRecord;
use crate::studies;
use crate::worker::protocol::DataFiles;

/// What stands in `index.html`, too, where it is shown before this module has come.
const TITLE: &str = "The best prompt that keeps within your limits";
const LEDE: &str = "Give Capo a system prompt, examples and thresholds. It rewrites the prompt round after round, leaning \
                    harder on whatever is still over its threshold and easing off what is inside, until the best \
                    prompt that keeps them all is found.";
const START: &str = "Run the help-desk study";

/// What Capo is, the demonstration, and the runs kept here.
#[component]
pub fn WelcomePage() -> impl IntoView {
    page_title(|| TITLE.into());
    prepare_worker(Duration::from_millis(300));
    view! {
        <div class="welcome">
            <section aria-labelledby="welcome-title">
                <h1 id="welcome-title">{TITLE}</h1>
                <p class="lede">{LEDE}</p>
                <div class="row start">
                    <RunHelpDesk/>
                    <span class="note">
                        "Simulated models, no key needed." <br/>
                        "About a minute, $0.00, nothing leaves this tab."
                    </span>
                </div>
                <ul class="ways">
                    <li>
                        <A href="/study">"Set up your own study"</A>
                    </li>
                    <li>
                        <A href="/runs">"Open a journal"</A>
                    </li>
                    <li>
                        <A href="/dynamics">"See how multipliers behave"</A>
                    </li>
                </ul>
            </section>
            <FinishedMap/>
        </div>
        <StudyFacts/>
        <YourRuns/>
    }
}

/// The map of a finished run.
#[component]
fn FinishedMap() -> impl IntoView {
    let map = FinishedRun::shipped().map(|run| run.map()).unwrap_or_default();
    let label = "Each mark is one prompt: success against worst residual; the course leads from the seed, \
                 outside of the thresholds, to the best prompt, inside all of them";
    view! {
        <figure>
            <CandidateMap data=Signal::stored(map) label=Signal::stored(label.to_owned()) height="400px"/>
            <figcaption class="note">
                "A finished run of this study on simulated models. Every mark is one prompt; left of the line, \
                 all thresholds hold. The course is the lineage of the best prompt."
            </figcaption>
        </figure>
    }
}

/// What the built-in study asks for.
#[component]
fn StudyFacts() -> impl IntoView {
    let facts = studies::help_desk()
        .map(|study| facts(&study))
        .unwrap_or_default();
    let facts = facts.into_iter().map(|(term, fact)| {
        view! {
            <div>
                <dt>{term}</dt>
                <dd>{fact}</dd>
            </div>
        }
    });
    view! {
        <dl class="spec" aria-label="The help-desk study">
            {facts.collect_view()}
        </dl>
    }
}

fn facts(study: &Study) -> Vec<(&'static str, String)> {
    let number = |key: &str| {
        study
            .workload
            .get(key)
            .and_then(serde_json::Value::as_u64)
            .unwrap_or_default()
    };
    let constraint = |constraint: &Constraint| {
        let threshold = constraint.threshold.unwrap_or_default();
        let limit = match constraint.metric.as_str() {
            "human_requests" => format!("{} of dialogues", Quantity::Rate.limit(threshold)),
            "prompt_length" => format!("{} characters", Quantity::Thousands.limit(threshold)),
            _ => format!("{} extra per reference call", Quantity::Ratio.limit(threshold)),
        };
        (
            "Constraint",
            format!("{} {limit}", format::label(&constraint.metric)),
        )
    };
    let workload = format!(
        "Help desk: {} dialogues to search on, {} held out",
        number("optimize"),
        number("evaluate")
    );
    let rounds = studies::rounds(study).map(|rounds| format!(", {rounds} rounds"));
    let within = |rollouts| format!(", within {} rollouts", format::count(rollouts));
    let method = format!(
        "{}{}",
        studies::method_name(&study.study.method),
        rounds
            .or_else(|| study.budget.rollouts.map(within))
            .unwrap_or_default()
    );
    let mut facts = vec![
        ("Workload", workload),
        ("Objective", "Success, as high as possible".to_owned()),
    ];
    facts.extend(study.constraints.iter().map(constraint));
    facts.push(("Method", method));
    facts
}

/// Starts the built-in study and goes to where it can be watched.
#[component]
fn RunHelpDesk() -> impl IntoView {
    let begin = use_begin();
    let failed = RwSignal::new(None);
    let run = move |_| match demonstration() {
        Ok(new) => begin(new),
        Err(message) => failed.set(Some(message)),
    };
    view! {
        <button type="button" class="primary" on:click=run>
            <Icon path=PLAY/>
            {START}
        </button>
        {move || failed.get().map(|what: String| view! { <Message what/> })}
    }
}

fn demonstration() -> Result<NewRun, String> {
    let study = studies::help_desk().map_err(|error| error.to_string())?;
    Ok(NewRun {
        name: "Help desk".into(),
        method: study.study.method.clone(),
        about: studies::about(&study),
        objective: study.objective.metric.clone(),
        study: study.to_toml().map_err(|error| error.to_string())?,
        files: DataFiles::new(),
        keys: Keys::new(),
        pilot: None,
        check: None,
    })
}

/// The runs kept in this browser, the latest few.
#[component]
fn YourRuns() -> impl IntoView {
    let runs = expect_context::<Runs>();
    let runs = LocalResource::new(move || {
        runs.cleared();
        runs.kept()
    });
    let list = move |runs: &[RunRecord]| {
        if runs.is_empty() {
            return view! {
                <p class="quiet">
                    "None in this browser yet. A run is kept here as it goes, so that it can be closed at any \
                     moment and taken up again without paying anew for what was answered. A journal written by the \
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
        <section class="your-runs" aria-labelledby="your-runs">
            <h2 id="your-runs">"Your runs"</h2>
            {move || {
                runs.get()
                    .map(|runs| match &runs {
                        Ok(listed) => list(&listed.runs),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_says_the_same_before_its_module_has_come() {
        let page = include_str!("../../../index.html");
        for words in [TITLE, LEDE, START] {
            assert!(page.contains(&format!(">{words}<")), "{words}");
        }
        assert!(page.contains(&format!("<meta property=\"og:title\" content=\"Capo: {TITLE}\">")));
    }
}
