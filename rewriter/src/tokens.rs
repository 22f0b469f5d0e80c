//! The tokens of one forward pass and where they stand.

use crate::error::RequestError;

/// On which side short rows are filled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Padding {
    /// Rows end together, as generation needs it.
    Left,
    /// Rows begin together.
    Right,
}

/// A rectangle of tokens, `[rows, columns]`, with padding.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tokens {
    rows: usize,
    columns: usize,
    ids: Vec<u32>,
    real: Vec<bool>,
    positions: Vec<u32>,
}

impl Tokens {
    /// Rows of different lengths, filled on one side. Positions count from 0 in each row.
    pub fn padded<R: AsRef<[u32]>>(rows: &[R], padding: Padding) -> Self {
        let columns = rows.iter().map(|row| row.as_ref().len()).max().unwrap_or(0);
        let mut tokens = Self::with_capacity(columns, rows.len());
        for row in rows {
            let row = row.as_ref();
            let fill = columns - row.len();
            if padding == Padding::Left {
                tokens.push_padding(fill);
            }
            tokens.push_tokens(row, 0);
            if padding == Padding::Right {
                tokens.push_padding(fill);
            }
        }
        tokens
    }

    /// Prompts filled on the left, followed by completions filled on the right, so that all
    /// completions begin in the same column. There are as many completions as prompts.
    pub(crate) fn completed<R: AsRef<[u32]>>(prompts: &[R], completions: &[R]) -> Self {
        let width = |rows: &[R]| rows.iter().map(|row| row.as_ref().len()).max().unwrap_or(0);
        let (before, after) = (width(prompts), width(completions));
        let mut tokens = Self::with_capacity(before + after, prompts.len());
        for (prompt, completion) in prompts.iter().zip(completions) {
            let (prompt, completion) = (prompt.as_ref(), completion.as_ref());
            tokens.push_padding(before - prompt.len());
            tokens.push_tokens(prompt, 0);
            tokens.push_tokens(completion, prompt.len() as u32);
            tokens.push_padding(after - completion.len());
        }
        tokens
    }

    /// Rows filled on the left whose first token stands at `starts`, as tokens do that follow those in a
    /// cache.
    ///
    /// # Errors
    ///
    /// [`RequestError::Count`] unless each row has a start.
    pub fn continued(rows: &[&[u32]], starts: &[u32]) -> Result<Self, RequestError> {
        RequestError::check_count("first positions", starts.len(), "rows", rows.len())?;
        let columns = rows.iter().map(|row| row.len()).max().unwrap_or(0);
        let mut tokens = Self::with_capacity(columns, rows.len());
        for (row, &start) in rows.iter().zip(starts) {
            tokens.push_padding(columns - row.len());
            tokens.push_tokens(row, start);
        }
        Ok(tokens)
    }

    fn with_capacity(columns: usize, rows: usize) -> Self {
        let size = columns * rows;
        Self {
            rows,
            columns,
            ids: Vec::with_capacity(size),
            real: Vec::with_capacity(size),
            positions: Vec::with_capacity(size),
        }
    }

    fn push_padding(&mut self, count: usize) {
        let end = self.ids.len() + count;
        self.ids.resize(end, 0);
        self.real.resize(end, false);
        self.positions.resize(end, 0);
    }

    fn push_tokens(&mut self, row: &[u32], start: u32) {
        self.ids.extend_from_slice(row);
        self.real.resize(self.ids.len(), true);
        // A position that does not fit is beyond every context, where it is refused.
        let positions = (0..row.len()).map(|index| start.saturating_add(index as u32));
        self.positions.extend(positions);
    }

    /// The columns `from..to` alone.
    pub(crate) fn columns_between(&self, from: usize, to: usize) -> Self {
        fn cut<T: Copy>(values: &[T], columns: usize, from: usize, to: usize) -> Vec<T> {
            values
                .chunks(columns)
                .flat_map(|row| row[from..to].iter().copied())
                .collect()
        }
        Self {
            rows: self.rows,
            columns: to - from,
            ids: cut(&self.ids, self.columns, from, to),
            real: cut(&self.real, self.columns, from, to),
            positions: cut(&self.positions, self.columns, from, to),
        }
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Number of columns.
    pub fn columns(&self) -> usize {
        self.columns
    }

    /// Ids row by row, 0 at padding.
    pub fn ids(&self) -> &[u32] {
        &self.ids
    }

    /// Row by row, false at padding.
    pub fn real(&self) -> &[bool] {
        &self.real
    }

    /// Positions row by row, 0 at padding.
    pub fn positions(&self) -> &[u32] {
        &self.positions
    }

    /// # Errors
    ///
    /// No rows, a row without tokens, a token outside the vocabulary, a position outside the context.
    pub(crate) fn check(&self, vocabulary: usize, context: usize) -> Result<(), RequestError> {
        if self.rows == 0 {
            return Err(RequestError::EmptyBatch);
        }
        for row in 0..self.rows() {
            let cells = row * self.columns..(row + 1) * self.columns;
            if !self.real[cells.clone()].contains(&true) {
                return Err(RequestError::EmptyPrompt { row });
            }
            if let Some(&token) = self.ids[cells.clone()]
                .iter()
                .find(|id| **id as usize >= vocabulary)
            {
                return Err(RequestError::UnknownToken {
                    row,
                    token,
                    vocabulary,
                });
            }
            let length = self.positions[cells]
                .iter()
                .max()
                .map_or(0, |last| *last as usize + 1);
            if length > context {
                return Err(RequestError::ContextOverflow {
                    row,
                    prompt: length,
                    new: 0,
                    context,
                });
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_paddings_keep_positions_from_zero() {
        let rows = [vec![7, 8], vec![9]];
        let left = Tokens::padded(&rows, Padding::Left);
        assert_eq!(left.ids(), [7, 8, 0, 9]);
        assert_eq!(left.real(), [true, true, false, true]);
        assert_eq!(left.positions(), [0, 1, 0, 0]);
        let right = Tokens::padded(&rows, Padding::Right);
        assert_eq!(right.ids(), [7, 8, 9, 0]);
        assert_eq!(right.real(), [true, true, true, false]);
    }

    #[test]
    fn completions_begin_in_one_column() {
        let tokens = Tokens::completed(&[vec![1, 2], vec![3]], &[vec![4], vec![5, 6]]);
        assert_eq!(tokens.ids(), [1, 2, 4, 0, 0, 3, 5, 6]);
        assert_eq!(tokens.positions(), [0, 1, 2, 0, 0, 0, 1, 2]);
        assert_eq!(tokens.columns_between(2, 4).ids(), [4, 0, 5, 6]);
    }

    #[test]
    fn rows_and_starts_come_in_pairs() {
        assert_eq!(
            Tokens::continued(&[&[1], &[2]], &[0]),
            Err(RequestError::Count {
                what: "first positions",
                each: "rows",
                expected: 2,
                found: 1
            })
        );
        let far = Tokens::continued(&[&[1, 2]], &[u32::MAX]).expect("one start for one row");
        assert!(matches!(
            far.check(9, 9),
            Err(RequestError::ContextOverflow { .. })
        ));
    }

    #[test]
    fn bad_rows_are_named() {
        let none = Tokens::padded::<Vec<u32>>(&[], Padding::Left);
        assert_eq!(none.check(9, 9), Err(RequestError::EmptyBatch));
        let tokens = Tokens::padded(&[vec![1], vec![]], Padding::Left);
        assert_eq!(tokens.check(9, 9), Err(RequestError::EmptyPrompt { row: 1 }));
        let tokens = Tokens::padded(&[vec![1, 9]], Padding::Left);
        assert!(matches!(
            tokens.check(9, 9),
            Err(RequestError::UnknownToken { token: 9, .. })
        ));
        assert!(matches!(
            tokens.check(10, 1),
            Err(RequestError::ContextOverflow { prompt: 2, .. })
        ));
    }
}
