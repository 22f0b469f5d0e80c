//! Renaming a run, and asking once before runs are deleted.

use std::collections::BTreeSet;

use capo_api::{RunChange, Title};
use leptos::html::Dialog;
use leptos::prelude::*;
use serde_json::json;
use wasm_bindgen_futures::spawn_local;

use super::listed::Listed;
use crate::components::{close_dialog, removing_by};
use crate::download::{Kind, offer};
use crate::format;
use crate::live::{Run, Runs};
use crate::storage::lock::{self, NotHeld};
use crate::storage::{RunRecord, Storage, StorageError, server_id};
use crate::team::{Server, Team, sentence};

/// Gives the selected run another name.
#[component]
pub(super) fn RenameDialog(
    listed: Listed,
    said: RwSignal<Option<String>>,
    node: NodeRef<Dialog>,
    /// What is typed; filled by whoever opens the dialog, since the list is read anew while it is open.
    name: RwSignal<String>,
) -> impl IntoView {
    let runs = expect_context::<Runs>();
    let team = expect_context::<Team>();
    let former = Memo::new(move |_| listed.chosen().into_iter().next());
    let rename = move |event: leptos::ev::SubmitEvent| {
        event.prevent_default();
        let name = name.get_untracked().trim().to_owned();
        let Some(run) = former.get_untracked().filter(|_| !name.is_empty()) else {
            return;
        };
        close_dialog(node);
        spawn_local(async move {
            said.set(renamed(runs, team, &run.id, &name).await.err());
            listed.refresh();
        });
    };
    view! {
        <dialog node_ref=node aria-labelledby="rename-title">
            <form on:submit=rename>
                <header>
                    <h2 id="rename-title">"Rename this run"</h2>
                </header>
                <div class="field">
                    <label for="rename-run">"Name"</label>
                    <input
                        id="rename-run"
                        type="text"
                        required
                        autofocus
                        prop:value=move || name.get()
                        on:input=move |event| name.set(event_target_value(&event))
                    />
                </div>
                <footer>
                    <button type="button" on:click=move |_| close_dialog(node)>
                        "Cancel"
                    </button>
                    <button type="submit">"Rename"</button>
                </footer>
            </form>
        </dialog>
    }
}

async fn renamed(runs: Runs, team: Team, id: &str, name: &str) -> Result<(), String> {
    if let Some(on_server) = server_id(id) {
        return renamed_on_server(runs, team, id, on_server, name).await;
    }
    let failed = |error: StorageError| format!("The run was not renamed: {error}");
    let storage = Storage::open().await.map_err(failed)?;
    let record = storage.change_run(id, |record| name.clone_into(&mut record.name));
    let record = record.await.map_err(failed)?;
    let record = record.ok_or("The run was not renamed: it is no longer in this browser.")?;
    if let Some(known) = runs.known(id) {
        known.record.set(Some(record));
    }
    Ok(())
}

async fn renamed_on_server(
    runs: Runs,
    team: Team,
    id: &str,
    on_server: &str,
    name: &str,
) -> Result<(), String> {
    let failed = |why: String| format!("The run was not renamed: {why}");
    let name = Title::try_from(name.to_owned()).map_err(|error| failed(error.to_string()))?;
    let change = RunChange { name };
    let asked = team.ask(async |server: Server| server.change_run(on_server, &change).await);
    let shown = asked.await.map_err(failed)?;
    if let Some(known) = runs.known(id) {
        known.take_shown(&shown, RunRecord::take_shown);
    }
    // The server has the name; a mirror that is behind is mended when the run is opened.
    if let Ok(storage) = Storage::open().await {
        let _ = storage.change_run(id, |record| record.take_shown(&shown)).await;
    }
    Ok(())
}

/// Asks once; the safe answer has the focus.
#[component]
pub(super) fn DeleteDialog(
    listed: Listed,
    said: RwSignal<Option<String>>,
    node: NodeRef<Dialog>,
) -> impl IntoView {
    let runs = expect_context::<Runs>();
    let team = expect_context::<Team>();
    let chosen = Memo::new(move |_| listed.chosen());
    let for_all = move || {
        let on_server = chosen.with(|chosen| chosen.iter().any(|run| run.server.is_some()));
        on_server.then_some(" What is on the server is deleted there, for everybody of its project.")
    };
    let noted =
        Memo::new(move |_| chosen.with(|chosen| chosen.iter().map(|run| run.notes.len()).sum::<usize>()));
    let take = move |_| {
        let notes = |run: &RunRecord| json!({ "run": run.name, "id": run.id, "notes": run.notes });
        let notes = chosen.with_untracked(|chosen| chosen.iter().map(notes).collect::<Vec<_>>());
        let offered = offer("notes", Kind::Json, [json!(notes).to_string()]);
        if let Err(why) = offered {
            close_dialog(node);
            said.set(Some(why));
        }
    };
    let question = move || {
        chosen.with(|chosen| match &chosen[..] {
            [only] => format!("Delete {}?", only.name),
            several => format!("Delete {}?", format::counted(several.len(), "run")),
        })
    };
    let delete = move |_| {
        close_dialog(node);
        let opener = document().active_element();
        let chosen = chosen.get_untracked();
        spawn_local(async move {
            let kept = deleted(runs, team, &chosen).await.err();
            if kept.is_none() {
                removing_by(opener, || listed.selected.set(BTreeSet::new()));
            }
            said.set(kept);
            listed.refresh();
        });
    };
    view! {
        <dialog node_ref=node aria-labelledby="delete-title">
            <div class="sheet">
                <header>
                    <h2 id="delete-title">{question}</h2>
                </header>
                <p>
                    "The journal goes with it: every prompt, trace and answer that was paid for. This cannot be \
                     undone. Export first what may be wanted again."
                    {for_all}
                </p>
                <Show when=move || noted.get() != 0>
                    <p>
                        "No journal has what you noted on " {move || format::counted(noted.get(), "example")}
                        ": that goes, too. "
                        <button type="button" class="link" on:click=take>
                            "Download these notes"
                        </button>
                    </p>
                </Show>
                <footer>
                    <button type="button" autofocus on:click=move |_| close_dialog(node)>
                        "Keep"
                    </button>
                    <button type="button" class="danger" on:click=delete>
                        "Delete"
                    </button>
                </footer>
            </div>
        </dialog>
    }
}

/// Deletes all but those that go on, and says which these are and where.
async fn deleted(runs: Runs, team: Team, chosen: &[RunRecord]) -> Result<(), String> {
    let failed = |error: StorageError| format!("Not everything was deleted: {error}");
    let storage = Storage::open().await;
    let going_on: Vec<String> = runs.running().iter().map(Run::id).collect();
    let mut kept = Vec::new();
    for run in chosen {
        if let Some(on_server) = server_id(&run.id) {
            let asked = team.request(async |server: Server| server.delete_run(on_server).await);
            match asked.await {
                // Somebody else was faster.
                Err(error) if error.status() != Some(404) => {
                    kept.push(format!("{} was not deleted: {}", run.name, sentence(&error)));
                }
                Ok(()) | Err(_) => {
                    runs.forget(&run.id);
                    if let Ok(storage) = &storage {
                        storage.delete_run(&run.id).await.map_err(failed)?;
                    }
                }
            }
            continue;
        }
        let storage = storage.as_ref().map_err(|error| failed(error.clone()))?;
        if going_on.contains(&run.id) {
            kept.push(format!(
                "{} was not deleted: it is running. Stop it first.",
                run.name
            ));
            continue;
        }
        // Nobody may begin to work on it meanwhile, who would pay for answers that nothing keeps.
        match lock::hold(&run.id).await {
            Ok(_held) => {
                storage.delete_run(&run.id).await.map_err(failed)?;
                runs.forget(&run.id);
            }
            Err(NotHeld::Busy) => {
                let words = "is running in another tab. Stop it there first.";
                kept.push(format!("{} was not deleted: it {words}", run.name));
            }
            Err(refused) => kept.push(format!("{} was not deleted. {refused}", run.name)),
        }
    }
    if kept.is_empty() {
        Ok(())
    } else {
        Err(kept.join(" "))
    }
}
