//! A rewriter behind an OpenAI-compatible endpoint.

use std::rc::Rc;

use capo_core::llm::Message;
use capo_rewriter::error::RequestError;
use capo_rewriter::folder::PolicyFolder;
use capo_rewriter::local::{Drawing, DrawnAsAsked};
use capo_rewriter::stop::Stop;
use capo_rewriter::token_sampling::Sampling;
use futures::FutureExt;
use futures::future::LocalBoxFuture;

use super::{Device, TrainError, told_cuts};
use crate::simulate::{Answer, Question, Refusal, Served};

/// Opens the rewriter of a folder under a name, on a device, drawing so unless a request says otherwise.
///
/// # Errors
/// When the device is not there, or the folder holds no rewriter.
pub(crate) fn served(
    device: &Device,
    name: &str,
    folder: &PolicyFolder,
    drawing: Drawing,
) -> Result<Rc<dyn Served>, TrainError> {
    // Requests under way may still be answered for a moment; then the process ends, whatever is drawn.
    let stop = Stop::default();
    let rewriter = device
        .open()?
        .rewriter(name, folder, drawing, told_cuts(), stop)?;
    Ok(Rc::new(Rewriter(rewriter)))
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
