//! Supervised fine-tuning on prompts with their completions.

use burn_tensor::Tensor;

use crate::backend::PolicyBackend;
use crate::decoder::Decoder;
use crate::error::RequestError;
use crate::lora::Adapter;
use crate::tokens::{Padding, Tokens};

/// Sequences of which some tokens are learned.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SftBatch {
    tokens: Tokens,
    /// The learned tokens, row · columns + column each.
    cells: Vec<usize>,
}

impl SftBatch {
    /// Prompts, which are read, with completions, which are learned.
    ///
    /// # Errors
    ///
    /// No pairs, or a pair whose prompt or completion is empty.
    pub fn new<R: AsRef<[u32]>>(pairs: &[(R, R)]) -> Result<Self, RequestError> {
        let rows = pairs
            .iter()
            .enumerate()
            .map(|(row, (prompt, completion))| {
                let (prompt, completion) = (prompt.as_ref(), completion.as_ref());
                if prompt.is_empty() {
                    return Err(RequestError::EmptyPrompt { row });
                }
                if completion.is_empty() {
                    return Err(RequestError::EmptyCompletion { row });
                }
                let learned = [vec![false; prompt.len()], vec![true; completion.len()]].concat();
                Ok(([prompt, completion].concat(), learned))
            })
            .collect::<Result<Vec<_>, _>>()?;
        Self::masked(&rows)
    }

    /// Sequences with a mark at each token that is learned. A first token cannot be: nothing
    /// predicts it, and a mark at it counts for nothing.
    ///
    /// # Errors
    ///
    /// No rows, a row without tokens or with another number of marks, or no token that is learned.
    pub fn masked(rows: &[(Vec<u32>, Vec<bool>)]) -> Result<Self, RequestError> {
        if rows.is_empty() {
            return Err(RequestError::EmptyBatch);
        }
        for (row, (ids, learned)) in rows.iter().enumerate() {
            if ids.is_empty() {
                return Err(RequestError::EmptyPrompt { row });
            }
            if ids.len() != learned.len() {
                return Err(RequestError::MarkCount {
                    row,
                    tokens: ids.len(),
                    marks: learned.len(),
                });
            }
        }
        let ids: Vec<_> = rows.iter().map(|(ids, _)| ids).collect();
        let tokens = Tokens::padded(&ids, Padding::Right);
        let columns = tokens.columns();
        let cells: Vec<_> = rows
            .iter()
            .enumerate()
            .flat_map(|(row, (_, learned))| {
                let marked = learned
                    .iter()
                    .enumerate()
                    .skip(1)
                    .filter(|(_, learned)| **learned);
                marked.map(move |(column, _)| row * columns + column)
            })
            .collect();
        if cells.is_empty() {
            return Err(RequestError::NothingLearned);
        }
        Ok(Self { tokens, cells })
    }

    /// The sequences.
    pub fn tokens(&self) -> &Tokens {
        &self.tokens
    }

    /// The learned tokens, row · columns + column each.
    pub fn cells(&self) -> &[usize] {
        &self.cells
    }

    /// Negative log-likelihood of each learned token, `[tokens]`.
    ///
    /// # Errors
    ///
    /// As [`Decoder::score`].
    pub fn losses<B: PolicyBackend>(
        &self,
        decoder: &Decoder<B>,
        adapter: Option<&Adapter<B>>,
    ) -> Result<Tensor<B, 1>, RequestError> {
        Ok(decoder
            .score(&self.tokens, &self.cells, adapter, 1.0)?
            .logprobs()
            .neg())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bad_batches_are_named() {
        let masked = SftBatch::masked;
        assert_eq!(masked(&[]), Err(RequestError::EmptyBatch));
        let good = (vec![1, 2], vec![false, true]);
        assert_eq!(
            masked(&[good.clone(), (vec![], vec![])]),
            Err(RequestError::EmptyPrompt { row: 1 })
        );
        for marks in [1, 3] {
            let bad = (vec![1, 2], vec![true; marks]);
            let refused = Err(RequestError::MarkCount {
                row: 1,
                tokens: 2,
                marks,
            });
            assert_eq!(masked(&[good.clone(), bad]), refused);
        }
        // Nothing predicts a first token.
        let first = (vec![1, 2], vec![true, false]);
        assert_eq!(masked(&[first]), Err(RequestError::NothingLearned));

        let new = |prompt: &[u32], completion: &[u32]| SftBatch::new(&[(prompt, completion)]);
        assert_eq!(new(&[], &[1]), Err(RequestError::EmptyPrompt { row: 0 }));
        assert_eq!(new(&[1], &[]), Err(RequestError::EmptyCompletion { row: 0 }));
        assert_eq!(
            new(&[1], &[2, 3]).map(|batch| batch.cells().to_vec()),
            Ok(vec![1, 2])
        );
    }
}
