//! Files on their way to a project.

use capo_api::{DataSetName, MOST_FILE};
use capo_core::ids::hex;
use js_sys::Uint8Array;
use leptos::prelude::*;
use sha2::{Digest as _, Sha256};
use wasm_bindgen_futures::{JsFuture, spawn_local};
use web_sys::{DragEvent, File};

use crate::components::Choose;
use crate::format::count;
use crate::pages::team::form::{Refused, named};
use crate::team::{Asking, Server};

/// A place to drop a file, and a button to choose one.
#[component]
pub(super) fn Upload(project: String) -> impl IntoView {
    let asking = Asking::default();
    let (over, taken) = (RwSignal::new(false), RwSignal::new(None::<String>));
    let take = move |file: File| {
        let project = project.clone();
        taken.set(None);
        asking.refused.set(None);
        spawn_local(async move {
            match read(&file).await {
                Ok((name, bytes)) => {
                    let sha256 = hex(&Sha256::digest(&bytes));
                    let add =
                        async move |server: Server| server.add_data_set(&project, name, sha256, bytes).await;
                    asking.send(add, move |set| {
                        taken.set(Some(format!(
                            "{} was taken in, {} rows.",
                            set.name,
                            count(set.rows)
                        )));
                    });
                }
                Err(why) => drop(asking.refused.try_set(Some(why))),
            }
        });
    };
    let chosen = {
        let take = take.clone();
        Callback::new(move |files: Vec<File>| files.into_iter().for_each(take.clone()))
    };
    let drop_in = move |event: DragEvent| {
        event.prevent_default();
        over.set(false);
        let files = event.data_transfer().and_then(|transfer| transfer.files());
        if let Some(file) = files.and_then(|files| files.get(0)) {
            take(file);
        }
    };
    let drag = move |event: DragEvent| {
        event.prevent_default();
        over.set(true);
    };
    let busy = Signal::derive(move || asking.disabled().is_some());
    view! {
        <div
            class="drop"
            class:over=move || over.get()
            on:dragover=drag
            on:dragleave=move |_| over.set(false)
            on:drop=drop_in
        >
            <p>
                "Upload a data set, or drop it here: a CSV or TSV file with a header line, JSON Lines with one object a line, or a ZIP of the tau2 \
                 benchmark’s data."
            </p>
            <div class="row">
                <Choose
                    words="Choose a file"
                    label="Data set"
                    accept=".csv,.tsv,.jsonl,.ndjson,.zip"
                    disabled=busy
                    chosen
                />
            </div>
            <p class="note" role="status">
                {move || match taken.get() {
                    _ if busy.get() => "Sending the file; the server reads it…".to_owned(),
                    Some(taken) => taken,
                    None => format!("At most {} MiB. Everybody in the project can read it.", MOST_FILE >> 20),
                }}
            </p>
        </div>
        <Refused asking/>
    }
}

/// The name of a file and what it holds.
async fn read(file: &File) -> Result<(DataSetName, Vec<u8>), String> {
    let name = named::<DataSetName>(&file.name())?;
    if file.size() > MOST_FILE as f64 {
        return Err(format!(
            "{} is larger than the server takes, {} MiB.",
            name.as_str(),
            MOST_FILE >> 20
        ));
    }
    let read = JsFuture::from(file.array_buffer()).await;
    let read = read.map_err(|_| {
        let name = name.as_str();
        format!("{name} cannot be read. It may have been moved or changed meanwhile.")
    })?;
    Ok((name, Uint8Array::new(&read).to_vec()))
}
