//! `capo rewriter`: what is done with a trained rewriter.

mod alignment;
mod serve;

use std::path::PathBuf;

use capo_rewriter::folder::PolicyFolder;
use capo_rewriter::pairs::{PairSettings, Pairs};
use capo_rewriter::tiny_qwen3::TinyQwen3Config;
use capo_rewriter::tokenizer::Tokenizer;

use self::alignment::AlignmentArgs;
use self::serve::ServeArgs;
use super::failure::{Ending, Failure, print};
use crate::session::block_on;
use crate::train::{Device, TrainError};

/// Make a small rewriter, serve a trained one, write it as a whole model, or measure a training.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct RewriterArgs {
    #[command(subcommand)]
    command: RewriterCommand,
}

#[derive(Debug, Clone, clap::Subcommand)]
enum RewriterCommand {
    New(NewArgs),
    Serve(ServeArgs),
    Merge(MergeArgs),
    Alignment(AlignmentArgs),
}

/// Make a small model with random weights, to be trained from nothing. Its tokenizer is learned from the prompts
/// and rewrites of journals.
#[derive(Debug, Clone, clap::Args)]
struct NewArgs {
    /// Journals of runs whose texts the tokenizer is learned from.
    #[arg(long, value_name = "FILE", num_args = 1.., required = true)]
    journals: Vec<PathBuf>,
    /// Folder of the model, which must be empty or not be there.
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
    /// Tokens of the vocabulary at most, at least 262.
    #[arg(long, default_value_t = 2048, value_name = "N")]
    vocabulary: usize,
    /// Width of the residual stream.
    #[arg(long, default_value_t = TinyQwen3Config::default().hidden, value_name = "N")]
    hidden: usize,
    /// Number of layers.
    #[arg(long, default_value_t = TinyQwen3Config::default().layers, value_name = "N")]
    layers: usize,
    /// Longest sequence in tokens.
    #[arg(long, default_value_t = TinyQwen3Config::default().context, value_name = "N")]
    context: usize,
    /// Decides the weights.
    #[arg(long, default_value_t = 0, value_name = "N")]
    seed: u64,
}

/// Write a policy as one whole model, its adapter's updates added to the weights.
#[derive(Debug, Clone, clap::Args)]
struct MergeArgs {
    /// Folder of a training, a checkpoint or an adapter.
    #[arg(value_name = "REWRITER")]
    rewriter: String,
    /// Folder of the model, which must be empty or not be there.
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
    #[command(flatten)]
    device: Device,
}

/// Runs the command.
pub(crate) fn run(args: RewriterArgs) -> Result<Ending, Failure> {
    match args.command {
        RewriterCommand::New(args) => new(&args)?,
        RewriterCommand::Serve(args) => {
            block_on(serve::run(args))??;
        }
        RewriterCommand::Merge(args) => merge(&args)?,
        RewriterCommand::Alignment(args) => alignment::run(&args)?,
    }
    Ok(Ending::Done)
}

fn new(args: &NewArgs) -> Result<(), Failure> {
    let everything = PairSettings {
        min_gain: f64::MIN,
        held_out: 0.0,
    };
    let pairs = Pairs::read(&args.journals, &everything).map_err(TrainError::from)?;
    let texts = pairs
        .training
        .iter()
        .flat_map(|pair| [pair.request.text(), pair.child.clone()]);
    let texts: Vec<String> = texts.collect();
    let tokenizer = Tokenizer::learned(texts.iter(), args.vocabulary).map_err(TrainError::from)?;
    let config = TinyQwen3Config {
        hidden: args.hidden,
        intermediate: 3 * args.hidden,
        layers: args.layers,
        context: args.context,
        ..TinyQwen3Config::default()
    };
    config
        .write(&args.out, &tokenizer, args.seed)
        .map_err(TrainError::from)?;
    print(&format!("{}\n", args.out.display()))
}

fn merge(args: &MergeArgs) -> Result<(), Failure> {
    let folder = PolicyFolder::find(&args.rewriter).map_err(TrainError::from)?;
    let engine = args.device.open().map_err(TrainError::from)?;
    engine.merge(&folder, &args.out).map_err(TrainError::from)?;
    print(&format!("{}\n", args.out.display()))
}
