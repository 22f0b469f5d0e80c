//! Starting a training.

use std::collections::BTreeMap;

use capo_api::{NewTraining, RunShown, Title, TrainingKind, TrainingShown, TrainingStart, TrainingState};
use leptos::prelude::*;
use leptos_router::NavigateOptions;
use leptos_router::components::A;
use leptos_router::hooks::{use_navigate, use_params_map};

use super::of_project::listed;
use super::{address, words};
use crate::pages::team::form::{Field, Form, Line, Pick, TextField, named};
use crate::pages::team::guard::TeamPage;
use crate::pages::team::list::Listing;
use crate::pages::team::project_bar::ProjectBar;
use crate::team::{Asking, Server};

/// What a settings field begins with: a model that is made here learns little at the rates of a large one.
const SETTINGS: &str = "[sft]\nepochs = 4\nlearning_rate = 5e-3\n\n[grpo]\nlearning_rate = 3e-4\n\n[drawing]\nmax_new_tokens = 128\n";

const KINDS: &[TrainingKind] = &[TrainingKind::Sft, TrainingKind::Grpo];

/// Starts a training in the project of this address.
#[component]
pub fn NewTrainingPage() -> impl IntoView {
    let params = use_params_map();
    let project = Memo::new(move |_| params.with(|params| params.get("project").unwrap_or_default()));
    let show = move |_| view! { <Start project=project.get()/> }.into_any();
    view! { <TeamPage title="Train a rewriter" show/> }
}

/// What a training may start from, with what it is called.
fn starts((trainings, models): &(Vec<TrainingShown>, Vec<String>)) -> Vec<(String, TrainingStart)> {
    let fresh = TrainingStart::Fresh {
        vocabulary: None,
        hidden: None,
        layers: None,
        context: None,
    };
    let fresh = [("A small model with random weights".to_owned(), fresh)];
    let models = models.iter().map(|name| {
        let start = TrainingStart::Model { name: name.clone() };
        (format!("Model {name}"), start)
    });
    let has_learned =
        |training: &&TrainingShown| matches!(training.state, TrainingState::Done | TrainingState::Stopped);
    let trainings = trainings.iter().filter(has_learned).map(|training| {
        let start = TrainingStart::Training {
            training: training.id.clone(),
            step: None,
        };
        (
            format!("Training {} ({})", training.name, words::short(&training.id)),
            start,
        )
    });
    fresh.into_iter().chain(models).chain(trainings).collect()
}

#[component]
fn Start(project: String) -> impl IntoView {
    let asking = Asking::default();
    let navigate = use_navigate();
    let (name, study, settings) = (Line::default(), Line::default(), Line::default());
    settings.text.set(SETTINGS.to_owned());
    let kind = RwSignal::new(TrainingKind::Sft);
    let (full, place) = (RwSignal::new(true), RwSignal::new(0_usize));
    let chosen = RwSignal::new(Vec::<String>::new());
    let asked = project.clone();
    let known = Listing::new(
        |_| String::new(),
        async move |server: Server| {
            let listed = listed(&server, &asked).await?;
            Ok(listed
                .map(|listed| (listed.trainings, listed.models))
                .into_iter()
                .collect::<Vec<_>>())
        },
    );
    let starts = Memo::new(move |_| known.rows().first().map(starts).unwrap_or_default());
    let of = project.clone();
    let runs = Listing::new(
        |run: &RunShown| run.id.clone(),
        async move |server: Server| {
            let page = server.runs(Some(&of), None).await?;
            Ok(page.runs.into_iter().filter(|run| run.lines > 0).collect())
        },
    );
    let target = project.clone();
    let submit = move || {
        let filled = |text: &str| match text.trim() {
            "" if chosen.with_untracked(Vec::is_empty) => {
                Err("Choose a run whose study it takes, or paste a study.".to_owned())
            }
            "" => Ok(None),
            _ => Ok(Some(text.to_owned())),
        };
        let (Some(name), Some(study)) = (name.read(named::<Title>), study.read(filled)) else {
            return;
        };
        let starts = starts.get_untracked();
        let Some((_, start)) = starts.get(place.get_untracked()).cloned() else {
            return;
        };
        let new = NewTraining {
            name,
            kind: kind.get_untracked(),
            start,
            runs: chosen.get_untracked(),
            study,
            files: BTreeMap::new(),
            settings: settings.text.get_untracked(),
            full: full.get_untracked(),
        };
        let (project, navigate) = (target.clone(), navigate.clone());
        let of = project.clone();
        let request = async move |server: Server| server.add_training(&of, &new).await;
        asking.send(request, move |added: TrainingShown| {
            navigate(&address(&project, &added.id), NavigateOptions::default());
        });
    };
    let run = move |run: RunShown| {
        let (id, of_box) = (run.id.clone(), run.id.clone());
        let is_chosen = move || chosen.with(|chosen| chosen.contains(&of_box));
        let change = move |_| {
            chosen.update(|chosen| {
                if let Some(place) = chosen.iter().position(|one| *one == id) {
                    chosen.remove(place);
                } else {
                    chosen.push(id.clone());
                }
            });
        };
        let about = format!(" · {} · {}", run.method, words::short(&run.id));
        view! {
            <label class="choice">
                <input type="checkbox" prop:checked=is_chosen on:change=change/>
                <span>{run.name} <span class="note">{about}</span></span>
            </label>
        }
    };
    let is_known = Memo::new(move |_| !known.rows().is_empty());
    let of_bar = project.clone();
    let option = move |(place, (words, _)): (usize, (String, TrainingStart))| {
        view! { <option value=place.to_string()>{words}</option> }
    };
    let change = move |event| place.set(event_target_value(&event).parse().unwrap_or_default());
    let pick = move |picked| kind.set(picked);
    view! {
        <Show when=move || is_known.get()>
            <ProjectBar project=of_bar.clone()/>
        </Show>
        <p class="note above">
            "In the project " <A href=format!("/team/projects/{project}")>{project.clone()}</A>
        </p>
        {move || known.instead("This server trains no rewriters.")}
        <section class="plate" aria-labelledby="new-training">
            <header>
                <h2 class="pt" id="new-training">"A new training"</h2>
            </header>
            <Form asking words=("Start the training", "Starting it…") primary=true submit>
                <Field id="training-name" label="Name" line=name/>
                <Pick label="Learns from" id="training-kind" all=KINDS means=words::kind picked=kind pick/>
                <div class="field narrow">
                    <label for="training-start">"Starts from"</label>
                    <select id="training-start" on:change=change>
                        {move || starts.get().into_iter().enumerate().map(option).collect_view()}
                    </select>
                </div>
                <fieldset class="field">
                    <legend>"Runs"</legend>
                    <p class="note">
                        "SFT learns their rewrites that raised the Lagrangian score; a model with random weights learns its \
                         tokenizer from them."
                    </p>
                    {move || runs.instead("The project has no runs with a journal yet.")}
                    <For each=move || runs.rows() key=|run| run.id.clone() children=run/>
                </fieldset>
                <label class="choice">
                    <input
                        type="checkbox"
                        prop:checked=move || full.get()
                        on:change=move |event| full.set(event_target_checked(&event))
                    />
                    <span>
                        "All weights learn" <span class="note">" · not only an adapter, as for a large model"</span>
                    </span>
                </label>
                <TextField
                    id="training-study"
                    label="Study"
                    line=study
                    note="That of the first run, with its data, unless another one stands here: a study file, as the page of a study \
                          saves one. GRPO searches in it, by the method dcapo."
                />
                <TextField
                    id="training-settings"
                    label="Settings"
                    line=settings
                    note="As capo train takes them by --settings; what is left out has its default."
                    rows=11
                />
            </Form>
        </section>
    }
}
