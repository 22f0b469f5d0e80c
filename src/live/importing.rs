//! Journals that become runs: from files, and branched off others.

use wasm_bindgen::JsValue;
use wasm_bindgen_futures::spawn_local;

use super::worker::carried_out;
use crate::storage::{Storage, StorageError, lock};
use crate::worker::protocol::{HowFar, Order, Report};

/// An import under way; dropped, it takes back what was kept of it.
struct Unfinished(Option<String>);

impl Drop for Unfinished {
    fn drop(&mut self) {
        let Some(id) = self.0.take() else { return };
        spawn_local(async move {
            if let Ok(storage) = Storage::open().await {
                // What is left if this fails is swept when the page is opened next.
                let _ = storage.delete_run(&id).await;
            }
        });
    }
}

/// Has a file's journal kept as the run `id`. When nobody waits for the answer any more, it is given
/// up and nothing is kept.
///
/// # Errors
/// What is wrong with the file, or that it cannot be kept; nothing is kept then.
pub(super) async fn from_file(
    order: &Order,
    id: String,
    file: &JsValue,
    progress: impl Fn(HowFar) + 'static,
) -> Result<String, String> {
    let mut unfinished = Unfinished(Some(id));
    let imported = carry_out(order, file, progress).await;
    if imported.is_ok() {
        unfinished.0 = None;
    }
    imported
}

/// Has a worker of its own carry out an import or a branch and returns the new run's id.
///
/// # Errors
/// Why it is not carried out, in words.
pub(super) async fn carry_out(
    order: &Order,
    beside: &JsValue,
    progress: impl Fn(HowFar) + 'static,
) -> Result<String, String> {
    let words = (
        "keeps the journal",
        "Nothing was imported and the file is unchanged.",
    );
    carried_out(order, beside, words, move |report| match report {
        Report::Importing(how_far) => {
            progress(how_far);
            None
        }
        Report::Imported { run } => Some(run),
        _ => None,
    })
    .await
}

/// Deletes lines without a record, as an import leaves them whose tab was closed in its midst. Those
/// of an import that goes on in some tab are held by it.
///
/// # Errors
/// When the browser does not give back what it keeps, or does not delete.
pub async fn sweep() -> Result<(), StorageError> {
    if !lock::available() {
        return Ok(());
    }
    let storage = Storage::open().await?;
    for run in storage.unlisted().await? {
        // The record of an import comes last: only who holds the run knows that none comes any more.
        if let Ok(_held) = lock::hold(&run).await
            && !storage.has_record(&run).await?
        {
            storage.delete_run(&run).await?;
        }
    }
    Ok(())
}
