//! Tokens per second of prefill, decoding and LoRA training, with random weights.

use std::path::PathBuf;
use std::time::Instant;

use burn_tensor::FloatDType;
use capo_rewriter::backend::PolicyBackend;
use capo_rewriter::config::ModelConfig;
use capo_rewriter::decoder::Decoder;
use capo_rewriter::device::{DeviceChoice, check_number_type};
use capo_rewriter::flops::{decode_flops, training_flops};
use capo_rewriter::generate::{Generation, GenerationRow};
use capo_rewriter::lora::{self, Adapter, LoraConfig};
use capo_rewriter::optimizer::{AdamW, Optimizer};
use capo_rewriter::policy::Policy;
use capo_rewriter::sft::SftBatch;
use capo_rewriter::token_sampling::Sampling;
use clap::{Args, ValueEnum};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha12Rng;
use serde::{Deserialize, Serialize};

use crate::device::{Chosen, Work};
use crate::error::Error;
use crate::memory;

/// Of the adapter, as in `torch_qwen3.py`.
const RANK: usize = 8;
const ALPHA: f64 = 16.0;
const LEARNING_RATE: f64 = 1e-4;

#[derive(Args, Debug, Clone)]
pub(crate) struct Arguments {
    /// cpu, wgpu, cuda, cuda:1 or auto
    #[arg(long, default_value = "auto")]
    device: DeviceChoice,
    /// A folder with config.json
    #[arg(long)]
    shape: PathBuf,
    #[arg(long)]
    mode: Mode,
    /// Type of the computation
    #[arg(long, default_value = "f32")]
    dtype: NumberType,
    /// Rows
    #[arg(long, default_value_t = 1)]
    batch: usize,
    /// Tokens of each row that learn
    #[arg(long, default_value_t = 512)]
    seq: usize,
    /// Whether training computes each layer again in the backward pass
    #[arg(long)]
    grad_ckpt: bool,
    /// Tokens of each prompt before decoding
    #[arg(long, default_value_t = 128)]
    prompt: usize,
    /// Tokens that each row is answered with
    #[arg(long, default_value_t = 128)]
    new_tokens: usize,
    /// Repetitions that count
    #[arg(long, default_value_t = 3)]
    reps: usize,
    /// Repetitions before, in which kernels are compiled and tuned
    #[arg(long, default_value_t = 1)]
    warmup: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Mode {
    Decode,
    Train,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum NumberType {
    F32,
    Bf16,
    F16,
}

impl NumberType {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::F32 => "f32",
            Self::Bf16 => "bf16",
            Self::F16 => "f16",
        }
    }

    pub(crate) fn float(self) -> FloatDType {
        match self {
            Self::F32 => FloatDType::F32,
            Self::Bf16 => FloatDType::BF16,
            Self::F16 => FloatDType::F16,
        }
    }
}

/// What a measurement came to, with the names that `torch_qwen3.py` prints.
#[derive(Debug, Serialize)]
struct Record {
    mode: Mode,
    config: String,
    device: String,
    device_name: String,
    dtype: &'static str,
    batch: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    seq: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    grad_ckpt: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    prompt: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    new_tokens: Option<usize>,
    tokens_per_s: f64,
    tokens_per_s_median: f64,
    best_s: f64,
    reps_s: Vec<f64>,
    warmup_s: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    loss: Option<f64>,
    flops_per_token: f64,
    peak_rss_mib: Option<f64>,
}

pub(crate) fn run(arguments: &Arguments) -> Result<(), Error> {
    let chosen = Chosen::of(&arguments.device)?;
    let config = ModelConfig::from_folder(&arguments.shape)?;
    let measured = chosen.run(Measurement {
        arguments,
        config: config.clone(),
        device_name: &chosen.name,
    })?;
    let tokens = match arguments.mode {
        Mode::Decode => arguments.batch * arguments.new_tokens,
        Mode::Train => arguments.batch * arguments.seq,
    } as f64;
    let mut sorted = measured.seconds.clone();
    sorted.sort_by(f64::total_cmp);
    let (best, median) = (sorted[0], sorted[sorted.len() / 2]);
    let is_training = arguments.mode == Mode::Train;
    let record = Record {
        mode: arguments.mode,
        config: arguments
            .shape
            .file_name()
            .map_or_else(String::new, |name| name.to_string_lossy().into_owned()),
        device: chosen.choice.to_string(),
        device_name: chosen.name.clone(),
        dtype: arguments.dtype.name(),
        batch: arguments.batch,
        seq: is_training.then_some(arguments.seq),
        grad_ckpt: is_training.then_some(arguments.grad_ckpt),
        prompt: (!is_training).then_some(arguments.prompt),
        new_tokens: (!is_training).then_some(arguments.new_tokens),
        tokens_per_s: tokens / best,
        tokens_per_s_median: tokens / median,
        best_s: best,
        reps_s: measured.seconds,
        warmup_s: measured.warmup_seconds,
        loss: measured.loss,
        flops_per_token: match arguments.mode {
            Mode::Decode => decode_flops(&config, arguments.prompt + arguments.new_tokens / 2),
            Mode::Train => {
                training_flops(&config, arguments.seq, arguments.seq, false) / arguments.seq as f64
            }
        },
        peak_rss_mib: memory::peak_rss_mib(),
    };
    let line = serde_json::to_string(&record).map_err(|why| Error::Failed(why.to_string()))?;
    println!("{line}");
    Ok(())
}

struct Measurement<'a> {
    arguments: &'a Arguments,
    config: ModelConfig,
    device_name: &'a str,
}

struct Measured {
    /// Of each repetition.
    seconds: Vec<f64>,
    warmup_seconds: f64,
    /// Of the last training step.
    loss: Option<f64>,
}

impl Work for Measurement<'_> {
    type Output = Measured;

    fn on<B: PolicyBackend>(self, device: &B::Device) -> Result<Measured, Error> {
        let arguments = self.arguments;
        let number_type = arguments.dtype.float();
        check_number_type::<B>(self.device_name, device, number_type)?;
        let decoder = Decoder::<B>::random(self.config, number_type, 0, device);
        match arguments.mode {
            Mode::Decode => decode(&decoder, arguments),
            Mode::Train => train(decoder, arguments),
        }
    }
}

fn rows(count: usize, length: usize, vocabulary: usize) -> Vec<Vec<u32>> {
    let mut random = ChaCha12Rng::seed_from_u64(1);
    let mut row = || {
        (0..length)
            .map(|_| random.random_range(0..vocabulary as u32))
            .collect()
    };
    (0..count).map(|_| row()).collect()
}

fn repeat(
    arguments: &Arguments,
    mut once: impl FnMut() -> Result<(f64, Option<f64>), Error>,
) -> Result<Measured, Error> {
    let started = Instant::now();
    for _ in 0..arguments.warmup {
        once()?;
    }
    let warmup_seconds = started.elapsed().as_secs_f64();
    let mut seconds = Vec::new();
    let mut loss = None;
    for _ in 0..arguments.reps.max(1) {
        let (time, last) = once()?;
        seconds.push(time);
        loss = last;
    }
    Ok(Measured {
        seconds,
        warmup_seconds,
        loss,
    })
}

/// The time of an answer of `new_tokens` + 1 tokens less the shortest of an answer of one: the whole of the
/// generator, sampling on the host included, without the prompt.
fn decode<B: PolicyBackend>(decoder: &Decoder<B>, arguments: &Arguments) -> Result<Measured, Error> {
    let prompts = rows(arguments.batch, arguments.prompt, decoder.config().vocabulary);
    let rows: Vec<_> = (0..)
        .zip(prompts)
        .map(|(seed, prompt)| GenerationRow { prompt, seed })
        .collect();
    let answer = |max_new_tokens| {
        let settings = Generation {
            sampling: Sampling::GREEDY,
            max_new_tokens,
            stop_tokens: Vec::new(),
            share_prefixes: true,
        };
        let started = Instant::now();
        decoder.generate(None, &rows, &settings)?;
        Ok::<_, Error>(started.elapsed().as_secs_f64())
    };
    answer(1)?;
    // One time for all: of noisy differences the smallest would be the one with the slowest prompt.
    let mut prefill = f64::INFINITY;
    for _ in 0..arguments.reps.max(1) {
        prefill = prefill.min(answer(1)?);
    }
    repeat(arguments, || {
        let seconds = answer(arguments.new_tokens + 1)? - prefill;
        if seconds <= 0.0 {
            let why = "an answer took no longer than its prompt: ask for more --new-tokens";
            return Err(Error::Failed(why.to_owned()));
        }
        Ok((seconds, None))
    })
}

/// The time of a step: forward, backward, clipping and AdamW on an adapter of all seven projections.
fn train<B: PolicyBackend>(decoder: Decoder<B>, arguments: &Arguments) -> Result<Measured, Error> {
    let marked: Vec<_> = rows(arguments.batch, arguments.seq, decoder.config().vocabulary)
        .into_iter()
        .map(|row| (row, vec![true; arguments.seq]))
        .collect();
    let batch = SftBatch::masked(&marked)?;
    let lora = LoraConfig::all(RANK, ALPHA);
    let adapter = Adapter::new(&lora, decoder.config(), 0, &decoder.device())?;
    let mut policy = Policy::Adapted {
        base: decoder,
        adapter,
    };
    let settings = AdamW {
        weight_decay: 0.0,
        ..AdamW::default()
    };
    let mut optimizer = Optimizer::new(settings, &policy);
    repeat(arguments, || {
        let started = Instant::now();
        let (loss, gradient) = policy.differentiate(
            lora::Mode::Training { seed: 0 },
            arguments.grad_ckpt,
            |decoder, adapter| Ok(batch.losses(decoder, adapter)?.mean()),
        )?;
        let after = optimizer.step(&policy, gradient, LEARNING_RATE)?;
        policy = after.parameters;
        let loss = loss.into_data().iter::<f64>().next();
        Ok((started.elapsed().as_secs_f64(), loss))
    })
}
