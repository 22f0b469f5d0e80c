//! Journals as files.

use gloo_timers::future::TimeoutFuture;
use leptos::prelude::*;
use wasm_bindgen_futures::spawn_local;

use crate::download::{file_name, offer_journal};
use crate::live::Runs;
use crate::storage::RunRecord;

/// Between two downloads, in milliseconds: browsers drop those that come at once.
const BETWEEN: u32 = 300;

/// Offers the journals of runs as files, one after another; `said` is told what went wrong.
pub(super) fn export(runs: Runs, chosen: Vec<RunRecord>, said: RwSignal<Option<String>>) {
    spawn_local(async move {
        said.set(None);
        for (index, record) in chosen.iter().enumerate() {
            if index > 0 {
                TimeoutFuture::new(BETWEEN).await;
            }
            // Runs may have the same name, so that files are told apart by their ids.
            let name = format!("{}-{}", file_name(&record.name, None), record.id);
            if let Err(message) = offer_journal(runs.unopened(record), &name).await {
                return said.set(Some(format!("{} was not exported. {message}", record.name)));
            }
        }
    });
}
