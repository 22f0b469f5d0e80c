//! The labels of a prompt.

use capo_api::LabelShown;
use leptos::prelude::*;
use leptos_router::components::A;

use super::history::History;
use super::place::Page;
use crate::pages::team::list::{List, Listing, when};
use crate::pages::team::removal::Removal;
use crate::team::Server;

/// Lists them with who moved them last; the history of one is shown on demand.
#[component]
pub(super) fn Labels(page: Page) -> impl IntoView {
    let place = page.place();
    // A row is drawn anew when the label was moved.
    let key = |label: &LabelShown| format!("{label:?}");
    let listing = Listing::new(key, async move |server: Server| {
        let prompts = server.prompts(&place.project).await?.into_iter();
        let labels = prompts.filter(|prompt| prompt.name == place.prompt);
        let mut shown = Vec::new();
        for label in labels.flat_map(|prompt| prompt.labels.into_keys()) {
            shown.extend(server.label(&place.project, &place.prompt, &label).await?);
        }
        Ok(shown)
    });
    let chosen = RwSignal::new(None::<String>);
    let cells = move |label: LabelShown| {
        let (gone, place) = (listing.without(&label), page.place());
        let version = view! { <A href=place.version(label.version)>"Version " {label.version}</A> };
        let (name, was) = (label.label, label.version);
        let (of, choice, shown) = (format!("the label {name}"), name.clone(), name.clone());
        let is_shown = move || chosen.with(|chosen| chosen.as_ref() == Some(&shown)).to_string();
        let choose = move |_| {
            let choice = choice.clone();
            chosen.update(|chosen| *chosen = Some(choice).filter(|choice| chosen.as_ref() != Some(choice)));
        };
        let removed = name.clone();
        let remove = async move |server: Server| {
            server
                .remove_label(&place.project, &place.prompt, &removed, was)
                .await
        };
        let consequence =
            "Programs that fetch by it get none from then on. It can be put on a version again.";
        let removal = move || {
            let words = ("Remove", "Removing…");
            let (of, remove) = (of.clone(), remove.clone());
            page.may_write()
                .then(|| view! { <Removal words of consequence remove gone/> })
        };
        let buttons = view! {
            <div class="row">
                <button type="button" class="link" aria-expanded=is_shown on:click=choose>
                    "History"
                    <span class="sr">" of " {name.clone()}</span>
                </button>
                {removal}
            </div>
        };
        vec![
            view! { <span class="tag plain">{name}</span> }.into_any(),
            version.into_any(),
            label.moved_by.into_any(),
            when(label.moved_at),
            buttons.into_any(),
        ]
    };
    let columns = &["Label", "On", "Moved by", "When", ""];
    let empty = "None yet. A label is put on a version, and programs fetch by it.";
    view! {
        <List id="labels" title="Labels" listing columns empty cells/>
        {move || chosen.get().map(|label| view! { <History page label/> })}
    }
}
