//! Bodies of requests.

use capo_core::study::suggest;
use futures::StreamExt as _;
use serde::de::DeserializeOwned;
use serde_json::error::Category;
use worker::Request;

use crate::refusal::Refusal;

/// Bytes of a document that is sent here, at most.
const MOST_DOCUMENT: usize = 1 << 20;

/// A request's body, up to one piece more than it may have.
pub(crate) async fn read(request: &mut Request, most: usize) -> Result<Vec<u8>, Refusal> {
    let mut read = Vec::new();
    if request.inner().body().is_none() {
        return Ok(read);
    }
    let mut pieces = request.stream()?;
    while let Some(piece) = pieces.next().await {
        read.extend(piece.map_err(|_| Refusal::unreadable("The body broke off."))?);
        if read.len() > most {
            break;
        }
    }
    Ok(read)
}

/// The same, where more is refused.
pub(crate) async fn bounded(request: &mut Request, most: usize) -> Result<Vec<u8>, Refusal> {
    let body = read(request, most).await?;
    if body.len() > most {
        return Err(Refusal::too_large(most));
    }
    Ok(body)
}

/// The document that a request brings.
pub(crate) async fn document<T: DeserializeOwned>(request: &mut Request) -> Result<T, Refusal> {
    let body = bounded(request, MOST_DOCUMENT).await?;
    serde_json::from_slice(&body).map_err(|error| {
        let told = suggest(&error.to_string());
        match error.classify() {
            Category::Data => Refusal::invalid(told),
            _ => Refusal::unreadable(&told),
        }
    })
}
