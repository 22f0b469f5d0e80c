//! Requests to the host that the page came from.

use std::time::Duration;

use capo_api::{Answer, Body, Method, Transport};
use gloo_net::http::{Method as HttpMethod, RequestBuilder};
use leptos::prelude::*;
use web_sys::{RequestCache, RequestCredentials};

/// The browser's `fetch`, which sends the session's cookie along.
#[derive(Debug, Clone, Copy)]
pub struct Fetch {
    /// Rises with everything that is changed.
    pub(super) changes: RwSignal<u32>,
}

impl Transport for Fetch {
    type Error = &'static str;

    async fn send(&self, method: Method, path: &str, body: Option<Body>) -> Result<Answer, Self::Error> {
        let request = RequestBuilder::new(path)
            .method(match method {
                Method::Get => HttpMethod::GET,
                Method::Post => HttpMethod::POST,
                Method::Put => HttpMethod::PUT,
                Method::Patch => HttpMethod::PATCH,
                Method::Delete => HttpMethod::DELETE,
            })
            .credentials(RequestCredentials::SameOrigin)
            .cache(RequestCache::NoStore);
        let answer = async move {
            let request = match body {
                Some(Body { kind, bytes }) => request
                    .header("content-type", kind)
                    .body(js_sys::Uint8Array::from(bytes.as_slice())),
                None => request.build(),
            };
            let response = request?.send().await?;
            let (status, body) = (response.status(), response.text().await?);
            Ok(Answer { status, body })
        };
        // Browsers do not tell pages more than whether one came.
        let answer = answer.await.map_err(|_: gloo_net::Error| {
            let online = window().navigator().on_line();
            if online {
                "no answer came"
            } else {
                "there is no network"
            }
        })?;
        if method != Method::Get && answer.status < 300 {
            let changes = self.changes;
            // In a task of its own: who leaves a page for it asks for nothing more on that page.
            set_timeout(move || changes.update(|changes| *changes += 1), Duration::ZERO);
        }
        Ok(answer)
    }
}
