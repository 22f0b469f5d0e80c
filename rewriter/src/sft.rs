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
    pub fn new<R: AsRef<[u32]>>(pairs: &[(R, R)]) -> Self {
        let rows: Vec<_> = pairs
            .iter()
            .map(|(prompt, completion)| {
                let (prompt, completion) = (prompt.as_ref(), completion.as_ref());
                let learned = [vec![false; prompt.len()], vec![true; completion.len()]].concat();
                ([prompt, completion].concat(), learned)
            })
            .collect();
        Self::masked(&rows)
    }

    /// Sequences with a mark at each token that is learned. A first token cannot be: nothing
    /// predicts it.
    pub fn masked(rows: &[(Vec<u32>, Vec<bool>)]) -> Self {
        let ids: Vec<_> = rows.iter().map(|(ids, _)| ids).collect();
        let tokens = Tokens::padded(&ids, Padding::Right);
        let columns = tokens.columns();
        let cells = rows
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
        Self { tokens, cells }
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
    /// As [`Decoder::hidden`].
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
