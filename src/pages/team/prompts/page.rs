//! The page of a prompt.

use capo_api::{PromptShown, Role};
use leptos::prelude::*;
use leptos_router::NavigateOptions;
use leptos_router::components::A;
use leptos_router::hooks::{use_navigate, use_params_map};

use super::add::AddVersion;
use super::fetching::Fetching;
use super::labels::Labels;
use super::move_dialog::MoveDialog;
use super::place::{Page, Place};
use super::version::Selected;
use super::versions::Versions;
use crate::pages::team::guard::TeamPage;
use crate::pages::team::list::Listing;
use crate::pages::team::project_bar::ProjectBar;
use crate::pages::team::removal::Removal;
use crate::team::Server;

/// The prompt of this address.
#[component]
pub fn PromptPage() -> impl IntoView {
    let params = use_params_map();
    let place = Memo::new(move |_| {
        let part = |name| params.with(|params| params.get(name).unwrap_or_default());
        Place {
            project: part("project"),
            prompt: part("prompt"),
        }
    });
    let title = Signal::derive(move || place.with(|place| place.prompt.clone()));
    let show = move |_| view! { <Prompt place=place.get()/> }.into_any();
    view! { <TeamPage title show/> }
}

#[component]
fn Prompt(place: Place) -> impl IntoView {
    let asked = place.clone();
    let key = |(_, prompt): &(Role, PromptShown)| prompt.name.clone();
    let listing = Listing::new(key, async move |server: Server| {
        let role = server.project(&asked.project).await?.role;
        let prompts = server.prompts(&asked.project).await?.into_iter();
        let this = prompts.filter(|prompt| prompt.name == asked.prompt);
        Ok(this.map(|prompt| (role, prompt)).collect())
    });
    let known = Memo::new(move |_| listing.rows().pop());
    let project = place.project.clone();
    let page = Page::new(place, known);
    let is_admin = Memo::new(move |_| page.role.get() == Some(Role::Admin));
    view! {
        <Show when=move || page.prompt.with(Option::is_some)>
            <ProjectBar project=page.place().project/>
        </Show>
        <p class="note above">
            "A prompt of the project " <A href=format!("/team/projects/{project}")>{project.clone()}</A>
        </p>
        {move || listing.instead("There is no prompt of this name in the project.")}
        <Show when=move || page.prompt.with(Option::is_some)>
            <Labels page/>
            <Selected page/>
            <Versions page/>
            <Show when=move || page.may_write()>
                <AddVersion page/>
            </Show>
            <Fetching page/>
            <Show when=move || is_admin.get()>
                <ItsEnd place=page.place()/>
            </Show>
            <MoveDialog page/>
        </Show>
    }
}

/// Deletes the prompt.
#[component]
fn ItsEnd(place: Place) -> impl IntoView {
    let navigate = use_navigate();
    let project = format!("/team/projects/{}", place.project);
    let gone = Callback::new(move |()| navigate(&project, NavigateOptions::default()));
    let (of, name) = (format!("the prompt {}", place.prompt), place.prompt.clone());
    let remove = async move |server: Server| server.delete_prompt(&place.project, &place.prompt).await;
    let consequence =
        "All its versions and labels go with it, and programs that fetch it get none. This cannot be undone.";
    view! {
        <section class="plate" aria-labelledby="the-prompt">
            <header>
                <h2 class="pt" id="the-prompt">"The prompt"</h2>
            </header>
            <div class="row">
                <Removal words=("Delete", "Deleting…") of consequence typed=name remove gone/>
            </div>
        </section>
    }
}
