//! A table renderer: rows of cells as columns of text, as Markdown and as CSV.

/// Characters up to which the cells of a Markdown column are padded to one width.
const PADDED: usize = 40;

/// Where the cells of a column stand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Align {
    /// At its left edge, as words do.
    Left,
    /// At its right edge, as numbers do.
    Right,
}

/// A heading and rows of cells. Unless it is told otherwise, the first column stands to the left and all others to the
/// right.
///
/// ```
/// use capo_core::table::Table;
///
/// let mut table = Table::new(["", "λ"]);
/// table.row(["turns", "0.25"]);
/// assert_eq!(table.text(2), "            λ\n  turns  0.25\n");
/// assert_eq!(table.markdown(), "|       |    λ |\n| ----- | ---: |\n| turns | 0.25 |\n");
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Table {
    aligns: Vec<Align>,
    /// The heading first, unless there is none.
    rows: Vec<Vec<String>>,
}

impl Table {
    /// A table with its heading.
    pub fn new<S: Into<String>>(heading: impl IntoIterator<Item = S>) -> Self {
        let mut table = Self::default();
        table.row(heading);
        table
    }

    /// The same with its first columns so; those after them stand as usual.
    #[must_use]
    pub fn aligned(mut self, aligns: impl IntoIterator<Item = Align>) -> Self {
        self.aligns = aligns.into_iter().collect();
        self
    }

    /// Adds a row. It may be shorter than the others.
    pub fn row<S: Into<String>>(&mut self, cells: impl IntoIterator<Item = S>) {
        self.rows.push(cells.into_iter().map(Into::into).collect());
    }

    /// The same with more rows.
    #[must_use]
    pub fn rows(mut self, rows: impl IntoIterator<Item = Vec<String>>) -> Self {
        self.rows.extend(rows);
        self
    }

    /// As text in columns, two blanks between them, every line after `indent` blanks.
    pub fn text(&self, indent: usize) -> String {
        let widths = widths(&self.rows);
        let mut text = String::new();
        for row in &self.rows {
            let mut line = " ".repeat(indent);
            for (column, cell) in row.iter().enumerate() {
                line += if column == 0 { "" } else { "  " };
                line += &self.padded(column, cell, widths[column]);
            }
            text += line.trim_end();
            text.push('\n');
        }
        text
    }

    /// As [`Table::text`], in lines of at most so many characters where that can be: columns that find no room stand below
    /// the others, after the first column once more.
    pub fn within(&self, indent: usize, most: usize) -> String {
        let widths = widths(&self.rows);
        let first = indent + widths.first().unwrap_or(&0);
        let (mut parts, mut part, mut width) = (Vec::new(), vec![0], first);
        for (column, more) in widths.iter().enumerate().skip(1) {
            if width + 2 + more > most && part.len() > 1 {
                parts.push(std::mem::replace(&mut part, vec![0]));
                width = first;
            }
            width += 2 + more;
            part.push(column);
        }
        parts.push(part);
        let written = |columns: &Vec<usize>| {
            let cells = |row: &Vec<String>| -> Vec<String> {
                let cells = columns.iter().filter_map(|&column| row.get(column));
                cells.cloned().collect()
            };
            let table = Self {
                aligns: columns.iter().map(|&column| self.align(column)).collect(),
                rows: self.rows.iter().map(cells).collect(),
            };
            table.text(indent)
        };
        let texts: Vec<String> = parts.iter().map(written).collect();
        texts.join("\n")
    }

    /// The same with its cells rewritten.
    #[must_use]
    pub fn written(mut self, write: impl Fn(&str) -> String) -> Self {
        for cell in self.rows.iter_mut().flatten() {
            *cell = write(cell);
        }
        self
    }

    /// As a pipe table of Markdown, one line a row whatever the cells hold; nothing if there is no row. The first row is
    /// the heading.
    pub fn markdown(&self) -> String {
        let escaped = |cell: &String| {
            let cell = cell.replace('\\', "\\\\").replace('|', "\\|");
            cell.replace("\r\n", "<br>").replace(['\n', '\r'], "<br>")
        };
        let rows: Vec<Vec<String>> = self
            .rows
            .iter()
            .map(|row| row.iter().map(escaped).collect())
            .collect();
        let mut widths = widths(&rows);
        for width in &mut widths {
            *width = (*width).clamp(3, PADDED);
        }
        let mut text = String::new();
        for (index, row) in rows.iter().enumerate() {
            for (column, width) in widths.iter().enumerate() {
                let cell = row.get(column).map_or("", String::as_str);
                text.extend(["| ", &self.padded(column, cell, *width), " "]);
            }
            text += "|\n";
            if index == 0 {
                for (column, width) in widths.iter().enumerate() {
                    let line = "-".repeat(width - 1);
                    text.extend(match self.align(column) {
                        Align::Left => ["| ", &line, "- "],
                        Align::Right => ["| ", &line, ": "],
                    });
                }
                text += "|\n";
            }
        }
        text
    }

    /// As CSV (RFC 4180), the heading first.
    pub fn csv(&self) -> String {
        let mut writer = csv::WriterBuilder::new().flexible(true).from_writer(Vec::new());
        let written = self.rows.iter().try_for_each(|row| writer.write_record(row));
        // A flexible writer refuses no record for its length, and a vector no byte.
        written.expect("records of any length go into a vector");
        let bytes = writer.into_inner().expect("a vector takes every byte");
        // Cells are strings, and what CSV puts between and around them is ASCII.
        String::from_utf8(bytes).expect("strings parted by ASCII are UTF-8")
    }

    fn align(&self, column: usize) -> Align {
        let usual = if column == 0 { Align::Left } else { Align::Right };
        self.aligns.get(column).copied().unwrap_or(usual)
    }

    /// The cell in so many columns of text, if it is not wider.
    fn padded(&self, column: usize, cell: &str, width: usize) -> String {
        match self.align(column) {
            Align::Left => format!("{cell:<width$}"),
            Align::Right => format!("{cell:>width$}"),
        }
    }
}

/// Characters of the widest cell of each column. Nothing here is wider than one column of text a character.
fn widths(rows: &[Vec<String>]) -> Vec<usize> {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |row: &Vec<String>, column: usize| row.get(column).map_or(0, |cell| cell.chars().count());
    (0..columns)
        .map(|column| rows.iter().map(|row| width(row, column)).max().unwrap_or(0))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_of_text_are_aligned_by_characters_and_rows_may_be_short() {
        let mut table = Table::new(["", "λ", "J"]);
        table.row(["human_requests", "0.5", "−1"]);
        table.row(["turns", "12.25"]);
        let text = "                      λ   J\n  human_requests    0.5  −1\n  turns           12.25\n";
        assert_eq!(table.text(2), text);
    }

    #[test]
    fn columns_that_find_no_room_stand_below_after_the_first_once_more() {
        let mut table = Table::new(["Round", "best", "λ turns"]);
        table.row(["0", "dc566430", "1.00"]);
        table.row(["1"]);
        assert_eq!(table.within(1, 25), table.text(1));
        let parts = " Round      best\n 0      dc566430\n 1\n\n Round  λ turns\n 0         1.00\n 1\n";
        assert_eq!(table.within(1, 24), parts);
        assert_eq!(
            table.within(0, 1).lines().count(),
            7,
            "one column a part, at least"
        );
        let table = table.written(|cell| cell.replace('λ', "lambda"));
        assert!(table.text(0).starts_with("Round      best  lambda turns\n"));
    }

    #[test]
    fn markdown_keeps_one_row_a_line_and_pads_no_long_cell() {
        let long = "long ".repeat(20);
        let table = Table::new(["id", "mean", "prompt"]).aligned([Align::Left, Align::Right, Align::Left]);
        let table = table.rows([
            vec!["a".into(), "0.5".into(), "one\\\nthree | four".into()],
            vec!["b".into()],
            vec!["c".into(), "1".into(), long.clone()],
        ]);
        let text = table.markdown();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 5, "{text}");
        assert!(lines[1].starts_with("| --- | ---: | ---"), "{text}");
        assert!(
            lines[2].starts_with("| a   |  0.5 | one\\\\<br>three \\| four "),
            "{text}"
        );
        assert_eq!(lines[2].len(), lines[3].len(), "{text}");
        assert_eq!(lines[4], format!("| c   |    1 | {long} |"));
        assert_eq!(Table::default().markdown(), "");
    }

    #[test]
    fn csv_keeps_line_breaks() {
        let mut table = Table::new(["id", "prompt"]);
        table.row(["a", "one, \"two\"\nthree"]);
        assert_eq!(table.csv(), "id,prompt\na,\"one, \"\"two\"\"\nthree\"\n");
    }
}
