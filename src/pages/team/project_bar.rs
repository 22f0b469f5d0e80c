//! The way about a project, and to the same place in another one.

use capo_api::ProjectShown;
use leptos::ev::SubmitEvent;
use leptos::html::Select;
use leptos::prelude::*;
use leptos_router::NavigateOptions;
use leptos_router::components::A;
use leptos_router::hooks::{use_location, use_navigate};

use super::trainings::trains;
use crate::team::Team;

/// Sections of the page of a project: the ids of their headings, and their names.
type Section = (&'static str, &'static str);
const ABOVE: [Section; 3] = [
    ("data", "Data sets and studies"),
    ("prompts", "Prompts for programs"),
    ("certificates", "Certificates"),
];
/// Only where the server trains rewriters.
const TRAININGS: Section = ("trainings", "Trained rewriters");
const BELOW: [Section; 2] = [("members", "Members"), ("shared-keys", "Shared keys")];

/// What the addresses of projects begin with, below where this site lies.
const PROJECTS: &str = "/team/projects/";

/// The sections of a project, and a way to one's other projects.
#[component]
pub(super) fn ProjectBar(project: String) -> impl IntoView {
    let of = format!("{PROJECTS}{project}");
    let is_here = use_location().pathname.with_untracked(|path| path.ends_with(&of));
    let trains = trains(project.clone());
    let link = move |(id, name): Section| {
        if is_here {
            // The browser follows it again and again, with the focus; the router would not.
            view! { <a href=format!("#{id}") rel="external">{name}</a> }.into_any()
        } else {
            view! { <A href=format!("{of}#{id}") exact=true>{name}</A> }.into_any()
        }
    };
    view! {
        <div class="row spread project-bar">
            <nav class="subnav" aria-label="This project">
                {ABOVE.map(&link).collect_view()}
                {BELOW.map(&link).collect_view()}
                // Its room is kept until it is known, so that nothing below moves.
                <span style:visibility=move || if trains.get() { "visible" } else { "hidden" }>
                    {link(TRAININGS)}
                </span>
            </nav>
            <Switch project/>
        </div>
    }
}

/// One's other projects, if there are any.
#[component]
fn Switch(project: String) -> impl IntoView {
    let (team, navigate, location) = (expect_context::<Team>(), use_navigate(), use_location());
    let list = NodeRef::<Select>::new();
    // One may have been added to another since.
    team.read_projects();
    let others = Memo::new(move |_| {
        let mut others = team.projects();
        others.retain(|other| other.name != project);
        others
    });
    let go = move |event: SubmitEvent| {
        event.prevent_default();
        let chosen = list.get_untracked().map(|list| list.value());
        if let Some(other) = chosen.filter(|other| !other.is_empty()) {
            let (path, hash) = (location.pathname.get_untracked(), location.hash.get_untracked());
            navigate(&counterpart(&path, &hash, &other), NavigateOptions::default());
        }
    };
    let option = |other: ProjectShown| view! { <option value=other.name>{other.title}</option> };
    view! {
        <Show when=move || others.with(|others| !others.is_empty())>
            <form class="row" on:submit=go.clone()>
                <label for="other-project">"Another project"</label>
                <select id="other-project" class="auto" node_ref=list>
                    {move || others.get().into_iter().map(option).collect_view()}
                </select>
                <button type="submit">"Switch"</button>
            </form>
        </Show>
    }
}

/// The address in another project of what a page of one shows: the same page, else the section that lists such things.
fn counterpart(path: &str, hash: &str, other: &str) -> String {
    let below = path
        .split_once(PROJECTS)
        .and_then(|(_, project)| project.split_once('/'));
    let section = match below {
        None => hash.trim_start_matches('#'),
        Some((_, "train")) => return format!("{PROJECTS}{other}/train"),
        // Sections are called as the addresses of what they list.
        Some((_, page)) => page.split('/').next().unwrap_or_default(),
    };
    match section {
        "" => format!("{PROJECTS}{other}"),
        section => format!("{PROJECTS}{other}#{section}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_project_is_shown_where_this_one_was() {
        for (path, hash, address) in [
            ("/team/projects/one", "", "/team/projects/two"),
            ("/team/projects/one", "#members", "/team/projects/two#members"),
            ("/capo/team/projects/one", "members", "/team/projects/two#members"),
            ("/team/projects/one/data/1f", "", "/team/projects/two#data"),
            (
                "/team/projects/one/prompts/greeting",
                "#labels",
                "/team/projects/two#prompts",
            ),
            (
                "/team/projects/one/trainings/2e",
                "",
                "/team/projects/two#trainings",
            ),
            ("/team/projects/one/train", "", "/team/projects/two/train"),
        ] {
            assert_eq!(counterpart(path, hash, "two"), address, "{path}{hash}");
        }
    }
}
