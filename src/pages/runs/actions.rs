//! Journals as files.

use leptos::prelude::*;
use wasm_bindgen_futures::spawn_local;

use crate::frame::download::download;
use crate::storage::{RunRecord, Storage};

/// Between two downloads, in milliseconds: browsers drop those that come at once.
const BETWEEN: u32 = 300;

/// Offers the journals of runs as files, one after another; `said` is told what went wrong.
pub(super) fn export(runs: Vec<RunRecord>, said: RwSignal<Option<String>>) {
    spawn_local(async move {
        for (index, run) in runs.iter().enumerate() {
            if index > 0 {
                gloo_timers::future::TimeoutFuture::new(BETWEEN).await;
            }
            if let Err(message) = export_one(run).await {
                said.set(Some(message));
                return;
            }
        }
        said.set(None);
    });
}

async fn export_one(run: &RunRecord) -> Result<(), String> {
    let failed = |error: crate::storage::StorageError| format!("{} was not exported: {error}", run.name);
    let storage = Storage::open().await.map_err(failed)?;
    let chunks = storage.whole_chunks(&run.id).await.map_err(failed)?;
    let lines = chunks.into_iter().map(|mut chunk| {
        chunk.push('\n');
        chunk
    });
    download(&file_name(run), "application/x-ndjson", lines)
}

/// `help-desk-19aa5b0c.jsonl`: its name as far as file systems agree on it, and its id.
fn file_name(run: &RunRecord) -> String {
    let mut name = String::new();
    for letter in run.name.chars().map(|letter| letter.to_ascii_lowercase()) {
        match letter {
            letter if letter.is_alphanumeric() => name.push(letter),
            _ if name.is_empty() || name.ends_with('-') => {}
            _ => name.push('-'),
        }
    }
    let name = name.trim_end_matches('-');
    let name = if name.is_empty() { "run" } else { name };
    format!("{name}-{}.jsonl", run.id)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::storage::{Progress, RunStatus};

    #[test]
    fn a_journal_is_named_after_its_run() {
        let run = |name: &str| RunRecord {
            id: "19aa".into(),
            name: name.into(),
            method: "capo".into(),
            about: String::new(),
            status: RunStatus::Paused,
            study: String::new(),
            created: 0.0,
            touched: 0.0,
            size: 0,
            progress: Progress::default(),
        };
        assert_eq!(
            file_name(&run("Help desk, multipliers: 1/2")),
            "help-desk-multipliers-1-2-19aa.jsonl"
        );
        assert_eq!(file_name(&run("…")), "run-19aa.jsonl");
    }
}
