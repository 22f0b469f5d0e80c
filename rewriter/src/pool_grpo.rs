//! Pool-based GRPO: the policy learns from the rewrites of each round of `dcapo` [Algorithm 2].

use std::cell::RefCell;
use std::path::PathBuf;
use std::rc::Rc;
use std::time::Instant;

use burn_tensor::{Tensor, TensorData};
use capo_core::arena::{Family, LearnError, Learner, RewriteOutcome};
use capo_core::ids::Round;
use capo_core::random::Streams;
use futures::FutureExt;
use futures::future::{LocalBoxFuture, ready};
use indexmap::IndexMap;
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::backend::PolicyBackend;
use crate::checkpoint::{Checkpoints, Contents, Progress, RandomState};
use crate::error::RequestError;
use crate::fine_tuning::{MEND_MEMORY, TrainingError};
use crate::folder::POLICY;
use crate::grpo::{AdvantageScale, Completions, Evidence, Normalisation, Objective, Statistics, advantages};
use crate::local::{LocalRewriter, Sample};
use crate::lora::Mode;
use crate::memory::peak_bytes;
use crate::optimizer::{AdamW, Gradient, Optimizer};
use crate::out_of_memory::guarded;
use crate::policy::Policy;
use crate::replicas::{Replicas, shares};
use crate::stop::Stop;

/// How a policy learns from rounds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct GrpoSettings {
    /// Learning rate of every step, in (0, 1].
    pub learning_rate: f64,
    /// AdamW's.
    pub optimizer: AdamW,
    /// Steps on the rewrites of one round, ≥ 1.
    pub epochs: u32,
    /// Tokens of one pass forward and back, padding included. One rewrite is never parted.
    pub pass_tokens: usize,
    /// Whether layers are computed again in the backward pass, which takes about a third longer and a fraction
    /// of the memory.
    pub activation_checkpointing: bool,
    /// What centred rewards are divided by.
    pub scale: AdvantageScale,
    /// How the losses of tokens become one.
    pub normalisation: Normalisation,
    /// Clipping and divergence. With a weight of the divergence the policy is held to the one that it started as.
    pub objective: Objective,
    /// A rewrite that gave no child is rewarded as its parent less this, ≥ 0.
    pub no_child_penalty: f64,
    /// Decides dropout; no file of settings says it.
    #[serde(skip_deserializing)]
    pub seed: u64,
}

impl Default for GrpoSettings {
    fn default() -> Self {
        Self {
            learning_rate: 1e-5,
            optimizer: AdamW::default(),
            epochs: 1,
            pass_tokens: 8192,
            activation_checkpointing: false,
            scale: AdvantageScale::Group,
            normalisation: Normalisation::SequenceMean,
            objective: Objective::default(),
            no_child_penalty: 1.0,
            seed: 0,
        }
    }
}

impl GrpoSettings {
    /// # Errors
    ///
    /// [`RequestError::Setting`] names the first setting outside its range.
    pub fn check(&self) -> Result<(), RequestError> {
        let settings = [
            ("epochs", f64::from(self.epochs), self.epochs > 0, "1 or more"),
            (
                "pass_tokens",
                self.pass_tokens as f64,
                self.pass_tokens > 0,
                "1 or more",
            ),
            (
                "learning_rate",
                self.learning_rate,
                self.learning_rate > 0.0 && self.learning_rate <= 1.0,
                "above 0 and at most 1",
            ),
            (
                "no_child_penalty",
                self.no_child_penalty,
                self.no_child_penalty >= 0.0 && self.no_child_penalty.is_finite(),
                "0 or more and finite",
            ),
        ];
        if let Some((name, value, _, range)) = settings.into_iter().find(|(.., holds, _)| !holds) {
            return Err(RequestError::Setting { name, value, range });
        }
        self.objective.check()?;
        self.normalisation.check()?;
        self.optimizer.check()
    }
}

/// What is remembered beside weights and moments: the figures of each round learned from.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
struct Memory {
    figures: Vec<IndexMap<String, f64>>,
}

/// A policy that learns while it rewrites.
pub struct GrpoLearner<B: PolicyBackend> {
    rewriter: Rc<LocalRewriter<B>>,
    settings: GrpoSettings,
    checkpoints: Checkpoints,
    /// Folder of the model that the policy started from.
    source: PathBuf,
    /// The policy as it started on each device, where it is held to that. A frozen decoder is shared with what learns.
    references: Option<Vec<Policy<B>>>,
    replicas: Replicas<B>,
    /// Operations per second that the devices can do together, where that is known.
    peak_flops: Option<f64>,
    state: RefCell<(Optimizer<B>, Memory)>,
}

/// A rewrite with its advantage.
struct TrainingSample {
    sample: Sample,
    advantage: f32,
    weight: f32,
}

/// Name in a checkpoint.
const MOMENTS: &str = "optimizer.safetensors";

const MEND_LOSS: &str = "nothing was changed by this step; start another training from the last checkpoint with a lower learning rate";

const MEND_SURPRISE: &str =
    "the server drew a token that this policy never draws; serve the model that learns";

impl<B: PolicyBackend> GrpoLearner<B> {
    /// Begins where the last of the checkpoints stands, or with the rewriter's policy. The rewriter keeps its
    /// samples ([`LocalRewriter::keeping_samples`]), and has the policy that training started from.
    ///
    /// # Errors
    ///
    /// A setting outside its range, or a checkpoint that does not read.
    pub fn new(
        rewriter: Rc<LocalRewriter<B>>,
        settings: GrpoSettings,
        checkpoints: Checkpoints,
        source: PathBuf,
    ) -> Result<Self, TrainingError> {
        settings.check()?;
        let start = rewriter.policy().clone();
        let references = (settings.objective.kl_weight != 0.0).then(|| vec![start.clone()]);
        let state = match checkpoints.latest()? {
            None => (Optimizer::new(settings.optimizer, &start), Memory::default()),
            Some(last) => {
                let memory = serde_json::from_value(last.progress().state.clone());
                let memory: Memory = memory.map_err(|why| TrainingError::Foreign {
                    folder: last.folder().display().to_string(),
                    reason: why.to_string(),
                })?;
                let policy = start.load(&last.path(POLICY)?)?;
                let optimizer = Optimizer::load(&last.path(MOMENTS)?, settings.optimizer, &policy)?;
                rewriter.replace(policy, memory.figures.len());
                (optimizer, memory)
            }
        };
        // Rewrites are kept before there is a checkpoint.
        checkpoints.hold()?;
        Ok(Self {
            rewriter,
            settings,
            checkpoints,
            source,
            references,
            replicas: Replicas::default(),
            peak_flops: None,
            state: RefCell::new(state),
        })
    }

    /// Divides every step among the policy's device and those of its replicas. Rewrites are drawn on the policy's.
    #[must_use]
    pub fn on(mut self, replicas: Replicas<B>) -> Self {
        let start = self.references.as_ref().and_then(|references| references.first());
        self.references = start.map(|start| replicas.of(start));
        self.replicas = replicas;
        self
    }

    /// Tells the utilisation of devices that can do so many operations per second together.
    #[must_use]
    pub fn of_peak(mut self, flops: Option<f64>) -> Self {
        self.peak_flops = flops;
        self
    }

    /// Rounds learned from so far.
    pub fn rounds(&self) -> usize {
        self.state.borrow().1.figures.len()
    }

    fn update(&self, round: Round, families: &[Family]) -> Result<IndexMap<String, f64>, TrainingError> {
        let (mut optimizer, mut memory) = self.state.borrow().clone();
        if let Some(figures) = memory.figures.get(round as usize) {
            return Ok(figures.clone());
        }
        if memory.figures.len() != round as usize {
            return Err(TrainingError::Foreign {
                folder: self.checkpoints.folder().display().to_string(),
                reason: format!(
                    "it learned from {} rounds, and round {round} is to come",
                    memory.figures.len()
                ),
            });
        }
        let mut figures = rewards_of(families);
        let mut samples = self.training_samples(families)?;
        let mut policy = self.rewriter.policy().clone();
        figures.insert("training_samples".to_owned(), samples.len() as f64);
        figures.extend(self.lengths(families));
        if let Some(surprise) = self.score_drawn_elsewhere(&policy, &mut samples)? {
            figures.insert("surprise".to_owned(), surprise);
        }
        if !samples.is_empty() {
            let started = Instant::now();
            for epoch in 0..self.settings.epochs {
                let step = self.step(round, epoch, &policy, &mut optimizer, &samples)?;
                policy = step.policy;
                // Of the last step.
                figures.extend(step.figures);
            }
            let epochs_per_second = f64::from(self.settings.epochs) / started.elapsed().as_secs_f64();
            let tokens = samples.iter().map(|one| one.sample.length()).sum::<usize>();
            figures.insert("tokens_per_second".to_owned(), tokens as f64 * epochs_per_second);
            if let Some(peak) = self.peak_flops {
                let of = |one: &TrainingSample| {
                    policy.training_flops(one.sample.length(), one.sample.completion.len())
                };
                let flops = samples.iter().map(of).sum::<f64>();
                figures.insert("mfu".to_owned(), flops * epochs_per_second / peak);
            }
        }
        if let Some(bytes) = self.replicas.device_memory(&policy) {
            figures.insert("device_memory_bytes".to_owned(), bytes as f64);
        }
        if let Some(bytes) = peak_bytes() {
            figures.insert("peak_memory_bytes".to_owned(), bytes as f64);
        }
        memory.figures.push(figures.clone());
        self.save(&policy, &optimizer, &memory, figures.get("reward").copied())?;
        self.rewriter.replace(policy, memory.figures.len());
        self.rewriter.forget_samples()?;
        *self.state.borrow_mut() = (optimizer, memory);
        Ok(figures)
    }

    /// Mean lengths of the round's requests and rewrites in tokens.
    fn lengths(&self, families: &[Family]) -> IndexMap<String, f64> {
        let attempts = families.iter().flat_map(|family| &family.attempts);
        let samples: Vec<Sample> = attempts
            .filter_map(|attempt| self.rewriter.sample(attempt.seed))
            .filter(Sample::is_drawn)
            .collect();
        if samples.is_empty() {
            return IndexMap::new();
        }
        let mean =
            |of: fn(&Sample) -> usize| samples.iter().map(of).sum::<usize>() as f64 / samples.len() as f64;
        IndexMap::from([
            ("prompt_tokens".to_owned(), mean(|sample| sample.prompt.len())),
            (
                "completion_tokens".to_owned(),
                mean(|sample| sample.completion.len()),
            ),
        ])
    }

    /// The rewrites that there is something to learn from: not those that were never drawn, nor those of parents
    /// whose rewrites were all the same to them.
    fn training_samples(&self, families: &[Family]) -> Result<Vec<TrainingSample>, RequestError> {
        let reward = |family: &Family, attempt: &RewriteOutcome| match attempt.child {
            Some((_, lagrangian)) => lagrangian,
            None => family.lagrangian - self.settings.no_child_penalty,
        };
        let (mut drawn, mut rewards) = (Vec::new(), Vec::new());
        for family in families {
            let mut group = Vec::new();
            for attempt in &family.attempts {
                let sample = self.rewriter.sample(attempt.seed);
                if sample.as_ref().is_none_or(Sample::is_drawn) {
                    group.push(reward(family, attempt));
                    drawn.push(sample);
                }
            }
            rewards.push(group);
        }
        let advantages = advantages(&rewards, self.settings.scale)?;
        let mut samples = Vec::new();
        for (sample, advantage) in drawn.into_iter().zip(advantages.concat()) {
            if advantage == 0.0 {
                continue;
            }
            samples.push(TrainingSample {
                sample: sample.ok_or(RequestError::Missing {
                    what: "the tokens of a rewrite of this round",
                    advice: "they are kept beside the checkpoints; go back to a checkpoint and journal of the same moment",
                })?,
                advantage: advantage as f32,
                weight: 0.0,
            });
        }
        if !samples.is_empty() {
            let lengths: Vec<_> = samples.iter().map(|one| one.sample.completion.len()).collect();
            let weights = self.settings.normalisation.weights(&lengths)?;
            for (sample, weight) in samples.iter_mut().zip(weights) {
                sample.weight = weight;
            }
        }
        Ok(samples)
    }

    /// Gives rewrites that were drawn elsewhere the log-probabilities under the policy that they were drawn from,
    /// which is the one before the first step on them. Returns their mean surprise, the tokens' −log π in nats, if
    /// there are any.
    fn score_drawn_elsewhere(
        &self,
        policy: &Policy<B>,
        samples: &mut [TrainingSample],
    ) -> Result<Option<f64>, RequestError> {
        let temperature = self.rewriter.temperature();
        let adapter = policy
            .adapter()
            .map(|adapter| adapter.clone().in_mode(Mode::Evaluation));
        let (mut tokens, mut surprise) = (0, 0.0);
        let counts = pass_lengths(samples, self.settings.pass_tokens);
        let mut rest = samples;
        for count in counts {
            self.rewriter.stop().check()?;
            let (pass, after) = rest.split_at_mut(count);
            rest = after;
            if pass.iter().all(|one| one.sample.logprobs.is_some()) {
                continue;
            }
            let completions = completions_of(pass)?;
            let logprobs = guarded(MEND_MEMORY, || {
                let cells = completions.cells();
                let scores =
                    policy
                        .decoder()
                        .score(completions.tokens(), &cells, adapter.as_ref(), temperature)?;
                Ok(scores.logprobs().into_data().iter::<f32>().collect::<Vec<f32>>())
            })?;
            let mut later = &logprobs[..];
            for TrainingSample { sample, .. } in pass {
                let own;
                (own, later) = later.split_at(sample.completion.len());
                if sample.logprobs.is_none() {
                    tokens += own.len();
                    surprise -= own.iter().map(|logprob| f64::from(*logprob)).sum::<f64>();
                    sample.logprobs = Some(own.to_vec());
                }
            }
        }
        let mean = surprise / tokens.max(1) as f64;
        RequestError::check_finite(mean, MEND_SURPRISE, || {
            "the surprise at the rewrites that were drawn elsewhere".to_owned()
        })?;
        Ok((tokens > 0).then_some(mean))
    }

    fn step(
        &self,
        round: Round,
        epoch: u32,
        policy: &Policy<B>,
        optimizer: &mut Optimizer<B>,
        samples: &[TrainingSample],
    ) -> Result<Step<B>, RequestError> {
        guarded(MEND_MEMORY, || {
            let shares = shares(samples, self.replicas.devices(), |one| one.sample.length());
            let temperature = self.rewriter.temperature();
            let references = self.references.as_deref();
            let settings = self.settings;
            let stop = self.rewriter.stop();
            let (log, gradient) = self.replicas.learn(policy, &shares, |device, policy, share| {
                let means = LossContext {
                    settings: &settings,
                    temperature,
                    reference: references.and_then(|references| references.get(device)),
                    stop,
                };
                means.learn(policy, share, |pass| {
                    let pass_seed = u64::from(epoch) << 32 | (device as u64) << 24 | pass;
                    Streams::new(settings.seed).number("dropout", u64::from(round), pass_seed)
                })
            })?;
            let log = log.into_iter().reduce(|one, other| one.with(&other));
            let StepLog {
                loss,
                statistics,
                entropy,
            } = log.ok_or(RequestError::EmptyBatch)?;
            RequestError::check_finite(loss, MEND_LOSS, || format!("the loss of round {round}"))?;
            let after = optimizer.step(policy, gradient, self.settings.learning_rate)?;
            let figures = [
                ("loss", loss),
                ("gradient_norm", after.gradient_norm),
                ("entropy", entropy / statistics.tokens.max(1) as f64),
                ("kl", statistics.kl_mean),
                ("clip_low", statistics.clip_low),
                ("clip_high", statistics.clip_high),
                ("ratio", statistics.ratio_mean),
                ("tokens", statistics.tokens as f64),
            ];
            Ok(Step {
                policy: after.parameters,
                figures: figures.map(|(name, figure)| (name.to_owned(), figure)),
            })
        })
    }

    fn save(
        &self,
        policy: &Policy<B>,
        optimizer: &Optimizer<B>,
        memory: &Memory,
        merit: Option<f64>,
    ) -> Result<(), TrainingError> {
        let progress = Progress {
            step: memory.figures.len() as u64,
            random: RandomState {
                seed: self.settings.seed,
                ..RandomState::default()
            },
            merit,
            state: json!(memory),
        };
        let contents = Contents::new()
            .with(POLICY, |path| policy.save(path, &self.source))
            .with(MOMENTS, |path| optimizer.save(path, policy));
        self.checkpoints.save(progress, contents)?;
        Ok(())
    }
}

impl<B: PolicyBackend> Learner for GrpoLearner<B> {
    fn learn<'a>(
        &'a self,
        round: Round,
        families: &'a [Family],
    ) -> LocalBoxFuture<'a, Result<IndexMap<String, f64>, LearnError>> {
        let learned = self.update(round, families);
        let learned = learned.map_err(|why| match why {
            TrainingError::Request(RequestError::Interrupted) => LearnError::Interrupted,
            why => LearnError::Failed(why.to_string()),
        });
        ready(learned).boxed_local()
    }
}

struct Step<B: PolicyBackend> {
    policy: Policy<B>,
    figures: [(String, f64); 8],
}

/// What some of a step's samples come to.
struct StepLog {
    loss: f64,
    statistics: Statistics,
    /// The sum over tokens, in nats.
    entropy: f64,
}

impl StepLog {
    /// Two parts of a step together.
    fn with(self, other: &Self) -> Self {
        Self {
            loss: self.loss + other.loss,
            statistics: self.statistics.with(other.statistics),
            entropy: self.entropy + other.entropy,
        }
    }
}

/// What a device learns a share of a step with.
struct LossContext<'a, B: PolicyBackend> {
    settings: &'a GrpoSettings,
    /// Of the log-probabilities.
    temperature: f64,
    reference: Option<&'a Policy<B>>,
    stop: &'a Stop,
}

impl<B: PolicyBackend> LossContext<'_, B> {
    /// What a share comes to; `seed` of a pass decides its dropout.
    fn learn(
        &self,
        policy: &Policy<B>,
        share: &[TrainingSample],
        seed: impl Fn(u64) -> u64,
    ) -> Result<(StepLog, Gradient<B>), RequestError> {
        let mut total: Option<(StepLog, Gradient<B>)> = None;
        for (index, pass) in (0..).zip(passes(share, self.settings.pass_tokens)) {
            self.stop.check()?;
            let (log, gradient) = self.pass(policy, pass, seed(index))?;
            total = Some(match total {
                None => (log, gradient),
                Some((before, gradients)) => (before.with(&log), gradients.plus(gradient)),
            });
        }
        total.ok_or(RequestError::EmptyBatch)
    }

    /// What one pass forward and back comes to.
    fn pass(
        &self,
        policy: &Policy<B>,
        pass: &[TrainingSample],
        seed: u64,
    ) -> Result<(StepLog, Gradient<B>), RequestError> {
        let completions = completions_of(pass)?;
        let temperature = self.temperature;
        let device = policy.decoder().device();
        let logprobs = |one: &TrainingSample| one.sample.logprobs.clone().unwrap_or_default();
        let drawn: Vec<f32> = pass.iter().flat_map(logprobs).collect();
        let count = drawn.len();
        let drawn: Tensor<B, 1> = Tensor::from_data(TensorData::new(drawn, [count]), &device);
        let sampled = completions.rectangle(drawn)?;
        let reference = self
            .reference
            .map(|start| completions.logprobs(start.decoder(), start.adapter(), temperature));
        let reference = reference.transpose()?;
        let advantages: Vec<_> = pass.iter().map(|one| one.advantage).collect();
        let weights: Vec<_> = pass.iter().map(|one| one.weight).collect();
        let lengths = completions.lengths();
        let mut seen = None;
        let (loss, gradient) = policy.differentiate(
            Mode::Training { seed },
            self.settings.activation_checkpointing,
            |decoder, adapter| {
                let scores =
                    decoder.score(completions.tokens(), &completions.cells(), adapter, temperature)?;
                let evidence = Evidence {
                    policy: completions.rectangle(scores.logprobs())?,
                    sampled: Some(Tensor::from_inner(sampled)),
                    reference: reference.map(Tensor::from_inner),
                };
                let objective = &self.settings.objective;
                let loss = objective.loss(&evidence, lengths, &advantages, &weights)?;
                let statistics = objective.statistics(&loss, lengths, &advantages)?;
                seen = Some((statistics, scores.entropy().sum().inner()));
                Ok(loss.total)
            },
        )?;
        let (statistics, entropy) = seen.ok_or(RequestError::EmptyBatch)?;
        let log = StepLog {
            loss: loss.into_data().iter::<f64>().sum(),
            statistics,
            entropy: entropy.into_data().iter::<f64>().sum(),
        };
        Ok((log, gradient))
    }
}

/// What became of a round's rewrites; means where there is anything to average.
fn rewards_of(families: &[Family]) -> IndexMap<String, f64> {
    let children = families.iter().flat_map(|family| {
        let gain = |attempt: &RewriteOutcome| {
            attempt
                .child
                .map(|(_, reward)| (reward, reward - family.lagrangian))
        };
        family.attempts.iter().filter_map(gain)
    });
    let children: Vec<(f64, f64)> = children.collect();
    let attempts = families.iter().map(|family| family.attempts.len()).sum::<usize>();
    let mut figures = IndexMap::from([
        ("rewrites".to_owned(), attempts as f64),
        ("children".to_owned(), children.len() as f64),
    ]);
    if !children.is_empty() {
        let mean = |of: fn(&(f64, f64)) -> f64| children.iter().map(of).sum::<f64>() / children.len() as f64;
        figures.insert("reward".to_owned(), mean(|(reward, _)| *reward));
        figures.insert("gain".to_owned(), mean(|(_, gain)| *gain));
    }
    figures
}

/// The rewrites of some samples with what they answer.
fn completions_of(pass: &[TrainingSample]) -> Result<Completions, RequestError> {
    let prompts: Vec<_> = pass.iter().map(|one| &one.sample.prompt).collect();
    let answers: Vec<_> = pass.iter().map(|one| &one.sample.completion).collect();
    Completions::new(&prompts, &answers)
}

/// The samples, one after the other, in passes of at most so many tokens.
fn passes(samples: &[TrainingSample], tokens: usize) -> Vec<&[TrainingSample]> {
    let counts = pass_lengths(samples, tokens);
    let mut rest = samples;
    let cut = |count| {
        let (pass, after) = rest.split_at(count);
        rest = after;
        pass
    };
    counts.into_iter().map(cut).collect()
}

/// How many samples each pass of at most so many tokens takes.
fn pass_lengths(samples: &[TrainingSample], tokens: usize) -> Vec<usize> {
    let mut passes = Vec::new();
    let (mut from, mut prompt, mut answer) = (0, 0, 0);
    for (index, TrainingSample { sample, .. }) in samples.iter().enumerate() {
        // Prompts are filled on one side and answers on the other.
        let (wide, long) = (
            prompt.max(sample.prompt.len()),
            answer.max(sample.completion.len()),
        );
        if index > from && (index - from + 1) * (wide + long) > tokens {
            passes.push(index - from);
            (from, prompt, answer) = (index, sample.prompt.len(), sample.completion.len());
        } else {
            (prompt, answer) = (wide, long);
        }
    }
    passes.push(samples.len() - from);
    passes
}
