//! One's projects.

use capo_api::{NewProject, ProjectName, ProjectShown, Title};
use leptos::prelude::*;
use leptos_router::NavigateOptions;
use leptos_router::components::A;
use leptos_router::hooks::use_navigate;

use super::form::{Field, Form, Line, named};
use super::guard::TeamPage;
use super::list::{List, Listing, when};
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
    let submit = move || {
        let (Some(title), Some(name)) = (title.read(named::<Title>), name.read(named::<ProjectName>)) else {
            return;
        };
        let (new, navigate) = (NewProject { name, title }, navigate.clone());
        let request = async move |server: Server| server.add_project(&new).await;
        asking.send(request, move |made: ProjectShown| {
            navigate(
                &format!("/team/projects/{}", made.name),
                NavigateOptions::default(),
            );
        });
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
        </List>
    }
}
