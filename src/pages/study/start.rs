//! The buttons that start a run, and why they may not.

use capo_core::study::Study;
use leptos::prelude::*;
use leptos_router::NavigateOptions;
use leptos_router::hooks::use_navigate;
use wasm_bindgen_futures::spawn_local;

use super::cost::of_pilot;
use super::draft::Draft;
use super::field;
use super::form::Form;
use super::labels;
use super::on_server::{OnServer, WhereToRun};
use super::preview::Preview;
use super::prices;
use super::problem::Problem;
use super::race::Race;
use super::readiness;
use crate::components::{Icon, PLAY, use_begin};
use crate::format;
use crate::keys::Keys;
use crate::live::{NewRun, Runs};
use crate::studies;
use crate::worker::protocol::DataFiles;

/// How many examples the seed prompt is measured on to say what the whole study will take.
const PILOT: usize = 5;

/// Runs the study, with its models or with simulated ones.
#[component]
pub(super) fn Start() -> impl IntoView {
    let form = expect_context::<Form>();
    let begin_run = use_begin();
    let navigate = use_navigate();
    let failed = RwSignal::new(None::<String>);
    let runs = expect_context::<Runs>();
    let on_server = expect_context::<OnServer>();
    let sending = RwSignal::new(false);
    let is_there = Memo::new(move |_| on_server.project().is_some());
    let missing = Memo::new(move |_| {
        form.draft
            .with(|draft| readiness::lacking(form, &draft.study, !is_there.get()))
    });
    // What is wrong with simulated models as well, whose prices are known.
    let unready_anyway = Memo::new(move |_| {
        let unpriced = form.unpriced();
        let of_models = |problem: &Problem| problem.is_of_models() || unpriced.as_ref() == Some(problem);
        form.problems.with(|problems| !problems.iter().all(of_models))
    });
    let unready = Memo::new(move |_| form.problems.with(|problems| !problems.is_empty()));
    let is_sending = move || sending.get().then_some("true");
    let begin = move |study: Result<Study, Vec<Problem>>, keys: Keys, pilot: Option<usize>| {
        if sending.get_untracked() {
            return;
        }
        let study = study.map_err(|problems| {
            let first = problems.into_iter().next();
            first.map(|problem| problem.message).unwrap_or_default()
        });
        let files = form.draft.with_untracked(Draft::named_files);
        let new = study.and_then(|study| new_run(&study, files, keys, pilot));
        let new = match untrack(|| on_server.gone()) {
            // Not here, with one's own keys, in its stead.
            Some(gone) => Err(gone),
            None => new,
        };
        let started = match (new, untrack(|| on_server.project())) {
            (Ok(new), None) => {
                begin_run(new);
                Ok(())
            }
            (Ok(new), Some(project)) => on_server.moment().map(|start_at| {
                let navigate = navigate.clone();
                sending.set(true);
                spawn_local(async move {
                    let begun = runs.begin_on_server(&project, new, start_at).await;
                    // The page may be left by then.
                    if sending.try_set(false).is_some() {
                        return;
                    }
                    match begun {
                        Ok(run) => navigate(&format!("/run/{}", run.id()), NavigateOptions::default()),
                        Err(message) => failed.set(Some(message)),
                    }
                });
            }),
            (Err(message), _) => Err(message),
        };
        failed.set(started.err());
    };
    let run = {
        let begin = begin.clone();
        move |pilot: Option<usize>| {
            // Prices may have changed without a field that was left.
            form.bound_dollars();
            let study = form.checked.get_untracked();
            let keys = study
                .as_ref()
                .map(|study| untrack(|| form.allowed_keys(study)))
                .unwrap_or_default();
            begin(study, keys, pilot);
        }
    };
    // No more than there are examples; five as long as nobody knows.
    let first = Memo::new(move |_| {
        let examples = form.measured.with(|measured| measured.optimize);
        if examples == 0 { PILOT } else { PILOT.min(examples) }
    });
    let rows = Preview::of_rows(form);
    let dollars = Memo::new(move |_| {
        let roles = form.measured.with(|measured| measured.roles.clone());
        let usd = rows.with(|rows| {
            let (_, rows) = rows.as_ref()?.as_ref().ok()?;
            form.draft
                .with(|draft| of_pilot(&draft.study, &roles, rows, first.get()))
        });
        usd.map(|usd| format::dollars(Some(usd)))
    });
    let about = move || dollars.get().map(|dollars| format!(", about {dollars}"));
    let measure = {
        let run = run.clone();
        move |_| run(Some(first.get_untracked()))
    };
    let cannot_run = Signal::derive(move || unready.get() || !missing.with(Vec::is_empty));
    let simulated = form.memo(|study| capo_workloads::of(&study.workload).is_some_and(|kind| kind.simulated));
    let simulate = move |_| {
        let study = form.draft.with_untracked(|draft| draft.simulated().checked());
        begin(study, Keys::new(), None);
    };
    view! {
        <div class="stack close">
            <WhereToRun on_server/>
            <button
                class="primary"
                type="button"
                disabled=move || cannot_run.get()
                aria-disabled=is_sending
                aria-describedby="start-why"
                on:click=move |_| run(None)
            >
                <Icon path=PLAY/>
                {move || if sending.get() { "Sending it to the server…" } else { "Run study" }}
            </button>
            <Race on_server cannot_run/>
            <div class="note" id="start-why">
                {move || missing.with(|missing| why(form, missing))}
            </div>
            <Show when=move || !is_there.get()>
                <button
                    type="button"
                    class="long"
                    disabled=move || cannot_run.get()
                    aria-describedby="pilot-note"
                    on:click=measure.clone()
                >
                    {move || match first.get() {
                        1 => "Measure the seed prompt on its one example first".to_owned(),
                        examples => format!("Measure the seed prompt on {examples} examples first"),
                    }}
                    {about}
                </button>
                <div class="note" id="pilot-note">
                    "The run pauses there and says what the whole is expected to take. Run the whole study from there: \
                     what was measured is then not paid again. Run study above begins another run."
                    {move || dollars.get().map(|_| " The dollars are for answers of 300 words.")}
                </div>
            </Show>
            <Show when=move || simulated.get()>
                <button
                    type="button"
                    disabled=move || unready_anyway.get()
                    aria-disabled=is_sending
                    on:click=simulate.clone()
                >
                    "Run with simulated models instead"
                </button>
            </Show>
            {move || failed.get().map(|message| view! { <p class="msg" role="alert"><b>{message}</b></p> })}
        </div>
    }
}

/// Why the study cannot run yet, or what may go wrong.
fn why(form: Form, missing: &[String]) -> AnyView {
    let problems = form.problems.get();
    if !problems.is_empty() {
        let items = problems.into_iter().map(item).collect_view();
        return view! {
            "First set right:"
            {items}
        }
        .into_any();
    }
    if !missing.is_empty() {
        return view! {
            {format::label(&format::listed(missing))}
            ". "
            <a href="#section-3" rel="external">"Models"</a>
        }
        .into_any();
    }
    let silent = readiness::silent(form);
    let words = match silent.len() {
        0 => return ().into_any(),
        1 => "One model does not answer yet: ".to_owned(),
        count => format!(
            "{} models do not answer yet: ",
            format::label(&format::number_word(count))
        ),
    };
    view! { {words} <a href="#section-3" rel="external">{silent.join(", ")}</a> "." }.into_any()
}

/// A problem, leading to its field. The browser follows links within the page itself, again and again
/// and with the focus; the router would not.
fn item(problem: Problem) -> impl IntoView {
    // The fields of most settings of models are folded away; those of prices are not.
    let address = if problem.is_of_models() && !prices::is_price(&problem.key) {
        "#section-3".to_owned()
    } else {
        format!("#{}", field::id(&problem.key))
    };
    let named = (!problem.key.is_empty()).then(|| {
        view! {
            <a href=address rel="external">{labels::label(&problem.key)}</a>
            ": "
        }
    });
    view! { <div>{named} {problem.message}</div> }
}

/// A run of a study with its files and keys.
///
/// # Errors
/// That the study cannot be written, in words.
pub(super) fn new_run(
    study: &Study,
    files: DataFiles,
    keys: Keys,
    pilot: Option<usize>,
) -> Result<NewRun, String> {
    Ok(NewRun {
        name: format::capitalized(&study.study.name),
        method: study.study.method.clone(),
        about: studies::about(study),
        objective: study.objective.metric.clone(),
        study: study.to_toml().map_err(|error| error.to_string())?,
        files,
        keys,
        pilot,
        check: None,
    })
}
