//! The HTTP client under the provider library: adds the user's headers and keeps what came back.
//!
//! The library turns a reply into an answer or an error. Whether to try again, how long to wait
//! and what an unusable answer cost is read from the reply itself, so every try has a recorder.

use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use http::{HeaderMap, Request, Response, StatusCode};
use rig_core::http_client::{
    DynHttpClient, Error, HttpClientExt, LazyBody, MultipartForm, Result, StreamingResponse,
};
use rig_core::wasm_compat::WasmCompatSend;

/// What came back from one try, as far as it got.
#[derive(Debug, Clone, Default)]
pub(crate) struct Reply {
    /// The status, once there is one.
    pub(crate) status: Option<StatusCode>,
    /// The headers; in a browser only those the server exposes to pages.
    pub(crate) headers: HeaderMap,
    /// The body, once it is complete.
    pub(crate) body: Bytes,
}

/// A client that adds headers and records one reply. Behind a lock because natively the provider
/// library wants clients that can be sent between threads.
#[derive(Clone)]
pub(crate) struct Recorder {
    http: DynHttpClient,
    headers: HeaderMap,
    reply: Arc<Mutex<Reply>>,
}

impl Recorder {
    pub(crate) fn new(http: DynHttpClient, headers: HeaderMap) -> Self {
        Self {
            http,
            headers,
            reply: Arc::default(),
        }
    }

    /// What has come back so far.
    pub(crate) fn reply(&self) -> Reply {
        self.reply.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn record(reply: &Mutex<Reply>, change: impl FnOnce(&mut Reply)) {
        change(&mut reply.lock().unwrap_or_else(PoisonError::into_inner));
    }
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
        let (mut parts, body) = request.into_parts();
        parts.headers.extend(self.headers.clone());
        let sending = self
            .http
            .send::<Bytes, Bytes>(Request::from_parts(parts, body.into()));
        let reply = Arc::clone(&self.reply);
        async move {
            let response = match sending.await {
                Ok(response) => response,
                Err(error) => {
                    if let Error::InvalidStatusCodeWithDetails {
                        status,
                        body,
                        headers,
                    } = &error
                    {
                        Self::record(&reply, |reply| {
                            reply.status = Some(*status);
                            reply.headers.clone_from(headers);
                            reply.body = Bytes::from(body.clone());
                        });
                    }
                    return Err(error);
                }
            };
            let (parts, body) = response.into_parts();
            Self::record(&reply, |reply| {
                reply.status = Some(parts.status);
                reply.headers.clone_from(&parts.headers);
            });
            let body: LazyBody<U> = Box::pin(async move {
                let bytes = body.await?;
                Self::record(&reply, |reply| reply.body = bytes.clone());
                Ok(U::from(bytes))
            });
            Ok(Response::from_parts(parts, body))
        }
    }

    fn send_multipart<U>(
        &self,
        request: Request<MultipartForm>,
    ) -> impl Future<Output = Result<Response<LazyBody<U>>>> + WasmCompatSend + 'static
    where
        U: From<Bytes> + WasmCompatSend + 'static,
    {
        self.http.send_multipart(request)
    }

    fn send_streaming<T>(
        &self,
        request: Request<T>,
    ) -> impl Future<Output = Result<StreamingResponse>> + WasmCompatSend
    where
        T: Into<Bytes> + WasmCompatSend,
    {
        self.http.send_streaming(request)
    }
}
