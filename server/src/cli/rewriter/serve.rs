//! `capo rewriter serve`: a rewriter over HTTP.

use std::net::IpAddr;
use std::rc::Rc;

use capo_core::llm::Message;
use capo_rewriter::error::RequestError;
use capo_rewriter::folder::PolicyFolder;
use capo_rewriter::local::{Drawing, DrawnAsAsked};
use capo_rewriter::stop::Stop;
use capo_rewriter::token_sampling::Sampling;
use futures::FutureExt;
use futures::future::LocalBoxFuture;

use crate::cli::failure::Failure;
use crate::interrupt::MOMENT;
use crate::simulate::{
    Answer, Question, Refusal, ServeOptions, Served, SimulateError, required_key, serve_until_interrupted,
};
use crate::train::local::StatedDrawing;
use crate::train::{Device, TrainError, told_cuts};

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
    let open = move |name: &str| -> Result<_, TrainError> {
        // Requests under way may still be answered for a moment; then the process ends, whatever is drawn.
        let stop = Stop::default();
        let rewriter = device
            .open()?
            .rewriter(name, &folder, drawing, told_cuts(), stop)?;
        Ok(Rc::new(Rewriter(rewriter)) as Rc<dyn Served>)
    };
    let address = (args.host, args.port);
    serve_until_interrupted(address, options, open)
        .await
        .map_err(failed)?;
    Ok(())
}

/// A rewriter that heeds what requests wish.
struct Rewriter(Rc<dyn DrawnAsAsked>);

impl Served for Rewriter {
    fn answer(&self, question: Question) -> LocalBoxFuture<'_, Answer> {
        let answer = async move {
            if !matches!(question.messages[..], [Message::User { .. }]) {
                let message = "A rewriter answers one message of the role user: the text of Capo's request for a rewrite.";
                return Err(Refusal::field("messages", message));
            }
            let drawing = wished(self.0.drawing(), &question);
            drawing.check().map_err(|why| match &why {
                RequestError::Setting { name, .. } => Refusal::field(*name, why.to_string()),
                _ => Refusal::field("messages", why.to_string()),
            })?;
            Ok(self.0.draw_as(question.into_request(), drawing).await?)
        };
        answer.boxed_local()
    }
}

/// How an answer is drawn: as the question wishes, and no longer than usual.
fn wished(usual: Drawing, question: &Question) -> Drawing {
    let wishes = &question.wishes;
    let or = |wish: Option<f64>, usual: f32| wish.map_or(usual, |wish| wish as f32);
    let longest = wishes
        .max_tokens
        .map(|tokens| usize::try_from(tokens).unwrap_or(usize::MAX));
    Drawing {
        sampling: Sampling {
            temperature: or(wishes.temperature, usual.sampling.temperature),
            top_p: or(wishes.top_p, usual.sampling.top_p),
            ..usual.sampling
        },
        max_new_tokens: longest.map_or(usual.max_new_tokens, |longest| longest.min(usual.max_new_tokens)),
        ..usual
    }
}
