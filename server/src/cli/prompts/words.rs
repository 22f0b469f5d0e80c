//! A version of a prompt in words and numbers.

use capo_api::{PromptShown, VersionShown};
use capo_core::reading::evidence::Evidence;
use capo_core::table::{Align, Table};
use indexmap::IndexMap;

use crate::cli::layout::{NOTHING, estimate, number};
use crate::cli::report::certificate;

/// Each label with the version that it is on.
pub(super) fn labels_of(prompt: &PromptShown) -> String {
    let labels = prompt.labels.iter();
    let labels: Vec<String> = labels
        .map(|(label, version)| format!("{label} {version}"))
        .collect();
    labels.join(", ")
}

/// All of a version but its text: where it comes from, and what speaks for it.
pub(super) fn numbers(version: &VersionShown) -> String {
    let mut grid = Table::default().aligned([Align::Left; 2]);
    grid.row(["SHA-256", &version.sha256]);
    if !version.labels.is_empty() {
        grid.row(["labels", &version.labels.join(", ")]);
    }
    if let Some(note) = &version.note {
        grid.row(["note", note]);
    }
    grid.row([
        "added by",
        &format!("{} at {}", version.created_by, version.created_at),
    ]);
    if let Some(run) = &version.run {
        grid.row(["run", run]);
    }
    let mut text = format!("{} version {}\n{}", version.name, version.version, grid.text(2));
    match &version.evidence {
        Some(evidence) => text += &speaks(evidence),
        None => text += "\nNo run speaks for it.\n",
    }
    text
}

/// Held-out estimates beside those of the seed prompt, and the certificate where there is one.
fn speaks(evidence: &Evidence) -> String {
    let mut text = format!("\nThe prompt {}\n", evidence.feasibility.words());
    if evidence.measured_elsewhere {
        text += "Measured elsewhere: the server only verified the journal that was pushed to it\n";
    }
    if evidence.evaluation.is_empty() {
        text += "Not measured on held-out examples\n";
    } else {
        let mut grid = Table::new(["", "at most", "seed prompt", "this prompt"]);
        let shown = |values: &IndexMap<String, _>, metric: &str| {
            values.get(metric).map_or_else(|| NOTHING.to_owned(), estimate)
        };
        for metric in evidence.evaluation.keys() {
            let threshold = evidence.thresholds.get(metric);
            grid.row([
                metric.clone(),
                threshold.map_or_else(String::new, |threshold| number(*threshold)),
                shown(&evidence.seed_evaluation, metric),
                shown(&evidence.evaluation, metric),
            ]);
        }
        text += &format!(
            "\nOn the held-out examples, which the search never saw\n{}",
            grid.text(2)
        );
    }
    if let Some(tested) = &evidence.certificate {
        text += &format!("\n{}", certificate(tested).trim_end());
        text.push('\n');
    }
    text
}
