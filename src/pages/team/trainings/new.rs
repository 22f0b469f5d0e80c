//! Starting a training.

use std::collections::BTreeMap;

use capo_api::{
    NewTraining, Role, RunShown, Title, TrainingKind, TrainingShown, TrainingStart, TrainingState,
};
use leptos::prelude::*;
use leptos_router::NavigateOptions;
use leptos_router::components::A;
use leptos_router::hooks::{use_navigate, use_params_map};

use super::of_project::listed;
use super::{address, words};
use crate::components::Message;
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

/// One's role in the project, its trainings, and the models on the server's machine.
type Known = (Role, Vec<TrainingShown>, Vec<String>);

/// What a training may start from, with what it is called.
fn starts((_, trainings, models): &Known) -> Vec<(String, TrainingStart)> {
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

/// The form, where the server trains and lets one start a training, or why it is not there.
#[component]
fn Start(project: String) -> impl IntoView {
    let asked = project.clone();
    let known = Listing::new(
        |_: &Known| String::new(),
        async move |server: Server| {
            let role = server.project(&asked).await?.role;
            let listed = listed(&server, &asked).await?;
            let known = listed.map(|listed| (role, listed.trainings, listed.models));
            Ok(known.into_iter().collect())
        },
    );
    // As it was last: what is typed stays.
    let role = Memo::new(move |last: Option<&Option<Role>>| {
        let now = known.rows().first().map(|(role, ..)| *role);
        now.or_else(|| last.copied().flatten())
    });
    let is_known = Memo::new(move |_| role.with(Option::is_some));
    let of_bar = project.clone();
    let of_form = project.clone();
    let form = move || {
        let project = of_form.clone();
        Some(if role.get()? >= Role::Editor {
            view! { <TrainingForm project known/> }.into_any()
        } else {
            let what = format!("You are a viewer of the project {project}: its editors train rewriters.");
            view! { <Message what info=true/> }.into_any()
        })
    };
    view! {
        <Show when=move || is_known.get()>
            <ProjectBar project=of_bar.clone()/>
        </Show>
        <p class="note above">
            "In the project " <A href=format!("/team/projects/{project}")>{project.clone()}</A>
        </p>
        {move || known.instead("This server trains no rewriters.")}
        {form}
    }
}

#[component]
fn TrainingForm(project: String, known: Listing<Known>) -> impl IntoView {
    let asking = Asking::default();
    let navigate = use_navigate();
    let (name, study, settings) = (Line::default(), Line::default(), Line::default());
    settings.text.set(SETTINGS.to_owned());
    let kind = RwSignal::new(TrainingKind::Sft);
    let (full, picked) = (RwSignal::new(true), RwSignal::new(None::<TrainingStart>));
    let chosen = RwSignal::new(Vec::<String>::new());
    let starts = Memo::new(move |_| known.rows().first().map(starts).unwrap_or_default());
    let of = project.clone();
    let has_older = RwSignal::new(false);
    let runs = Listing::new(
        |run: &RunShown| run.id.clone(),
        async move |server: Server| {
            let page = server.runs(Some(&of), None).await?;
            // The page may be left by then.
            let _ = has_older.try_set(page.before.is_some());
            Ok(page.runs.into_iter().filter(|run| run.lines > 0).collect())
        },
    );
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
        let start = starts.with_untracked(|starts| {
            let chosen = starts
                .iter()
                .find(|(_, start)| picked.with_untracked(|picked| picked.as_ref() == Some(start)));
            chosen.or(starts.first()).map(|(_, start)| start.clone())
        });
        let Some(start) = start else { return };
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
        let (project, navigate) = (project.clone(), navigate.clone());
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
    let option = move |(place, (words, start)): (usize, (String, TrainingStart))| {
        // When there are others, what was picked stays so.
        let is_picked = move || picked.with(|picked| picked.as_ref() == Some(&start));
        view! { <option value=place.to_string() prop:selected=is_picked>{words}</option> }
    };
    let change = move |event| {
        let place = event_target_value(&event).parse::<usize>().unwrap_or_default();
        picked.set(starts.with_untracked(|starts| starts.get(place).map(|(_, start)| start.clone())));
    };
    let pick = move |picked| kind.set(picked);
    view! {
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
                        {move || has_older.get().then_some(" Those of the last hundred of the project are listed.")}
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
