//! A data file as the form shows it: its columns, its first rows, how many there are.
//!
//! What is wrong deep inside a file is found by the workload, which reads it whole.

use leptos::prelude::*;
use serde_json::{Map, Value};

use super::form::Form;
use super::place::Place;

const SHOWN: usize = 5;

/// A data file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Preview {
    /// Names of the columns, in order.
    pub(super) columns: Vec<String>,
    /// The first rows, each with a text for each column.
    pub(super) rows: Vec<Vec<String>>,
    /// How many rows there are.
    pub(super) count: usize,
    /// Characters in the whole file.
    pub(super) characters: usize,
}

/// The notation of a text that came without a file name: `jsonl`, `tsv` or `csv`.
pub(super) fn notation(text: &str) -> &'static str {
    let text = text.trim_start_matches('\u{feff}').trim_start();
    if text.starts_with('{') {
        "jsonl"
    } else if text.lines().next().is_some_and(|header| header.contains('\t')) {
        "tsv"
    } else {
        "csv"
    }
}

/// Columns parted by tabs as columns parted by commas.
///
/// # Errors
/// When a line does not read.
pub(super) fn without_tabs(text: &str) -> Result<String, String> {
    let mut reader = csv::ReaderBuilder::new()
        .delimiter(b'\t')
        .has_headers(false)
        .flexible(true)
        .from_reader(text.as_bytes());
    let mut writer = csv::WriterBuilder::new().flexible(true).from_writer(Vec::new());
    for record in reader.records() {
        let record = record.map_err(|error| error.to_string())?;
        writer.write_record(&record).map_err(|error| error.to_string())?;
    }
    let bytes = writer.into_inner().map_err(|error| error.to_string())?;
    String::from_utf8(bytes).map_err(|error| error.to_string())
}

/// Whether a text is a run's journal: its first line names the study.
pub(super) fn is_journal(text: &str) -> bool {
    let first = text.lines().next().unwrap_or_default();
    let first: Option<Value> = serde_json::from_str(first.trim_start_matches('\u{feff}')).ok();
    first.is_some_and(|first| first["event"] == "study")
}

impl Preview {
    /// The rows that the form has, with their path; why they cannot be read.
    pub(super) fn of_rows(form: Form) -> Memo<Option<Result<(String, Self), String>>> {
        let path = form.memo(|study| Place::Workload.text(study, "data"));
        // The draft changes with every key pressed anywhere, a file seldom: it is looked at anew then only.
        let file = Memo::new(move |_| {
            let path = path.get();
            let text = form.draft.with(|draft| draft.files.get(&path).cloned())?;
            Some((path, text))
        });
        Memo::new(move |_| {
            file.with(|file| {
                let (path, text) = file.as_ref()?;
                Some(Self::of(path, text).map(|preview| (path.clone(), preview)))
            })
        })
    }

    /// Looks at a file.
    ///
    /// # Errors
    /// When not even its head can be read.
    pub(super) fn of(path: &str, text: &str) -> Result<Self, String> {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let is_csv = path.to_lowercase().ends_with(".csv");
        let mut preview = if is_csv { csv(text) } else { jsonl(text) }?;
        preview.characters = text.chars().count();
        if preview.count == 0 {
            return Err(format!(
                "{path} holds no examples. It needs a header line and at least one row, or one JSON object a line."
            ));
        }
        Ok(preview)
    }
}

fn csv(text: &str) -> Result<Preview, String> {
    let mut reader = csv::ReaderBuilder::new()
        .flexible(true)
        .from_reader(text.as_bytes());
    let header = reader.headers().map_err(|error| error.to_string())?;
    let mut preview = Preview {
        columns: header.iter().map(str::to_owned).collect(),
        ..Preview::default()
    };
    for record in reader.records() {
        let record = record.map_err(|error| error.to_string())?;
        if preview.count < SHOWN {
            let cell = |column: usize| record.get(column).unwrap_or_default().to_owned();
            preview.rows.push((0..preview.columns.len()).map(cell).collect());
        }
        preview.count += 1;
    }
    Ok(preview)
}

fn jsonl(text: &str) -> Result<Preview, String> {
    let mut preview = Preview::default();
    let lines = (1..)
        .zip(text.lines())
        .filter(|(_, line)| !line.trim().is_empty());
    for (number, line) in lines {
        if preview.count < SHOWN {
            let fields: Map<String, Value> = serde_json::from_str(line)
                .map_err(|_| format!("Line {number} is not a JSON object. Write one object a line."))?;
            let new = fields
                .keys()
                .filter(|key| !preview.columns.contains(key))
                .cloned();
            let new: Vec<String> = new.collect();
            preview.columns.extend(new);
            let cell = |column: &String| fields.get(column).map(text_of).unwrap_or_default();
            preview.rows.push(preview.columns.iter().map(cell).collect());
        }
        preview.count += 1;
    }
    let width = preview.columns.len();
    for row in &mut preview.rows {
        row.resize(width, String::new());
    }
    Ok(preview)
}

fn text_of(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null => String::new(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_head_of_a_csv_file_is_shown() {
        let preview = Preview::of("a.CSV", "\u{feff}q,a\n\"x, y\",1\nz,2\n").unwrap();
        assert_eq!(preview.columns, ["q", "a"]);
        assert_eq!(preview.rows[0], ["x, y", "1"]);
        assert_eq!(preview.count, 2);
    }

    #[test]
    fn json_lines_may_differ_in_their_columns() {
        let preview = Preview::of("a.jsonl", "{\"q\":1}\n\n{\"q\":\"x\",\"n\":null}\n").unwrap();
        assert_eq!(preview.columns, ["q", "n"]);
        assert_eq!(preview.rows, [["1", ""], ["x", ""]]);
        assert!(
            Preview::of("a.jsonl", "[1]")
                .unwrap_err()
                .contains("Line 1 is not")
        );
        assert!(
            Preview::of("a.csv", "q,a\n")
                .unwrap_err()
                .contains("holds no examples")
        );
    }

    #[test]
    fn pasted_text_tells_its_notation() {
        assert_eq!(notation(" {\"q\": 1}"), "jsonl");
        assert_eq!(notation("q,a\n1,2"), "csv");
        assert_eq!(notation("q\ta\n1\t2"), "tsv");
    }

    #[test]
    fn tabs_become_commas_and_cells_stay_whole() {
        let csv = without_tabs("q\ta\nx, y\t1\nz\t\"2\"\n").unwrap();
        assert_eq!(csv, "q,a\n\"x, y\",1\nz,2\n");
        assert_eq!(Preview::of("a.csv", &csv).unwrap().rows[0], ["x, y", "1"]);
    }

    #[test]
    fn a_journal_is_told_from_rows() {
        assert!(is_journal(
            "{\"event\":\"study\",\"schema\":1}\n{\"event\":\"candidate\"}"
        ));
        assert!(!is_journal("{\"question\":\"q\"}"));
        assert!(!is_journal("{\"event\":\"concert\"}"));
    }
}
