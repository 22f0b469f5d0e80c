//! Log-probabilities of given tokens under a policy, with entropies.

use burn_tensor::{FloatDType, Tensor};

use crate::backend::{PolicyBackend, TargetScores, index_tensor, wide};
use crate::cache::KvCache;
use crate::decoder::Decoder;
use crate::error::RequestError;
use crate::lora::Adapter;
use crate::tokens::Tokens;

/// What a policy thinks of some of the tokens of a batch.
#[derive(Debug, Clone)]
pub struct TokenScores<B: PolicyBackend> {
    /// `[tokens]` each.
    logprobs: Tensor<B, 1>,
    entropy: Tensor<B, 1>,
}

impl<B: PolicyBackend> TokenScores<B> {
    /// Log-probability of each token, `[tokens]`, 32-bit.
    pub fn logprobs(&self) -> Tensor<B, 1> {
        self.logprobs.clone()
    }

    /// Entropy in nats of the distribution that each token was drawn from, `[tokens]`, 32-bit. No
    /// gradient flows through it.
    pub fn entropy(&self) -> Tensor<B, 1> {
        self.entropy.clone()
    }
}

impl<B: PolicyBackend> Decoder<B> {
    /// Scores the tokens in the given cells of a batch, row · columns + column each, by
    /// log softmax(logits / temperature).
    ///
    /// Only the positions before these cells reach the output layer, part by part, so that the
    /// distributions of no more than some of them are in memory at a time, gradients tracked or not:
    /// what a log-probability sends back to the hidden state is computed with it, instead of from a
    /// distribution kept for the backward pass. Without tracked gradients long rows pass through the
    /// layers in several passes too; with them every layer's activations are kept for the backward
    /// pass, but for attention scores, unless the decoder is [recomputing](Self::recomputing).
    ///
    /// # Errors
    ///
    /// As [`hidden`](Self::hidden); [`RequestError::EmptyBatch`] without cells;
    /// [`RequestError::Unpredicted`] for a cell that holds no token or the first one of its row;
    /// [`RequestError::Setting`] for a temperature that is not above 0.
    pub fn score(
        &self,
        tokens: &Tokens,
        cells: &[usize],
        adapter: Option<&Adapter<B>>,
        temperature: f64,
    ) -> Result<TokenScores<B>, RequestError> {
        let part_numbers = B::scored_numbers(&self.device());
        self.score_by_parts(tokens, cells, adapter, temperature, part_numbers)
    }

    fn score_by_parts(
        &self,
        tokens: &Tokens,
        cells: &[usize],
        adapter: Option<&Adapter<B>>,
        temperature: f64,
        part_numbers: usize,
    ) -> Result<TokenScores<B>, RequestError> {
        check_cells(tokens, cells)?;
        if !(temperature > 0.0 && temperature.is_finite()) {
            return Err(RequestError::Setting {
                name: "temperature",
                value: temperature,
                range: "above 0 and finite",
            });
        }
        let is_learning = self.output_layer().is_require_grad();
        let is_tracked = is_learning || adapter.is_some_and(Adapter::is_tracked);
        let before = index_tensor::<B>(cells.iter().map(|cell| cell - 1), &self.device());
        let hidden = if is_tracked {
            self.hidden(tokens, adapter, None)?
        } else {
            self.hidden_untracked(tokens, adapter)?
        };
        let hidden = hidden.flatten::<2>(0, 1).select(0, before);
        let size = (part_numbers / self.config().vocabulary).max(1);
        let mut logprobs = Vec::new();
        let mut entropies = Vec::new();
        for (index, part) in cells.chunks(size).enumerate() {
            let hidden = hidden.clone().narrow(0, index * size, part.len());
            let targets = part.iter().map(|cell| tokens.ids()[*cell] as usize);
            let scores = if is_learning {
                self.score_part_learning(hidden, targets, temperature)
            } else {
                self.score_part(hidden, targets, temperature, is_tracked)
            };
            logprobs.push(scores.logprobs);
            entropies.push(scores.entropy);
        }
        Ok(TokenScores {
            logprobs: Tensor::cat(logprobs, 0),
            entropy: Tensor::cat(entropies, 0),
        })
    }

    /// Scores one target after each hidden state, `[tokens, hidden]`.
    fn score_part(
        &self,
        hidden: Tensor<B, 2>,
        targets: impl IntoIterator<Item = usize>,
        temperature: f64,
        is_tracked: bool,
    ) -> TokenScores<B> {
        let known = hidden.clone().detach();
        let targets = index_tensor::<B>(targets, &self.device());
        let logits = self.logits(known.clone()).cast(FloatDType::F32);
        let TargetScores {
            logprobs,
            entropy,
            probabilities,
        } = B::target_scores(logits, targets.clone(), temperature);
        if !is_tracked {
            return TokenScores { logprobs, entropy };
        }
        // The gradient of log softmax(W h / T) at t by h is (W_t - sum over v of p_v W_v) / T; what is
        // added is zero and has this gradient.
        let rows = self.output_layer().clone();
        let expected = probabilities.cast(self.number_type()).matmul(rows.clone());
        let direction = (wide(rows.select(0, targets)) - wide(expected)).div_scalar(temperature);
        let zero: Tensor<B, 1> = ((wide(hidden) - wide(known)) * direction)
            .sum_dim(1)
            .squeeze_dim(1);
        TokenScores {
            logprobs: logprobs + zero,
            entropy,
        }
    }

    /// As [`score_part`](Self::score_part), while the output layer learns too: its distributions are kept for the
    /// backward pass.
    fn score_part_learning(
        &self,
        hidden: Tensor<B, 2>,
        targets: impl IntoIterator<Item = usize>,
        temperature: f64,
    ) -> TokenScores<B> {
        let targets = index_tensor::<B>(targets, &self.device());
        let logits = self.logits(hidden).cast(FloatDType::F32);
        let scores = B::target_scores(logits, targets, temperature);
        TokenScores {
            logprobs: scores.logprobs,
            entropy: scores.entropy,
        }
    }

    /// As [`hidden`](Self::hidden) without a cache, in several passes where one would hold too many
    /// attention scores.
    pub(crate) fn hidden_untracked(
        &self,
        tokens: &Tokens,
        adapter: Option<&Adapter<B>>,
    ) -> Result<Tensor<B, 3>, RequestError> {
        let (rows, columns) = (tokens.rows(), tokens.columns());
        tokens.check(self.config().vocabulary, self.config().context)?;
        // Rows with padding on both sides may be longer than the context.
        if columns <= self.pass_columns(rows, columns) || columns > self.config().context {
            return Ok(self.hidden_of_checked(tokens, adapter, None));
        }
        let mut cache = KvCache::new(self.config(), rows, columns, self.number_type(), &self.device())?;
        let mut passes = Vec::new();
        self.hidden_in_passes(tokens, adapter, &mut cache, |hidden| {
            passes.push(hidden);
            Ok(())
        })?;
        Ok(Tensor::cat(passes, 1))
    }
}

/// # Errors
///
/// There are no cells, or one holds nothing that another token predicts.
fn check_cells(tokens: &Tokens, cells: &[usize]) -> Result<(), RequestError> {
    let (rows, columns) = (tokens.rows(), tokens.columns());
    if cells.is_empty() {
        return Err(RequestError::EmptyBatch);
    }
    let is_predicted = |cell: usize| {
        cell < rows * columns
            && !cell.is_multiple_of(columns)
            && tokens.real()[cell]
            && tokens.real()[cell - 1]
    };
    match cells.iter().find(|cell| !is_predicted(**cell)) {
        None => Ok(()),
        Some(&cell) => Err(RequestError::Unpredicted { cell, rows, columns }),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use burn_autodiff::Autodiff;
    use burn_flex::{Flex, FlexDevice};
    use safetensors::Dtype;
    use safetensors::tensor::TensorView;
    use serde_json::json;

    use super::*;
    use crate::lora::{LoraConfig, Mode};
    use crate::optimizer::Gradient;
    use crate::tokens::Padding;

    const WIDTH: usize = 8;
    const VOCABULARY: usize = 1 << 16;
    const ROWS: usize = 4;
    const LENGTH: usize = 33;

    /// A model of one layer, of small numbers, with many more tokens than anything else.
    fn write_model(folder: &Path) {
        let config = json!({
            "model_type": "mistral", "vocab_size": VOCABULARY, "hidden_size": WIDTH,
            "intermediate_size": WIDTH, "num_hidden_layers": 1, "num_attention_heads": 1,
            "num_key_value_heads": 1, "head_dim": WIDTH, "max_position_embeddings": 256,
            "rms_norm_eps": 1e-6, "rope_theta": 10_000.0, "tie_word_embeddings": true, "sliding_window": null,
        });
        fs::write(folder.join("config.json"), config.to_string()).expect("written");
        let square = [
            "self_attn.q_proj",
            "self_attn.k_proj",
            "self_attn.v_proj",
            "self_attn.o_proj",
        ];
        let mut shapes = vec![
            ("model.norm".to_owned(), vec![WIDTH]),
            ("model.embed_tokens".to_owned(), vec![VOCABULARY, WIDTH]),
        ];
        for name in ["input_layernorm", "post_attention_layernorm"] {
            shapes.push((format!("model.layers.0.{name}"), vec![WIDTH]));
        }
        for name in square
            .into_iter()
            .chain(["mlp.gate_proj", "mlp.up_proj", "mlp.down_proj"])
        {
            shapes.push((format!("model.layers.0.{name}"), vec![WIDTH, WIDTH]));
        }
        let tensors: Vec<_> = shapes
            .into_iter()
            .map(|(name, shape)| {
                let count: usize = shape.iter().product();
                let bytes: Vec<u8> = (0..count)
                    .flat_map(|index| (0.1 * (index as f32).sin()).to_le_bytes())
                    .collect();
                (format!("{name}.weight"), shape, bytes)
            })
            .collect();
        let views = tensors.iter().map(|(name, shape, bytes)| {
            let view = TensorView::new(Dtype::F32, shape.clone(), bytes);
            (name, view.expect("bytes fit the shape"))
        });
        safetensors::serialize_to_file(views, None, &folder.join("model.safetensors")).expect("written");
    }

    /// A line of /proc/self/status, in bytes.
    fn status(name: &str) -> f64 {
        let status = fs::read_to_string("/proc/self/status").expect("Linux has it");
        let line = status
            .lines()
            .find(|line| line.starts_with(name))
            .expect("a line of this name");
        let kibibytes = line.split_whitespace().nth(1).expect("a number");
        1024.0 * kibibytes.parse::<f64>().expect("a number")
    }

    /// In a process of its own, as nextest runs it, the peak is that of scoring.
    #[test]
    #[cfg(target_os = "linux")]
    fn the_peak_is_far_below_a_table_of_all_distributions() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        write_model(folder.path());
        let model: Decoder<Flex> =
            Decoder::from_folder(folder.path(), FloatDType::F32, &FlexDevice).expect("loads");
        let lora = LoraConfig::all(2, 4.0);
        let adapter: Adapter<Flex> = Adapter::new(&lora, model.config(), 1, &FlexDevice).expect("valid");
        let rows: Vec<Vec<u32>> = (0..ROWS as u32)
            .map(|row| (0..LENGTH as u32).map(|index| row + 64 * index).collect())
            .collect();
        let tokens = Tokens::padded(&rows, Padding::Right);
        let cells: Vec<_> = (0..ROWS * LENGTH).filter(|cell| cell % LENGTH > 0).collect();
        let table = (4 * cells.len() * VOCABULARY) as f64;
        let part = 4 * VOCABULARY;

        let before = status("VmRSS:");
        let plain = model
            .score_by_parts(&tokens, &cells, Some(&adapter), 1.0, part)
            .expect("valid");
        let scoring = (status("VmHWM:") - before) / table;
        let decoder = Decoder::<Autodiff<Flex>>::from_inner(&model);
        let learning = Adapter::<Autodiff<Flex>>::trainable(&adapter, Mode::Evaluation);
        let tracked = decoder
            .score_by_parts(&tokens, &cells, Some(&learning), 1.0, part)
            .expect("valid");
        let gradient = Gradient::of(&tracked.logprobs().sum(), &learning);
        let learned = (status("VmHWM:") - before) / table;
        println!(
            "of {:.0} MB: {scoring:.2} scoring, {learned:.2} learning",
            table / 1e6
        );
        assert!(scoring < 0.6 && learned < 0.6, "{scoring} {learned}");
        let numbers = |tensor: Tensor<Flex, 1>| tensor.into_data().into_vec::<f32>().expect("32-bit numbers");
        assert!(numbers(gradient.norm())[0] > 0.0);
        let tracked = numbers(tracked.logprobs().inner());
        for (one, other) in numbers(plain.logprobs()).iter().zip(tracked) {
            assert!((one - other).abs() < 1e-5, "{one} {other}");
        }
    }
}
