//! The prompts of a project.

use capo_api::PromptShown;
use leptos::prelude::*;
use leptos_router::components::A;

use super::place::{Place, tags};
use crate::pages::team::list::{List, Listing, when};
use crate::team::Server;

#[component]
pub(in crate::pages::team) fn PromptsOf(project: String) -> impl IntoView {
    let of = project.clone();
    // A row is drawn anew when anything in it has changed.
    let key = |prompt: &PromptShown| format!("{prompt:?}");
    let listing = Listing::new(key, async move |server: Server| server.prompts(&of).await);
    let cells = move |prompt: PromptShown| {
        let place = Place {
            project: project.clone(),
            prompt: prompt.name,
        };
        let labels = prompt.labels.iter();
        let labels = labels
            .map(|(label, version)| format!("{label} {version}"))
            .collect();
        let name = view! { <A href=place.address()><b>{place.prompt.clone()}</b></A> };
        vec![
            name.into_any(),
            tags(labels).into_any(),
            prompt.newest.into_any(),
            when(prompt.touched_at),
        ]
    };
    let columns = &["Prompt", "Labels, on version", "Newest version", "Last changed"];
    let empty = "None yet. Add the prompt of a run of this project on the run's result page, or a text by capo prompts add.";
    view! { <List id="prompts" title="Prompts for programs" listing columns empty cells/> }
}
