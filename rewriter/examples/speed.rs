//! How fast a model of some shape reads, writes and learns on the CPU.
//!
//! Weights are random: what is timed is the arithmetic. Tokens per second of wall and of CPU time come
//! from the best of several repetitions, which the other jobs of a shared machine disturb least.
//!
//! ```text
//! RAYON_NUM_THREADS=1 cargo run --release -p capo-rewriter --example speed -- config.json decode --rows 8
//! ```

use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use burn_autodiff::Autodiff;
use burn_flex::{Flex, FlexDevice};
use burn_tensor::{FloatDType, Tensor};
use capo_rewriter::cache::KvCache;
use capo_rewriter::decoder::Decoder;
use capo_rewriter::lora::{Adapter, LoraConfig, Mode};
use capo_rewriter::optimizer::{AdamW, Optimizer};
use capo_rewriter::sft::SftBatch;
use capo_rewriter::tiny_qwen3;
use capo_rewriter::tokens::{Padding, Tokens};
use clap::{Parser, ValueEnum};
use rustix::time::{ClockId, clock_gettime};

/// Times one kind of work.
#[derive(Parser)]
struct Arguments {
    /// A model's config.json.
    config: PathBuf,
    #[arg(value_enum)]
    work: Work,
    /// Sequences at a time.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..))]
    rows: u64,
    /// Tokens of each sequence that are there before the clock starts, or are learned.
    #[arg(long, default_value_t = 128, value_parser = clap::value_parser!(u64).range(2..))]
    tokens: u64,
    /// Tokens that each sequence writes.
    #[arg(long, default_value_t = 32, value_parser = clap::value_parser!(u64).range(1..))]
    new_tokens: u64,
    /// Compute each layer again in the backward pass, for less memory.
    #[arg(long)]
    activation_checkpointing: bool,
    /// Timed repetitions, after one that is not timed.
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..))]
    repetitions: u64,
}

#[derive(Clone, Copy, PartialEq, ValueEnum)]
enum Work {
    /// The prompt, up to the logits of its last token
    Prefill,
    /// New tokens after the prompt, the likeliest each
    Decode,
    /// A step of AdamW on an adapter of rank 8 on all projections
    Train,
}

type Learning = Autodiff<Flex>;

fn main() -> ExitCode {
    match run(&Arguments::parse()) {
        Ok(line) => {
            println!("{line}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: &Arguments) -> Result<String, Box<dyn Error>> {
    let decoder = random_decoder(&arguments.config)?;
    let (rows, columns) = (arguments.rows as usize, arguments.tokens as usize);
    let vocabulary = decoder.config().vocabulary as u32;
    let ids: Vec<Vec<u32>> = (0..rows as u32)
        .map(|row| {
            (0..columns as u32)
                .map(|column| scattered(row, column) % vocabulary)
                .collect()
        })
        .collect();
    let mut best = Times {
        wall: Duration::MAX,
        cpu: Duration::MAX,
    };
    let mut learning = Learner::new(&decoder, arguments.activation_checkpointing)?;
    let mut tokens = rows * columns;
    for repetition in 0..=arguments.repetitions {
        let times = match arguments.work {
            Work::Prefill => prefill(&decoder, &ids)?,
            Work::Decode => {
                tokens = rows * arguments.new_tokens as usize;
                decode(&decoder, &ids, arguments.new_tokens as usize)?
            }
            Work::Train => learning.step(&decoder, &ids)?,
        };
        if repetition > 0 {
            best = best.shorter_of(times);
        }
    }
    let line = serde_json::json!({
        "tokens_per_s": tokens as f64 / best.wall.as_secs_f64(),
        "tokens_per_cpu_s": tokens as f64 / best.cpu.as_secs_f64(),
        "peak_bytes": peak_bytes(),
    });
    Ok(line.to_string())
}

fn random_decoder(config: &Path) -> Result<Decoder<Flex>, Box<dyn Error>> {
    let folder = tempfile::tempdir()?;
    std::fs::copy(config, folder.path().join("config.json"))
        .map_err(|error| format!("cannot copy {}: {error}", config.display()))?;
    tiny_qwen3::write_weights(folder.path(), 0)?;
    Ok(Decoder::from_folder(folder.path(), FloatDType::F32, &FlexDevice)?)
}

/// A number without a pattern in its low digits.
fn scattered(row: u32, column: u32) -> u32 {
    (row * 7919 + column + 1).wrapping_mul(2_654_435_761) >> 8
}

/// How long something took.
#[derive(Clone, Copy)]
struct Times {
    wall: Duration,
    /// Of all threads.
    cpu: Duration,
}

impl Times {
    fn shorter_of(self, other: Self) -> Self {
        Self {
            wall: self.wall.min(other.wall),
            cpu: self.cpu.min(other.cpu),
        }
    }
}

fn timed<T>(work: impl FnOnce() -> Result<T, Box<dyn Error>>) -> Result<Times, Box<dyn Error>> {
    let (wall, cpu) = (Instant::now(), cpu_time());
    work()?;
    Ok(Times {
        wall: wall.elapsed(),
        cpu: cpu_time().saturating_sub(cpu),
    })
}

fn cpu_time() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

fn prefill(decoder: &Decoder<Flex>, ids: &[Vec<u32>]) -> Result<Times, Box<dyn Error>> {
    timed(|| {
        let mut cache = new_cache(decoder, ids, 0)?;
        likeliest(decoder, &Tokens::padded(ids, Padding::Left), &mut cache)
    })
}

fn decode(decoder: &Decoder<Flex>, ids: &[Vec<u32>], new: usize) -> Result<Times, Box<dyn Error>> {
    let mut cache = new_cache(decoder, ids, new)?;
    let mut last = likeliest(decoder, &Tokens::padded(ids, Padding::Left), &mut cache)?;
    timed(|| {
        for step in 0..new {
            let rows: Vec<_> = last.chunks(1).collect();
            let starts = vec![(ids[0].len() + step) as u32; ids.len()];
            last = likeliest(decoder, &Tokens::continued(&rows, &starts)?, &mut cache)?;
        }
        Ok(())
    })
}

fn new_cache(decoder: &Decoder<Flex>, ids: &[Vec<u32>], new: usize) -> Result<KvCache<Flex>, Box<dyn Error>> {
    let capacity = ids[0].len() + new;
    Ok(KvCache::new(
        decoder.config(),
        ids.len(),
        capacity,
        FloatDType::F32,
        &FlexDevice,
    )?)
}

/// The likeliest token after each row.
fn likeliest(
    decoder: &Decoder<Flex>,
    tokens: &Tokens,
    cache: &mut KvCache<Flex>,
) -> Result<Vec<u32>, Box<dyn Error>> {
    let hidden = decoder.hidden(tokens, None, Some(cache))?;
    let last: Tensor<Flex, 2> = hidden.narrow(1, tokens.columns() - 1, 1).squeeze_dim(1);
    let chosen = decoder.logits(last).argmax(1).into_data();
    Ok(chosen.iter::<i64>().map(|id| id as u32).collect())
}

/// An adapter with its optimizer.
struct Learner {
    adapter: Adapter<Flex>,
    optimizer: Optimizer<Flex>,
    activation_checkpointing: bool,
}

impl Learner {
    fn new(decoder: &Decoder<Flex>, activation_checkpointing: bool) -> Result<Self, Box<dyn Error>> {
        let adapter = Adapter::new(&LoraConfig::all(8, 16.0), decoder.config(), 1, &FlexDevice)?;
        let optimizer = Optimizer::new(AdamW::default(), &adapter);
        Ok(Self {
            adapter,
            optimizer,
            activation_checkpointing,
        })
    }

    /// All tokens but the first of each row are learned.
    fn step(&mut self, decoder: &Decoder<Flex>, ids: &[Vec<u32>]) -> Result<Times, Box<dyn Error>> {
        let rows: Vec<_> = ids
            .iter()
            .map(|ids| (ids.clone(), vec![true; ids.len()]))
            .collect();
        let batch = SftBatch::masked(&rows)?;
        timed(|| {
            let mut decoder = Decoder::<Learning>::from_inner(decoder);
            if self.activation_checkpointing {
                decoder = decoder.recomputing();
            }
            let learning = Adapter::<Learning>::trainable(&self.adapter, Mode::Training { seed: 0 });
            let loss = batch.losses(&decoder, Some(&learning))?.mean();
            let gradient = decoder.gradient(&loss, &learning);
            self.adapter = self.optimizer.step(&self.adapter, gradient, 1e-4)?.parameters;
            Ok(())
        })
    }
}

/// Largest resident set so far, where the system says it.
fn peak_bytes() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with("VmHWM:"))?;
    Some(1024 * line.split_whitespace().nth(1)?.parse::<u64>().ok()?)
}
