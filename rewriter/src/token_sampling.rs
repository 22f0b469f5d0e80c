//! Token sampling: the next token from a row of logits, by temperature, top-k, top-p and min-p.

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha12Rng;
use serde::{Deserialize, Serialize};

use crate::error::RequestError;

/// How the next token is drawn.
///
/// In this order: logits are divided by the temperature; the `top_k` largest stay; of these a
/// token stays if the mass of the strictly better ones is below `top_p`; of these a token stays
/// if its probability is at least `min_p` times the best one's.
///
/// ```
/// use capo_rewriter::token_sampling::Sampling;
///
/// let sampling = Sampling { top_k: 2, ..Sampling::default() };
/// let kept = sampling.distribution(&[1.0, 3.0, 2.0]);
/// assert_eq!(kept.iter().map(|(token, _)| *token).collect::<Vec<_>>(), [1, 2]);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Sampling {
    /// Above 0, or 0 for the best token always.
    pub temperature: f32,
    /// Number of tokens kept; 0 keeps all.
    pub top_k: usize,
    /// In (0, 1]; 1 keeps all.
    pub top_p: f32,
    /// In [0, 1]; 0 keeps all.
    pub min_p: f32,
}

impl Default for Sampling {
    /// The model's own distribution.
    fn default() -> Self {
        Self {
            temperature: 1.0,
            top_k: 0,
            top_p: 1.0,
            min_p: 0.0,
        }
    }
}

/// Tokens that the first look at a row orders; enough for all but flat distributions.
const FIRST_LOOK: usize = 256;

impl Sampling {
    /// The best token always.
    pub const GREEDY: Self = Self {
        temperature: 0.0,
        top_k: 0,
        top_p: 1.0,
        min_p: 0.0,
    };

    /// Whether the best token is always taken.
    pub fn is_greedy(&self) -> bool {
        self.temperature == 0.0
    }

    /// Whether every token may be drawn, or the best always is.
    pub(crate) fn keeps_all(&self) -> bool {
        self.is_greedy() || self.top_k == 0 && self.top_p == 1.0 && self.min_p == 0.0
    }

    /// The temperature at which log-probabilities are stated: 1 when greedy.
    pub fn logprob_temperature(&self) -> f32 {
        if self.is_greedy() { 1.0 } else { self.temperature }
    }

    /// # Errors
    ///
    /// [`RequestError::Setting`] names a setting outside its range.
    pub fn check(&self) -> Result<(), RequestError> {
        let ranges = [
            (
                "temperature",
                self.temperature,
                self.temperature >= 0.0 && self.temperature.is_finite(),
                "0 or more",
            ),
            (
                "top_p",
                self.top_p,
                self.top_p > 0.0 && self.top_p <= 1.0,
                "above 0 and at most 1",
            ),
            (
                "min_p",
                self.min_p,
                (0.0..=1.0).contains(&self.min_p),
                "between 0 and 1",
            ),
        ];
        for (name, value, holds, range) in ranges {
            if !holds {
                return Err(RequestError::Setting {
                    name,
                    value: f64::from(value),
                    range,
                });
            }
        }
        Ok(())
    }

    /// The tokens that may be drawn with their probabilities, best first, equals by id.
    ///
    /// `logits` is one row, `[vocabulary]`.
    pub fn distribution(&self, logits: &[f32]) -> Vec<(u32, f64)> {
        let mut kept = self.kept(logits);
        kept.sort_unstable_by(better);
        normalise(&mut kept);
        kept
    }

    /// Draws a token.
    ///
    /// `uniform` in [0, 1) decides along the tokens by id, so that rounding in the logits, which
    /// may swap near equals in rank, moves no boundary by more than itself.
    pub fn draw(&self, logits: &[f32], uniform: f64) -> u32 {
        if self.is_greedy() {
            return best(logits);
        }
        let mut kept = self.kept(logits);
        kept.sort_unstable_by_key(|(token, _)| *token);
        normalise(&mut kept);
        let mut mass = 0.0;
        for &(token, probability) in &kept {
            mass += probability;
            if uniform < mass {
                return token;
            }
        }
        // Rounding may leave the mass a little below 1.
        kept.last().map_or(0, |(token, _)| *token)
    }

    /// The tokens that may be drawn with z = logit / temperature, in no order.
    fn kept(&self, logits: &[f32]) -> Vec<(u32, f64)> {
        if self.is_greedy() {
            return vec![(best(logits), 0.0)];
        }
        let temperature = f64::from(self.temperature);
        let mut kept: Vec<_> = (0u32..)
            .zip(logits)
            .map(|(token, &logit)| (token, f64::from(logit) / temperature))
            .collect();
        if self.top_k > 0 && self.top_k < kept.len() {
            let (_, &mut (_, smallest), _) = kept.select_nth_unstable_by(self.top_k - 1, better);
            kept.retain(|&(_, z)| z >= smallest);
        }
        if self.top_p < 1.0 {
            keep_mass(&mut kept, f64::from(self.top_p));
        }
        if self.min_p > 0.0 {
            let smallest = maximum(&kept) + f64::from(self.min_p).ln();
            kept.retain(|&(_, z)| z >= smallest);
        }
        kept
    }
}

/// Keeps the tokens whose strictly better ones have less than `top_p` of the mass.
fn keep_mass(tokens: &mut Vec<(u32, f64)>, top_p: f64) {
    let highest = maximum(tokens);
    let total: f64 = tokens.iter().map(|(_, z)| (z - highest).exp()).sum();
    let mut look = FIRST_LOOK.min(tokens.len());
    loop {
        if look < tokens.len() {
            tokens.select_nth_unstable_by(look - 1, better);
        }
        tokens[..look].sort_unstable_by(better);
        let mut before = 0.0;
        let end = tokens[..look].iter().position(|(_, z)| {
            let drop = before >= top_p;
            before += (z - highest).exp() / total;
            drop
        });
        match end {
            Some(end) => return tokens.truncate(end),
            None if look == tokens.len() => return,
            None => look = (look * 8).min(tokens.len()),
        }
    }
}

fn better(one: &(u32, f64), other: &(u32, f64)) -> std::cmp::Ordering {
    other.1.total_cmp(&one.1).then(one.0.cmp(&other.0))
}

fn maximum(tokens: &[(u32, f64)]) -> f64 {
    tokens.iter().map(|(_, z)| *z).fold(f64::NEG_INFINITY, f64::max)
}

fn normalise(tokens: &mut [(u32, f64)]) {
    let highest = maximum(tokens);
    let mut total = 0.0;
    for (_, z) in tokens.iter_mut() {
        *z = (*z - highest).exp();
        total += *z;
    }
    for (_, probability) in tokens {
        *probability /= total;
    }
}

/// The token with the largest logit, the first of equals.
fn best(logits: &[f32]) -> u32 {
    let mut best = 0;
    for (token, logit) in logits.iter().enumerate() {
        if *logit > logits[best] {
            best = token;
        }
    }
    best as u32
}

/// log softmax(logits / temperature) at `token`.
pub fn logprob(logits: &[f32], token: u32, temperature: f32) -> f32 {
    let highest = logits.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let total: f64 = logits
        .iter()
        .map(|&logit| f64::from(((logit - highest) / temperature).exp()))
        .sum();
    let distance = f64::from(logits[token as usize]) - f64::from(highest);
    (distance / f64::from(temperature) - total.ln()) as f32
}

/// The uniform numbers of one row, a function of its seed alone.
#[derive(Debug, Clone)]
pub struct RowRandom(ChaCha12Rng);

impl RowRandom {
    /// The stream of a seed.
    pub fn new(seed: u64) -> Self {
        Self(ChaCha12Rng::seed_from_u64(seed))
    }

    /// The next number, in [0, 1).
    pub fn uniform(&mut self) -> f64 {
        self.0.random()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn draws_follow_the_distribution() {
        let sampling = Sampling {
            top_k: 5,
            top_p: 0.95,
            ..Sampling::default()
        };
        let logits = [0.3, 2.0, -1.0, 1.1, 0.9, 1.5, -2.0];
        let mut random = RowRandom::new(3);
        let mut counts = [0u32; 7];
        let draws = 20_000;
        for _ in 0..draws {
            counts[sampling.draw(&logits, random.uniform()) as usize] += 1;
        }
        let mut seen = 0;
        for (token, probability) in sampling.distribution(&logits) {
            let share = f64::from(counts[token as usize]) / f64::from(draws);
            let error = (probability * (1.0 - probability) / f64::from(draws)).sqrt();
            assert!(
                (share - probability).abs() < 4.0 * error,
                "{token}: {share} {probability}"
            );
            seen += counts[token as usize];
        }
        assert_eq!(seen, draws, "a token outside the distribution was drawn");
    }

    #[test]
    fn settings_outside_their_range_are_named() {
        let bad = [
            (
                Sampling {
                    temperature: -1.0,
                    ..Sampling::default()
                },
                "temperature",
            ),
            (
                Sampling {
                    top_p: 0.0,
                    ..Sampling::default()
                },
                "top_p",
            ),
            (
                Sampling {
                    min_p: f32::NAN,
                    ..Sampling::default()
                },
                "min_p",
            ),
        ];
        for (sampling, setting) in bad {
            let message = sampling.check().expect_err("must be refused").to_string();
            assert!(message.contains(setting), "{message}");
        }
        Sampling::GREEDY.check().expect("greedy is a setting");
    }

    proptest! {
        #[test]
        fn a_flat_row_keeps_its_mass(size in 2usize..3000, top_p in 0.05f32..1.0) {
            let sampling = Sampling { top_p, ..Sampling::default() };
            let kept = sampling.distribution(&vec![0.5; size]).len();
            let exact = f64::from(top_p) * size as f64;
            prop_assert!((kept as f64 - exact.ceil()).abs() <= 1.0, "{kept} of {exact}");
        }

        #[test]
        fn greedy_takes_the_first_best(mut logits in prop::collection::vec(-9f32..9.0, 1..50)) {
            let top = logits.iter().copied().fold(f32::NEG_INFINITY, f32::max);
            logits.push(top);
            let first = logits.iter().position(|logit| *logit == top).expect("the maximum is there");
            prop_assert_eq!(Sampling::GREEDY.draw(&logits, 0.7) as usize, first);
        }

        #[test]
        fn logprobs_sum_to_one(logits in prop::collection::vec(-9f32..9.0, 1..50), temperature in 0.2f32..3.0) {
            let total: f64 = (0..logits.len() as u32)
                .map(|token| f64::from(logprob(&logits, token, temperature)).exp())
                .sum();
            prop_assert!((total - 1.0).abs() < 1e-5, "{total}");
        }
    }
}
