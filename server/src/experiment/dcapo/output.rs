//! Puts the report of the seeds into a directory.

use std::path::{Path, PathBuf};

use serde_json::json;

use super::{EXPLANATION, NAME, Plan, SeedRecord, TITLE, report};
use crate::experiment::output::{OutputError, save_parts};
use crate::session::StudyFile;

/// Writes `report.md`, `report.json`, each table as CSV and the plot as SVG. Returns the path of `report.md`.
///
/// # Errors
/// When a file cannot be written or a figure cannot be drawn.
pub fn write(
    directory: &Path,
    base: &StudyFile,
    plan: &Plan,
    seeds: &[SeedRecord],
) -> Result<PathBuf, OutputError> {
    let report = report(base, plan, seeds);
    let name = &base.study.study.name;
    let document = json!({
        "experiment": NAME,
        "title": TITLE,
        "explanation": EXPLANATION,
        "study": name,
        "tables": report.tables,
        "seeds": seeds,
    });
    let head = format!(
        "# {NAME}: {TITLE}\n\n{EXPLANATION}\n\nStudy “{name}”, {} seeds.\n",
        seeds.len()
    );
    save_parts(directory, &report, &document, head)
}
