//! `capo rewriter`: what is done with a trained rewriter.

mod alignment;

use std::io::{self, Write as _};
use std::net::IpAddr;
use std::path::PathBuf;

use capo_rewriter::folder::PolicyFolder;
use capo_rewriter::nano::NanoConfig;
use capo_rewriter::pairs::{PairSettings, Pairs};
use capo_rewriter::tokenizer::Tokenizer;
use tokio::net::TcpListener;

use self::alignment::AlignmentArgs;
use super::failure::{Ending, Failure, print, warn};
use crate::interrupt::Interrupts;
use crate::session::block_on;
use crate::simulate::{ServeOptions, SimulateError, serve_announced};
use crate::train::local::drawing;
use crate::train::{Device, TrainError, told_cuts};

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
    #[arg(long, default_value_t = NanoConfig::default().hidden, value_name = "N")]
    hidden: usize,
    /// Number of layers.
    #[arg(long, default_value_t = NanoConfig::default().layers, value_name = "N")]
    layers: usize,
    /// Longest sequence in tokens.
    #[arg(long, default_value_t = NanoConfig::default().context, value_name = "N")]
    context: usize,
    /// Decides the weights.
    #[arg(long, default_value_t = 0, value_name = "N")]
    seed: u64,
}

/// Serve a rewriter over an OpenAI-compatible API, for the playground and other machines.
#[derive(Debug, Clone, clap::Args)]
struct ServeArgs {
    /// Folder of a training, a checkpoint, an adapter or a model, or a repository of the hub as
    /// owner/name@revision.
    #[arg(value_name = "REWRITER")]
    rewriter: String,
    /// Name under which it is served.
    #[arg(long, default_value = "rewriter", value_name = "NAME")]
    name: String,
    /// Port to listen on; 0 takes any free one.
    #[arg(long, default_value_t = 8322)]
    port: u16,
    /// Address to listen on.
    #[arg(long, default_value = "127.0.0.1")]
    host: IpAddr,
    /// Sampling temperature of rewrites, 0 for the likeliest [default: 1].
    #[arg(long)]
    temperature: Option<f64>,
    /// Longest rewrite in tokens [default: 1024].
    #[arg(long)]
    max_tokens: Option<u32>,
    /// Demand the key held by this environment variable; without, any key or none will do.
    #[arg(long, value_name = "VARIABLE")]
    require_key: Option<String>,
    #[command(flatten)]
    device: Device,
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
            block_on(serve(args))??;
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
    let config = NanoConfig {
        hidden: args.hidden,
        intermediate: 3 * args.hidden,
        layers: args.layers,
        context: args.context,
        ..NanoConfig::default()
    };
    config
        .write(&args.out, &tokenizer, args.seed)
        .map_err(TrainError::from)?;
    print(&format!("{}\n", args.out.display()))
}

async fn serve(args: ServeArgs) -> Result<(), Failure> {
    let ServeArgs { host, port, .. } = args;
    let failed = |error: SimulateError| Failure::new(error.to_string());
    let folder = PolicyFolder::find(&args.rewriter).map_err(TrainError::from)?;
    let drawing = drawing(args.temperature, args.max_tokens);
    drawing.check().map_err(TrainError::from)?;
    let options = ServeOptions {
        models: vec![args.name],
        key: args
            .require_key
            .map(|variable| {
                let key = std::env::var(&variable).ok().filter(|key| !key.is_empty());
                key.ok_or_else(|| failed(SimulateError::Key(variable)))
            })
            .transpose()?,
        ..ServeOptions::default()
    };
    let listener = TcpListener::bind((host, port))
        .await
        .map_err(|source| failed(SimulateError::Listen { host, port, source }))?;
    let address = listener.local_addr()?;
    let device = args.device;
    let open = move |name: &str| -> Result<_, TrainError> {
        Ok(device.open()?.rewriter(name, &folder, drawing, told_cuts())?)
    };
    let announce = move || {
        let mut stdout = io::stdout().lock();
        writeln!(stdout, "listening on http://{address}/v1").and_then(|()| stdout.flush())
    };
    let interrupts = Interrupts::listen(|| {
        warn("interrupted: ending the requests under way; once more to leave at once");
    })?;
    let (asked, insisted) = (interrupts.clone(), interrupts.insisted());
    let shutdown = async move { asked.asked().await };
    serve_announced(listener, options, open, announce, shutdown, insisted)
        .await
        .map_err(failed)?;
    Ok(())
}

fn merge(args: &MergeArgs) -> Result<(), Failure> {
    let folder = PolicyFolder::find(&args.rewriter).map_err(TrainError::from)?;
    let engine = args.device.open().map_err(TrainError::from)?;
    engine.merge(&folder, &args.out).map_err(TrainError::from)?;
    print(&format!("{}\n", args.out.display()))
}
