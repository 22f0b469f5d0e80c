//! The keys that a project may use.

use capo_api::ProjectKey;
use leptos::prelude::*;

use super::super::list::{List, Listing};
use super::written::title;
use crate::components::Copy;
use crate::shared_keys;
use crate::team::Server;

/// Lists them, with what a study says to be asked with them.
#[component]
pub(in super::super) fn ProjectKeys(project: String) -> impl IntoView {
    let key = |key: &ProjectKey| key.name.clone();
    let listing = Listing::new(key, async move |server: Server| {
        server.project_keys(&project).await
    });
    let cells = |key: ProjectKey| {
        let address = shared_keys::address(&key.base_url);
        let text = Signal::stored(Some(address.clone()));
        let address = view! {
            <code>{address}</code>
            <div>
                <Copy text words="Copy" spoken="It is on the clipboard." otherwise="Select the text."/>
            </div>
        };
        vec![
            view! { <code>{key.name}</code> }.into_any(),
            title(&key.provider).to_owned().into_any(),
            key.models.join(", ").into_any(),
            address.into_any(),
        ]
    };
    let columns = &["Name", "Provider", "Models", "Base URL in a study"];
    let empty = "None. An administrator of the server adds one.";
    view! {
        <List id="shared-keys" title="Shared keys" listing columns empty cells>
            <p class="note">
                "New study offers them beside the model. A program that asks there sends a personal token in place of the \
                 provider’s key."
            </p>
        </List>
    }
}
