//! `capo rewriter serve`: a rewriter over HTTP.

use std::net::IpAddr;

use capo_rewriter::folder::PolicyFolder;

use crate::cli::failure::Failure;
use crate::interrupt::MOMENT;
use crate::simulate::{ServeOptions, SimulateError, required_key, serve_until_interrupted};
use crate::train::local::StatedDrawing;
use crate::train::served::served;
use crate::train::{Device, TrainError};

/// Serve a rewriter over an OpenAI-compatible API, for the playground and other machines.
#[derive(Debug, Clone, clap::Args)]
pub(super) struct ServeArgs {
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
    /// Sampling temperature of requests that name none, 0 for the likeliest [default: 1].
    #[arg(long)]
    temperature: Option<f64>,
    /// Longest rewrite in tokens, whatever a request asks for [default: 1024].
    #[arg(long)]
    max_tokens: Option<u32>,
    /// The most rewrites drawn together, which need memory together [default: 64].
    #[arg(long)]
    max_batch: Option<usize>,
    /// Demand the key held by this environment variable; without, any key or none will do.
    #[arg(long, value_name = "VARIABLE")]
    require_key: Option<String>,
    #[command(flatten)]
    device: Device,
}

pub(super) async fn run(args: ServeArgs) -> Result<(), Failure> {
    let folder = PolicyFolder::find(&args.rewriter).map_err(TrainError::from)?;
    let drawn = StatedDrawing {
        temperature: args.temperature,
        max_tokens: args.max_tokens,
        max_batch: args.max_batch,
    };
    let drawing = drawn.drawing();
    drawing.check().map_err(TrainError::from)?;
    let failed = |error: SimulateError| Failure::new(error.to_string());
    let options = ServeOptions {
        models: vec![args.name],
        key: required_key(args.require_key).map_err(failed)?,
        grace: MOMENT,
        ..ServeOptions::default()
    };
    let device = args.device;
    let open = move |name: &str| served(&device, name, &folder, drawing);
    let address = (args.host, args.port);
    serve_until_interrupted(address, options, open)
        .await
        .map_err(failed)?;
    Ok(())
}
