//! The page of a data set or a study.

use capo_api::{DataKind, DataSetDetail, DataSetShown, Role, data_set_path};
use leptos::prelude::*;
use leptos_router::NavigateOptions;
use leptos_router::components::A;
use leptos_router::hooks::{use_navigate, use_params_map};

use super::of_project::kind;
use crate::components::When;
use crate::format::{count, counted};
use crate::frame::handover::HandedFile;
use crate::pages::team::form::Refused;
use crate::pages::team::guard::TeamPage;
use crate::pages::team::list::Listing;
use crate::pages::team::project_bar::ProjectBar;
use crate::pages::team::removal::Removal;
use crate::team::{Asking, Server, data_file};

/// The data set of this address.
#[component]
pub fn DataSetPage() -> impl IntoView {
    let params = use_params_map();
    let part = move |name| params.with(|params| params.get(name).unwrap_or_default());
    let place = Memo::new(move |_| (part("project"), part("data")));
    // Once it is known.
    let name = RwSignal::new(None::<String>);
    let title = Signal::derive(move || name.get().unwrap_or_else(|| "Data set".into()));
    let show = move |_| {
        name.set(None);
        let (project, id) = place.get();
        view! { <Shown project id name/> }.into_any()
    };
    view! { <TeamPage title show/> }
}

#[component]
fn Shown(project: String, id: String, name: RwSignal<Option<String>>) -> impl IntoView {
    let key = |(_, detail): &(Role, DataSetDetail)| detail.data_set.id.clone();
    let of = project.clone();
    let listing = Listing::new(key, async move |server: Server| {
        let role = server.project(&of).await?.role;
        Ok(vec![(role, server.data_set(&of, &id).await?)])
    });
    let known = Memo::new(move |_| listing.rows().pop());
    Effect::new(move |_| name.set(known.get().map(|(_, detail)| detail.data_set.name)));
    let back = format!("/team/projects/{project}");
    let is_known = Memo::new(move |_| known.with(Option::is_some));
    let of_bar = project.clone();
    let of = project.clone();
    let parts = move || {
        let (role, detail) = known.get()?;
        let set = detail.data_set.clone();
        Some(view! {
            <Facts project=project.clone() role set/>
            <FirstRows detail/>
        })
    };
    view! {
        <Show when=move || is_known.get()>
            <ProjectBar project=of_bar.clone()/>
        </Show>
        <p class="note above">"Of the project " <A href=back>{of}</A></p>
        {move || listing.instead("")}
        {parts}
    }
}

/// What it is, and what can be done with it.
#[component]
fn Facts(project: String, role: Role, set: DataSetShown) -> impl IntoView {
    let asking = Asking::default();
    let (navigate, leave) = (use_navigate(), use_navigate());
    let HandedFile(handed) = expect_context();
    let is_study = set.kind == DataKind::Study;
    let (noun, begin) = if is_study {
        ("study", "Set up this study")
    } else {
        ("data set", "New study from this data")
    };
    let href = data_set_path(&project, &set.id);
    let table = format!(
        "{} rows, {}, ",
        count(set.rows),
        counted(set.columns.len(), "column")
    );
    let what = format!(
        "{}, {}{} bytes. ",
        crate::format::capitalized(kind(set.kind)),
        if is_study { "" } else { &table },
        count(set.size)
    );
    let used = match set.runs {
        // A run has a copy.
        _ if is_study => String::new(),
        0 => "No run of the project names this file.".to_owned(),
        runs => format!(
            "{} of the project named this file.",
            counted(runs as usize, "run")
        ),
    };
    let (of, id, back) = (
        project.clone(),
        set.id.clone(),
        format!("/team/projects/{project}"),
    );
    let remove = async move |server: Server| server.delete_data_set(&of, &id).await;
    let gone = Callback::new(move |()| leave(&back, NavigateOptions::default()));
    let removal = (role >= Role::Editor).then(|| {
        let of = format!("the {noun} {}", set.name);
        let consequence = if is_study {
            "It is gone for everybody. What was set up from it stays."
        } else {
            "It is gone for everybody. Runs that use its file keep it, for as long as they are there."
        };
        view! { <Removal words=("Delete", "Deleting…") of consequence remove gone/> }
    });
    let (by, at, sha256) = (set.added_by.clone(), set.added_at.clone(), set.sha256.clone());
    let take = move |_| {
        let (project, set, navigate) = (project.clone(), set.clone(), navigate.clone());
        let fetch = async move |_: Server| data_file(&data_set_path(&project, &set.id), &set.name).await;
        asking.send(fetch, move |file| {
            handed.set_value(Some(file));
            navigate("/study", NavigateOptions::default());
        });
    };
    view! {
        <section class="plate" aria-labelledby="data-set">
            <header>
                <h2 class="pt" id="data-set">"The " {noun}</h2>
            </header>
            <p>{what} {used}</p>
            <p class="note">"Added by " {by} ", " <When at/> ". SHA-256 " <code>{sha256}</code></p>
            <Refused asking/>
            <div class="row">
                <button type="button" class="primary" aria-disabled=move || asking.disabled() on:click=take>
                    {begin}
                </button>
                <a class="button" href=href rel="external" download>
                    "Download"
                </a>
                {removal}
            </div>
        </section>
    }
}

/// Its first rows, as text.
#[component]
fn FirstRows(detail: DataSetDetail) -> impl IntoView {
    let (columns, rows) = (detail.data_set.columns, detail.first);
    let shown = match rows.len() as u64 {
        _ if detail.data_set.kind == DataKind::Study => "What it says".to_owned(),
        all if all == detail.data_set.rows => "All rows".to_owned(),
        some => format!("The first {} of {} rows", some, count(detail.data_set.rows)),
    };
    let head = |column| view! { <th scope="col"><span class="name">{column}</span></th> };
    let cell = |cell: String| {
        let missing = cell.is_empty();
        view! { <td class:missing=missing>{cell}</td> }
    };
    let row = |(place, cells): (usize, Vec<String>)| {
        view! { <tr><th scope="row">{place + 1}</th> {cells.into_iter().map(cell).collect_view()}</tr> }
    };
    view! {
        <section class="plate" aria-labelledby="first-rows">
            <header>
                <h2 class="pt" id="first-rows">{shown}</h2>
            </header>
            <div class="scroll" tabindex="0" role="group" aria-label="First rows, scroll sideways">
                <table class="preview">
                    <thead>
                        <tr>
                            <th scope="col"><span class="sr">"Row"</span></th>
                            {columns.into_iter().map(head).collect_view()}
                        </tr>
                    </thead>
                    <tbody>{rows.into_iter().enumerate().map(row).collect_view()}</tbody>
                </table>
            </div>
        </section>
    }
}
