//! How likely a policy is to write given tokens.

use burn_tensor::activation::log_softmax;
use burn_tensor::{FloatDType, Int, Tensor};

use crate::backend::{PolicyBackend, index_tensor};
use crate::decoder::Decoder;
use crate::error::RequestError;
use crate::lora::Adapter;
use crate::tokens::Tokens;

/// What a policy thinks of some of the tokens of a batch.
#[derive(Debug, Clone)]
pub struct TokenScores<B: PolicyBackend> {
    /// log softmax(logits / temperature) of every token in its place, `[tokens, vocabulary]`.
    distribution: Tensor<B, 2>,
    targets: Tensor<B, 2, Int>,
}

impl<B: PolicyBackend> TokenScores<B> {
    /// Log-probability of each token, `[tokens]`.
    pub fn logprobs(&self) -> Tensor<B, 1> {
        self.distribution
            .clone()
            .gather(1, self.targets.clone())
            .squeeze_dim(1)
    }

    /// Entropy in nats of the distribution that each token was drawn from, `[tokens]`.
    pub fn entropy(&self) -> Tensor<B, 1> {
        let distribution = self.distribution.clone();
        (distribution.clone().exp() * distribution)
            .sum_dim(1)
            .neg()
            .squeeze_dim(1)
    }
}

impl<B: PolicyBackend> Decoder<B> {
    /// Scores the tokens in the given cells of a batch, row · columns + column each.
    ///
    /// # Errors
    ///
    /// As [`hidden`](Self::hidden); and [`RequestError::EmptyPrompt`] for the first token of a row,
    /// which nothing predicts.
    pub fn score(
        &self,
        tokens: &Tokens,
        cells: &[usize],
        adapter: Option<&Adapter<B>>,
        temperature: f64,
    ) -> Result<TokenScores<B>, RequestError> {
        for &cell in cells {
            if cell.is_multiple_of(tokens.columns()) || !tokens.real()[cell - 1] {
                let row = cell / tokens.columns();
                return Err(RequestError::EmptyPrompt { row });
            }
        }
        let device = self.device();
        let before = index_tensor::<B>(cells.iter().map(|cell| cell - 1), &device);
        let targets = index_tensor::<B>(cells.iter().map(|cell| tokens.ids()[*cell] as usize), &device);
        let hidden = self
            .hidden(tokens, adapter, None)?
            .flatten::<2>(0, 1)
            .select(0, before);
        let logits = self.logits(hidden).cast(FloatDType::F32);
        Ok(TokenScores {
            distribution: log_softmax(logits.div_scalar(temperature), 1),
            targets: targets.unsqueeze_dim(1),
        })
    }
}
