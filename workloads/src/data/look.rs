//! A file of examples as somebody looks at it before a study reads it.

use indexmap::IndexSet;
use serde_json::{Map, Value};

use super::rows;
use crate::settings::BuildError;

/// Bytes of the names of all columns: what is shown of a file is to be small, whatever it holds.
const MOST_NAMES: usize = 32 << 10;

/// Characters of a cell that are shown.
const SHOWN: usize = 200;

/// Names, in lower case, of columns that hold what is asked.
pub const ASKED: &[&str] = &["question", "input", "message", "text", "query", "prompt"];

/// The same of columns that hold the answer expected.
pub const EXPECTED: &[&str] = &["answer", "expected", "output", "label", "target"];

/// The first column that has one of these names.
pub fn guess<'a>(columns: &'a [String], names: &[&str]) -> Option<&'a String> {
    columns
        .iter()
        .find(|column| names.contains(&column.trim().to_lowercase().as_str()))
}

/// The template that puts a column in its place: `{{ question }}`. None for a name that templates
/// cannot spell.
pub fn template(column: &str) -> Option<String> {
    let mut letters = column.chars();
    let plain = letters
        .next()
        .is_some_and(|first| first.is_ascii_alphabetic() || first == '_')
        && letters.all(|letter| letter.is_ascii_alphanumeric() || letter == '_');
    plain.then(|| format!("{{{{ {column} }}}}"))
}

/// What a file holds.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Look {
    /// Names of the columns, in the order in which they come up.
    pub columns: Vec<String>,
    /// The first rows, with a text for each column; a long one is cut.
    pub first: Vec<Vec<String>>,
    /// How many rows there are.
    pub count: usize,
}

impl Look {
    /// Reads a table as a workload does whose study leaves the format out, and keeps so many of its first rows.
    ///
    /// ```
    /// use capo_workloads::data::Look;
    ///
    /// let look = Look::at_table("rows.csv", b"question,answer\n1 + 1?,2\n2 + 2?,4\n", 1).unwrap();
    /// assert_eq!(look.columns, ["question", "answer"]);
    /// assert_eq!((look.first, look.count), (vec![vec!["1 + 1?".to_owned(), "2".to_owned()]], 2));
    /// ```
    ///
    /// # Errors
    /// The file and the line that does not read, and why.
    pub fn at_table(file: &str, bytes: &[u8], most: usize) -> Result<Self, BuildError> {
        let (mut columns, mut rows, mut count) = (IndexSet::new(), Vec::new(), 0);
        let mut names = 0;
        rows::each(file, bytes, None, |row| {
            count += 1;
            for column in row.fields.keys() {
                if names <= MOST_NAMES && !columns.contains(column) {
                    names += column.len() + 1;
                    columns.insert(column.clone());
                }
            }
            if rows.len() < most {
                rows.push(row.fields);
            }
        })?;
        if names > MOST_NAMES {
            let problem = format!("the names of its columns are longer than {MOST_NAMES} bytes in all");
            return Err(BuildError::data(file, problem));
        }
        let cells = |row: &Map<String, Value>| columns.iter().map(|column| cell(row.get(column))).collect();
        Ok(Self {
            first: rows.iter().map(cells).collect(),
            columns: columns.into_iter().collect(),
            count,
        })
    }
}

fn cell(value: Option<&Value>) -> String {
    match value {
        None | Some(Value::Null) => String::new(),
        Some(Value::String(text)) => cut(text),
        Some(other) => cut(&other.to_string()),
    }
}

/// A text, or its beginning with `…`.
pub(crate) fn cut(text: &str) -> String {
    match text.char_indices().nth(SHOWN) {
        None => text.to_owned(),
        Some((end, _)) => format!("{}…", &text[..end]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_of_json_may_differ_in_their_columns() {
        let look = Look::at_table("a.jsonl", b"{\"q\":1}\n\n{\"n\":null,\"q\":[2]}\n", 20).unwrap();
        assert_eq!(look.columns, ["q", "n"]);
        assert_eq!(look.first, [["1", ""], ["[2]", ""]]);
        assert_eq!(look.count, 2);
    }

    #[test]
    fn long_cells_are_cut_and_further_rows_counted() {
        let text = format!("q\n{}\nb\nc\n", "ä".repeat(SHOWN + 1));
        let look = Look::at_table("a.csv", text.as_bytes(), 1).unwrap();
        assert_eq!(look.first, [["ä".repeat(SHOWN) + "…"]]);
        assert_eq!(look.count, 3);
    }

    #[test]
    fn columns_are_guessed_by_name() {
        let columns = ["Id".to_owned(), "Question".to_owned()];
        assert_eq!(guess(&columns, ASKED).map(String::as_str), Some("Question"));
        assert_eq!(template("question").as_deref(), Some("{{ question }}"));
        assert_eq!(template("two words"), None);
    }

    #[test]
    fn what_a_workload_refuses_is_refused() {
        let error = Look::at_table("a.jsonl", b"{\"q\":1}\n{\"q\":}\n", 20).unwrap_err();
        assert_eq!(
            error.to_string(),
            "a.jsonl line 2: not JSON: expected a value at column 6"
        );
    }
}
