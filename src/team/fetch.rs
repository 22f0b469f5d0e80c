//! Requests to the host that the page came from.

use std::time::Duration;

use capo_api::{Answer, Body, ClientError, Method, Transport};
use gloo_net::http::{Method as HttpMethod, RequestBuilder};
use js_sys::{Array, Uint8Array};
use leptos::prelude::*;
use wasm_bindgen_futures::JsFuture;
use web_sys::{Blob, File, RequestCache, RequestCredentials};

/// The browser's `fetch`, which sends the session's cookie along.
#[derive(Debug, Clone, Copy)]
pub struct Fetch {
    /// Rises with everything that is changed.
    pub(super) changes: RwSignal<u32>,
}

impl Transport for Fetch {
    type Error = &'static str;

    async fn send(&self, method: Method, path: &str, body: Option<Body>) -> Result<Answer, Self::Error> {
        let request = request(path).method(match method {
            Method::Get => HttpMethod::GET,
            Method::Post => HttpMethod::POST,
            Method::Put => HttpMethod::PUT,
            Method::Patch => HttpMethod::PATCH,
            Method::Delete => HttpMethod::DELETE,
        });
        let answer = async move {
            let request = match body {
                Some(Body { kind, bytes }) => request
                    .header("content-type", kind)
                    .body(Uint8Array::from(bytes.as_slice())),
                None => request.build(),
            };
            let response = request?.send().await?;
            let (status, body) = (response.status(), response.text().await?);
            Ok(Answer { status, body })
        };
        let answer = answer.await.map_err(|_: gloo_net::Error| no_answer())?;
        if method != Method::Get && answer.status < 300 {
            let changes = self.changes;
            // In a task of its own: who leaves a page for it asks for nothing more on that page.
            set_timeout(move || changes.update(|changes| *changes += 1), Duration::ZERO);
        }
        Ok(answer)
    }
}

fn request(path: &str) -> RequestBuilder {
    RequestBuilder::new(path)
        .credentials(RequestCredentials::SameOrigin)
        .cache(RequestCache::NoStore)
}

/// Browsers do not tell pages more than whether an answer came.
fn no_answer() -> &'static str {
    if window().navigator().on_line() {
        "no answer came"
    } else {
        "there is no network"
    }
}

/// What lies at a path of the server, as bytes that are never in the module's memory.
///
/// # Errors
/// When it does not come whole, or the server refuses.
pub async fn file(path: &str) -> Result<Blob, ClientError> {
    let response = request(path).send().await.map_err(unreached)?;
    if !response.ok() {
        let body = response.text().await.map_err(unreached)?;
        let status = response.status();
        return Err(Answer { status, body }.refusal());
    }
    let whole = web_sys::Response::from(response)
        .array_buffer()
        .map_err(unreached)?;
    let whole = JsFuture::from(whole).await.map_err(unreached)?;
    Blob::new_with_buffer_source_sequence(&Array::of1(&whole)).map_err(unreached)
}

/// The same as a file of this name, as if it had been chosen here.
///
/// # Errors
/// The same, and when the browser makes no file of it.
pub async fn data_file(path: &str, name: &str) -> Result<File, ClientError> {
    let content = file(path).await?;
    File::new_with_blob_sequence(&Array::of1(&content), name).map_err(|_| {
        ClientError::Unreached("this browser makes no file of it; its memory may be short".into())
    })
}

fn unreached<E>(_: E) -> ClientError {
    ClientError::Unreached(no_answer().to_owned())
}
