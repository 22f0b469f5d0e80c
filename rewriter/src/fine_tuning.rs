//! Supervised fine-tuning: epochs, batches, evaluation, early stop, checkpoints.

use std::cmp::Reverse;
use std::ops::ControlFlow;
use std::path::Path;
use std::time::Instant;

use burn_tensor::Tensor;
use capo_core::random::Streams;
use rand::seq::SliceRandom;
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::backend::PolicyBackend;
use crate::checkpoint::{Checkpoint, CheckpointError, Checkpoints, Contents, Progress, RandomState};
use crate::error::{FileError, RequestError};
use crate::folder::POLICY;
use crate::lora::Mode;
use crate::optimizer::{AdamW, Gradient, Optimizer};
use crate::out_of_memory::guarded;
use crate::policy::Policy;
use crate::replicas::{Replicas, shares};
use crate::schedule::Schedule;
use crate::sft::SftBatch;

/// How a policy is fine-tuned.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct SftSettings {
    /// How often each example is learned from, ≥ 1.
    pub epochs: u32,
    /// Examples of one step, ≥ 1.
    pub batch: usize,
    /// Tokens of one pass forward and back, padding included: a larger batch is learned from in several passes.
    /// One example is never parted.
    pub pass_tokens: usize,
    /// Whether layers are computed again in the backward pass, which takes about a third longer and a fraction
    /// of the memory.
    pub activation_checkpointing: bool,
    /// Highest learning rate, in (0, 1].
    pub learning_rate: f64,
    /// Share of the steps in [0, 1) over which the learning rate rises.
    pub warmup: f64,
    /// Share of the learning rate that is left in the end, in [0, 1].
    pub floor: f64,
    /// Share by which a step at learning rate 1 would shrink the weights of linear maps.
    pub weight_decay: f64,
    /// Longest gradient; longer ones are shortened to it.
    pub max_grad_norm: f64,
    /// Steps between two evaluations, each with a checkpoint, ≥ 1.
    pub evaluate_every: u64,
    /// Ends after so many evaluations in a row without a lower loss; never for `None` and 0.
    pub patience: Option<u32>,
    /// Decides order and dropout; no file of settings says it.
    #[serde(skip_deserializing)]
    pub seed: u64,
}

impl Default for SftSettings {
    fn default() -> Self {
        Self {
            epochs: 3,
            batch: 16,
            pass_tokens: 8192,
            activation_checkpointing: false,
            learning_rate: 2e-4,
            warmup: 0.05,
            floor: 0.1,
            weight_decay: 0.01,
            max_grad_norm: 1.0,
            evaluate_every: 50,
            patience: Some(3),
            seed: 0,
        }
    }
}

impl SftSettings {
    /// # Errors
    ///
    /// [`RequestError::Setting`] names the first setting outside its range.
    pub fn check(&self) -> Result<(), RequestError> {
        let counts = [
            ("epochs", u64::from(self.epochs)),
            ("batch", self.batch as u64),
            ("pass_tokens", self.pass_tokens as u64),
            ("evaluate_every", self.evaluate_every),
        ];
        if let Some((name, _)) = counts.iter().find(|(_, count)| *count == 0) {
            return Err(RequestError::Setting {
                name,
                value: 0.0,
                range: "1 or more",
            });
        }
        if !(0.0..1.0).contains(&self.warmup) {
            return Err(RequestError::Setting {
                name: "warmup",
                value: self.warmup,
                range: "a share in [0, 1)",
            });
        }
        self.schedule(1).check()?;
        self.optimizer().check()
    }

    fn optimizer(&self) -> AdamW {
        AdamW {
            weight_decay: self.weight_decay,
            max_grad_norm: Some(self.max_grad_norm),
            ..AdamW::default()
        }
    }

    fn schedule(&self, total_steps: u64) -> Schedule {
        Schedule {
            peak: self.learning_rate,
            warmup_steps: (self.warmup * total_steps as f64) as u64,
            total_steps,
            floor: self.floor,
        }
    }
}

/// A prompt with the answer to be learned, in tokens.
pub type SftExample = (Vec<u32>, Vec<u32>);

/// Why a fine-tuning did not go its whole way.
#[derive(Debug, thiserror::Error)]
pub enum TrainingError {
    /// Settings, examples or numbers are impossible.
    #[error(transparent)]
    Request(#[from] RequestError),
    /// What was saved cannot be read.
    #[error(transparent)]
    File(#[from] FileError),
    /// A checkpoint cannot be written or read, or is of another training.
    #[error(transparent)]
    Checkpoint(#[from] CheckpointError),
    /// A checkpoint lacks what this training remembers.
    #[error("the checkpoint {folder} is of another kind of training: {reason}")]
    Foreign {
        /// Its folder.
        folder: String,
        /// What does not read.
        reason: String,
    },
}

/// What one step came to.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct SftStep {
    /// From 1.
    pub step: u64,
    /// Mean negative log-likelihood of the learned tokens before it, in nats.
    pub loss: f64,
    /// Length of the gradient before it was shortened.
    pub gradient_norm: f64,
    /// Its learning rate.
    pub learning_rate: f64,
    /// Tokens that passed through the decoder, padding not counted.
    pub tokens: usize,
    /// Floating-point operations of learning from them: see [`flops`](crate::flops).
    pub flops: f64,
    /// Wall time of the step in seconds.
    pub seconds: f64,
    /// The most of its own memory that a device holds after it, in bytes; none where devices compute in main memory.
    pub device_memory_bytes: Option<u64>,
}

/// What a training tells while it runs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum SftEvent {
    /// A step was made.
    Step(SftStep),
    /// The loss on held-out examples after so many steps.
    Evaluation {
        /// Steps made.
        step: u64,
        /// Mean negative log-likelihood of the held-out answers' tokens, in nats.
        loss: f64,
    },
}

/// What is remembered beside weights and moments.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
struct Memory {
    /// Lowest evaluation loss so far.
    best: Option<f64>,
    /// Evaluations in a row since.
    without_gain: u32,
}

/// A policy that is being fine-tuned.
pub struct SftTrainer<B: PolicyBackend> {
    policy: Policy<B>,
    optimizer: Optimizer<B>,
    training: Vec<SftExample>,
    held_out: Vec<SftExample>,
    settings: SftSettings,
    schedule: Schedule,
    memory: Memory,
    replicas: Replicas<B>,
}

/// Name in a checkpoint.
const MOMENTS: &str = "optimizer.safetensors";

/// What to do when memory runs out.
pub(crate) const MEND_MEMORY: &str = "lower `pass_tokens`, set `activation_checkpointing`, let an adapter learn instead of all weights, compute in BF16, or take a smaller model or another device";

const MEND_LOSS: &str = "nothing was changed by this step; look at the examples, or start another training from the last checkpoint with a lower learning rate";

impl<B: PolicyBackend> SftTrainer<B> {
    /// A training from its beginning. Without held-out examples nothing is evaluated and nothing stops early.
    ///
    /// # Errors
    ///
    /// A setting outside its range, or an example that the model cannot read.
    pub fn new(
        policy: Policy<B>,
        training: Vec<SftExample>,
        held_out: Vec<SftExample>,
        settings: SftSettings,
    ) -> Result<Self, RequestError> {
        settings.check()?;
        if training.is_empty() {
            return Err(RequestError::EmptyBatch);
        }
        let (vocabulary, context) = (policy.config().vocabulary, policy.config().context);
        for (row, example) in training.iter().chain(&held_out).enumerate() {
            let batch = SftBatch::new(std::slice::from_ref(example)).map_err(|why| why.at_row(row))?;
            let checked = batch.tokens().check(vocabulary, context);
            checked.map_err(|why| why.at_row(row))?;
        }
        let steps = training.len().div_ceil(settings.batch) as u64 * u64::from(settings.epochs);
        let schedule = settings.schedule(steps);
        schedule.check()?;
        Ok(Self {
            optimizer: Optimizer::new(settings.optimizer(), &policy),
            policy,
            training,
            held_out,
            settings,
            schedule,
            memory: Memory {
                best: None,
                without_gain: 0,
            },
            replicas: Replicas::default(),
        })
    }

    /// Divides every step among the policy's device and those of its replicas.
    #[must_use]
    pub fn on(mut self, replicas: Replicas<B>) -> Self {
        self.replicas = replicas;
        self
    }

    /// What learns.
    pub fn policy(&self) -> &Policy<B> {
        &self.policy
    }

    /// Steps made so far.
    pub fn steps(&self) -> u64 {
        u64::from(self.optimizer.steps())
    }

    /// Steps of the whole training, if nothing stops it early.
    pub fn total_steps(&self) -> u64 {
        self.schedule.total_steps
    }

    /// Goes on where a checkpoint of this training stands.
    ///
    /// # Errors
    ///
    /// It lacks something or does not read.
    pub fn resume(&mut self, checkpoint: &Checkpoint) -> Result<(), TrainingError> {
        let state = checkpoint.progress().state.clone();
        let memory = serde_json::from_value(state).map_err(|why| TrainingError::Foreign {
            folder: checkpoint.folder().display().to_string(),
            reason: why.to_string(),
        })?;
        let policy = self.policy.load(&checkpoint.path(POLICY)?)?;
        self.optimizer = Optimizer::load(&checkpoint.path(MOMENTS)?, self.settings.optimizer(), &policy)?;
        (self.policy, self.memory) = (policy, memory);
        Ok(())
    }

    /// Trains to the end: all epochs, an early stop, or a break by `observe`, which is told what happens. A
    /// checkpoint is written at every evaluation and at the end. `source` is the folder of the model that the
    /// policy started from.
    ///
    /// # Errors
    ///
    /// A loss or gradient that is not finite names its step, and the last checkpoint stays; else as
    /// [`Checkpoints::save`].
    pub fn run(
        &mut self,
        checkpoints: &Checkpoints,
        source: &Path,
        mut observe: impl FnMut(SftEvent) -> ControlFlow<()>,
    ) -> Result<(), TrainingError> {
        while self.steps() < self.total_steps() && !self.is_out_of_patience() {
            let mut flow = observe(SftEvent::Step(self.step()?));
            let step = self.steps();
            let loss = if step.is_multiple_of(self.settings.evaluate_every) || step == self.total_steps() {
                self.evaluate()?
            } else if flow.is_break() {
                None
            } else {
                continue;
            };
            if let Some(loss) = loss {
                self.remember(loss);
                let seen = observe(SftEvent::Evaluation { step, loss });
                flow = if seen.is_break() { seen } else { flow };
            }
            self.save(checkpoints, source, loss)?;
            if flow.is_break() {
                break;
            }
        }
        Ok(())
    }

    /// One step on the next batch.
    ///
    /// # Errors
    ///
    /// [`RequestError::NotFinite`] for a loss or gradient that is not finite, [`RequestError::OutOfMemory`];
    /// nothing is then changed.
    pub fn step(&mut self) -> Result<SftStep, RequestError> {
        guarded(MEND_MEMORY, || self.unguarded_step())
    }

    fn unguarded_step(&mut self) -> Result<SftStep, RequestError> {
        let started = Instant::now();
        let step = self.steps();
        let batch = self.batch(step);
        let tokens = batch.iter().copied().map(length).sum();
        let learned: usize = batch.iter().map(|(_, answer)| answer.len()).sum();
        let flops_of = |example: &SftExample| self.policy.training_flops(length(example), example.1.len());
        let flops = batch.iter().copied().map(flops_of).sum();
        let shares = shares(&batch, self.replicas.devices(), |example| length(example));
        let settings = self.settings;
        let (losses, gradient) = self
            .replicas
            .learn(&self.policy, &shares, |device, policy, share| {
                share_of_step(&settings, step, learned, device, policy, share)
            })?;
        let loss = losses.iter().sum();
        RequestError::check_finite(loss, MEND_LOSS, || format!("the loss of step {}", step + 1))?;
        let learning_rate = self.schedule.rate(step);
        let after = self.optimizer.step(&self.policy, gradient, learning_rate)?;
        self.policy = after.parameters;
        Ok(SftStep {
            step: step + 1,
            loss,
            gradient_norm: after.gradient_norm,
            learning_rate,
            tokens,
            flops,
            seconds: started.elapsed().as_secs_f64(),
            device_memory_bytes: self.replicas.device_memory(&self.policy),
        })
    }

    /// Mean negative log-likelihood of the held-out answers' tokens in nats; `None` without held-out examples.
    ///
    /// # Errors
    ///
    /// [`RequestError::NotFinite`] when it is not finite, [`RequestError::OutOfMemory`].
    pub fn evaluate(&self) -> Result<Option<f64>, RequestError> {
        if self.held_out.is_empty() {
            return Ok(None);
        }
        guarded(MEND_MEMORY, || self.held_out_loss()).map(Some)
    }

    fn held_out_loss(&self) -> Result<f64, RequestError> {
        let learned: usize = self.held_out.iter().map(|(_, answer)| answer.len()).sum();
        let examples: Vec<&SftExample> = self.held_out.iter().collect();
        let mut sum = 0.0;
        for pass in passes(&examples, self.settings.pass_tokens) {
            let losses = SftBatch::new(&pass)?.losses(self.policy.decoder(), self.policy.adapter())?;
            sum += number(losses.sum());
        }
        let loss = sum / learned as f64;
        RequestError::check_finite(loss, MEND_LOSS, || {
            format!("the evaluation loss after step {}", self.steps())
        })?;
        Ok(loss)
    }

    /// The examples of a step: each epoch has an order of its own, a function of the seed.
    fn batch(&self, step: u64) -> Vec<&SftExample> {
        let size = self.settings.batch;
        let per_epoch = self.training.len().div_ceil(size) as u64;
        let mut order: Vec<&SftExample> = self.training.iter().collect();
        let mut stream = Streams::new(self.settings.seed).stream("order", step / per_epoch, 0);
        order.shuffle(&mut stream);
        let place = (step % per_epoch) as usize;
        order.chunks(size).nth(place).unwrap_or_default().to_vec()
    }

    fn remember(&mut self, loss: f64) {
        if self.memory.best.is_none_or(|best| loss < best) {
            self.memory = Memory {
                best: Some(loss),
                without_gain: 0,
            };
        } else {
            self.memory.without_gain += 1;
        }
    }

    fn is_out_of_patience(&self) -> bool {
        let patience = self.settings.patience;
        patience.is_some_and(|patience| patience > 0 && self.memory.without_gain >= patience)
    }

    fn save(&self, checkpoints: &Checkpoints, source: &Path, loss: Option<f64>) -> Result<(), TrainingError> {
        let progress = Progress {
            step: self.steps(),
            random: RandomState {
                seed: self.settings.seed,
                ..RandomState::default()
            },
            merit: loss.map(|loss| -loss),
            state: json!(self.memory),
        };
        let contents = Contents::new()
            .with(POLICY, |path| self.policy.save(path, source))
            .with(MOMENTS, |path| self.optimizer.save(path, &self.policy));
        checkpoints.save(progress, contents)?;
        Ok(())
    }
}

fn length((prompt, answer): &SftExample) -> usize {
    prompt.len() + answer.len()
}

/// The loss of the examples that a device learns from in a step in which `learned` tokens are learned, and its
/// gradient.
fn share_of_step<B: PolicyBackend>(
    settings: &SftSettings,
    step: u64,
    learned: usize,
    device: usize,
    policy: &Policy<B>,
    share: &[&SftExample],
) -> Result<(f64, Gradient<B>), RequestError> {
    let streams = Streams::new(settings.seed);
    let mut total: Option<(Tensor<B, 1>, Gradient<B>)> = None;
    for (index, pass) in (0..).zip(&passes(share, settings.pass_tokens)) {
        let part = SftBatch::new(pass)?;
        let seed = streams.number("dropout", step, (device as u64) << 32 | index);
        let (loss, gradient) = policy.differentiate(
            Mode::Training { seed },
            settings.activation_checkpointing,
            |decoder, adapter| {
                let losses = part.losses(decoder, adapter)?;
                Ok(losses.sum().div_scalar(learned as f64))
            },
        )?;
        total = Some(match total {
            None => (loss, gradient),
            Some((losses, gradients)) => (losses + loss, gradients.plus(gradient)),
        });
    }
    let (loss, gradient) = total.ok_or(RequestError::EmptyBatch)?;
    Ok((number(loss), gradient))
}

/// The examples in passes of at most so many tokens, those of similar length together; an example that is longer
/// has a pass of its own.
fn passes(examples: &[&SftExample], tokens: usize) -> Vec<Vec<SftExample>> {
    let mut order = examples.to_vec();
    order.sort_by_key(|example| Reverse(length(example)));
    let mut passes: Vec<Vec<SftExample>> = Vec::new();
    let mut longest = 0;
    for example in order {
        match passes.last_mut() {
            Some(pass) if (pass.len() + 1) * longest <= tokens => pass.push(example.clone()),
            _ => {
                longest = length(example);
                passes.push(vec![example.clone()]);
            }
        }
    }
    passes
}

fn number<B: PolicyBackend>(scalar: Tensor<B, 1>) -> f64 {
    use burn_tensor::ElementConversion;

    scalar.into_scalar().elem()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn passes_hold_every_example_once_and_no_more_than_they_may(
            lengths in prop::collection::vec((1usize..40, 1usize..20), 1..30), tokens in 1usize..200,
        ) {
            let examples: Vec<SftExample> = (0..).zip(&lengths)
                .map(|(mark, (prompt, answer))| (vec![mark; *prompt], vec![mark; *answer]))
                .collect();
            let all: Vec<&SftExample> = examples.iter().collect();
            let passes = passes(&all, tokens);
            let mut marks: Vec<u32> = passes.iter().flatten().map(|(prompt, _)| prompt[0]).collect();
            marks.sort_unstable();
            prop_assert_eq!(marks, (0..lengths.len() as u32).collect::<Vec<_>>());
            for pass in &passes {
                let longest = pass.iter().map(length).max().unwrap();
                prop_assert!(pass.len() == 1 || pass.len() * longest <= tokens);
            }
        }
    }
}
