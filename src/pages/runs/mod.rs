//! The list of runs: those kept in this browser, and those of the team.

mod actions;
mod baseline;
mod bulk;
mod from_link;
mod listed;
mod on_server;
mod questions;
mod quota;
mod rows;
mod table;

use leptos::ev;
use leptos::prelude::*;
use leptos_router::NavigateOptions;
use leptos_router::components::A;
use leptos_router::hooks::use_navigate;
use web_sys::File;

use self::actions::export;
use self::bulk::Bulk;
use self::from_link::FromLink;
use self::listed::Listed;
use self::table::RunTable;
use crate::components::{Choose, Message, RaiseDialog, page_title, removing};
use crate::format;
use crate::frame::imports::{Imports, Trouble};
use crate::live::Runs;
use crate::storage::RunRecord;
use crate::team::{Standing, Team};

/// Every run kept in this browser or on the server, and what can be done with one or several of them.
#[component]
pub fn RunsPage() -> impl IntoView {
    page_title(|| "Runs".into());
    let listed = Listed::new();
    let runs = expect_context::<Runs>();
    let standing = expect_context::<Team>().standing();
    let is_in = Memo::new(move |_| matches!(standing.get(), Standing::SignedIn(_)));
    let said = RwSignal::new(None::<String>);
    let raised = RwSignal::new(None::<RunRecord>);
    view! {
        <div class="page-head">
            <div>
                <h1>"Runs"</h1>
                <p>
                    {move || if is_in.get() {
                        "Kept in this browser, and those of your projects on the server. A run"
                    } else {
                        "Kept in this browser. A run"
                    }}
                    " that was interrupted resumes where it stopped: what was answered is \
                     not paid for again, but calls that were under way when its tab was closed are."
                </p>
            </div>
            <div class="row">
                <OpenJournal/>
                <button
                    type="button"
                    disabled=move || listed.is_empty()
                    on:click=move |_| export(runs, listed.all(), said)
                >
                    "Export all"
                </button>
                <A href="/study" attr:class="button primary">
                    "New study"
                </A>
            </div>
        </div>
        <FromLink/>
        <Troubles/>
        <Newer listed/>
        {move || {
            said.get()
                .map(|what| view! { <Message what/> })
        }}
        <section class="plate" aria-label="Runs">
            <Bulk listed said/>
            <RunTable listed raised/>
            <Footing listed/>
        </section>
        <RaiseDialog raised/>
    }
}

/// A button that reads a journal from a file.
#[component]
fn OpenJournal() -> impl IntoView {
    let runs = expect_context::<Runs>();
    let imports = expect_context::<Imports>();
    let navigate = use_navigate();
    let chosen = Callback::new(move |files: Vec<File>| {
        for file in files {
            let navigate = navigate.clone();
            imports.read(runs, file, move |run| {
                navigate(&format!("/run/{}", run.id()), NavigateOptions::default());
            });
        }
    });
    view! {
        <Choose
            words="Open a journal…"
            label="Journals to open"
            accept=".jsonl,.ndjson,.gz"
            multiple=true
            chosen
        />
    }
}

/// Journals that could not be read.
#[component]
fn Troubles() -> impl IntoView {
    let imports = expect_context::<Imports>();
    let message = move |trouble: Trouble| {
        let dismiss = move |event: ev::MouseEvent| removing(&event, || imports.dismiss(trouble.id));
        view! {
            <Message what=trouble.what>
                <span>{trouble.then}</span>
                <div class="row">
                    <button type="button" class="link" on:click=dismiss>
                        "Dismiss"
                    </button>
                </div>
            </Message>
        }
    };
    view! {
        <For each=move || imports.troubles() key=|trouble| trouble.id let(trouble)>
            {message(trouble)}
        </For>
    }
}

/// Runs that this version of the page cannot read.
#[component]
fn Newer(listed: Listed) -> impl IntoView {
    let newer = move || {
        let names = listed.newer.get();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        (!names.is_empty()).then(|| format::listed(&names))
    };
    move || {
        newer().map(|names| {
            view! {
                <div class="msg" role="status">
                    <b>"Not in this list: " {names} "."</b>
                    <span>"A newer version of this page wrote them. Reload to get it; nothing of them is changed."</span>
                </div>
            }
        })
    }
}

/// How much is kept, and what the numbers above rest on.
#[component]
fn Footing(listed: Listed) -> impl IntoView {
    let stored = LocalResource::new(move || {
        listed.kept();
        quota::stored()
    });
    let kept = move || match listed.kept() {
        0 => "None is kept in this browser.".to_owned(),
        kept => quota::sentence(kept, stored.get().flatten()),
    };
    view! {
        <Show when=move || !listed.is_empty()>
            <p class="reading">
                {kept} " The objective is on the search examples; open a run for its held-out figures."
                {move || {
                    listed.has_baseline().then_some(" Below best and spent stands the difference to the baseline.")
                }}
            </p>
        </Show>
    }
}
