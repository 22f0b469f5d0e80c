//! One's projects.

use capo_api::{NewProject, ProjectName, ProjectShown, Title};
use js_sys::Uint8Array;
use leptos::prelude::*;
use leptos_router::NavigateOptions;
use leptos_router::components::A;
use leptos_router::hooks::use_navigate;
use wasm_bindgen_futures::{JsFuture, spawn_local};
use web_sys::File;

use super::form::{Field, Form, Line, Refused, named};
use super::guard::TeamPage;
use super::list::{List, Listing, when};
use crate::components::Choose;
use crate::team::{Asking, Server};

/// Lists them, and makes another.
#[component]
pub fn ProjectsPage() -> impl IntoView {
    view! { <TeamPage title="Projects" show=|_| view! { <Projects/> }.into_any()/> }
}

#[component]
fn Projects() -> impl IntoView {
    let key = |project: &ProjectShown| project.name.clone();
    let listing = Listing::new(key, async |server: Server| server.projects().await);
    let cells = |project: ProjectShown| {
        let address = format!("/team/projects/{}", project.name);
        let title = view! { <A href=address><b>{project.title}</b></A> };
        let name = view! { <code>{project.name}</code> };
        let role = project.role.as_str();
        vec![
            title.into_any(),
            name.into_any(),
            role.into_any(),
            when(project.created_at),
        ]
    };
    let asking = Asking::default();
    let navigate = use_navigate();
    let (title, name) = (Line::default(), Line::default());
    let open = move |made: ProjectShown| {
        navigate(
            &format!("/team/projects/{}", made.name),
            NavigateOptions::default(),
        );
    };
    let importing = Asking::default();
    let opened = open.clone();
    let import = Callback::new(move |archives: Vec<File>| {
        let (Some(archive), open) = (archives.into_iter().next(), opened.clone()) else {
            return;
        };
        let typed = Some(name.text.get_untracked()).filter(|typed| !typed.is_empty());
        spawn_local(async move {
            let read = JsFuture::from(archive.array_buffer()).await;
            // Who has left this page meanwhile imports nothing.
            if importing.refused.try_get_untracked().is_none() {
                return;
            }
            let Ok(bytes) = read else {
                importing.refused.set(Some("The file cannot be read.".into()));
                return;
            };
            let bytes = Uint8Array::new(&bytes).to_vec();
            let request = async move |server: Server| server.import_project(typed.as_deref(), bytes).await;
            importing.send(request, open);
        });
    });
    let submit = move || {
        let (Some(title), Some(name)) = (title.read(named::<Title>), name.read(named::<ProjectName>)) else {
            return;
        };
        let new = NewProject { name, title };
        let request = async move |server: Server| server.add_project(&new).await;
        asking.send(request, open.clone());
    };
    let empty = "None yet. Make one, or have an admin of one add you by your name.";
    let columns = &["Project", "Name in addresses", "Your role", "Made"];
    let note = "2 to 64 small letters (a to z), digits or -. It stays.";
    view! {
        <List id="projects" title="Your projects" listing columns empty cells>
            <h3>"Make a project"</h3>
            <Form asking words=("Make the project", "Making it…") primary=true submit>
                <Field id="project-title" label="Title" line=title/>
                <Field id="project-name" label="Name in addresses" line=name note/>
            </Form>
            <h3>"Import one"</h3>
            <p class="note">
                "What a team server exported. It gets the name in the field above, or the one that it had."
            </p>
            <div class="row">
                <Choose
                    words="Import a project…"
                    label="Archive of a project"
                    accept=".tar"
                    disabled=Signal::derive(move || importing.disabled().is_some())
                    chosen=import
                />
            </div>
            <Refused asking=importing/>
        </List>
    }
}
