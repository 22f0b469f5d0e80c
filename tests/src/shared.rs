//! Data that is not part of the repository.

use std::env;
use std::path::{Path, PathBuf};

use crate::tools::skip;

/// The path of a file or folder under the shared data, or `None` when this machine has none and
/// the test is to be skipped.
///
/// The shared data lie in the folder named by `CAPO_SHARED`, by default `shared` beside the
/// repository.
///
/// # Panics
/// When the data are absent, as [`skip`] does.
pub fn shared(path: &str) -> Option<PathBuf> {
    let beside = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared");
    let file = env::var_os("CAPO_SHARED")
        .map_or_else(beside, PathBuf::from)
        .join(path);
    if file.exists() {
        return Some(file);
    }
    skip(&format!("no shared data at {}; set CAPO_SHARED", file.display()));
    None
}
