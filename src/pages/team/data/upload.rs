//! Files on their way to a project.

use std::collections::VecDeque;

use capo_api::{DataKind, DataSetName, DataSetShown, MOST_FILE};
use capo_core::ids::hex;
use js_sys::Uint8Array;
use leptos::prelude::*;
use sha2::{Digest as _, Sha256};
use wasm_bindgen_futures::{JsFuture, spawn_local};
use web_sys::{DragEvent, File};

use crate::components::{Choose, Message};
use crate::format::count;
use crate::frame::drop_target::dropped;
use crate::pages::team::form::named;
use crate::team::{Server, Team};

/// A file, and what became of it: nothing yet, how many rows it has where it is no study, or why it was refused.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Sent {
    name: String,
    came: Option<Result<Option<u64>, String>>,
}

/// Files that are sent one after the other, as long as the page is shown. Copies are the same.
#[derive(Clone, Copy)]
struct Queue {
    team: Team,
    waiting: StoredValue<VecDeque<File>, LocalStorage>,
    sent: RwSignal<Vec<Sent>>,
}

impl Queue {
    fn new() -> Self {
        Self {
            team: expect_context(),
            waiting: StoredValue::new_local(VecDeque::new()),
            sent: RwSignal::new(Vec::new()),
        }
    }

    fn take(self, project: String, files: Vec<File>) {
        if files.is_empty() {
            return;
        }
        let rests = self
            .sent
            .with_untracked(|sent| sent.iter().all(|file| file.came.is_some()));
        self.sent.update(|sent| {
            if rests {
                sent.clear();
            }
            sent.extend(files.iter().map(|file| Sent {
                name: file.name(),
                came: None,
            }));
        });
        self.waiting.update_value(|waiting| waiting.extend(files));
        if rests {
            spawn_local(self.send_all(project));
        }
    }

    async fn send_all(self, project: String) {
        while let Some(Some(file)) = self.waiting.try_update_value(VecDeque::pop_front) {
            let came = self.send(&project, &file).await;
            let came = came.map(|set| (set.kind != DataKind::Study).then_some(set.rows));
            let _ = self.sent.try_update(|sent| {
                if let Some(first) = sent.iter_mut().find(|file| file.came.is_none()) {
                    first.came = Some(came);
                }
            });
        }
    }

    async fn send(self, project: &str, file: &File) -> Result<DataSetShown, String> {
        let (name, bytes) = read(file).await?;
        let sha256 = hex(&Sha256::digest(&bytes));
        let add = async move |server: Server| server.add_data_set(project, name, sha256, bytes).await;
        self.team.ask(add).await
    }
}

/// A place to drop files, and a button to choose some.
#[component]
pub(super) fn Upload(project: String) -> impl IntoView {
    let queue = Queue::new();
    let over = RwSignal::new(false);
    let chosen = {
        let project = project.clone();
        Callback::new(move |files| queue.take(project.clone(), files))
    };
    let drop_in = move |event: DragEvent| {
        event.prevent_default();
        over.set(false);
        queue.take(project.clone(), dropped(&event));
    };
    let drag = move |event: DragEvent| {
        event.prevent_default();
        over.set(true);
    };
    let lines = move || {
        let line = |line: String| view! { <p class="note">{line}</p> };
        let lines = queue.sent.with(|sent| progress(sent));
        lines.into_iter().map(line).collect_view()
    };
    let refused = move || {
        let refused = queue.sent.get().into_iter().filter_map(|file| {
            let why = file.came?.err()?;
            Some(view! { <Message what=format!("{} was not taken in.", file.name)><p>{why}</p></Message> })
        });
        refused.collect_view()
    };
    view! {
        <div
            class="drop"
            class:over=move || over.get()
            on:dragover=drag
            on:dragleave=move |_| over.set(false)
            on:drop=drop_in
        >
            <p>
                "Upload data sets and studies, or drop them here: CSV or TSV files with a header line, JSON Lines with one object a line, studies \
                 in TOML, or a ZIP of the tau2 benchmark’s data."
            </p>
            <div class="row">
                <Choose
                    words="Choose files"
                    label="Data set"
                    accept=".csv,.tsv,.jsonl,.ndjson,.toml,.zip"
                    multiple=true
                    chosen
                />
            </div>
            <div role="status">{lines}</div>
            <p class="note">
                {format!("At most {} MiB each. Everybody in the project can read them.", MOST_FILE >> 20)}
            </p>
        </div>
        {refused}
    }
}

/// What became of files so far, one a line; what was refused stands elsewhere.
fn progress(sent: &[Sent]) -> Vec<String> {
    let mut is_first = true;
    let line = |file: &Sent| match &file.came {
        Some(Ok(Some(rows))) => Some(format!("{} was taken in, {} rows.", file.name, count(*rows))),
        Some(Ok(None)) => Some(format!("{} was taken in.", file.name)),
        Some(Err(_)) => None,
        None if std::mem::take(&mut is_first) => Some(format!("Sending {}; the server reads it…", file.name)),
        None => Some(format!("{} is sent next, while this page is open.", file.name)),
    };
    sent.iter().filter_map(line).collect()
}

/// The name of a file and what it holds.
async fn read(file: &File) -> Result<(DataSetName, Vec<u8>), String> {
    let name = named::<DataSetName>(&file.name())?;
    if file.size() > MOST_FILE as f64 {
        return Err(format!(
            "It is larger than the server takes, {} MiB.",
            MOST_FILE >> 20
        ));
    }
    let read = JsFuture::from(file.array_buffer()).await;
    let read =
        read.map_err(|_| "It cannot be read. It may have been moved or changed meanwhile.".to_owned())?;
    Ok((name, Uint8Array::new(&read).to_vec()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_several_files_each_says_what_became_of_it() {
        let sent = |name: &str, came| Sent {
            name: name.into(),
            came,
        };
        let sent = [
            sent("a.csv", Some(Ok(Some(1200)))),
            sent("a.toml", Some(Ok(None))),
            sent("b.csv", Some(Err("It has no rows.".into()))),
            sent("c.csv", None),
            sent("d.csv", None),
        ];
        assert_eq!(
            progress(&sent),
            [
                "a.csv was taken in, 1,200 rows.",
                "a.toml was taken in.",
                "Sending c.csv; the server reads it…",
                "d.csv is sent next, while this page is open.",
            ]
        );
    }
}
