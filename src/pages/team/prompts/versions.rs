//! All versions of a prompt.

use capo_api::VersionShown;
use leptos::prelude::*;
use leptos_router::components::A;

use super::place::{Page, tags};
use crate::pages::team::list::{Earlier, List, Listing, when};
use crate::team::Server;

/// Lists them, the newest first.
#[component]
pub(super) fn Versions(page: Page) -> impl IntoView {
    let (place, earlier) = (page.place(), page.place());
    // A row is drawn anew when a label was moved.
    let key = |version: &VersionShown| format!("{} {}", version.version, version.labels.join(" "));
    let listing = Listing::new(key, async move |server: Server| {
        let first = server.prompt_versions(&place.project, &place.prompt, None);
        Ok(first.await?.versions)
    });
    let read = async move |server: Server, last: VersionShown| {
        let next = server.prompt_versions(&earlier.project, &earlier.prompt, Some(last.version));
        Ok(next.await?.versions)
    };
    let cells = move |version: VersionShown| {
        let name = view! { <A href=page.place().version(version.version)>"Version " {version.version}</A> };
        let from = match version.evidence {
            Some(evidence) => format!("a run of {}", evidence.study),
            None => "a text, without evidence".to_owned(),
        };
        vec![
            name.into_any(),
            tags(version.labels).into_any(),
            version.note.into_any(),
            from.into_any(),
            version.created_by.into_any(),
            when(version.created_at),
        ]
    };
    let columns = &["Version", "Labels", "Note", "From", "Added by", "When"];
    view! {
        <List id="versions" title="Versions" listing columns empty="None." cells>
            <Earlier listing is_end=|version| version.version == 1 read/>
        </List>
    }
}
