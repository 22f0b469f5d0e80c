//! Group-relative policy optimisation [Shao et al., DeepSeekMath, arXiv 2402.03300] and its kin:
//! the normalisations of DAPO [Yu et al., arXiv 2503.14476] and Dr. GRPO [Liu et al., arXiv
//! 2503.20783], ratios over sequences [Zheng et al., GSPO, arXiv 2507.18071].

use burn_tensor::backend::Backend;
use burn_tensor::{DType, Tensor, TensorData};

use crate::backend::{PolicyBackend, index_tensor};
use crate::decoder::Decoder;
use crate::error::RequestError;
use crate::lora::Adapter;
use crate::tokens::Tokens;

/// What the centred rewards of a group are divided by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AdvantageScale {
    /// The group's standard deviation, with divisor n − 1.
    Group,
    /// The group's standard deviation, with divisor n.
    GroupPopulation,
    /// The standard deviation of all rewards, with divisor n − 1.
    Batch,
    /// Nothing.
    None,
}

/// Added to a standard deviation before division.
const SPREAD_EPS: f64 = 1e-4;

/// The advantage of each child over the children of the same parent, group by group.
///
/// A group whose rewards are equal has exact zeros.
///
/// ```
/// use capo_rewriter::grpo::{AdvantageScale, advantages};
///
/// let found = advantages(&[vec![0.0, 1.0], vec![0.7, 0.7, 0.7]], AdvantageScale::None);
/// assert_eq!(found, [vec![-0.5, 0.5], vec![0.0; 3]]);
/// ```
pub fn advantages(rewards: &[Vec<f64>], scale: AdvantageScale) -> Vec<Vec<f64>> {
    let all = rewards.concat();
    let of_group = |group: &Vec<f64>| {
        if group.windows(2).all(|pair| pair[0] == pair[1]) {
            return vec![0.0; group.len()];
        }
        let divisor = match scale {
            AdvantageScale::Group => deviation(group, 1) + SPREAD_EPS,
            AdvantageScale::GroupPopulation => deviation(group, 0) + SPREAD_EPS,
            AdvantageScale::Batch => deviation(&all, 1) + SPREAD_EPS,
            AdvantageScale::None => 1.0,
        };
        let centre = mean(group);
        group.iter().map(|reward| (reward - centre) / divisor).collect()
    };
    rewards.iter().map(of_group).collect()
}

fn mean(numbers: &[f64]) -> f64 {
    numbers.iter().sum::<f64>() / numbers.len() as f64
}

fn deviation(numbers: &[f64], less: usize) -> f64 {
    let centre = mean(numbers);
    let squares: f64 = numbers.iter().map(|number| (number - centre).powi(2)).sum();
    (squares / (numbers.len() - less) as f64).sqrt()
}

/// Prompts with the completions that a policy wrote for them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Completions {
    tokens: Tokens,
    /// Of each completion, in tokens.
    lengths: Vec<usize>,
}

impl Completions {
    /// Each prompt with its completion.
    pub fn new<R: AsRef<[u32]>>(prompts: &[R], completions: &[R]) -> Self {
        Self {
            tokens: Tokens::completed(prompts, completions),
            lengths: completions.iter().map(|row| row.as_ref().len()).collect(),
        }
    }

    /// Prompts and completions.
    pub fn tokens(&self) -> &Tokens {
        &self.tokens
    }

    /// Of each completion, in tokens.
    pub fn lengths(&self) -> &[usize] {
        &self.lengths
    }

    /// Of the longest completion, in tokens.
    pub fn longest(&self) -> usize {
        self.lengths.iter().copied().max().unwrap_or(0)
    }

    /// The completions' tokens, row · columns + column each, row by row.
    pub fn cells(&self) -> Vec<usize> {
        let columns = self.tokens.columns();
        let first = columns - self.longest();
        let of_row =
            |(row, length): (usize, &usize)| (0..*length).map(move |index| row * columns + first + index);
        self.lengths.iter().enumerate().flat_map(of_row).collect()
    }

    /// Log-probabilities of the completions' tokens, `[rows, longest]`, 0 past an end.
    ///
    /// # Errors
    ///
    /// As [`Decoder::hidden`].
    pub fn logprobs<B: PolicyBackend>(
        &self,
        decoder: &Decoder<B>,
        adapter: Option<&Adapter<B>>,
        temperature: f64,
    ) -> Result<Tensor<B, 2>, RequestError> {
        let scores = decoder.score(&self.tokens, &self.cells(), adapter, temperature)?;
        Ok(self.rectangle(scores.logprobs()))
    }

    /// One number for each token, in the order of [`cells`](Self::cells), laid out as
    /// `[rows, longest]` with 0 past an end.
    pub fn rectangle<B: Backend>(&self, numbers: Tensor<B, 1>) -> Tensor<B, 2> {
        let device = numbers.device();
        let [count] = numbers.dims();
        let longest = self.longest();
        let mut next = 0;
        let mut places = Vec::with_capacity(self.lengths.len() * longest);
        for &length in &self.lengths {
            places.extend(next..next + length);
            places.resize(places.len() + longest - length, count);
            next += length;
        }
        let places = index_tensor::<B>(places, &device);
        let zero = Tensor::zeros([1], (&device, numbers.dtype()));
        Tensor::cat(vec![numbers, zero], 0)
            .select(0, places)
            .reshape([self.lengths.len(), longest])
    }
}

/// Whether each token has a ratio of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RatioLevel {
    /// Policy over sampling policy, for each token.
    Token,
    /// The geometric mean of the tokens' ratios, for all tokens of a completion.
    Sequence,
}

/// How the losses of a batch's tokens become one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Normalisation {
    /// The mean over completions of their means (GRPO).
    SequenceMean,
    /// The mean over all tokens (DAPO).
    TokenMean,
    /// The sum over rows × the longest completion allowed, in tokens (Dr. GRPO).
    Constant(usize),
}

impl Normalisation {
    /// The weight of each completion's tokens in the loss. A batch that is worked off in parts
    /// takes its weights from here and hands each part its own.
    pub fn weights(self, lengths: &[usize]) -> Vec<f32> {
        let rows = lengths.len();
        let tokens: usize = lengths.iter().sum();
        let divisor = |length: usize| match self {
            Self::SequenceMean => rows * length,
            Self::TokenMean => tokens,
            Self::Constant(longest) => rows * longest,
        };
        lengths
            .iter()
            .map(|length| 1.0 / divisor(*length).max(1) as f32)
            .collect()
    }
}

/// The clipped objective.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Objective {
    /// What a ratio compares.
    pub ratio_level: RatioLevel,
    /// Ratios below 1 − this are clipped.
    pub clip_low: f64,
    /// Ratios above 1 + this are clipped.
    pub clip_high: f64,
    /// Largest ratio that counts even where clipping would not hold it, as for a negative
    /// advantage.
    pub ratio_ceiling: Option<f64>,
    /// Weight of the divergence from the reference policy.
    pub kl_weight: f64,
}

impl Default for Objective {
    fn default() -> Self {
        Self {
            ratio_level: RatioLevel::Token,
            clip_low: 0.2,
            clip_high: 0.2,
            ratio_ceiling: None,
            kl_weight: 0.0,
        }
    }
}

/// What the objective compares, all `[rows, longest]` with 0 past an end.
#[derive(Debug, Clone)]
pub struct Evidence<B: Backend> {
    /// Log-probabilities under the policy that learns.
    pub policy: Tensor<B, 2>,
    /// Under the policy that wrote the completions; `None` when it is the one that learns.
    pub sampled: Option<Tensor<B, 2>>,
    /// Under the policy that the learning one must not leave; `None` when there is none.
    pub reference: Option<Tensor<B, 2>>,
}

/// The loss of a batch with what it is made of.
#[derive(Debug, Clone)]
pub struct Loss<B: Backend> {
    /// What is to be made small, `[1]`.
    pub total: Tensor<B, 1>,
    /// By token, `[rows, longest]`, 0 past an end.
    pub tokens: Tensor<B, 2>,
    /// Ratios by token, `[rows, longest]`, 0 past an end.
    pub ratios: Tensor<B, 2>,
    /// exp(r − l) − (r − l) − 1 by token, with l the policy's and r the reference's log-probability,
    /// `[rows, longest]`, 0 past an end.
    pub kl: Option<Tensor<B, 2>>,
}

/// A batch's ratios and divergences, over its tokens.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Statistics {
    /// Mean divergence from the reference, 0 without one.
    pub kl_mean: f64,
    /// Share of tokens with a negative advantage and a ratio clipped from below.
    pub clip_low: f64,
    /// Share of tokens with a positive advantage and a ratio clipped from above.
    pub clip_high: f64,
    /// Mean ratio.
    pub ratio_mean: f64,
    /// Smallest ratio.
    pub ratio_min: f64,
    /// Largest ratio.
    pub ratio_max: f64,
}

impl Objective {
    /// The loss of completions of the given lengths, advantages and weights
    /// ([`Normalisation::weights`]), one each per row.
    pub fn loss<B: Backend>(
        &self,
        evidence: &Evidence<B>,
        lengths: &[usize],
        advantages: &[f32],
        weights: &[f32],
    ) -> Loss<B> {
        let policy = evidence.policy.clone();
        let [rows, longest] = policy.dims();
        let device = policy.device();
        let column = |numbers: &[f32]| {
            let data = TensorData::new(numbers.to_vec(), [rows, 1]);
            Tensor::<B, 2>::from_data(data, (&device, DType::F32))
        };
        let real: Vec<_> = lengths
            .iter()
            .flat_map(|length| (0..longest).map(move |index| if index < *length { 1.0f32 } else { 0.0 }))
            .collect();
        let real = Tensor::<B, 2>::from_data(TensorData::new(real, [rows, longest]), (&device, DType::F32));

        let sampled = match &evidence.sampled {
            Some(sampled) => sampled.clone(),
            None => policy.clone().detach(),
        };
        let mut log_ratios = policy.clone() - sampled;
        if self.ratio_level == RatioLevel::Sequence {
            let shares: Vec<_> = lengths
                .iter()
                .map(|length| 1.0 / (*length).max(1) as f32)
                .collect();
            let means = (log_ratios * real.clone()).sum_dim(1) * column(&shares);
            log_ratios = means.expand([rows, longest]);
        }
        let ratios = log_ratios.exp();

        let advantages = column(advantages);
        let held = match self.ratio_ceiling {
            Some(ceiling) => ratios.clone().clamp_max(ceiling),
            None => ratios.clone(),
        };
        let clipped = ratios.clone().clamp(1.0 - self.clip_low, 1.0 + self.clip_high);
        let mut tokens = (held * advantages.clone()).min_pair(clipped * advantages).neg();

        let kl = evidence.reference.as_ref().map(|reference| {
            let difference = reference.clone() - policy;
            difference.clone().exp() - difference - 1.0
        });
        if let Some(kl) = kl.as_ref().filter(|_| self.kl_weight != 0.0) {
            tokens = tokens + kl.clone().mul_scalar(self.kl_weight);
        }
        let tokens = tokens * real.clone();
        Loss {
            total: (tokens.clone() * column(weights)).sum(),
            tokens,
            ratios: ratios * real.clone(),
            kl: kl.map(|kl| kl * real),
        }
    }

    /// What the ratios and divergences of a loss were; reads them from the device.
    pub fn statistics<B: Backend>(
        &self,
        loss: &Loss<B>,
        lengths: &[usize],
        advantages: &[f32],
    ) -> Statistics {
        let [_, longest] = loss.ratios.dims();
        let of_tokens = |rectangle: Tensor<B, 2>| {
            let numbers: Vec<f32> = rectangle.into_data().iter().collect();
            let rows = lengths.iter().enumerate();
            rows.flat_map(|(row, length)| {
                numbers[row * longest..][..*length]
                    .iter()
                    .map(move |number| (row, f64::from(*number)))
            })
            .collect::<Vec<_>>()
        };
        let ratios = of_tokens(loss.ratios.clone());
        let count = ratios.len().max(1) as f64;
        let share = |holds: &dyn Fn(f32, f64) -> bool| {
            let hits = ratios
                .iter()
                .filter(|(row, ratio)| holds(advantages[*row], *ratio))
                .count();
            hits as f64 / count
        };
        let sum = |numbers: &[(usize, f64)]| numbers.iter().map(|(_, number)| number).sum::<f64>();
        Statistics {
            kl_mean: loss.kl.clone().map_or(0.0, |kl| sum(&of_tokens(kl)) / count),
            clip_low: share(&|advantage, ratio| advantage < 0.0 && ratio < 1.0 - self.clip_low),
            clip_high: share(&|advantage, ratio| advantage > 0.0 && ratio > 1.0 + self.clip_high),
            ratio_mean: sum(&ratios) / count,
            ratio_min: ratios
                .iter()
                .map(|(_, ratio)| *ratio)
                .fold(f64::INFINITY, f64::min),
            ratio_max: ratios.iter().map(|(_, ratio)| *ratio).fold(0.0, f64::max),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn weights_of_a_batch_are_those_of_its_parts() {
        let lengths = [3, 1, 4];
        let sums = |normalisation: Normalisation| {
            let weights = normalisation.weights(&lengths);
            lengths
                .iter()
                .zip(weights)
                .map(|(length, weight)| *length as f32 * weight)
                .sum::<f32>()
        };
        assert!((sums(Normalisation::SequenceMean) - 1.0).abs() < 1e-6);
        assert!((sums(Normalisation::TokenMean) - 1.0).abs() < 1e-6);
        assert!((sums(Normalisation::Constant(16)) - 8.0 / 48.0).abs() < 1e-6);
        assert_eq!(Normalisation::SequenceMean.weights(&[0]), [1.0]);
    }

    proptest! {
        #[test]
        fn advantages_sum_to_zero_and_keep_the_order(
            rewards in prop::collection::vec(prop::collection::vec(0f64..1.0, 1..9), 1..5),
        ) {
            for scale in [AdvantageScale::Group, AdvantageScale::GroupPopulation, AdvantageScale::Batch, AdvantageScale::None] {
                for (group, found) in rewards.iter().zip(advantages(&rewards, scale)) {
                    prop_assert!(found.iter().sum::<f64>().abs() < 1e-6);
                    for (one, other) in group.iter().zip(&found).zip(group.iter().zip(&found).skip(1)) {
                        prop_assert_eq!(one.0 < other.0, one.1 < other.1);
                    }
                }
            }
        }

        #[test]
        fn equal_rewards_have_exact_zeros(reward in 0f64..1.0, size in 1usize..9) {
            let found = advantages(&[vec![reward; size], vec![0.0, 1.0]], AdvantageScale::Group);
            prop_assert_eq!(&found[0], &vec![0.0; size]);
        }
    }
}
