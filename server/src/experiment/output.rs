//! Puts a report into a directory.

use std::path::{Path, PathBuf};

use capo_core::journal::Status;
use serde::Serialize;

use super::plot::{PlotError, svg};
use super::record::{RunRecord, Runs};
use super::table::Table;
use super::{Experiment, Report};

/// A report that could not be put down.
#[derive(Debug, thiserror::Error)]
pub enum OutputError {
    /// The directory or a file cannot be written.
    #[error("cannot write {path}: {source}; choose another directory with --out", path = path.display())]
    File {
        /// Which.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// A plot cannot be drawn.
    #[error(transparent)]
    Plot(#[from] PlotError),
}

/// The whole report for programs.
#[derive(Serialize)]
struct Document<'a> {
    experiment: &'a str,
    title: &'a str,
    explanation: &'a str,
    study: &'a str,
    tables: &'a [Table],
    runs: &'a [RunRecord],
}

/// Writes `report.md`, `report.json`, and each table as CSV and each figure as SVG under its name.
/// Returns the path of `report.md`.
///
/// # Errors
/// When a file cannot be written or a figure cannot be drawn.
pub fn write(
    directory: &Path,
    experiment: &Experiment,
    runs: &Runs,
    report: &Report,
) -> Result<PathBuf, OutputError> {
    let save = |name: String, contents: &str| -> Result<PathBuf, OutputError> {
        let path = directory.join(name);
        match std::fs::write(&path, contents) {
            Ok(()) => Ok(path),
            Err(source) => Err(OutputError::File { path, source }),
        }
    };
    std::fs::create_dir_all(directory).map_err(|source| OutputError::File {
        path: directory.to_owned(),
        source,
    })?;
    for table in &report.tables {
        save(format!("{}.csv", table.name), &table.csv())?;
    }
    for figure in &report.figures {
        save(format!("{}.svg", figure.name), &svg(figure)?)?;
    }
    let document = Document {
        experiment: experiment.name,
        title: experiment.title,
        explanation: experiment.explanation,
        study: &runs.base.study.name,
        tables: &report.tables,
        runs: runs.records,
    };
    let json = serde_json::to_string_pretty(&document).expect("a report holds nothing JSON cannot write");
    save("report.json".into(), &json)?;
    save("report.md".into(), &markdown(experiment, runs, report))
}

/// The report as one Markdown page that shows the figures beside it.
fn markdown(experiment: &Experiment, runs: &Runs, report: &Report) -> String {
    let mut page = format!(
        "# {}: {}\n\n{}\n\nStudy “{}”, {} variants, {} seeds, {} of {} runs finished.\n",
        experiment.name,
        experiment.title,
        experiment.explanation,
        runs.base.study.name,
        runs.variants.len(),
        runs.seeds(),
        runs.records
            .iter()
            .filter(|record| complete(record.status))
            .count(),
        runs.records.len(),
    );
    if runs.records.iter().any(|record| record.status == Status::Budget) {
        page.push_str(
            "\nSome runs were stopped by the budget and count with what they found. Raise [budget] in the study and \
             run the same command again to finish them.\n",
        );
    }
    for table in &report.tables {
        page.push('\n');
        page.push_str(&table.markdown());
    }
    for figure in &report.figures {
        let title = figure.title.replace(['[', ']'], "");
        page.extend(["\n![", &title, "](", &figure.name, ".svg)\n"]);
    }
    page
}

/// Whether a run went its whole way.
pub(super) fn complete(status: Status) -> bool {
    matches!(status, Status::Feasible | Status::Infeasible)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::{EXPERIMENTS, fixture};

    #[test]
    fn everything_a_report_names_is_written() {
        let directory = tempfile::tempdir().unwrap();
        let out = directory.path().join("deep/er");
        for experiment in EXPERIMENTS {
            fixture::with_runs(experiment, |runs| {
                let report = (experiment.report)(runs);
                let page = std::fs::read_to_string(write(&out, experiment, runs, &report).unwrap()).unwrap();
                for figure in &report.figures {
                    let file = format!("{}.svg", figure.name);
                    assert!(page.contains(&format!("]({file})")), "{file}");
                    assert!(
                        std::fs::read_to_string(out.join(&file))
                            .unwrap()
                            .ends_with("</svg>\n"),
                        "{file}"
                    );
                }
                for table in &report.tables {
                    assert!(
                        page.contains(&format!("\n## {}\n", table.title)),
                        "{}",
                        table.title
                    );
                    assert!(out.join(format!("{}.csv", table.name)).exists());
                }
                let json: serde_json::Value =
                    serde_json::from_str(&std::fs::read_to_string(out.join("report.json")).unwrap()).unwrap();
                assert_eq!(json["runs"].as_array().unwrap().len(), runs.records.len());
            });
        }
    }

    #[test]
    fn runs_stopped_by_the_budget_are_named() {
        let experiment = EXPERIMENTS[0];
        fixture::with_runs(experiment, |runs| {
            let mut records = runs.records.to_vec();
            records[0].status = Status::Budget;
            let stopped = Runs {
                records: &records,
                ..*runs
            };
            let page = markdown(experiment, &stopped, &(experiment.report)(&stopped));
            assert!(page.contains("11 of 12 runs finished"));
            assert!(page.contains("Raise [budget]"));
        });
    }

    #[test]
    fn a_directory_that_cannot_be_made_is_named() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let out = file.path().join("out");
        fixture::with_runs(EXPERIMENTS[0], |runs| {
            let error = write(&out, EXPERIMENTS[0], runs, &(EXPERIMENTS[0].report)(runs))
                .unwrap_err()
                .to_string();
            assert!(
                error.contains("cannot write") && error.contains("--out"),
                "{error}"
            );
        });
    }
}
