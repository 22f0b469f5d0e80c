//! `capo journal export`: candidates, rollouts or rounds as a table.

use std::path::PathBuf;

use capo_core::ids::CandidateId;
use capo_core::journal::{Event, RolloutEvent};
use capo_core::reading::feasibility::all_sat;
use capo_core::reading::in_force;
use capo_core::reading::measured::estimate;
use capo_core::table::{Align, Table};
use capo_core::workload::Split;
use indexmap::IndexMap;
use serde_json::{Map, Value, json};

use crate::cli::failure::{Ending, Failure, print_data};
use crate::cli::{place, report};
use crate::recorded::{RecordedRun, read_events};

/// Write candidates, rollouts or rounds as JSON, CSV or Markdown.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct ExportArgs {
    /// The journal.
    #[arg(value_name = "JOURNAL")]
    journal: PathBuf,
    /// What a row stands for.
    #[arg(long, value_enum, default_value_t = Rows::Candidates)]
    rows: Rows,
    /// How it is written.
    #[arg(long, value_enum, default_value_t = Format::Csv)]
    format: Format,
    /// File to write, replaced if it is there unless it is a journal; standard output unless given.
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Rows {
    /// Prompts, with their means and standard errors on both splits.
    Candidates,
    /// Single rollouts, with their measurements and usage.
    Rollouts,
    /// Candidates as the rounds scored them, with the multipliers.
    Rounds,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Format {
    /// An array of objects.
    Json,
    /// Comma-separated values with a heading.
    Csv,
    /// A Markdown table.
    Markdown,
}

pub(super) fn run(args: &ExportArgs) -> Result<Ending, Failure> {
    if let Some(path) = &args.out {
        place::check("--out", path, [("a journal", args.journal.as_path())])?;
    }
    let run = RecordedRun::read(&args.journal)?;
    let rows = match args.rows {
        Rows::Candidates => candidates(&run),
        Rows::Rollouts => rollouts(&run)?,
        Rows::Rounds => rounds(&run),
    };
    let text = match args.format {
        Format::Json => json_text(&rows)?,
        Format::Csv => table(&rows).csv(),
        Format::Markdown => table(&rows).markdown(),
    };
    match &args.out {
        None => print_data(&text)?,
        Some(path) => place::write(path, &text)?,
    }
    Ok(Ending::Done)
}

/// A row: values by column. A study's own metrics stand behind a prefix, since people may name
/// them as a column is named already.
type Row = Map<String, Value>;

fn candidates(run: &RecordedRun) -> Vec<Row> {
    let state = &run.state;
    let best = state.finished().and_then(|finished| finished.best);
    let limits = in_force::thresholds(state, None);
    let row = |id: &CandidateId, candidate: &capo_core::run_state::Candidate| {
        let mut row = Row::new();
        let mut put = |name: &str, value: Value| row.insert(name.to_owned(), value);
        put("id", json!(id));
        put("round", json!(candidate.round));
        put("origin", json!(candidate.origin));
        put("parents", json!(spaced(&candidate.parents)));
        put("characters", json!(candidate.characters));
        put("best", json!(best == Some(*id)));
        for (name, split) in [("optimize", Split::Optimize), ("evaluate", Split::Evaluate)] {
            let mut means: IndexMap<&str, f64> = IndexMap::new();
            for metric in report::metrics(&run.study) {
                let found = estimate(state, id, metric, split);
                put(&format!("{name}.{metric}"), json!(found.map(|found| found.mean)));
                put(
                    &format!("{name}.{metric}.standard_error"),
                    json!(found.map(|found| found.standard_error)),
                );
                means.extend(found.map(|found| (metric, found.mean)));
            }
            let verdict = all_sat(&limits, |metric| means.get(metric).copied());
            put(
                &format!("{name}.all_sat"),
                json!(verdict.filter(|_| !means.is_empty())),
            );
        }
        put("prompt", json!(&*candidate.prompt));
        row
    };
    state
        .candidates()
        .map(|(id, candidate)| row(id, candidate))
        .collect()
}

fn rollouts(run: &RecordedRun) -> Result<Vec<Row>, Failure> {
    // Workloads may measure different metrics; every row has a column for each of them.
    let mut metrics: Vec<&str> = Vec::new();
    for metric in run.study.workloads.values().flat_map(|record| &record.metrics) {
        if !metrics.contains(&metric.name.as_str()) {
            metrics.push(&metric.name);
        }
    }
    let mut rows = Vec::new();
    read_events(&run.path, |_, event| {
        if let Event::Rollout(event) = event {
            rows.push(rollout(&event, &metrics));
        }
        Ok(())
    })?;
    Ok(rows)
}

fn rollout(event: &RolloutEvent, metrics: &[&str]) -> Row {
    let usage = event.usage.total();
    let mut row = Row::new();
    let mut put = |name: &str, value: Value| row.insert(name.to_owned(), value);
    put("candidate", json!(event.candidate));
    put("split", json!(event.split));
    put("workload", json!(event.workload));
    put("example", json!(event.example));
    put("repeat", json!(event.repeat));
    for metric in metrics {
        put(
            &format!("measurement.{metric}"),
            json!(event.measurements.get(*metric)),
        );
    }
    put("failed", json!(event.failed));
    put("calls", json!(usage.calls));
    put("input_tokens", json!(usage.input_tokens));
    put("output_tokens", json!(usage.output_tokens));
    put("usd", json!(usage.usd));
    put("seconds", json!(usage.seconds));
    row
}

fn rounds(run: &RecordedRun) -> Vec<Row> {
    let constraints: Vec<&str> = report::metrics(&run.study).skip(1).collect();
    let mut rows = Vec::new();
    for round in run.state.rounds() {
        for (id, score) in &round.scores {
            let mut row = Row::new();
            let mut put = |name: &str, value: Value| row.insert(name.to_owned(), value);
            put("round", json!(round.round));
            put("candidate", json!(id));
            put("objective", json!(score.objective));
            for metric in &constraints {
                put(&format!("cost.{metric}"), json!(score.costs.get(*metric)));
            }
            put("lagrangian", json!(score.lagrangian));
            put("feasible", json!(score.feasible));
            put("parent", json!(round.parents.contains(id)));
            put("best", json!(round.best.contains(id)));
            put("retained", json!(round.retained.contains(id)));
            for metric in &constraints {
                put(
                    &format!("multiplier.{metric}"),
                    json!(round.multipliers.get(*metric)),
                );
            }
            rows.push(row);
        }
    }
    rows
}

fn spaced(ids: &[CandidateId]) -> String {
    ids.iter()
        .map(CandidateId::to_string)
        .collect::<Vec<_>>()
        .join(" ")
}

fn json_text(rows: &[Row]) -> Result<String, Failure> {
    serde_json::to_string_pretty(rows)
        .map(|text| text + "\n")
        .map_err(|error| Failure::new(error.to_string()))
}

/// The rows below their headings; without rows there are none.
fn table(rows: &[Row]) -> Table {
    let Some(first) = rows.first() else {
        return Table::default();
    };
    let aligns = first.keys().map(|heading| {
        let numeric = rows.iter().any(|row| row[heading].is_number());
        if numeric { Align::Right } else { Align::Left }
    });
    let cells = |row: &Row| row.values().map(cell).collect();
    Table::new(first.keys())
        .aligned(aligns)
        .rows(rows.iter().map(cells))
}

/// A value in one cell; what is not known is empty.
fn cell(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows() -> Vec<Row> {
        let row = |value: Value| value.as_object().cloned().unwrap_or_default();
        vec![
            row(json!({ "id": "a", "mean": 0.5, "prompt": "one, \"two\"\nthree | four" })),
            row(json!({ "id": "b", "mean": null, "prompt": "" })),
        ]
    }

    #[test]
    fn csv_keeps_line_breaks_and_leaves_the_unknown_empty() {
        assert_eq!(
            table(&rows()).csv(),
            "id,mean,prompt\na,0.5,\"one, \"\"two\"\"\nthree | four\"\nb,,\n"
        );
    }

    #[test]
    fn markdown_keeps_one_row_a_line() {
        assert_eq!(
            table(&rows()).markdown(),
            "| id  | mean | prompt                      |\n| --- | ---: | --------------------------- |\n\
             | a   |  0.5 | one, \"two\"<br>three \\| four |\n| b   |      |                             |\n"
        );
        assert_eq!(table(&[]).markdown(), "");
    }
}
