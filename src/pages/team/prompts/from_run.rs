//! Adding the prompt of a run of the server to those of its project.

use capo_api::{NewVersion, PromptName, PromptShown, Role, VersionShown};
use capo_core::ids::CandidateId;
use leptos::ev::SubmitEvent;
use leptos::html::Dialog;
use leptos::prelude::*;
use leptos_router::components::A;

use super::place::Place;
use crate::components::{Message, close_dialog, open_dialog};
use crate::live::Run;
use crate::pages::team::form::{Field, Line, Refused, named, noted};
use crate::team::{Asking, Server, Team};

/// A button that adds the returned prompt of a run of the server, for who may write prompts in its project.
#[component]
pub fn AddToPrompts(run: Run, #[prop(into)] best: Signal<Option<CandidateId>>) -> impl IntoView {
    let team = expect_context::<Team>();
    let project = Memo::new(move |_| {
        let project = run.server()?.project;
        let has_ended = run.read(|folded| folded.state.finished().is_some());
        (has_ended && team.has_accounts() && team.role(&project) >= Some(Role::Editor)).then_some(project)
    });
    move || project.get().map(|project| view! { <Adding run best project/> })
}

#[component]
fn Adding(run: Run, best: Signal<Option<CandidateId>>, project: String) -> impl IntoView {
    let node = NodeRef::<Dialog>::new();
    let (reading, adding) = (Asking::default(), Asking::default());
    let (name, note) = (Line::default(), Line::default());
    let names = RwSignal::new(Vec::<String>::new());
    let added = RwSignal::new(None::<VersionShown>);
    let of = StoredValue::new(project.clone());
    let open = move |_| {
        added.set(None);
        adding.refused.set(None);
        let request = async move |server: Server| server.prompts(&of.get_value()).await;
        reading.send(request, move |prompts: Vec<PromptShown>| {
            names.set(prompts.into_iter().map(|prompt| prompt.name).collect());
        });
        open_dialog(node);
    };
    let close = move |_| close_dialog(node);
    let submit = move |event: SubmitEvent| {
        event.prevent_default();
        let (Some(name), Some(noted)) = (name.read(named::<PromptName>), note.read(noted)) else {
            return;
        };
        let Some(server_run) = run.server() else { return };
        let new = NewVersion::Run {
            run: server_run.id,
            candidate: best.get_untracked().map(|best| best.to_string()),
            note: noted,
        };
        let request = async move |server: Server| {
            server
                .add_prompt_version(&of.get_value(), name.as_str(), &new)
                .await
        };
        adding.send(request, move |version| added.set(Some(version)));
    };
    let outcome = move || {
        let version = added.get()?;
        let what = format!("It is version {} of {}.", version.version, version.name);
        let place = Place {
            project: of.get_value(),
            prompt: version.name,
        };
        Some(view! {
            <Message what info=true>
                <A href=place.version(version.version)>"Open it there"</A>
            </Message>
        })
    };
    let is_added = Memo::new(move |_| added.with(Option::is_some));
    let choices = Signal::from(names);
    view! {
        <button type="button" aria-haspopup="dialog" on:click=open>
            "Add to prompts of " {project.clone()} "…"
        </button>
        <dialog node_ref=node aria-labelledby="add-title">
            <form on:submit=submit novalidate>
                <header>
                    <h2 id="add-title">"Add to the prompts of " {project.clone()}</h2>
                </header>
                <p>
                    "Its text becomes a new version, with the held-out table of this run as its evidence. It stays when the \
                     run is deleted. No label is moved by it."
                </p>
                <Field
                    id="prompt-name"
                    label="Name of the prompt"
                    line=name
                    note="One of the project's, or a new one: 2 to 64 small letters (a to z), digits or -."
                    choices
                />
                <Field id="prompt-note" label="Note" line=note note="One line on it, or nothing."/>
                <Refused asking=reading/>
                <Refused asking=adding/>
                {outcome}
                <footer>
                    <button type="button" on:click=close>
                        {move || if is_added.get() { "Close" } else { "Cancel" }}
                    </button>
                    <Show when=move || !is_added.get()>
                        <button type="submit" aria-disabled=move || adding.disabled()>
                            {move || if adding.disabled().is_some() { "Adding…" } else { "Add" }}
                        </button>
                    </Show>
                </footer>
            </form>
        </dialog>
    }
}
