//! The HTTP client under the provider library: adds the user's headers, bounds what is read and keeps what came back.
//!
//! The library turns a reply into an answer or an error. Whether to try again, how long to wait
//! and what an unusable answer cost is read from the reply itself, so every try has a recorder.

use std::future::ready;
use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::{Bytes, BytesMut};
use capo_core::batches::Batches;
use futures::StreamExt;
use http::request::Parts;
use http::{HeaderMap, HeaderName, HeaderValue, Request, Response, StatusCode};
use rig_core::http_client::{Error, HttpClientExt, LazyBody, MultipartForm, Result, StreamingResponse};
use rig_core::wasm_compat::{WasmBoxedFuture, WasmCompatSend, WasmCompatSync};
use rig_reqwest::{ReqwestClient, reqwest};
use serde_json::Value;

#[cfg(not(target_arch = "wasm32"))]
use crate::batching::Batcher;
use crate::conversation::CallIds;

/// Most bytes of an answer that are read: as many as of an external agent's.
const MOST_BYTES: usize = 16 << 20;

/// What came back from one try, as far as it got.
#[derive(Debug, Clone, Default)]
pub(crate) struct Reply {
    /// The status, once there is one.
    pub(crate) status: Option<StatusCode>,
    /// The headers; in a browser only those the server exposes to pages.
    pub(crate) headers: HeaderMap,
    /// The body, once it is complete.
    pub(crate) body: Bytes,
    /// Why the body was not handed on, if it was not.
    pub(crate) refused: Option<String>,
}

/// Says in a provider's words what the library does not: changes a request before it is sent.
pub(crate) type Rewrite = fn(&mut Parts, Bytes, &CallIds) -> Bytes;

/// Carries requests to where models are asked, in place of HTTP.
pub trait Carrier: WasmCompatSend + WasmCompatSync {
    /// What comes back, which is a refusal where nothing does.
    fn carry(&self, request: Request<Bytes>) -> WasmBoxedFuture<'static, Response<Bytes>>;
}

/// What requests go over.
#[derive(Clone)]
pub(crate) enum Wire {
    /// HTTP.
    Http(reqwest::Client),
    /// Somebody who takes them elsewhere.
    Carrier(Arc<dyn Carrier>),
    /// HTTP, many at a time.
    #[cfg(not(target_arch = "wasm32"))]
    Batches(Arc<Batcher>),
    /// They are only made, not sent.
    Nowhere,
}

impl Wire {
    /// The client for what no model here is asked by.
    fn http(&self) -> Option<ReqwestClient> {
        let Self::Http(http) = self else { return None };
        Some(http.clone().into())
    }

    /// The batches that requests are handed in with, if they are.
    pub(crate) fn batches(&self) -> Option<&Batches> {
        match self {
            #[cfg(not(target_arch = "wasm32"))]
            Self::Batches(batcher) => Some(batcher.batches()),
            Self::Http(_) | Self::Carrier(_) | Self::Nowhere => None,
        }
    }
}

/// A client that adds headers and records one reply. Behind a lock because natively the provider
/// library wants clients that can be sent between threads.
#[derive(Clone)]
pub(crate) struct Recorder {
    wire: Wire,
    headers: HeaderMap,
    call_ids: CallIds,
    /// What tells a request from one with the same words.
    draw: u64,
    rewrite: Option<Rewrite>,
    reply: Arc<Mutex<Reply>>,
}

/// The server sent what is not handed on.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
struct Refused(String);

impl Recorder {
    pub(crate) fn new(wire: Wire, headers: HeaderMap) -> Self {
        Self {
            wire,
            headers,
            ..Self::nowhere()
        }
    }

    /// For requests that are only made, not sent.
    pub(crate) fn nowhere() -> Self {
        Self {
            wire: Wire::Nowhere,
            headers: HeaderMap::new(),
            call_ids: CallIds::default(),
            draw: 0,
            rewrite: None,
            reply: Arc::default(),
        }
    }

    /// With the ids of the tool calls in what is asked.
    pub(crate) fn with_call_ids(self, call_ids: CallIds) -> Self {
        Self { call_ids, ..self }
    }

    /// With what tells a request from one with the same words, where its provider takes no seed.
    pub(crate) fn with_draw(self, draw: u64) -> Self {
        Self { draw, ..self }
    }

    /// With one more header.
    pub(crate) fn with_header(mut self, name: HeaderName, value: HeaderValue) -> Self {
        self.headers.insert(name, value);
        self
    }

    /// With a last change of every request.
    pub(crate) fn rewriting(self, rewrite: Rewrite) -> Self {
        Self {
            rewrite: Some(rewrite),
            ..self
        }
    }

    /// What has come back so far.
    pub(crate) fn reply(&self) -> Reply {
        self.reply.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The request as it is sent.
    fn ready(&self, request: Request<Bytes>) -> Request<Bytes> {
        let (mut parts, mut body) = request.into_parts();
        parts.headers.extend(self.headers.clone());
        if let Some(rewrite) = self.rewrite {
            body = rewrite(&mut parts, body, &self.call_ids);
        }
        Request::from_parts(parts, body)
    }
}

/// What came back, its body not read yet.
type Came = (StatusCode, HeaderMap, LazyBody<Bytes>);

/// Sends a request and records what comes back.
async fn send(wire: Wire, request: Request<Bytes>, draw: u64, reply: &Arc<Mutex<Reply>>) -> Result<Came> {
    let reply = Arc::clone(reply);
    #[cfg(target_arch = "wasm32")]
    let _ = draw;
    match wire {
        Wire::Http(http) => {
            let (parts, body) = request.into_parts();
            let request = http.request(parts.method, parts.uri.to_string());
            let sent = request.headers(parts.headers).body(body).send();
            let response = sent.await.map_err(Error::instance)?;
            let (status, headers) = (response.status(), response.headers().clone());
            let body = async move { recorded(read(response, &reply), &reply).await };
            Ok((status, headers, Box::pin(body)))
        }
        Wire::Carrier(carrier) => Ok(brought(carrier.carry(request).await, reply)),
        #[cfg(not(target_arch = "wasm32"))]
        Wire::Batches(batcher) => Ok(brought(batcher.answer(request, draw).await?, reply)),
        Wire::Nowhere => Err(Error::StreamEnded),
    }
}

/// What somebody else brought, whole.
fn brought(response: Response<Bytes>, reply: Arc<Mutex<Reply>>) -> Came {
    let (parts, body) = response.into_parts();
    let body = async move {
        record(&reply, |reply| reply.body = body.clone());
        recorded(ready(Ok(body)), &reply).await
    };
    (parts.status, parts.headers, Box::pin(body))
}

fn record(reply: &Mutex<Reply>, change: impl FnOnce(&mut Reply)) {
    change(&mut reply.lock().unwrap_or_else(PoisonError::into_inner));
}

/// Reads a body up to [`MOST_BYTES`] and records what came of it, which was paid for even if the rest did not come.
async fn read(response: reqwest::Response, reply: &Mutex<Reply>) -> Result<Bytes> {
    let mut body = BytesMut::new();
    let mut chunks = pin!(response.bytes_stream());
    let ended = loop {
        match chunks.next().await {
            None => break Ok(()),
            Some(Err(error)) => break Err(Error::instance(error)),
            Some(Ok(chunk)) if body.len() + chunk.len() > MOST_BYTES => {
                let most = MOST_BYTES >> 20;
                break Err(Error::instance(Refused(format!(
                    "the answer is larger than {most} MiB, which is not read"
                ))));
            }
            Some(Ok(chunk)) => body.extend_from_slice(&chunk),
        }
    };
    let body = body.freeze();
    record(reply, |reply| reply.body = body.clone());
    ended.map(|()| body)
}

/// The longest arguments that are no JSON and are handed on all the same, in bytes, all those of a body together.
const LONGEST_BROKEN: usize = 64 << 10;

/// The deepest nesting that JSON may have here, which is the parser's own limit.
const DEEPEST: usize = 128;

/// Whether a body holds arguments of tool calls that are no JSON and that the library would try to mend for minutes:
/// its time and memory grow with their length times their depth.
fn has_costly_arguments(body: &[u8]) -> bool {
    /// Takes the lengths of broken arguments from `left`; false once they are too long or too deep.
    fn are_cheap(value: &Value, left: &mut usize) -> bool {
        match value {
            Value::Array(items) => items.iter().all(|item| are_cheap(item, left)),
            Value::Object(fields) => fields.iter().all(|(name, value)| match value {
                // OpenAI's name for them, and Anthropic's.
                Value::String(text) if name == "arguments" || name == "input" => is_cheap(text, left),
                value => are_cheap(value, left),
            }),
            _ => true,
        }
    }
    fn is_cheap(text: &str, left: &mut usize) -> bool {
        // Unlike `IgnoredAny`, a `Value` is not read to any depth.
        if serde_json::from_str::<Value>(text).is_ok() {
            return true;
        }
        let rest = left.checked_sub(text.len());
        *left = rest.unwrap_or(0);
        rest.is_some() && nesting(text) <= DEEPEST
    }
    // Most bodies are too small to hold such.
    body.len() > DEEPEST
        && serde_json::from_slice(body).is_ok_and(|value| !are_cheap(&value, &mut { LONGEST_BROKEN }))
}

/// How deep brackets are nested in a text, those in strings included.
fn nesting(text: &str) -> usize {
    let depths = text.bytes().scan(0_usize, |depth, byte| {
        match byte {
            b'[' | b'{' => *depth += 1,
            b']' | b'}' => *depth = depth.saturating_sub(1),
            _ => {}
        }
        Some(*depth)
    });
    depths.max().unwrap_or(0)
}

/// A body as it is read, unless it is not to be handed on, which is recorded.
async fn recorded(read: impl Future<Output = Result<Bytes>>, reply: &Mutex<Reply>) -> Result<Bytes> {
    let body = match read.await {
        Ok(body) if has_costly_arguments(&body) => {
            let why = "the arguments of a tool call are no JSON that can be read or mended: too long, or too deeply nested";
            Err(Error::instance(Refused(why.to_owned())))
        }
        read => read,
    };
    if let Err(Error::Instance(error)) = &body {
        let why = error.downcast_ref::<Refused>().map(|refused| refused.0.clone());
        record(reply, |reply| reply.refused = why);
    }
    body
}

impl HttpClientExt for Recorder {
    fn send<T, U>(
        &self,
        request: Request<T>,
    ) -> impl Future<Output = Result<Response<LazyBody<U>>>> + WasmCompatSend + 'static
    where
        T: Into<Bytes> + WasmCompatSend,
        U: From<Bytes> + WasmCompatSend + 'static,
    {
        let request = self.ready(request.map(Into::into));
        let (wire, draw, reply) = (self.wire.clone(), self.draw, Arc::clone(&self.reply));
        async move {
            let (status, headers, body) = send(wire, request, draw, &reply).await?;
            record(&reply, |reply| {
                reply.status = Some(status);
                reply.headers.clone_from(&headers);
            });
            if !status.is_success() {
                // A refusal counts as one whatever becomes of its words.
                let body = body.await.unwrap_or_default();
                let body = String::from_utf8_lossy(&body).into_owned();
                return Err(Error::non_success_with_details(status, headers, body));
            }
            let body: LazyBody<U> = Box::pin(async move { body.await.map(U::from) });
            let mut answer = Response::new(body);
            *answer.status_mut() = status;
            *answer.headers_mut() = headers;
            Ok(answer)
        }
    }

    fn send_multipart<U>(
        &self,
        request: Request<MultipartForm>,
    ) -> impl Future<Output = Result<Response<LazyBody<U>>>> + WasmCompatSend + 'static
    where
        U: From<Bytes> + WasmCompatSend + 'static,
    {
        let http = self.wire.http();
        async move { http.ok_or(Error::StreamEnded)?.send_multipart(request).await }
    }

    fn send_streaming<T>(
        &self,
        request: Request<T>,
    ) -> impl Future<Output = Result<StreamingResponse>> + WasmCompatSend
    where
        T: Into<Bytes> + WasmCompatSend,
    {
        let http = self.wire.http();
        async move { http.ok_or(Error::StreamEnded)?.send_streaming(request).await }
    }
}
