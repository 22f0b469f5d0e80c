//! The files of the tau2 benchmark on their way into this browser's storage.

use std::cell::RefCell;
use std::rc::Rc;

use futures::channel::oneshot;
use js_sys::{Array, JsString};
use web_sys::File;

use super::worker::WorkerHandle;
use crate::worker::protocol::{Order, Report};

/// Has a worker keep what is needed of these files, each with its path.
///
/// # Errors
/// What is missing or does not read, or that nothing can be kept; what was kept is then kept still.
pub async fn keep_benchmark(files: Vec<(String, File)>) -> Result<(), String> {
    let (sender, receiver) = oneshot::channel();
    let sender = RefCell::new(Some(sender));
    let answer = Rc::new(move |answer: Result<(), String>| {
        if let Some(sender) = sender.take() {
            // Whoever asked may have gone elsewhere.
            let _ = sender.send(answer);
        }
    });
    let broke = Rc::clone(&answer);
    let worker = WorkerHandle::new(
        move |report| match report {
            Report::KeptBenchmark { kept } => answer(kept),
            Report::Failed { message } => answer(Err(message)),
            // Reports of runs.
            _ => {}
        },
        move |reason| {
            broke(Err(format!(
                "The worker that keeps the files stopped ({reason}). Reload the page, then try again."
            )));
        },
    )?;
    let pair = |(path, file): (String, File)| Array::of2(&JsString::from(path), &file);
    let files: Array = files.into_iter().map(pair).collect();
    worker.tell_with(&Order::KeepBenchmark, &files);
    let stopped = |_| "The worker stopped before the files were kept.".to_owned();
    receiver.await.map_err(stopped)?
}
