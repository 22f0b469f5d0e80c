//! From the bytes of a JSONL, CSV or TSV file to rows with line numbers.

use std::collections::HashSet;

use capo_core::study::suggest;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::settings::BuildError;

/// The notations of a data file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Format {
    /// JSON Lines: one object a line, blank lines ignored.
    Jsonl,
    /// Comma-separated values (RFC 4180) under a header line; every value is text. Where the format is
    /// left out, the file's name ends in `.csv` and the header line has no comma, tabs separate, or else
    /// semicolons, as spreadsheets of many countries write.
    Csv,
    /// Tab-separated values under a header line; every value is text.
    Tsv,
}

impl Format {
    /// The notation a file name stands for, if it says.
    pub fn of_path(path: &str) -> Option<Self> {
        let (_, extension) = path.rsplit_once('.')?;
        match extension.to_ascii_lowercase().as_str() {
            "jsonl" | "ndjson" => Some(Self::Jsonl),
            "csv" => Some(Self::Csv),
            "tsv" | "tab" => Some(Self::Tsv),
            _ => None,
        }
    }
}

/// One row: what its columns hold, and where it stands.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Row {
    /// Line of the file, counted from 1; of a CSV record over several lines, the first.
    pub(super) line: u64,
    /// Values by column.
    pub(super) fields: Map<String, Value>,
}

/// Reads all rows of a file.
pub(super) fn parse(file: &str, bytes: &[u8], format: Option<Format>) -> Result<Vec<Row>, BuildError> {
    let mut rows = Vec::new();
    each(file, bytes, format, |row| rows.push(row))?;
    Ok(rows)
}

/// Reads the rows of a file one by one.
pub(super) fn each(
    file: &str,
    bytes: &[u8],
    format: Option<Format>,
    mut take: impl FnMut(Row),
) -> Result<(), BuildError> {
    let is_stated = format.is_some();
    let format = format.or_else(|| Format::of_path(file)).ok_or_else(|| {
        BuildError::data(
            file,
            "neither .jsonl nor .csv nor .tsv; say which with format = \"jsonl\", \"csv\" or \"tsv\"",
        )
    })?;
    let text = std::str::from_utf8(bytes).map_err(|error| {
        let line = bytes[..error.valid_up_to()].split(|&byte| byte == b'\n').count();
        BuildError::line(file, line as u64, "not UTF-8; save the file as UTF-8")
    })?;
    // Spreadsheets write a byte order mark that is no part of the first column's name.
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut is_empty = true;
    let take = |row| {
        is_empty = false;
        take(row);
    };
    match format {
        Format::Jsonl => parse_jsonl(file, text, take)?,
        Format::Csv if is_stated => parse_csv(file, text, b',', take)?,
        Format::Csv => parse_csv(file, text, separator(text), take)?,
        Format::Tsv => parse_csv(file, text, b'\t', take)?,
    }
    if is_empty {
        return Err(BuildError::data(file, "the file holds no examples"));
    }
    Ok(())
}

fn parse_jsonl(file: &str, text: &str, mut take: impl FnMut(Row)) -> Result<(), BuildError> {
    for (line, content) in (1..)
        .zip(text.lines())
        .filter(|(_, content)| !content.trim().is_empty())
    {
        match serde_json::from_str(content) {
            Ok(Value::Object(fields)) => take(Row { line, fields }),
            Ok(other) => {
                let kind = kind(&other);
                return Err(BuildError::line(
                    file,
                    line,
                    format!("each line must be a JSON object, this one is {kind}"),
                ));
            }
            Err(error) => {
                let reason = suggest(&error.to_string());
                // serde_json counts lines within this one line: only the column helps.
                let reason = reason.split(" at line ").next().unwrap_or_default();
                return Err(BuildError::line(
                    file,
                    line,
                    format!("not JSON: {reason} at column {}", error.column()),
                ));
            }
        }
    }
    Ok(())
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}

/// What separates the columns of a `.csv`, by its header line alone: a comma if there is one outside
/// quotes, else a tab, else a semicolon.
fn separator(text: &str) -> u8 {
    let mut quoted = false;
    let mut others = [false; 2];
    for byte in text.trim_start_matches(['\r', '\n']).bytes() {
        match byte {
            b'"' => quoted = !quoted,
            _ if quoted => {}
            b',' => return b',',
            b'\t' => others[0] = true,
            b';' => others[1] = true,
            b'\r' | b'\n' => break,
            _ => {}
        }
    }
    match others {
        [true, _] => b'\t',
        [false, true] => b';',
        [false, false] => b',',
    }
}

fn parse_csv(file: &str, text: &str, separator: u8, mut take: impl FnMut(Row)) -> Result<(), BuildError> {
    let mut reader = csv::ReaderBuilder::new()
        .delimiter(separator)
        .from_reader(text.as_bytes());
    let mut lines = Lines::of(text);
    let header = reader
        .headers()
        .map_err(|error| csv_error(file, &error, separator, &mut lines))?;
    let header_line = header.position().map_or(1, |position| lines.at(position));
    let names: Vec<String> = header.iter().map(str::to_owned).collect();
    let mut seen = HashSet::new();
    for (index, name) in names.iter().enumerate() {
        if name.trim().is_empty() {
            return Err(BuildError::line(
                file,
                header_line,
                format!("column {} has no name in the header", index + 1),
            ));
        }
        if !seen.insert(name) {
            return Err(BuildError::line(
                file,
                header_line,
                format!("two columns are named `{name}`"),
            ));
        }
    }
    for record in reader.records() {
        let record = record.map_err(|error| csv_error(file, &error, separator, &mut lines))?;
        let fields = names
            .iter()
            .cloned()
            .zip(record.iter().map(Value::from))
            .collect();
        take(Row {
            line: record
                .position()
                .map_or(header_line, |position| lines.at(position)),
            fields,
        });
    }
    Ok(())
}

/// Lines of a CSV as an editor counts them. The reader's own count leaves out the empty lines before
/// a record, and line breaks of carriage returns alone.
struct Lines<'a> {
    text: &'a str,
    /// Up to where lines are counted.
    counted: usize,
    /// The line of that place, from 1.
    line: u64,
}

impl<'a> Lines<'a> {
    fn of(text: &'a str) -> Self {
        Self {
            text,
            counted: 0,
            line: 1,
        }
    }

    /// The line of the record at `position`, which is not before an earlier one asked for.
    fn at(&mut self, position: &csv::Position) -> u64 {
        let bytes = self.text.as_bytes();
        let is_break = |byte: &&u8| matches!(byte, b'\r' | b'\n');
        // The position is before the empty lines, or the second half of a line break, that the
        // reader skips.
        let start = usize::try_from(position.byte())
            .unwrap_or(usize::MAX)
            .min(bytes.len());
        let start = start + bytes[start..].iter().take_while(is_break).count();
        let between = &bytes[self.counted.min(start)..start];
        let breaks = between.iter().enumerate().filter(|(index, byte)| match byte {
            b'\n' => true,
            b'\r' => between.get(index + 1) != Some(&b'\n'),
            _ => false,
        });
        self.line += breaks.count() as u64;
        self.counted = start;
        self.line
    }
}

fn csv_error(file: &str, error: &csv::Error, separator: u8, lines: &mut Lines<'_>) -> BuildError {
    let separators = match separator {
        b'\t' => "tabs",
        b';' => "semicolons",
        _ => "commas",
    };
    match error.kind() {
        csv::ErrorKind::UnequalLengths {
            pos,
            expected_len,
            len,
        } => BuildError::Data {
            file: file.to_owned(),
            line: pos.as_ref().map(|position| lines.at(position)),
            problem: format!(
                "{len} {} where the header, separated by {separators}, has {expected_len}; quote fields that \
                 hold {separators} or line breaks",
                if *len == 1 { "field" } else { "fields" }
            ),
        },
        _ => BuildError::data(file, error),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn problem(file: &str, content: &[u8]) -> String {
        parse(file, content, None).unwrap_err().to_string()
    }

    #[test]
    fn jsonl_rows_keep_their_types_and_line_numbers() {
        let rows = parse("a.jsonl", b"{\"q\":\"x\",\"n\":1}\r\n\n{\"q\":[2]}", None).unwrap();
        assert_eq!(rows.iter().map(|row| row.line).collect::<Vec<_>>(), [1, 3]);
        assert_eq!(Value::Object(rows[0].fields.clone()), json!({"q": "x", "n": 1}));
        assert_eq!(rows[1].fields["q"], json!([2]));
    }

    #[test]
    fn csv_rows_are_text_and_quotes_may_span_lines() {
        let rows = parse(
            "a.CSV",
            "\u{feff}q,n\n\"a,\n\"\"b\"\"\",1\nc,2\n".as_bytes(),
            None,
        )
        .unwrap();
        assert_eq!(rows[0].fields["q"], json!("a,\n\"b\""));
        assert_eq!(rows[0].fields["n"], json!("1"));
        assert_eq!(rows.iter().map(|row| row.line).collect::<Vec<_>>(), [2, 4]);
    }

    #[test]
    fn csv_line_numbers_count_empty_lines_and_any_line_break() {
        let lines = |text: &str| -> Vec<u64> {
            let rows = parse("a.csv", text.as_bytes(), None).unwrap();
            rows.iter().map(|row| row.line).collect()
        };
        assert_eq!(lines("q\na\n\n\nb\nc\n"), [2, 5, 6]);
        assert_eq!(lines("q\r\na\r\n\r\n\"b\r\nb\"\r\nc"), [2, 4, 6]);
        assert_eq!(lines("\n\nq\n\na\n"), [5]);
        assert_eq!(lines("q\ra\rb"), [2, 3]);
    }

    #[test]
    fn a_malformed_line_is_named() {
        let error = problem("a.jsonl", b"{\"q\":1}\n{\"q\":}\n");
        assert!(
            error.starts_with("a.jsonl line 2: not JSON: expected a value at column 6"),
            "{error}"
        );
        assert!(
            problem("a.jsonl", b"[1]")
                .contains("line 1: each line must be a JSON object, this one is an array")
        );
    }

    #[test]
    fn a_line_that_is_not_utf8_is_named() {
        let error = problem("a.csv", b"q\r\nfine\r\ncaf\xe9\r\n");
        assert_eq!(error, "a.csv line 3: not UTF-8; save the file as UTF-8");
    }

    #[test]
    fn tables_may_be_separated_by_semicolons_or_tabs() {
        for (file, text) in [
            ("a.csv", "q;n\na, b;1\n"),
            ("a.csv", "\n\"q\";n\n\"a, b\";1\n"),
            ("a.csv", "q\tn\na, b\t1\n"),
            ("a.tsv", "q\tn\na, b\t1\n"),
            ("a.csv", "q,n\n\"a, b\",1\n"),
        ] {
            let rows = parse(file, text.as_bytes(), None).unwrap();
            assert_eq!(
                Value::Object(rows[0].fields.clone()),
                json!({"q": "a, b", "n": "1"}),
                "{text:?}"
            );
        }
        // Stated, the format means commas.
        let rows = parse("a.csv", b"q;n\na, b;1\n", Some(Format::Csv));
        assert!(rows.unwrap_err().to_string().contains("separated by commas"));
        // A comma in the header decides, and quotes hide it.
        assert_eq!(separator("a;b,c\n"), b',');
        assert_eq!(separator("\"a,b\";c\n1,2,3\n"), b';');
        assert_eq!(separator("a;b\tc"), b'\t');
        assert_eq!(separator("question\na;b,c"), b',');
        assert!(problem("a.csv", b"q;a\n1;2;3\n").contains(
            "line 2: 3 fields where the header, separated by semicolons, has 2; quote fields that hold semicolons"
        ));
    }

    #[test]
    fn an_empty_file_is_refused() {
        for (file, content) in [
            ("a.jsonl", ""),
            ("a.jsonl", "\n \n"),
            ("a.csv", ""),
            ("a.csv", "q,n\n"),
        ] {
            let error = problem(file, content.as_bytes());
            assert!(error.contains("holds no examples"), "{file} {content:?}: {error}");
        }
    }

    #[test]
    fn csv_shape_errors_name_the_line() {
        assert!(
            problem("a.csv", b"q,n\nx,1\ny\n")
                .contains("line 3: 1 field where the header, separated by commas, has 2")
        );
        assert!(problem("a.csv", b"q,q\n1,2\n").contains("two columns are named `q`"));
        assert!(problem("a.csv", b"q,\n1,2\n").contains("column 2 has no name"));
        assert!(problem("a.csv", b"q,n\n\n\ny\n").contains("line 4: 1 field "));
    }

    #[test]
    fn an_unknown_extension_asks_for_the_format() {
        assert!(problem("a.txt", b"x").contains("format = \"jsonl\""));
        assert!(parse("a.txt", b"q\nx\n", Some(Format::Csv)).is_ok());
    }
}
