//! The files of the tau2 benchmark on their way into this browser's storage.

use js_sys::{Array, JsString};
use web_sys::File;

use super::worker::carried_out;
use crate::worker::protocol::{Order, Report};

/// Has a worker keep what is needed of these files, each with its path.
///
/// # Errors
/// What is missing or does not read, or that nothing can be kept; what was kept is then kept still.
pub async fn keep_benchmark(files: Vec<(String, File)>) -> Result<(), String> {
    let pair = |(path, file): (String, File)| Array::of2(&JsString::from(path), &file);
    let files: Array = files.into_iter().map(pair).collect();
    let words = ("keeps the files", "What was kept before is kept still.");
    carried_out(&Order::KeepBenchmark, &files, words, |report| match report {
        Report::KeptBenchmark { kept } => Some(kept),
        _ => None,
    })
    .await
}
