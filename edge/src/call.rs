//! A call to a model with a shared key: let through by the gate, set aside, sent, counted, settled.

use std::pin::pin;
use std::sync::{Arc, LazyLock};

use capo_gateway::{
    Caller, Count, Counter, Flow, Gateway, Limits, NanoUsd, Request, Scope, UpstreamRequest, check_response,
    error_body, response_headers,
};
use capo_models::Secret;
use capo_models::prices::PriceTable;
use futures::channel::{mpsc, oneshot};
use futures::future::{Either, select};
use futures::{SinkExt as _, StreamExt as _};
use http::{HeaderMap, StatusCode};
use worker::js_sys::Uint8Array;
use worker::{
    AbortController, AbortSignal, Delay, Env, Fetch, Headers, RequestInit, RequestRedirect, Response,
    console_error,
};

use crate::configuration::{Configuration, Key, Member};
use crate::ledger::{Ledger, Subject, WHOLE};
use crate::refusal::Refusal;
use crate::runtime::plain;

/// Bytes of a provider's error that are read, at most.
const MOST_ERROR: usize = 1 << 20;

/// Pieces of an answer that wait for a slow caller.
const WAITING: usize = 16;

/// What tokens cost.
pub(crate) static PRICES: LazyLock<Arc<PriceTable>> = LazyLock::new(|| Arc::new(PriceTable::shipped()));

/// A request that the gate lets through, ready to be sent.
pub(crate) struct Call {
    ledger: Ledger,
    /// What it counts towards.
    accounts: Vec<(Subject, Limits)>,
    upstream: UpstreamRequest,
    secret: Secret,
}

/// What the caller is told as soon as it is known.
pub(crate) type ResponseSender = oneshot::Sender<Result<Response, Refusal>>;

/// Pieces of an answer, on their way to the caller.
type Pieces = mpsc::Sender<worker::Result<Vec<u8>>>;

impl Call {
    /// Has the gate decide whether pages of these origins, or programs, may ask so: `caller` as it sees them, and who pays
    /// where anybody does.
    ///
    /// # Errors
    /// Why not.
    pub(crate) fn check(
        env: &Env,
        configuration: &Configuration,
        origins: Vec<String>,
        caller: Option<Caller>,
        payer: Option<(&str, &Member)>,
        key: Option<&Key>,
        asked: &Request<'_>,
    ) -> Result<Self, Refusal> {
        let gateway = Gateway {
            origins,
            prices: PRICES.clone(),
            max_body: configuration.max_body,
        };
        let limits = match (&caller, payer, key) {
            (Some(caller), Some((_, member)), Some(key)) => {
                configuration.limits(member, &caller.project, key)
            }
            _ => [Limits::default(); 3],
        };
        let mut upstream = gateway.check(caller.as_ref(), key.map(|key| &key.shared), &limits, asked)?;
        // The gate lets nobody through without a key, and nobody who pays for nothing.
        let (Some(caller), Some((name, _)), Some(key)) = (caller, payer, key) else {
            return Err(Refusal::missing());
        };
        let id = &key.shared.record().id;
        let secret = key
            .secret(env)
            .filter(|secret| upstream.authenticate(secret).is_ok());
        let secret = secret.ok_or_else(|| {
            console_error!(
                "the secret {} of the key {id} is missing, or no header can hold it",
                key.secret_name()
            );
            Refusal::misconfigured()
        })?;
        let subjects: [Subject; 3] = [
            (Scope::Member, name.to_owned()),
            (Scope::Project, caller.project),
            (Scope::Key, id.clone()),
        ];
        Ok(Self {
            ledger: Ledger::of(env)?,
            accounts: subjects.into_iter().zip(limits).collect(),
            upstream,
            secret,
        })
    }

    /// Sets aside what it may cost, sends it, passes the answer on, and settles what it did cost. The caller may go away at
    /// any time. It is counted with the network that it comes from; those of runs are bounded where they are made.
    pub(crate) async fn make(mut self, network: Option<String>, tell: ResponseSender) {
        let accounts = std::mem::take(&mut self.accounts);
        let reserved = self.ledger.reserve(accounts, self.upstream.amount(), network);
        let reservation = match reserved.await {
            Ok(reservation) => reservation,
            Err(refusal) => return answer(tell, Err(refusal)),
        };
        let abort = AbortController::default();
        let cost = {
            let (sent, over) = (pin!(self.send(tell, abort.signal())), pin!(Delay::from(WHOLE)));
            match select(sent, over).await {
                Either::Left((cost, _)) => cost,
                Either::Right(_) => self.upstream.amount(),
            }
        };
        // Else a provider that never ends keeps one of the runtime's few connections.
        abort.abort();
        // What stays set aside when this fails is settled at its full amount later.
        if let Err(error) = self.ledger.settle(reservation, cost).await {
            console_error!("what a request cost could not be written: {error}");
        }
    }

    /// Sends it and passes the answer on; returns what it did cost.
    async fn send(&self, tell: ResponseSender, signal: AbortSignal) -> NanoUsd {
        let got = match self.fetch(&signal).await {
            Ok(got) => got,
            Err(error) => {
                console_error!("a provider was not reached: {error}");
                answer(tell, Err(Refusal::unreached()));
                // The runtime does not say whether anything was sent.
                return self.upstream.amount();
            }
        };
        let Ok(status) = StatusCode::from_u16(got.status_code()) else {
            answer(tell, Err(Refusal::unreached()));
            return self.upstream.amount();
        };
        if let Err(problem) = check_response(status) {
            console_error!("a provider refused a shared key, or redirected ({status})");
            answer(tell, Err(problem.into()));
            return NanoUsd::ZERO;
        }
        let headers = plain(got.headers());
        let counter = self.upstream.counter(status, &headers);
        let passed = response_headers(&headers, &self.secret);
        let builder = Response::builder()
            .with_status(status.as_u16())
            .with_headers(written(&passed));
        let count = if status.is_success() {
            let (caller, pieces) = mpsc::channel(WAITING);
            answer(tell, builder.from_stream(pieces).map_err(Refusal::from));
            pass_on(got, counter, caller).await
        } else {
            let (body, count) = read_error(got, counter).await;
            answer(
                tell,
                Ok(builder.fixed(error_body(&body, &self.secret).into_bytes())),
            );
            count
        };
        count.cost.unwrap_or_default()
    }

    async fn fetch(&self, signal: &AbortSignal) -> worker::Result<Response> {
        let UpstreamRequest {
            method,
            url,
            headers,
            body,
            ..
        } = &self.upstream;
        let mut init = RequestInit::new();
        init.with_method(method.as_str().to_owned().into())
            .with_headers(written(headers))
            // The gate refuses them all.
            .with_redirect(RequestRedirect::Manual);
        if !body.is_empty() {
            init.with_body(Some(Uint8Array::from(body.as_slice()).into()));
        }
        Fetch::Request(worker::Request::new_with_init(url, &init)?)
            .send_with_signal(signal)
            .await
    }
}

/// An error is small, and the one place where a provider may quote the key.
async fn read_error(mut got: Response, mut counter: Counter) -> (Vec<u8>, Count) {
    let mut body = Vec::new();
    if let Ok(mut pieces) = got.stream() {
        while let Some(Ok(piece)) = pieces.next().await {
            body.extend(piece);
            if body.len() > MOST_ERROR {
                break;
            }
        }
    }
    counter.feed(&body);
    (body, counter.finish())
}

/// Reads an answer to its end, also when the caller has gone away: it is paid for anyway, and the provider's own count is
/// better than an upper bound.
async fn pass_on(mut got: Response, mut counter: Counter, caller: Pieces) -> Count {
    let mut caller = Some(caller);
    // Without a body there is nothing to pass on.
    let Ok(mut pieces) = got.stream() else {
        return counter.finish();
    };
    while let Some(piece) = pieces.next().await {
        let mut piece = match piece {
            Ok(piece) => piece,
            Err(error) => {
                pass(&mut caller, Err(error)).await;
                break;
            }
        };
        match counter.feed(&piece) {
            Flow::Pass => pass(&mut caller, Ok(piece)).await,
            Flow::Stop(length) => {
                piece.truncate(length);
                pass(&mut caller, Ok(piece)).await;
                pass(&mut caller, Ok(counter.problem().event().into_bytes())).await;
                break;
            }
        }
    }
    counter.finish()
}

/// Passes a piece on, unless the caller has gone away.
async fn pass(caller: &mut Option<Pieces>, piece: worker::Result<Vec<u8>>) {
    if let Some(sender) = caller
        && sender.send(piece).await.is_err()
    {
        *caller = None;
    }
}

/// Who has gone away needs no answer.
fn answer(tell: ResponseSender, answer: Result<Response, Refusal>) {
    let _ = tell.send(answer);
}

/// Headers as the runtime takes them.
fn written(headers: &HeaderMap) -> Headers {
    let pairs = headers.iter();
    pairs
        .filter_map(|(name, value)| Some((name.as_str(), value.to_str().ok()?)))
        .collect()
}
