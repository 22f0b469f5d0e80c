//! The page's scripts without what only their readers need.

use std::path::Path;

use anyhow::Result;

use crate::command;
use crate::install::Toolbox;

/// What every browser has in which the page runs.
const TARGET: &str = "--target=es2022";

/// Makes scripts below the directory small, each in its place. References to other files stay as they are.
///
/// # Errors
/// esbuild does not start, or one of them is no script.
pub(super) fn minify(toolbox: &Toolbox, directory: &Path, scripts: &[&str]) -> Result<()> {
    command::run(
        toolbox
            .command("esbuild")
            .current_dir(directory)
            .args(["--minify", "--charset=utf8", TARGET, "--log-level=warning"])
            // Without both, esbuild writes all of them beside one another.
            .args(["--outdir=.", "--outbase=.", "--allow-overwrite"])
            .args(scripts),
    )
}
