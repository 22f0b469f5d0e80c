//! Advantages and losses of group-relative policy optimisation (GRPO) [Shao et al., DeepSeekMath, arXiv 2402.03300] and
//! its kin: the normalisations of DAPO [Yu et al., arXiv 2503.14476] and Dr. GRPO [Liu et al., arXiv 2503.20783],
//! ratios over sequences [Zheng et al., GSPO, arXiv 2507.18071].

use burn_tensor::backend::Backend;
use burn_tensor::{DType, Tensor, TensorData};
use serde::{Deserialize, Serialize};

use crate::backend::{PolicyBackend, index_tensor};
use crate::decoder::Decoder;
use crate::error::RequestError;
use crate::lora::Adapter;
use crate::tokens::Tokens;

/// What the centred rewards of a group are divided by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
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
/// # Errors
///
/// [`RequestError::NotFinite`] names a reward, or an advantage that overflows.
///
/// ```
/// use capo_rewriter::grpo::{AdvantageScale, advantages};
///
/// let found = advantages(&[vec![0.0, 1.0], vec![0.7, 0.7, 0.7]], AdvantageScale::None);
/// assert_eq!(found, Ok(vec![vec![-0.5, 0.5], vec![0.0; 3]]));
/// ```
pub fn advantages(rewards: &[Vec<f64>], scale: AdvantageScale) -> Result<Vec<Vec<f64>>, RequestError> {
    check_groups("reward", rewards)?;
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
    let advantages: Vec<_> = rewards.iter().map(of_group).collect();
    check_groups("advantage", &advantages)?;
    Ok(advantages)
}

/// What to do about rewards and advantages that are not finite.
const MEND_REWARD: &str = "leave the group out, or score its rollouts again";

fn check_groups(what: &str, groups: &[Vec<f64>]) -> Result<(), RequestError> {
    for (group, numbers) in groups.iter().enumerate() {
        for (child, &number) in numbers.iter().enumerate() {
            RequestError::check_finite(number, MEND_REWARD, || {
                format!("the {what} of child {child} in group {group}")
            })?;
        }
    }
    Ok(())
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
    /// Each prompt with its completion. A completion may be empty, and then counts for nothing, but not
    /// all of them.
    ///
    /// # Errors
    ///
    /// No prompts, another number of completions, a prompt without tokens, or completions without any.
    pub fn new<R: AsRef<[u32]>>(prompts: &[R], completions: &[R]) -> Result<Self, RequestError> {
        RequestError::check_count("completions", completions.len(), "prompts", prompts.len())?;
        if let Some(row) = prompts.iter().position(|prompt| prompt.as_ref().is_empty()) {
            return Err(RequestError::EmptyPrompt { row });
        }
        let lengths: Vec<_> = completions.iter().map(|row| row.as_ref().len()).collect();
        if lengths.iter().all(|length| *length == 0) {
            return Err(RequestError::EmptyBatch);
        }
        Ok(Self {
            tokens: Tokens::completed(prompts, completions),
            lengths,
        })
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
    /// As [`Decoder::score`].
    pub fn logprobs<B: PolicyBackend>(
        &self,
        decoder: &Decoder<B>,
        adapter: Option<&Adapter<B>>,
        temperature: f64,
    ) -> Result<Tensor<B, 2>, RequestError> {
        let scores = decoder.score(&self.tokens, &self.cells(), adapter, temperature)?;
        self.rectangle(scores.logprobs())
    }

    /// One number for each token, in the order of [`cells`](Self::cells), laid out as
    /// `[rows, longest]` with 0 past an end.
    ///
    /// # Errors
    ///
    /// [`RequestError::Count`] unless there is one number for each token.
    pub fn rectangle<B: Backend>(&self, numbers: Tensor<B, 1>) -> Result<Tensor<B, 2>, RequestError> {
        let device = numbers.device();
        let [count] = numbers.dims();
        RequestError::check_count("numbers", count, "tokens", self.lengths.iter().sum())?;
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
        Ok(Tensor::cat(vec![numbers, zero], 0)
            .select(0, places)
            .reshape([self.lengths.len(), longest]))
    }
}

/// Whether each token has a ratio of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RatioLevel {
    /// Policy over sampling policy, for each token.
    Token,
    /// The geometric mean of the tokens' ratios, for all tokens of a completion.
    Sequence,
}

/// How the losses of a batch's tokens become one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Normalisation {
    /// The mean over completions of their means (GRPO).
    SequenceMean,
    /// The mean over all tokens (DAPO).
    TokenMean,
    /// The sum over rows × the longest completion allowed, in tokens (Dr. GRPO).
    Constant(usize),
}

impl Normalisation {
    /// # Errors
    ///
    /// [`RequestError::Setting`] for 0 as the longest completion allowed.
    pub fn check(self) -> Result<(), RequestError> {
        if self == Self::Constant(0) {
            return Err(RequestError::Setting {
                name: "normalisation.constant",
                value: 0.0,
                range: "1 or more",
            });
        }
        Ok(())
    }

    /// The weight of each completion's tokens in the loss. A batch that is worked off in parts
    /// takes its weights from here and hands each part its own.
    ///
    /// # Errors
    ///
    /// No completions, or 0 as the longest completion allowed.
    pub fn weights(self, lengths: &[usize]) -> Result<Vec<f32>, RequestError> {
        if lengths.is_empty() {
            return Err(RequestError::EmptyBatch);
        }
        self.check()?;
        let rows = lengths.len();
        let tokens: usize = lengths.iter().sum();
        let divisor = |length: usize| match self {
            Self::SequenceMean => rows * length,
            Self::TokenMean => tokens,
            Self::Constant(longest) => rows * longest,
        };
        Ok(lengths
            .iter()
            .map(|length| 1.0 / divisor(*length).max(1) as f32)
            .collect())
    }
}

/// The clipped objective.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
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
    /// Completions that these are of.
    pub completions: usize,
    /// Tokens that means and shares are over.
    pub tokens: usize,
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

impl Statistics {
    /// The statistics of two parts of a batch together.
    #[must_use]
    pub fn with(self, other: Self) -> Self {
        let tokens = self.tokens + other.tokens;
        let mean = |one: f64, two: f64| {
            (one * self.tokens as f64 + two * other.tokens as f64) / tokens.max(1) as f64
        };
        Self {
            completions: self.completions + other.completions,
            tokens,
            kl_mean: mean(self.kl_mean, other.kl_mean),
            clip_low: mean(self.clip_low, other.clip_low),
            clip_high: mean(self.clip_high, other.clip_high),
            ratio_mean: mean(self.ratio_mean, other.ratio_mean),
            ratio_min: self.ratio_min.min(other.ratio_min),
            ratio_max: self.ratio_max.max(other.ratio_max),
        }
    }
}

/// What is given for each completion of a loss, and rectangles of numbers for its tokens.
fn check_completions<'a, B: Backend>(
    rectangles: impl IntoIterator<Item = (&'static str, &'a Tensor<B, 2>)>,
    lengths: &[usize],
    advantages: &[f32],
) -> Result<(), RequestError> {
    let longest = lengths.iter().copied().max().unwrap_or(0);
    if longest == 0 {
        return Err(RequestError::EmptyBatch);
    }
    let expected = [lengths.len(), longest];
    for (what, rectangle) in rectangles {
        let found = rectangle.dims();
        if found != expected {
            return Err(RequestError::Rectangle {
                what,
                expected,
                found,
            });
        }
    }
    RequestError::check_count("advantages", advantages.len(), "completions", lengths.len())?;
    for (row, &advantage) in advantages.iter().enumerate() {
        RequestError::check_finite(f64::from(advantage), MEND_REWARD, || {
            format!("the advantage of row {row}")
        })?;
    }
    Ok(())
}

impl Objective {
    /// # Errors
    ///
    /// [`RequestError::Setting`] names the first setting outside its range.
    pub fn check(&self) -> Result<(), RequestError> {
        let ceiling = self.ratio_ceiling.unwrap_or(1.0);
        let settings = [
            (
                "clip_low",
                self.clip_low,
                (0.0..=1.0).contains(&self.clip_low),
                "between 0 and 1",
            ),
            ("clip_high", self.clip_high, self.clip_high >= 0.0, "0 or more"),
            ("ratio_ceiling", ceiling, ceiling > 0.0, "above 0"),
            (
                "kl_weight",
                self.kl_weight,
                self.kl_weight >= 0.0 && self.kl_weight.is_finite(),
                "0 or more and finite",
            ),
        ];
        match settings.into_iter().find(|(.., holds, _)| !holds) {
            Some((name, value, _, range)) => Err(RequestError::Setting { name, value, range }),
            None => Ok(()),
        }
    }

    /// The loss of completions of the given lengths, advantages and weights
    /// ([`Normalisation::weights`]), one each per row.
    ///
    /// # Errors
    ///
    /// [`RequestError::Rectangle`] for log-probabilities that are not those of these completions,
    /// [`RequestError::Count`] for advantages or weights, [`RequestError::NotFinite`] for an advantage.
    pub fn loss<B: Backend>(
        &self,
        evidence: &Evidence<B>,
        lengths: &[usize],
        advantages: &[f32],
        weights: &[f32],
    ) -> Result<Loss<B>, RequestError> {
        let policy = evidence.policy.clone();
        let [rows, longest] = policy.dims();
        let others = [
            ("sampling policy's log-probabilities", &evidence.sampled),
            ("reference's log-probabilities", &evidence.reference),
        ];
        let others = others
            .into_iter()
            .filter_map(|(what, rectangle)| Some((what, rectangle.as_ref()?)));
        let rectangles = others.chain([("policy's log-probabilities", &policy)]);
        check_completions(rectangles, lengths, advantages)?;
        RequestError::check_count("weights", weights.len(), "completions", rows)?;
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
        Ok(Loss {
            total: (tokens.clone() * column(weights)).sum(),
            tokens,
            ratios: ratios * real.clone(),
            kl: kl.map(|kl| kl * real),
        })
    }

    /// What the ratios and divergences of a loss were; reads them from the device.
    ///
    /// # Errors
    ///
    /// As [`loss`](Self::loss).
    pub fn statistics<B: Backend>(
        &self,
        loss: &Loss<B>,
        lengths: &[usize],
        advantages: &[f32],
    ) -> Result<Statistics, RequestError> {
        check_completions([("ratios", &loss.ratios)], lengths, advantages)?;
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
        Ok(Statistics {
            completions: lengths.len(),
            tokens: ratios.len(),
            kl_mean: loss.kl.clone().map_or(0.0, |kl| sum(&of_tokens(kl)) / count),
            clip_low: share(&|advantage, ratio| advantage < 0.0 && ratio < 1.0 - self.clip_low),
            clip_high: share(&|advantage, ratio| advantage > 0.0 && ratio > 1.0 + self.clip_high),
            ratio_mean: sum(&ratios) / count,
            ratio_min: ratios
                .iter()
                .map(|(_, ratio)| *ratio)
                .fold(f64::INFINITY, f64::min),
            ratio_max: ratios.iter().map(|(_, ratio)| *ratio).fold(0.0, f64::max),
        })
    }
}

#[cfg(test)]
mod tests {
    use burn_flex::{Flex, FlexDevice};
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn weights_of_a_batch_are_those_of_its_parts() {
        let lengths = [3, 1, 4];
        let sums = |normalisation: Normalisation| {
            let weights = normalisation.weights(&lengths).expect("there are completions");
            lengths
                .iter()
                .zip(weights)
                .map(|(length, weight)| *length as f32 * weight)
                .sum::<f32>()
        };
        assert!((sums(Normalisation::SequenceMean) - 1.0).abs() < 1e-6);
        assert!((sums(Normalisation::TokenMean) - 1.0).abs() < 1e-6);
        assert!((sums(Normalisation::Constant(16)) - 8.0 / 48.0).abs() < 1e-6);
        assert_eq!(Normalisation::SequenceMean.weights(&[0]), Ok(vec![1.0]));
        assert_eq!(
            Normalisation::TokenMean.weights(&[]),
            Err(RequestError::EmptyBatch)
        );
        let refused = Normalisation::Constant(0).weights(&[3]);
        assert!(matches!(refused, Err(RequestError::Setting { .. })));
    }

    #[test]
    fn rewards_that_are_not_finite_are_named() {
        for bad in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
            for scale in [AdvantageScale::Group, AdvantageScale::None] {
                let message = advantages(&[vec![0.5], vec![0.0, bad]], scale)
                    .expect_err("must be refused")
                    .to_string();
                assert!(message.contains("the reward of child 1 in group 1"), "{message}");
            }
        }
        let overflowing = advantages(&[vec![f64::MAX, f64::MAX, 0.0]], AdvantageScale::None);
        let message = overflowing.expect_err("must be refused").to_string();
        assert!(message.contains("advantage of child 0"), "{message}");
    }

    #[test]
    fn bad_completions_are_named() {
        let new = |prompts: &[Vec<u32>], completions: &[Vec<u32>]| Completions::new(prompts, completions);
        assert_eq!(new(&[], &[]), Err(RequestError::EmptyBatch));
        assert_eq!(new(&[vec![1]], &[vec![]]), Err(RequestError::EmptyBatch));
        assert_eq!(
            new(&[vec![1], vec![]], &[vec![2], vec![3]]),
            Err(RequestError::EmptyPrompt { row: 1 })
        );
        assert_eq!(
            new(&[vec![1], vec![2]], &[vec![3]]),
            Err(RequestError::Count {
                what: "completions",
                each: "prompts",
                expected: 2,
                found: 1
            })
        );
        let completions = new(&[vec![1], vec![2]], &[vec![3, 4], vec![]]).expect("one is enough");
        assert_eq!(completions.cells(), [1, 2]);
        let numbers = Tensor::<Flex, 1>::zeros([3], &FlexDevice);
        let refused = completions.rectangle(numbers).expect_err("two tokens");
        assert!(matches!(
            refused,
            RequestError::Count {
                expected: 2,
                found: 3,
                ..
            }
        ));
    }

    fn evidence(rows: &[[f32; 2]]) -> Evidence<Flex> {
        let tensor = |rows: &[[f32; 2]]| {
            let data = TensorData::new(rows.concat(), [rows.len(), 2]);
            Tensor::from_data(data, (&FlexDevice, DType::F32))
        };
        Evidence {
            policy: tensor(rows),
            sampled: Some(tensor(&vec![[0.0; 2]; rows.len()])),
            reference: Some(tensor(&vec![[-0.1; 2]; rows.len()])),
        }
    }

    #[test]
    fn a_loss_refuses_what_is_not_one_for_each_row() {
        let objective = Objective::default();
        let evidence = evidence(&[[0.0; 2]; 3]);
        let loss = |lengths: &[usize], advantages: &[f32], weights: &[f32]| {
            objective
                .loss(&evidence, lengths, advantages, weights)
                .map(|_| ())
                .expect_err("must be refused")
                .to_string()
        };
        assert!(loss(&[2, 1], &[1.0; 3], &[1.0; 3]).contains("[3, 2] numbers"));
        assert!(loss(&[2, 1, 1], &[1.0; 4], &[1.0; 3]).contains("4 advantages for 3"));
        assert!(loss(&[2, 1, 1], &[1.0; 3], &[1.0; 2]).contains("2 weights for 3"));
        assert!(loss(&[1, 1, 1], &[1.0; 3], &[1.0; 3]).contains("[3, 1]"));
        assert!(loss(&[2, 3, 1], &[1.0; 3], &[1.0; 3]).contains("[3, 3]"));
        assert!(loss(&[0; 3], &[1.0; 3], &[1.0; 3]).contains("empty"));
        assert!(loss(&[2, 1, 1], &[0.0, f32::NAN, 1.0], &[1.0; 3]).contains("the advantage of row 1"));
    }

    #[test]
    fn statistics_of_parts_are_those_of_the_whole() {
        let objective = Objective::default();
        let rows = [[0.3, -0.4], [0.1, 0.0], [-0.5, 0.6]];
        let (lengths, advantages) = ([2, 1, 2], [1.0, -1.0, -0.5]);
        let of = |part: std::ops::Range<usize>| {
            let (lengths, advantages) = (&lengths[part.clone()], &advantages[part.clone()]);
            let loss = objective
                .loss(
                    &evidence(&rows[part.clone()]),
                    lengths,
                    advantages,
                    &vec![1.0; part.len()],
                )
                .expect("valid");
            objective.statistics(&loss, lengths, advantages).expect("valid")
        };
        let (whole, parts) = (of(0..3), of(0..2).with(of(2..3)));
        assert_eq!((whole.completions, whole.tokens), (3, 5));
        assert_eq!((parts.completions, parts.tokens), (3, 5));
        assert_eq!(
            (parts.ratio_min, parts.ratio_max),
            (whole.ratio_min, whole.ratio_max)
        );
        assert!(whole.clip_low > 0.0 && whole.clip_high > 0.0 && whole.kl_mean > 0.0);
        for (one, other) in [
            (parts.kl_mean, whole.kl_mean),
            (parts.clip_low, whole.clip_low),
            (parts.clip_high, whole.clip_high),
            (parts.ratio_mean, whole.ratio_mean),
        ] {
            assert!((one - other).abs() < 1e-12, "{one} {other}");
        }
    }

    proptest! {
        #[test]
        fn advantages_sum_to_zero_and_keep_the_order(
            rewards in prop::collection::vec(prop::collection::vec(0f64..1.0, 1..9), 1..5),
        ) {
            for scale in [AdvantageScale::Group, AdvantageScale::GroupPopulation, AdvantageScale::Batch, AdvantageScale::None] {
                for (group, found) in rewards.iter().zip(advantages(&rewards, scale).expect("finite")) {
                    prop_assert!(found.iter().sum::<f64>().abs() < 1e-6);
                    for (one, other) in group.iter().zip(&found).zip(group.iter().zip(&found).skip(1)) {
                        prop_assert_eq!(one.0 < other.0, one.1 < other.1);
                    }
                }
            }
        }

        #[test]
        fn equal_rewards_have_exact_zeros(reward in 0f64..1.0, size in 1usize..9) {
            let found = advantages(&[vec![reward; size], vec![0.0, 1.0]], AdvantageScale::Group)
                .expect("finite");
            prop_assert_eq!(&found[0], &vec![0.0; size]);
        }
    }
}
