//! Renaming a run, and asking once before runs are deleted.

use leptos::html::Dialog;
use leptos::prelude::*;
use wasm_bindgen_futures::spawn_local;

use super::listed::Listed;
use crate::format;
use crate::live::{Run, Runs};
use crate::storage::lock::{self, NotHeld};
use crate::storage::{RunRecord, Storage, StorageError};

fn close(node: NodeRef<Dialog>) {
    if let Some(dialog) = node.get_untracked() {
        dialog.close();
    }
}

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
    let former = Memo::new(move |_| listed.chosen().into_iter().next());
    let rename = move |event: leptos::ev::SubmitEvent| {
        event.prevent_default();
        let name = name.get_untracked().trim().to_owned();
        let Some(run) = former.get_untracked().filter(|_| !name.is_empty()) else {
            return;
        };
        close(node);
        spawn_local(async move {
            match renamed(&run.id, &name).await {
                Ok(record) => {
                    if let Some(known) = runs.known(&run.id) {
                        known.record.set(Some(record));
                    }
                    said.set(None);
                }
                Err(message) => said.set(Some(message)),
            }
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
                    <button type="button" on:click=move |_| close(node)>
                        "Cancel"
                    </button>
                    <button type="submit">"Rename"</button>
                </footer>
            </form>
        </dialog>
    }
}

async fn renamed(id: &str, name: &str) -> Result<RunRecord, String> {
    let failed = |error: StorageError| format!("The run was not renamed: {error}");
    let storage = Storage::open().await.map_err(failed)?;
    let record = storage.change_run(id, |record| name.clone_into(&mut record.name));
    let record = record.await.map_err(failed)?;
    record.ok_or_else(|| "The run was not renamed: it is no longer in this browser.".to_owned())
}

/// Asks once; the safe answer has the focus.
#[component]
pub(super) fn DeleteDialog(
    listed: Listed,
    said: RwSignal<Option<String>>,
    node: NodeRef<Dialog>,
) -> impl IntoView {
    let runs = expect_context::<Runs>();
    let chosen = Memo::new(move |_| listed.chosen());
    let question = move || {
        chosen.with(|chosen| match &chosen[..] {
            [only] => format!("Delete {}?", only.name),
            several => format!("Delete {}?", format::counted(several.len(), "run")),
        })
    };
    let delete = move |_| {
        close(node);
        let chosen = chosen.get_untracked();
        spawn_local(async move {
            said.set(deleted(runs, &chosen).await.err());
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
                </p>
                <footer>
                    <button type="button" autofocus on:click=move |_| close(node)>
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
async fn deleted(runs: Runs, chosen: &[RunRecord]) -> Result<(), String> {
    let failed = |error: StorageError| format!("Not everything was deleted: {error}");
    let storage = Storage::open().await.map_err(failed)?;
    let going_on: Vec<String> = runs.running().iter().map(Run::id).collect();
    let mut kept = Vec::new();
    for run in chosen {
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
