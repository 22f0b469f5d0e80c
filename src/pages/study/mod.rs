//! The page that sets up a study in three steps, with everything else folded away, and starts it.

mod asking;
mod budget;
mod columns;
mod confirm;
mod constraint_settings;
mod constraints;
mod cost;
mod credentials;
mod draft;
mod endpoint;
mod feedback;
mod field;
mod file;
mod fold;
mod form;
mod further;
mod headers;
mod kept;
mod labels;
mod link;
mod measured;
mod method;
mod metrics;
mod models;
mod on_server;
mod other_model;
mod place;
mod presets;
mod preview;
mod prices;
mod problem;
mod prompt;
mod race;
mod reach;
mod readiness;
mod rows;
mod secrets;
mod section;
mod setting_field;
mod settings;
mod shared;
mod start;
mod tau2;
mod team_data;
mod workload;

use std::cell::RefCell;

use leptos::prelude::*;
use leptos_router::hooks::use_location;

pub use self::kept::forget_with_the_team;
pub use self::other_model::{OtherModel, OtherModelTable};

use self::budget::BudgetSection;
use self::constraints::GoalsSection;
use self::cost::Cost;
use self::draft::Draft;
use self::file::{StudyFile, put, take_file, take_handed_over};
use self::form::{Form, Said};
use self::kept::Keeping;
use self::method::MethodSection;
use self::models::ModelsSection;
use self::on_server::OnServer;
use self::presets::Templates;
use self::prompt::PromptSection;
use self::start::Start;
use self::workload::WorkloadSection;
use crate::components::{Message, page_title};
use crate::format;
use crate::frame::drop_target::use_open_journal;
use crate::frame::keys::TabKeys;

/// Sets up a study.
#[component]
pub fn StudyPage() -> impl IntoView {
    page_title(|| "New study".into());
    Form::new(expect_context::<TabKeys>(), use_open_journal()).map(|form| {
        provide_context(form);
        provide_context(shared::offered());
        let on_server = OnServer::new();
        provide_context(on_server);
        open_links(form);
        take_handed_over(form, on_server);
        ask_cost(form);
        fold::unfold_problems(form);
        kept::follow(form);
        view! { <Setup form/> }
    })
}

/// What names the address in this tab's storage whose study was taken in last.
const TAKEN_HERE: &str = "capo.draft.link";

/// Takes in the study that an address carries, now and whenever it changes. Going back to an address
/// whose study was taken in already leaves what was made of it since.
fn open_links(form: Form) {
    thread_local! {
        static TAKEN: RefCell<String> = const { RefCell::new(String::new()) };
    }
    let fragment = use_location().hash;
    Effect::new(move |_| {
        let fragment = fragment.get();
        let Some(carried) = link::carried(&fragment) else {
            return;
        };
        if TAKEN.replace(fragment.clone()) == fragment {
            return;
        }
        // After a reload as well.
        let session = window().session_storage().ok().flatten();
        let before = session
            .as_ref()
            .and_then(|session| session.get_item(TAKEN_HERE).ok()?);
        if before.as_deref() == Some(&fragment) {
            return;
        }
        if let Some(session) = session {
            // Without it, a reload takes the study in once more.
            let _ = session.set_item(TAKEN_HERE, &fragment);
        }
        match carried {
            Ok(study) => {
                let name = study.study.name.clone();
                // Data of one's own belong to one's own study.
                put(
                    form,
                    Draft::of(study),
                    format!("“{name}” was taken from the link."),
                );
            }
            Err(message) => form.said.set(Some(Said::Failed(message))),
        }
    });
}

/// Asks what the study costs whenever it has changed and is one.
fn ask_cost(form: Form) {
    Effect::new(move |_| {
        let ready = form
            .measured
            .with(|measured| measured.is_known && measured.problem.is_none());
        let toml = form
            .checked
            .with(|checked| checked.as_ref().ok().and_then(|study| study.to_toml().ok()));
        match toml.filter(|_| ready) {
            Some(toml) => form
                .asking
                .forecast(toml, form.draft.with_untracked(|draft| draft.files.clone())),
            None => form.asking.forget_forecast(),
        }
    });
}

/// What this browser keeps of the draft, and what not.
fn keeping(keeping: &Keeping) -> String {
    if let Some(refused) = &keeping.refused {
        return refused.clone();
    }
    if keeping.left_out.is_empty() {
        return "This browser keeps it as a draft, without keys.".to_owned();
    }
    let names: Vec<String> = keeping.left_out.iter().map(|key| labels::placed(key)).collect();
    format!(
        "This browser keeps it as a draft, without keys and without what one may have been written into: {}.",
        format::listed(&names)
    )
}

#[component]
fn Setup(form: Form) -> impl IntoView {
    let anew = move |_| {
        if let Ok(new) = Draft::new() {
            form.replace(new);
            form.said.set(None);
        }
    };
    let former = move || {
        let name = kept::keeping().with(|keeping| {
            let former = keeping.former.as_ref();
            former.map(|former| former.study.study.name.clone())
        })?;
        Some(view! {
            " "
            <button type="button" class="link" on:click=move |_| form.bring_back()>
                {format!("Back to the former draft, “{name}”")}
            </button>
        })
    };
    let is_taken = Memo::new(move |_| form.draft.with(|draft| draft.taken_by.is_some()));
    let taken = move || {
        is_taken
            .get()
            .then_some("It holds what is a project’s, and goes when you sign out. ")
    };
    let unread = move || {
        let why = kept::keeping().with(|keeping| keeping.unread.clone())?;
        Some(view! {
            <Message what="The draft that this browser keeps does not read.">
                <p>
                    {format!(
                        "Another version of this page may have written it ({why}). It stays until something is changed \
                         here: reload the page for its newest version.",
                    )}
                </p>
            </Message>
        })
    };
    let over = RwSignal::new(false);
    let drop = move |event: web_sys::DragEvent| {
        over.set(false);
        if tau2::take_dropped(form, &event) {
            return event.prevent_default();
        }
        let file = event
            .data_transfer()
            .and_then(|transfer| transfer.files()?.get(0));
        if let Some(file) = file {
            event.prevent_default();
            take_file(form, file, None);
        }
    };
    let drag = move |event: web_sys::DragEvent| {
        let files = event
            .data_transfer()
            .is_some_and(|transfer| transfer.types().includes(&"Files".into(), 0));
        if files {
            event.prevent_default();
            over.set(true);
        }
    };
    // Between two elements of the page the file has not left it.
    let leave = move |event: web_sys::DragEvent| {
        if event.related_target().is_none() {
            over.set(false);
        }
    };
    view! {
        <div
            on:click=|event| fold::unfold_for_link(&event)
            on:dragover=drag
            on:dragleave=leave
            on:drop=drop
        >
            <div class="page-head">
                <div>
                    <h1>"New study"</h1>
                    <p>
                        "The same study runs from the command line: what is set here is one TOML file. "
                        {move || kept::keeping().with(keeping)} " " {taken}
                        <button type="button" class="link" on:click=anew>
                            "Start anew"
                        </button>
                        {former}
                    </p>
                    {unread}
                </div>
            </div>
            <Show when=move || over.get()>
                <div class="drop-page" aria-hidden="true">
                    <p>
                        "Let go to take this file in" <span class="note">"A study (.toml, .json), a table (.csv, .tsv, .jsonl), a journal (.jsonl, .jsonl.gz), or the tau2 benchmark (folder or .zip)"</span>
                    </p>
                </div>
            </Show>
            <div class="g g-setup">
                <form class="form" novalidate on:submit=|event| event.prevent_default()>
                    <Templates/>
                    <PromptSection/>
                    <WorkloadSection/>
                    <ModelsSection/>
                    <h2>"Everything else"</h2>
                    <GoalsSection/>
                    <MethodSection/>
                    <BudgetSection/>
                </form>
                <aside class="side" aria-label="Cost and start">
                    <section class="plate" aria-labelledby="cost-title">
                        <header>
                            <h2 id="cost-title">"What it can cost"</h2>
                        </header>
                        <Cost/>
                        <Start/>
                    </section>
                    <StudyFile/>
                </aside>
            </div>
        </div>
    }
}
