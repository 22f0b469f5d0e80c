//! Models asked with a shared key, which the caller never sees.

use std::sync::Arc;
use std::time::Duration;
use std::{io, mem};

use axum::body::{Body, Bytes};
use axum::extract::{Request as Asked, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use capo_gateway::{
    Count, Counter, Flow, Gateway, Limits, NanoUsd, PROBLEM_JSON, Problem, Request, UpstreamRequest,
    check_response, error_body, is_public, response_headers, split_path,
};
use capo_models::Secret as ProviderKey;
use futures::StreamExt as _;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use tokio::sync::{mpsc, oneshot};
use tracing::Span;

use super::Server;
use super::caller::Asking;
use super::problem::{Kind, Refusal};
use crate::store::{ChargedTo, Millis, StoredKey};
use crate::{spans, telemetry};

/// How long a provider may take to be reached, and to send the next piece of its answer: models think for minutes.
const CONNECT: Duration = Duration::from_secs(10);
const SILENCE: Duration = Duration::from_mins(10);

/// How long a whole call may take: less than what is set aside is kept for, see [`crate::store::FORGOTTEN`].
const WHOLE: Duration = Duration::from_mins(50);

/// How long a caller may take to send a body, and to take the next piece of an answer.
const BODY: Duration = Duration::from_secs(30);
const STALLED: Duration = Duration::from_mins(1);

/// Bytes of a provider's error that are read, at most.
const MOST_ERROR: usize = 1 << 20;

/// Pieces of an answer that wait for a slow caller.
const WAITING: usize = 16;

/// What asks providers: one for hosts that must be public, one for those that an administrator allowed to be private.
#[derive(Debug, Clone)]
pub(super) struct Providers {
    public: reqwest::Client,
    private: reqwest::Client,
}

/// Resolves as the system does.
pub(super) struct System;

impl Resolve for System {
    fn resolve(&self, name: Name) -> Resolving {
        Box::pin(async move {
            let found: Vec<_> = tokio::net::lookup_host((name.as_str(), 0)).await?.collect();
            Ok(Box::new(found.into_iter()) as Addrs)
        })
    }
}

/// Resolves as another, to public addresses only; what is connected to is what was resolved.
pub(super) struct Public<R>(pub(super) R);

impl<R: Resolve> Resolve for Public<R> {
    fn resolve(&self, name: Name) -> Resolving {
        let found = self.0.resolve(name);
        Box::pin(async move {
            let public: Vec<_> = found.await?.filter(|address| is_public(address.ip())).collect();
            if public.is_empty() {
                return Err(io::Error::other("the provider's host has no public address").into());
            }
            Ok(Box::new(public.into_iter()) as Addrs)
        })
    }
}

impl Providers {
    /// Hosts that must be public are asked for by this resolver.
    ///
    /// # Errors
    /// When the system has no certificates to trust.
    pub(super) fn new(public: impl Resolve + 'static) -> Result<Self, reqwest::Error> {
        let client = || {
            reqwest::Client::builder()
                .redirect(reqwest::redirect::Policy::none())
                .connect_timeout(CONNECT)
                .read_timeout(SILENCE)
                // Behind another proxy nobody could say which address is connected to.
                .no_proxy()
        };
        Ok(Self {
            public: client().dns_resolver(Arc::new(public)).build()?,
            private: client().build()?,
        })
    }
}

/// Why a request is not passed on.
enum Stopped {
    Here(Refusal),
    ByGateway(Box<Problem>),
}

impl From<Problem> for Stopped {
    fn from(problem: Problem) -> Self {
        Self::ByGateway(Box::new(problem))
    }
}

impl<T: Into<Refusal>> From<T> for Stopped {
    fn from(refusal: T) -> Self {
        Self::Here(refusal.into())
    }
}

impl IntoResponse for Stopped {
    fn into_response(self) -> Response {
        match self {
            Self::Here(refusal) => refusal.into_response(),
            Self::ByGateway(problem) => of_gateway(&problem),
        }
    }
}

fn of_gateway(problem: &Problem) -> Response {
    let status = StatusCode::from_u16(problem.status).unwrap_or(StatusCode::BAD_GATEWAY);
    let mut response = (status, axum::Json(problem)).into_response();
    let media = HeaderValue::from_static(PROBLEM_JSON);
    response.headers_mut().insert(header::CONTENT_TYPE, media);
    response
        .extensions_mut()
        .insert(Kind(problem.r#type.clone().into()));
    response
}

/// `/api/proxy/{key}/{path…}`: passes a request on with the key of that name.
pub(super) async fn proxy(State(server): State<Server>, asked: Asked) -> Response {
    match forward(&server, asked).await {
        Ok(response) => response,
        Err(stopped) => stopped.into_response(),
    }
}

async fn forward(server: &Server, asked: Asked) -> Result<Response, Stopped> {
    let (parts, body) = asked.into_parts();
    let (id, path) = split_path(parts.uri.path()).ok_or_else(|| Refusal::missing("address"))?;
    let at = server.now();
    let asking = Asking::of(&parts.headers, server, id, at).await?;
    // Those of a run are bounded where its worker makes them.
    let paying_member = asking.as_ref().filter(|asking| asking.run.is_none());
    let _place = paying_member
        .map(|asking| server.0.bounds.call(&asking.terms.member))
        .transpose()?;
    let paying = asking.as_ref().map(|asking| asking.paying(&parts.headers));
    let (caller, account) = paying.transpose()?.unzip();
    let (payers, limits) = account.flatten().unzip();
    let gateway = gateway(server, &parts.headers);
    // Nothing is read from whom the gate turns away anyway.
    let body = if payers.is_some() {
        read(body, gateway.max_body).await?
    } else {
        Vec::new()
    };
    let request = Request {
        method: &parts.method,
        path,
        query: parts.uri.query(),
        headers: &parts.headers,
        body: &body,
    };
    let limits: [Limits; 3] = limits.unwrap_or_default();
    let kept = asking.and_then(|asking| asking.terms.key);
    let key = kept.as_ref().map(|kept| &kept.key);
    let mut upstream = gateway.check(caller.as_ref(), key, &limits, &request)?;
    // The gate lets nobody through without a key, and nobody who pays for nothing.
    let (Some(kept), Some(payers)) = (kept, payers) else {
        return Err(Refusal::internal().into());
    };
    let secret = server.master().and_then(|master| kept.open(master).ok());
    let secret = ProviderKey::new(secret.ok_or_else(Refusal::sealed)?);
    let authenticated = upstream.authenticate(&secret);
    authenticated.map_err(|_| Refusal::sealed())?;
    let call = Call {
        server: server.clone(),
        upstream,
        kept,
        secret,
        request: Span::current(),
    };
    // From here on it goes on without the caller: what was sent is paid for, and counted to its end.
    let (tell, told) = oneshot::channel();
    server
        .calls()
        .spawn(async move { call.make(payers, limits, at, tell).await });
    told.await.unwrap_or_else(|_| Err(Refusal::internal().into()))
}

/// A request's body, up to one byte more than it may have, which tells the gate that it has too many.
async fn read(body: Body, most: usize) -> Result<Vec<u8>, Refusal> {
    let mut pieces = body.into_data_stream();
    let mut read = Vec::new();
    let whole = async {
        while let Some(piece) = pieces.next().await {
            read.extend_from_slice(&piece?);
            if read.len() > most {
                break;
            }
        }
        Ok::<_, axum::Error>(())
    };
    match tokio::time::timeout(BODY, whole).await {
        Ok(Ok(())) => Ok(read),
        Ok(Err(_)) => Err(Refusal::unreadable(
            StatusCode::BAD_REQUEST,
            "The body broke off.",
        )),
        Err(_) => Err(Refusal::unreadable(
            StatusCode::REQUEST_TIMEOUT,
            "The body took too long.",
        )),
    }
}

/// The gate as it stands before this request: a page of this server may ask, no other.
fn gateway(server: &Server, headers: &HeaderMap) -> Gateway {
    let text = |name| {
        headers
            .get(name)
            .and_then(|value: &HeaderValue| value.to_str().ok())
    };
    let origin = text(header::ORIGIN).filter(|origin| server.is_own_origin(origin, text(header::HOST)));
    Gateway {
        origins: origin.into_iter().map(str::to_owned).collect(),
        ..server.gateway().clone()
    }
}

/// A request that the gate lets through, ready to be sent.
struct Call {
    server: Server,
    upstream: UpstreamRequest,
    kept: StoredKey,
    secret: ProviderKey,
    /// The request that it is made for.
    request: Span,
}

/// What came of a call.
struct Sent {
    /// `None` where the provider was not reached, or did not end.
    status: Option<StatusCode>,
    /// Read and written.
    tokens: [u64; 2],
    cost: NanoUsd,
}

impl Sent {
    /// Nothing is known of it but what it counts as.
    fn at(cost: NanoUsd) -> Self {
        Self {
            status: None,
            tokens: [0; 2],
            cost,
        }
    }
}

/// What the caller is told as soon as it is known.
type ResponseSender = oneshot::Sender<Result<Response, Stopped>>;

impl Call {
    /// Sets aside what it may cost, sends it, passes the answer on, and settles what it did cost. The caller may go away at
    /// any time.
    async fn make(mut self, payers: ChargedTo, limits: [Limits; 3], at: Millis, tell: ResponseSender) {
        let store = self.server.store();
        let reserved = store.reserve(payers, limits, self.upstream.amount(), at);
        let aside = match reserved.await {
            Ok(Ok(aside)) => aside,
            Ok(Err(problem)) => return answer(tell, Err(problem.into())),
            Err(error) => return answer(tell, Err(error.into())),
        };
        let headers = mem::take(&mut self.upstream.headers);
        let body = mem::take(&mut self.upstream.body);
        let record = self.kept.key.record();
        let provider = record.provider.get().name;
        // A list of models is none of a model's doing.
        let span = self.upstream.operation().map_or_else(Span::none, |operation| {
            spans::call(&self.request, operation, provider, &self.upstream.model)
        });
        // A provider that answers for longer than this is no longer waited for, so that nothing stays set aside for ever.
        let sent = tokio::time::timeout(WHOLE, self.send(headers, body, tell)).await;
        let sent = sent.unwrap_or_else(|_| Sent::at(self.upstream.amount()));
        let call = telemetry::Call {
            key: &record.id,
            provider,
            status: sent.status,
            tokens: sent.tokens,
            cost: sent.cost.get(),
        };
        call.count();
        spans::ended(&span, call.status, call.tokens);
        drop(span);
        // It is tried again with the next; what stays set aside counts in full.
        if let Err(error) = self.server.store().settle(&aside, sent.cost).await {
            tracing::error!(%error, "what a request cost could not be written");
        }
    }

    fn name(&self) -> &str {
        &self.kept.key.record().id
    }

    /// Sends it and passes the answer on.
    async fn send(&self, headers: HeaderMap, body: Vec<u8>, tell: ResponseSender) -> Sent {
        let providers = self.server.providers();
        let client = if self.kept.key.record().private_host {
            &providers.private
        } else {
            &providers.public
        };
        let request = client
            .request(self.upstream.method.clone(), &self.upstream.url)
            .headers(headers)
            .body(body);
        let got = match request.send().await {
            Ok(got) => got,
            Err(error) => {
                let was_sent = !(error.is_connect() || error.is_builder());
                tracing::warn!(key = self.name(), error = %error.without_url(), "a provider was not reached");
                answer(tell, Err(Refusal::unreached().into()));
                return Sent::at(if was_sent {
                    self.upstream.amount()
                } else {
                    NanoUsd::ZERO
                });
            }
        };
        let status = got.status();
        let headers = response_headers(got.headers(), &self.secret);
        let counter = self.upstream.counter(status, got.headers());
        if let Err(problem) = check_response(status) {
            tracing::warn!(key = self.name(), %status, "a provider refused a shared key, or redirected");
            answer(tell, Err(problem.into()));
            return Sent {
                status: Some(status),
                ..Sent::at(NanoUsd::ZERO)
            };
        }
        let count = if status.is_success() {
            self.pass_on(got, (status, headers), counter, tell).await
        } else {
            self.pass_error_on(got, (status, headers), counter, tell).await
        };
        Sent {
            status: Some(status),
            tokens: [count.input, count.output],
            cost: count.cost.unwrap_or_default(),
        }
    }

    /// An error is small, and the one place where a provider may quote the key.
    async fn pass_error_on(
        &self,
        got: reqwest::Response,
        head: (StatusCode, HeaderMap),
        mut counter: Counter,
        tell: ResponseSender,
    ) -> Count {
        let mut body = Vec::new();
        let mut pieces = got.bytes_stream();
        while let Some(Ok(piece)) = pieces.next().await {
            body.extend_from_slice(&piece);
            if body.len() > MOST_ERROR {
                break;
            }
        }
        counter.feed(&body);
        let count = counter.finish();
        answer(
            tell,
            Ok((head.0, head.1, error_body(&body, &self.secret)).into_response()),
        );
        count
    }

    /// Reads an answer to its end, also when the caller has gone away: it is paid for anyway, and the provider's own count
    /// is better than an upper bound.
    async fn pass_on(
        &self,
        got: reqwest::Response,
        head: (StatusCode, HeaderMap),
        mut counter: Counter,
        tell: ResponseSender,
    ) -> Count {
        let (caller, pieces) = mpsc::channel::<Result<Bytes, io::Error>>(WAITING);
        let body = futures::stream::unfold(pieces, |mut pieces| async {
            pieces.recv().await.map(|piece| (piece, pieces))
        });
        answer(
            tell,
            Ok((head.0, head.1, Body::from_stream(body)).into_response()),
        );
        let mut caller = Some(caller);
        let mut pieces = got.bytes_stream();
        while let Some(piece) = pieces.next().await {
            let Ok(piece) = piece else {
                pass(
                    &mut caller,
                    Err(io::Error::other("the provider's answer broke off")),
                )
                .await;
                break;
            };
            match counter.feed(&piece) {
                Flow::Pass => pass(&mut caller, Ok(piece)).await,
                Flow::Stop(length) => {
                    pass(&mut caller, Ok(piece.slice(..length))).await;
                    pass(&mut caller, Ok(counter.problem().event().into())).await;
                    break;
                }
            }
        }
        counter.finish()
    }
}

/// Who has gone away needs no answer.
fn answer(tell: ResponseSender, answer: Result<Response, Stopped>) {
    let _ = tell.send(answer);
}

/// Passes a piece on, unless the caller has gone away or takes nothing for too long.
async fn pass(caller: &mut Option<mpsc::Sender<Result<Bytes, io::Error>>>, piece: Result<Bytes, io::Error>) {
    if let Some(sender) = caller {
        let taken = tokio::time::timeout(STALLED, sender.send(piece)).await;
        if !matches!(taken, Ok(Ok(()))) {
            *caller = None;
        }
    }
}
