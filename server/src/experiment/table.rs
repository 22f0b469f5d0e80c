//! Tables as Markdown, CSV and JSON.
//!
//! A cell keeps its figure and its uncertainty apart until it is written, so that Markdown can
//! show `0.45 ± 0.02` while CSV has three columns that a spreadsheet can use.

use capo_core::estimate::Estimate;
use capo_core::table::{self, Align};
use serde::Serialize;

use super::statistics::Share;

/// One figure, with what is known about its uncertainty.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Cell {
    /// Nothing known, or not applicable.
    Empty,
    /// A text.
    Text {
        /// The words.
        text: String,
    },
    /// A figure without uncertainty.
    Number {
        /// The number, in the unit of its column.
        value: f64,
    },
    /// A mean over seeds.
    Estimate(Estimate),
    /// A share of the seeds, shown with Wilson's 95 % interval.
    Share(Share),
    /// A figure that comes with a verdict: did the prompt that reached it meet every threshold?
    Judged {
        /// The number, in the unit of its column.
        value: f64,
        /// Whether every threshold was met.
        all_sat: bool,
    },
}

impl Cell {
    /// A cell of text.
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text { text: text.into() }
    }

    /// A figure, or nothing.
    pub fn number(value: impl Into<Option<f64>>) -> Self {
        value.into().map_or(Self::Empty, |value| Self::Number { value })
    }

    /// The mean over the values, or nothing when there are none.
    pub fn mean(values: &[f64]) -> Self {
        Estimate::of(values).map_or(Self::Empty, Self::Estimate)
    }

    /// `expected` is how many values a mean is usually over: one over another number says so.
    fn markdown(&self, decimals: usize, expected: Option<usize>) -> String {
        match self {
            Self::Empty => "–".into(),
            Self::Text { text } => text.clone(),
            Self::Number { value } => format!("{value:.decimals$}"),
            Self::Estimate(Estimate {
                mean,
                standard_error,
                n,
            }) => {
                // One value has no spread; core states its standard error as 0.
                let spread = if *n > 1 {
                    format!(" ± {standard_error:.decimals$}")
                } else {
                    String::new()
                };
                let count = if expected.is_some_and(|expected| expected != *n) {
                    format!(" (n = {n})")
                } else {
                    String::new()
                };
                format!("{mean:.decimals$}{spread}{count}")
            }
            Self::Share(share) => match share.wilson() {
                Some((low, high)) => format!(
                    "{}/{} ({:.0}–{:.0} %)",
                    share.count,
                    share.of,
                    100.0 * low,
                    100.0 * high
                ),
                None => "–".into(),
            },
            Self::Judged { value, all_sat } => {
                format!("{value:.decimals$} {}", if *all_sat { "✓" } else { "✗" })
            }
        }
    }
}

/// What a column holds; decides how many columns CSV needs for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ColumnKind {
    /// [`Cell::Text`].
    Text,
    /// [`Cell::Number`].
    Number,
    /// [`Cell::Estimate`].
    Estimate,
    /// [`Cell::Share`].
    Share,
    /// [`Cell::Judged`].
    Judged,
}

impl ColumnKind {
    fn csv_suffixes(self) -> &'static [&'static str] {
        match self {
            Self::Text | Self::Number => &[""],
            Self::Estimate => &["", " standard error", " n"],
            Self::Share => &["", " of", " low", " high"],
            Self::Judged => &["", " all_sat"],
        }
    }

    fn csv_fields(self, cell: &Cell) -> Vec<String> {
        match cell {
            Cell::Empty => vec![String::new(); self.csv_suffixes().len()],
            Cell::Text { text } => vec![text.clone()],
            Cell::Number { value } => vec![value.to_string()],
            Cell::Estimate(estimate) => vec![
                estimate.mean.to_string(),
                if estimate.n > 1 {
                    estimate.standard_error.to_string()
                } else {
                    String::new()
                },
                estimate.n.to_string(),
            ],
            Cell::Share(share) => {
                let (low, high) = share
                    .wilson()
                    .map(|(low, high)| (low.to_string(), high.to_string()))
                    .unwrap_or_default();
                vec![share.count.to_string(), share.of.to_string(), low, high]
            }
            Cell::Judged { value, all_sat } => vec![value.to_string(), all_sat.to_string()],
        }
    }

    fn accepts(self, cell: &Cell) -> bool {
        matches!(
            (self, cell),
            (_, Cell::Empty)
                | (Self::Text, Cell::Text { .. })
                | (Self::Number, Cell::Number { .. })
                | (Self::Estimate, Cell::Estimate(_))
                | (Self::Share, Cell::Share(_))
                | (Self::Judged, Cell::Judged { .. })
        )
    }
}

/// One column.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Column {
    /// Heading, unique within the table.
    pub name: String,
    /// What its cells hold.
    pub kind: ColumnKind,
    /// Digits after the point in Markdown; CSV and JSON keep every digit.
    pub decimals: usize,
}

impl Column {
    /// A column with three decimals.
    pub fn new(name: impl Into<String>, kind: ColumnKind) -> Self {
        Self {
            name: name.into(),
            kind,
            decimals: 3,
        }
    }

    /// The same column with another number of decimals.
    pub fn decimals(self, decimals: usize) -> Self {
        Self { decimals, ..self }
    }
}

/// A table with a heading and remarks.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Table {
    /// Stem of the files it is written to, such as `summary`.
    pub name: String,
    /// Heading.
    pub title: String,
    /// Columns, left to right.
    pub columns: Vec<Column>,
    /// Rows, each with one cell per column.
    pub rows: Vec<Vec<Cell>>,
    /// Remarks below the table, a sentence each.
    pub notes: Vec<String>,
    /// How many seeds a mean is over unless its cell says otherwise, where means are over seeds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seeds: Option<usize>,
}

impl Table {
    /// A table without columns, rows or notes.
    pub fn new(name: &str, title: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            title: title.into(),
            columns: Vec::new(),
            rows: Vec::new(),
            notes: Vec::new(),
            seeds: None,
        }
    }

    /// The same for means over so many seeds.
    #[must_use]
    pub fn over_seeds(mut self, seeds: usize) -> Self {
        self.seeds = Some(seeds);
        self
    }

    /// Adds a row.
    ///
    /// # Panics
    /// When the row does not fit the columns: a mistake in the experiment, not in its input.
    pub fn push(&mut self, row: Vec<Cell>) {
        assert_eq!(
            row.len(),
            self.columns.len(),
            "table `{}`: row and columns differ",
            self.name
        );
        for (cell, column) in row.iter().zip(&self.columns) {
            assert!(
                column.kind.accepts(cell),
                "table `{}`: column `{}` does not hold {cell:?}",
                self.name,
                column.name
            );
        }
        self.rows.push(row);
    }

    /// As a Markdown section of the second level: heading, pipe table (figures aligned right), notes.
    pub fn markdown(&self) -> String {
        let cells = |row: &Vec<Cell>| {
            let cells = row.iter().zip(&self.columns);
            cells
                .map(|(cell, column)| cell.markdown(column.decimals, self.seeds))
                .collect()
        };
        let aligns = self.columns.iter().map(|column| match column.kind {
            ColumnKind::Text => Align::Left,
            _ => Align::Right,
        });
        let table = table::Table::new(self.columns.iter().map(|column| &column.name));
        let table = table.aligned(aligns).rows(self.rows.iter().map(cells));
        let mut out = format!("## {}\n\n{}", self.title, table.markdown());
        for note in &self.notes {
            out.push('\n');
            out.push_str(note);
            out.push('\n');
        }
        out
    }

    /// As CSV (RFC 4180) with every digit: an estimate takes three columns (mean, standard error,
    /// n), a share four (count, of, and Wilson's limits), a judged figure two.
    pub fn csv(&self) -> String {
        let named = |column: &Column| {
            let suffixes = column.kind.csv_suffixes().iter();
            suffixes
                .map(|suffix| format!("{}{suffix}", column.name))
                .collect::<Vec<_>>()
        };
        let fields = |row: &Vec<Cell>| {
            let cells = row.iter().zip(&self.columns);
            cells
                .flat_map(|(cell, column)| column.kind.csv_fields(cell))
                .collect()
        };
        let table = table::Table::new(self.columns.iter().flat_map(named));
        table.rows(self.rows.iter().map(fields)).csv()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> Table {
        let mut table = Table::new("summary", "Dual rate");
        table.columns = vec![
            Column::new("β", ColumnKind::Text),
            Column::new("objective", ColumnKind::Estimate),
            Column::new("feasible", ColumnKind::Share),
            Column::new("Airline (paper)", ColumnKind::Judged),
            Column::new("usd", ColumnKind::Number).decimals(2),
        ];
        table.push(vec![
            Cell::text("0.5, low | slow"),
            Cell::mean(&[0.4, 0.5, 0.6]),
            Cell::Share(Share { count: 1, of: 3 }),
            Cell::Judged {
                value: 0.4,
                all_sat: false,
            },
            Cell::number(0.125),
        ]);
        table.push(vec![
            Cell::text("4"),
            Cell::mean(&[0.55]),
            Cell::Share(Share { count: 3, of: 3 }),
            Cell::Judged {
                value: 0.45,
                all_sat: true,
            },
            Cell::Empty,
        ]);
        table.notes.push("Means over seeds.".into());
        table
    }

    #[test]
    fn markdown_shows_mean_and_error() {
        insta::assert_snapshot!(sample().markdown());
    }

    #[test]
    fn csv_keeps_figure_and_error_apart_and_quotes_commas() {
        insta::assert_snapshot!(sample().csv());
    }

    #[test]
    fn every_csv_row_has_as_many_fields_as_the_heading() {
        let csv = sample().csv();
        let mut reader = csv::Reader::from_reader(csv.as_bytes());
        let width = reader.headers().unwrap().len();
        assert_eq!(width, 1 + 3 + 4 + 2 + 1);
        assert!(reader.records().all(|record| record.unwrap().len() == width));
    }

    #[test]
    fn json_names_the_kind_of_each_cell() {
        let json = serde_json::to_value(sample()).unwrap();
        assert_eq!(json["rows"][0][1]["kind"], "estimate");
        assert_eq!(json["rows"][0][1]["n"], 3);
        assert_eq!(json["rows"][1][4]["kind"], "empty");
    }

    #[test]
    #[should_panic(expected = "column `objective` does not hold")]
    fn a_cell_in_the_wrong_column_is_refused() {
        let mut table = sample();
        let mut row = table.rows[0].clone();
        row[1] = Cell::text("0.5");
        table.push(row);
    }
}
