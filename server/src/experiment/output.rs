//! Puts a report into a directory.

use std::path::{Path, PathBuf};

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
        /// Path of the file or folder.
        path: PathBuf,
        /// The operating system's error.
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
    let document = Document {
        experiment: experiment.name,
        title: experiment.title,
        explanation: experiment.explanation,
        study: &runs.base.study.name,
        tables: &report.tables,
        runs: runs.records,
    };
    save_parts(directory, report, &document, head(experiment, runs))
}

/// Writes a report's tables and figures, `document` as `report.json`, and `report.md`, which begins with `page`.
pub(super) fn save_parts(
    directory: &Path,
    report: &Report,
    document: &impl Serialize,
    mut page: String,
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
        page.push('\n');
        page.push_str(&table.markdown());
    }
    for figure in &report.figures {
        save(format!("{}.svg", figure.name), &svg(figure)?)?;
        let title = figure.title.replace(['[', ']'], "");
        page.extend(["\n![", &title, "](", &figure.name, ".svg)\n"]);
    }
    let json = serde_json::to_string_pretty(document).expect("a report holds nothing JSON cannot write");
    save("report.json".into(), &json)?;
    save("report.md".into(), &page)
}

/// How the page of an experiment begins.
fn head(experiment: &Experiment, runs: &Runs) -> String {
    format!(
        "# {}: {}\n\n{}\n\nStudy “{}”, {} variants, {} seeds, {} of {} runs finished.\n{}{}",
        experiment.name,
        experiment.title,
        experiment.explanation,
        runs.base.study.name,
        runs.variants.len(),
        runs.seeds(),
        runs.records.iter().filter(|record| record.complete).count(),
        runs.records.len(),
        incomplete(runs),
        unmeasured(runs),
    )
}

/// The runs that did not go their whole way, and what to do about it; nothing where all did.
fn incomplete(runs: &Runs) -> String {
    let why = |record: &RunRecord| {
        let reason = record.reason.as_deref().unwrap_or("it did not go its whole way");
        (!record.complete).then(|| reason.to_owned())
    };
    listed(
        runs,
        "These runs were stopped and count with what they found. Raise [budget] in the study and run the same \
         command again to finish them.",
        why,
    )
}

/// The runs in which something could not be measured, and what became of it.
fn unmeasured(runs: &Runs) -> String {
    let what = |record: &RunRecord| (!record.failures.is_empty()).then(|| record.failures.join("; "));
    listed(runs, "In these runs not everything could be measured.", what)
}

/// The runs of which there is something to say, under a heading; nothing where there is none.
fn listed(runs: &Runs, heading: &str, say: impl Fn(&RunRecord) -> Option<String>) -> String {
    let of_variants = runs.variants.iter();
    let lines: Vec<String> = of_variants
        .flat_map(|variant| runs.of(variant).map(move |record| (variant, record)))
        .filter_map(|(variant, record)| {
            let said = say(record)?.replace('\n', " ");
            Some(format!("- {}, seed {}: {said}\n", variant.label, record.seed))
        })
        .collect();
    if lines.is_empty() {
        return String::new();
    }
    format!("\n{heading}\n\n{}", lines.concat())
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
    fn runs_that_were_cut_are_named_and_figures_of_fewer_runs_say_so() {
        let experiment = EXPERIMENTS[0];
        fixture::with_runs(experiment, |runs| {
            let directory = tempfile::tempdir().unwrap();
            let page = |runs: &Runs| {
                let report = (experiment.report)(runs);
                std::fs::read_to_string(write(directory.path(), experiment, runs, &report).unwrap()).unwrap()
            };
            let whole = page(runs);
            assert!(whole.contains("12 of 12 runs finished"), "{whole}");
            assert!(!whole.contains("[budget]") && !whole.contains("n = "), "{whole}");

            let mut records = runs.records.to_vec();
            let cut = &mut records[0];
            cut.complete = false;
            cut.evaluate = None;
            cut.reason = Some("the held-out evaluation could not be measured whole".into());
            let cut = format!("- {}, seed {}: the held-out", runs.variants[0].label, cut.seed);
            let stopped = Runs {
                records: &records,
                ..*runs
            };
            let page = page(&stopped);
            assert!(page.contains("11 of 12 runs finished"), "{page}");
            assert!(page.contains(&cut) && page.contains("Raise [budget]"), "{page}");
            assert!(page.contains("(n = 2)"), "{page}");
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
