//! Autoregressive generation: answers to a batch of prompts, token by token.

use burn_tensor::{FloatDType, Tensor};
use rayon::prelude::*;

use crate::backend::PolicyBackend;
use crate::cache::KvCache;
use crate::decoder::Decoder;
use crate::error::RequestError;
use crate::lora::{Adapter, Mode};
use crate::out_of_memory::guarded;
use crate::stop::Stop;
use crate::token_sampling::{RowRandom, Sampling, logprob};
use crate::tokens::Tokens;

/// What to do about logits that are not finite.
const MEND_LOGITS: &str = "the weights or the adapter are damaged, or the type of the computation overflows: compute in F32 or BF16, or take an earlier checkpoint";

/// What to do when memory runs out.
const MEND_MEMORY: &str = "draw fewer rewrites together (`max_batch` in the settings, --max-batch, or `concurrency` of a study's local rewriter) or shorter ones, compute in BF16, or take a smaller model or another device";

/// One prompt to be answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GenerationRow {
    /// The prompt's tokens.
    pub prompt: Vec<u32>,
    /// Decides this row's draws, whatever else is in the batch.
    pub seed: u64,
}

/// How a batch is answered.
#[derive(Debug, Clone, PartialEq)]
pub struct Generation {
    /// How each token is drawn.
    pub sampling: Sampling,
    /// Longest answer in tokens, 1 or more.
    pub max_new_tokens: usize,
    /// Tokens that end an answer; usually those of the model's configuration.
    pub stop_tokens: Vec<u32>,
    /// Whether prompts with a common beginning compute it once.
    pub share_prefixes: bool,
}

/// Why an answer ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Finish {
    /// With a stop token.
    Stop,
    /// At the longest length.
    Length,
}

/// One answer.
#[derive(Debug, Clone, PartialEq)]
pub struct Completion {
    /// The new tokens, the stop token included.
    pub tokens: Vec<u32>,
    /// For each token log softmax(logits / temperature), before any token is left out; at
    /// temperature 1 when greedy.
    pub logprobs: Vec<f32>,
    /// Why it ended.
    pub finish: Finish,
}

/// A row that is still being answered.
struct Active {
    /// Its place in the request.
    row: usize,
    random: RowRandom,
    /// Where its next token stands.
    position: u32,
}

impl<B: PolicyBackend> Decoder<B> {
    /// Answers each row, in the order of the rows.
    ///
    /// A row's answer depends on its prompt and seed alone, up to the rounding of sums that the
    /// backend orders by the size of the batch. An adapter takes part as in evaluation, without
    /// dropout. The cache is laid out once, with as many columns as the longest prompt and the longest
    /// answer need.
    ///
    /// # Errors
    ///
    /// A setting outside its range, an empty prompt, a token outside the vocabulary, or a prompt
    /// that leaves no room for the answer in the model's context, all before anything is allocated;
    /// and [`RequestError::NotFinite`] when a logit is, [`RequestError::OutOfMemory`].
    pub fn generate(
        &self,
        adapter: Option<&Adapter<B>>,
        rows: &[GenerationRow],
        settings: &Generation,
    ) -> Result<Vec<Completion>, RequestError> {
        self.generate_until(adapter, rows, settings, &Stop::default())
    }

    /// As [`generate`](Self::generate), unless it is to end before: `stop` is asked after every pass.
    ///
    /// # Errors
    ///
    /// As [`generate`](Self::generate), or [`RequestError::Interrupted`].
    pub fn generate_until(
        &self,
        adapter: Option<&Adapter<B>>,
        rows: &[GenerationRow],
        settings: &Generation,
        stop: &Stop,
    ) -> Result<Vec<Completion>, RequestError> {
        self.check(rows, settings)?;
        if rows.is_empty() {
            return Ok(Vec::new());
        }
        guarded(MEND_MEMORY, || {
            self.generate_checked(adapter, rows, settings, stop)
        })
    }

    fn generate_checked(
        &self,
        adapter: Option<&Adapter<B>>,
        rows: &[GenerationRow],
        settings: &Generation,
        stop: &Stop,
    ) -> Result<Vec<Completion>, RequestError> {
        stop.check()?;
        // In the computation's type once, instead of for each token.
        let number_type = self.number_type();
        let adapter = adapter.map(|adapter| {
            let adapter = adapter.map(|matrix| matrix.clone().cast(number_type));
            adapter.in_mode(Mode::Evaluation)
        });
        let adapter = adapter.as_ref();
        let (mut cache, mut last) = self.prefill(adapter, rows, settings, stop)?;
        let mut completions = vec![
            Completion {
                tokens: Vec::new(),
                logprobs: Vec::new(),
                finish: Finish::Length,
            };
            rows.len()
        ];
        let mut active: Vec<_> = rows
            .iter()
            .enumerate()
            .map(|(row, GenerationRow { prompt, seed })| Active {
                row,
                random: RowRandom::new(*seed),
                position: prompt.len() as u32,
            })
            .collect();
        loop {
            let uniforms: Vec<_> = active.iter_mut().map(|row| row.random.uniform()).collect();
            let places: Vec<_> = active
                .iter()
                .map(|row| (row.row, completions[row.row].tokens.len()))
                .collect();
            let drawn = draw(self.logits(last), &settings.sampling, &uniforms, &places)?;
            let mut kept = Vec::new();
            let mut next = Vec::new();
            for (index, (active, (token, logprob))) in active.iter_mut().zip(drawn).enumerate() {
                let completion = &mut completions[active.row];
                completion.tokens.push(token);
                completion.logprobs.push(logprob);
                if settings.stop_tokens.contains(&token) {
                    completion.finish = Finish::Stop;
                } else if completion.tokens.len() < settings.max_new_tokens {
                    kept.push(index);
                    next.push((token, active.position));
                    active.position += 1;
                }
            }
            if kept.is_empty() {
                return Ok(completions);
            }
            if kept.len() < active.len() {
                cache.select_rows(&kept);
                let mut index = 0;
                active.retain(|_| {
                    index += 1;
                    kept.binary_search(&(index - 1)).is_ok()
                });
            }
            let (tokens, positions): (Vec<_>, Vec<_>) = next.into_iter().unzip();
            let tokens: Vec<_> = tokens.chunks(1).collect();
            let tokens = Tokens::continued(&tokens, &positions)?;
            last = self.last_hidden(&tokens, adapter, &mut cache, stop)?;
        }
    }

    fn check(&self, rows: &[GenerationRow], settings: &Generation) -> Result<(), RequestError> {
        settings.sampling.check()?;
        if settings.max_new_tokens == 0 {
            return Err(RequestError::Setting {
                name: "max_new_tokens",
                value: 0.0,
                range: "1 or more",
            });
        }
        let context = self.config().context;
        for (row, GenerationRow { prompt, .. }) in rows.iter().enumerate() {
            let length = prompt.len().checked_add(settings.max_new_tokens);
            if length.is_none_or(|length| length > context) {
                return Err(RequestError::ContextOverflow {
                    row,
                    prompt: prompt.len(),
                    new: settings.max_new_tokens,
                    context,
                });
            }
            Tokens::continued(&[prompt], &[0])?
                .check(self.config().vocabulary, context)
                .map_err(|why| why.at_row(row))?;
        }
        Ok(())
    }

    /// A cache that holds the prompts, with room for the answers, and the hidden states of the
    /// prompts' last tokens, `[rows, hidden]`.
    fn prefill(
        &self,
        adapter: Option<&Adapter<B>>,
        rows: &[GenerationRow],
        settings: &Generation,
        stop: &Stop,
    ) -> Result<(KvCache<B>, Tensor<B, 2>), RequestError> {
        let prompts: Vec<_> = rows.iter().map(|row| row.prompt.as_slice()).collect();
        let shared = if settings.share_prefixes {
            SharedPrefixes::of(&prompts)
        } else {
            SharedPrefixes::none(prompts.len())
        };
        let prefixes = Tokens::continued(&shared.prefixes, &vec![0; shared.prefixes.len()])?;
        let (rests, starts): (Vec<_>, Vec<_>) = prompts
            .iter()
            .zip(&shared.owners)
            .map(|(prompt, owner)| {
                let start = shared.prefixes[*owner].len();
                (&prompt[start..], start as u32)
            })
            .unzip();
        let rests = Tokens::continued(&rests, &starts)?;

        // The last token that is drawn is never looked back at.
        let capacity = prefixes.columns() + rests.columns() + settings.max_new_tokens - 1;
        let mut cache = KvCache::new(
            self.config(),
            shared.prefixes.len(),
            capacity,
            self.number_type(),
            &self.device(),
        )?;
        if prefixes.columns() > 0 {
            self.last_hidden(&prefixes, adapter, &mut cache, stop)?;
        }
        if shared.prefixes.len() < rows.len() {
            cache.select_rows(&shared.owners);
        }
        let last = self.last_hidden(&rests, adapter, &mut cache, stop)?;
        Ok((cache, last))
    }

    /// Passes the tokens through the decoder and gives the last column's hidden states,
    /// `[rows, hidden]`.
    fn last_hidden(
        &self,
        tokens: &Tokens,
        adapter: Option<&Adapter<B>>,
        cache: &mut KvCache<B>,
        stop: &Stop,
    ) -> Result<Tensor<B, 2>, RequestError> {
        let mut last = None;
        self.hidden_in_passes(tokens, adapter, cache, |hidden| {
            let [_, columns, _] = hidden.dims();
            last = Some(hidden.narrow(1, columns - 1, 1).squeeze_dim(1));
            stop.check()
        })?;
        Ok(last.expect("there is at least one column, so at least one pass"))
    }
}

/// Logits that one thread draws from at a time, at least.
const DRAWN_TOGETHER: usize = 1 << 16;

/// A token of each row of `logits`, `[rows, vocabulary]`, and its log-probability. `places` has for each the row in
/// the request and the index of its new token.
///
/// # Errors
///
/// [`RequestError::NotFinite`] names the first logit that is not.
fn draw<B: PolicyBackend>(
    logits: Tensor<B, 2>,
    sampling: &Sampling,
    uniforms: &[f64],
    places: &[(usize, usize)],
) -> Result<Vec<(u32, f32)>, RequestError> {
    if sampling.keeps_all()
        && let Some(draws) = B::draw(&logits, sampling.temperature, uniforms)
        && draws.iter().all(|draw| draw.is_finite)
    {
        return Ok(draws.iter().map(|draw| (draw.token, draw.logprob)).collect());
    }
    let [_, vocabulary] = logits.dims();
    let logits = read(logits);
    let rows = logits.par_chunks(vocabulary).zip(uniforms).zip(places);
    let drawn: Vec<_> = rows
        .with_min_len(DRAWN_TOGETHER.div_ceil(vocabulary))
        .map(|((logits, uniform), &(row, index))| {
            check_logits(logits, row, index)?;
            let token = sampling.draw(logits, *uniform);
            Ok((token, logprob(logits, token, sampling.logprob_temperature())))
        })
        .collect();
    drawn.into_iter().collect()
}

/// # Errors
///
/// [`RequestError::NotFinite`] names the first logit that is not.
fn check_logits(logits: &[f32], row: usize, index: usize) -> Result<(), RequestError> {
    for (token, &logit) in logits.iter().enumerate() {
        RequestError::check_finite(f64::from(logit), MEND_LOGITS, || {
            format!("row {row}, new token {index}: the logit of token id {token}")
        })?;
    }
    Ok(())
}

/// Beginnings that several prompts have in common.
#[derive(Debug, PartialEq, Eq)]
struct SharedPrefixes<'a> {
    prefixes: Vec<&'a [u32]>,
    /// The prefix of each prompt.
    owners: Vec<usize>,
}

impl<'a> SharedPrefixes<'a> {
    /// Every prompt on its own.
    fn none(prompts: usize) -> Self {
        Self {
            prefixes: vec![&[]; prompts],
            owners: (0..prompts).collect(),
        }
    }

    /// Prompts that agree in at least half of their tokens share what they agree in. At least the
    /// last token of each is left, whose logits are wanted. The longest prefix and the longest rest
    /// together are no longer than the longest prompt, so that sharing takes no columns of its own.
    fn of(prompts: &[&'a [u32]]) -> Self {
        let mut order: Vec<_> = (0..prompts.len()).collect();
        order.sort_by_key(|index| prompts[*index]);
        let mut prefixes: Vec<&[u32]> = Vec::new();
        let mut owners = vec![0; prompts.len()];
        let mut longest = 0;
        for index in order {
            let all_but_last = &prompts[index][..prompts[index].len().saturating_sub(1)];
            longest = all_but_last.len().max(longest);
            let common = prefixes
                .last()
                .map_or(0, |prefix| agreement(prefix, all_but_last));
            match prefixes.last_mut() {
                Some(prefix) if 2 * common >= longest => *prefix = &prefix[..common],
                _ => {
                    longest = all_but_last.len();
                    prefixes.push(all_but_last);
                }
            }
            owners[index] = prefixes.len() - 1;
        }
        if prefixes.len() == prompts.len() {
            return Self::none(prompts.len());
        }
        let length = |prompt: &&[u32]| prompt.len();
        let longest = prompts.iter().map(length).max().unwrap_or(0);
        let rests = prompts
            .iter()
            .zip(&owners)
            .map(|(prompt, owner)| prompt.len() - prefixes[*owner].len());
        let most = longest - rests.max().unwrap_or(0);
        for prefix in &mut prefixes {
            *prefix = &prefix[..prefix.len().min(most)];
        }
        Self { prefixes, owners }
    }
}

/// Number of leading tokens that two sequences have in common.
fn agreement(one: &[u32], other: &[u32]) -> usize {
    one.iter().zip(other).take_while(|(a, b)| a == b).count()
}

fn read<B: PolicyBackend>(logits: Tensor<B, 2>) -> Vec<f32> {
    logits
        .cast(FloatDType::F32)
        .into_data()
        .into_vec()
        .expect("numbers cast to f32 are f32")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn siblings_share_all_but_their_last_token() {
        let shared = SharedPrefixes::of(&[&[1, 2, 3], &[9, 9], &[1, 2, 3]]);
        assert_eq!(shared.prefixes, [&[1, 2][..], &[9]]);
        assert_eq!(shared.owners, [0, 1, 0]);
    }

    #[test]
    fn prompts_share_what_they_agree_in_if_it_is_half() {
        let shared = SharedPrefixes::of(&[&[1, 2, 3, 4, 5], &[1, 2, 3, 7, 8, 9], &[1, 6, 6, 6, 6]]);
        assert_eq!(shared.prefixes, [&[1, 2, 3][..], &[1, 6, 6]]);
        assert_eq!(shared.owners, [0, 0, 1]);
    }

    #[test]
    fn a_logit_that_is_not_finite_is_named() {
        assert_eq!(check_logits(&[1.0, -1e30], 0, 0), Ok(()));
        for bad in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
            let message = check_logits(&[0.0, bad], 3, 7)
                .expect_err("must be refused")
                .to_string();
            assert!(message.starts_with("row 3, new token 7"), "{message}");
            assert!(message.contains("token id 1"), "{message}");
        }
    }

    proptest! {
        #[test]
        fn sharing_takes_no_more_columns_than_the_longest_prompt(
            prompts in prop::collection::vec(prop::collection::vec(0u32..2, 1..30), 1..8),
        ) {
            let prompts: Vec<_> = prompts.iter().map(Vec::as_slice).collect();
            let shared = SharedPrefixes::of(&prompts);
            let mut rests = Vec::new();
            for (prompt, owner) in prompts.iter().zip(&shared.owners) {
                let prefix = shared.prefixes[*owner];
                prop_assert!(prompt.starts_with(prefix) && prompt.len() > prefix.len());
                rests.push(prompt.len() - prefix.len());
            }
            let prefix = shared.prefixes.iter().map(|prefix| prefix.len()).max();
            let longest = prompts.iter().map(|prompt| prompt.len()).max();
            let columns = prefix.unwrap_or(0) + rests.into_iter().max().unwrap_or(0);
            prop_assert!(Some(columns) <= longest);
        }
    }

    #[test]
    fn nothing_is_shared_where_nothing_agrees() {
        let prompts: [&[u32]; 3] = [&[1, 2], &[3, 4], &[5]];
        assert_eq!(SharedPrefixes::of(&prompts), SharedPrefixes::none(3));
    }
}
