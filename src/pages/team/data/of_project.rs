//! The data sets and studies of a project.

use capo_api::{DataKind, DataSetShown, Role};
use leptos::prelude::*;
use leptos_router::components::A;

use super::upload::Upload;
use crate::format::count;
use crate::pages::team::list::{List, Listing, when};
use crate::team::Server;

/// Lists them, with a place for more where one may add some.
#[component]
pub(in crate::pages::team) fn DataOf(project: String, role: Role) -> impl IntoView {
    let of = project.clone();
    let key = |set: &DataSetShown| set.id.clone();
    let listing = Listing::new(key, async move |server: Server| server.data_sets(&of).await);
    let may_write = role >= Role::Editor;
    let place = project.clone();
    let cells = move |set: DataSetShown| {
        let address = format!("/team/projects/{project}/data/{}", set.id);
        let rows = match set.kind {
            DataKind::Study => "–".to_owned(),
            DataKind::Csv | DataKind::Jsonl | DataKind::Tau2 => count(set.rows),
        };
        vec![
            view! { <A href=address><b>{set.name}</b></A> }.into_any(),
            kind(set.kind).into_any(),
            rows.into_any(),
            set.added_by.into_any(),
            when(set.added_at),
        ]
    };
    let columns = &["Name", "Kind", "Rows", "Added by", "Added"];
    let empty = "None yet. Who runs studies here can upload tables, studies and the tau2 benchmark’s data.";
    view! {
        <List id="data" title="Data sets and studies" listing columns empty cells>
            {may_write.then(|| view! { <Upload project=place/> })}
        </List>
    }
}

pub(super) fn kind(kind: DataKind) -> &'static str {
    match kind {
        DataKind::Csv => "table",
        DataKind::Jsonl => "JSON Lines",
        DataKind::Tau2 => "tau2 benchmark",
        DataKind::Study => "study",
    }
}
