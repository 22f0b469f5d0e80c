//! The page's scripts and style sheets without what only their readers need, by esbuild.

use std::path::Path;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use crate::command;
use crate::install::Toolbox;

/// Where the page's style sheets lie.
const STYLES: &str = "styles/";
/// The sheet that imports the others.
const MAIN: &str = "styles/main.css";
/// What esbuild says of the sheets that it has read.
const METAFILE: &str = "styles/metafile.json";
const OPTIONS: [&str; 5] = [
    "--minify",
    "--charset=utf8",
    // What every browser has in which the page runs.
    "--target=es2022",
    "--log-level=warning",
    "--allow-overwrite",
];

/// Makes scripts below the directory small, each in its place. References to other files stay as they are.
///
/// # Errors
/// esbuild does not start, or one of them is no script.
pub(super) fn scripts(toolbox: &Toolbox, directory: &Path, scripts: &[&str]) -> Result<()> {
    command::run(
        toolbox
            .command("esbuild")
            .current_dir(directory)
            .args(OPTIONS)
            // Without both, esbuild writes all of them beside one another.
            .args(["--outdir=.", "--outbase=."])
            .args(scripts),
    )
}

/// Puts every sheet that [`MAIN`] imports, directly or not, into it, and removes the others: a browser would
/// load an imported sheet only after the one that imports it.
///
/// # Errors
/// esbuild does not start; a sheet is malformed, missing, imported from elsewhere, or by no other sheet.
pub(super) fn styles<'a>(
    toolbox: &Toolbox,
    directory: &Path,
    files: impl Iterator<Item = &'a str>,
) -> Result<()> {
    command::run(
        toolbox
            .command("esbuild")
            .current_dir(directory)
            .args(OPTIONS)
            // References get their stamps later.
            .args(["--bundle", "--external:*?v=HASH", "--outdir=.", "--outbase=."])
            .args([&format!("--metafile={METAFILE}"), MAIN]),
    )?;
    let path = directory.join(METAFILE);
    let metafile = std::fs::read(&path).with_context(|| format!("cannot read {}", path.display()))?;
    let sheets: Vec<_> = files.filter(|path| path.starts_with(STYLES)).collect();
    check(&serde_json::from_slice(&metafile)?, &sheets)?;
    for bundled in sheets.into_iter().chain([METAFILE]).filter(|path| *path != MAIN) {
        let path = directory.join(bundled);
        std::fs::remove_file(&path).with_context(|| format!("cannot remove {}", path.display()))?;
    }
    Ok(())
}

/// Refuses what esbuild lets pass: a sheet that is imported from elsewhere, and one that nobody imports.
fn check(metafile: &Value, sheets: &[&str]) -> Result<()> {
    let inputs = &metafile["inputs"];
    for (sheet, input) in inputs.as_object().into_iter().flatten() {
        let imports = input["imports"].as_array().into_iter().flatten();
        let foreign = imports
            .filter(|import| import["kind"] == "import-rule" && import["external"] == true)
            .find_map(|import| import["path"].as_str());
        ensure!(
            foreign.is_none(),
            "{sheet} imports {foreign:?}: a style sheet from elsewhere is not let in"
        );
    }
    let unused: Vec<_> = sheets
        .iter()
        .filter(|sheet| inputs[**sheet].is_null())
        .copied()
        .collect();
    ensure!(unused.is_empty(), "{MAIN} does not import {}", unused.join(", "));
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn foreign_and_forgotten_sheets_are_errors() {
        let error = |import: Value| {
            let metafile = json!({ "inputs": { MAIN: { "imports": [import] } } });
            check(&metafile, &[MAIN, "styles/a.css"]).unwrap_err().to_string()
        };
        let foreign = json!({ "path": "https://x/a.css", "kind": "import-rule", "external": true });
        assert!(error(foreign).contains("from elsewhere"));
        let picture = json!({ "path": "#hatch", "kind": "url-token", "external": true });
        assert!(error(picture).contains("does not import styles/a.css"));
        let all = json!({ "inputs": { MAIN: { "imports": [] }, "styles/a.css": { "imports": [] } } });
        check(&all, &[MAIN, "styles/a.css"]).unwrap();
    }
}
