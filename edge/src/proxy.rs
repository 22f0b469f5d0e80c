//! Models asked with a shared key, which the caller never sees.

use std::sync::{Arc, LazyLock};

use capo_api::Role;
use capo_gateway::{
    Caller, Count, Counter, Flow, Gateway, Limits, Membership, NanoUsd, PROJECT, Request as Asked, Scope,
    UpstreamRequest, check_response, error_body, response_headers, split_path, token,
};
use capo_models::Secret;
use capo_models::prices::PriceTable;
use futures::channel::{mpsc, oneshot};
use futures::{SinkExt as _, StreamExt as _};
use http::{HeaderMap, StatusCode};
use worker::js_sys::Uint8Array;
use worker::{Context, Env, Fetch, Headers, Request, RequestInit, RequestRedirect, Response, console_error};

use crate::configuration::{Configuration, Key, Member};
use crate::ledger::{Ledger, Subject};
use crate::refusal::Refusal;
use crate::runtime::plain;

/// Bytes of a provider's error that are read, at most.
const MOST_ERROR: usize = 1 << 20;

/// Pieces of an answer that wait for a slow caller.
const WAITING: usize = 16;

static PRICES: LazyLock<Arc<PriceTable>> = LazyLock::new(|| Arc::new(PriceTable::shipped()));

/// `/api/proxy/{key}/{path…}`: passes a request on with the key of that name.
pub(crate) async fn proxy(
    mut request: Request,
    env: &Env,
    context: &Context,
    configuration: Configuration,
) -> Result<Response, Refusal> {
    let url = request.url()?;
    let (id, path) = split_path(url.path()).ok_or_else(Refusal::missing)?;
    let headers = plain(request.headers());
    let method = request.inner().method().parse().map_err(|_| Refusal::method())?;
    let sent = token(&headers);
    let known = sent.and_then(|token| configuration.member(token));
    if sent.is_some() && known.is_none() {
        return Err(Refusal::unknown_token());
    }
    let key = configuration.key(id);
    let (caller, payer) = match (known, key) {
        (Some((name, member)), Some(key)) => match paying(member, key, &headers)? {
            Some(caller) => (Some(caller), Some((name, member, key))),
            None => (Some(Caller::without_project()), None),
        },
        (Some(_), None) => (Some(Caller::without_project()), None),
        (None, _) => (None, None),
    };
    let mut limits = [Limits::default(); 3];
    // Nothing is read from whom the gate turns away anyway.
    let mut body = Vec::new();
    if let (Some(caller), Some((_, member, key))) = (&caller, payer) {
        limits = configuration.limits(member, &caller.project, key);
        body = read(&mut request, configuration.max_body).await?;
    }
    let gateway = Gateway {
        origins: vec![url.origin().ascii_serialization()],
        prices: PRICES.clone(),
        max_body: configuration.max_body,
    };
    let asked = Asked {
        method: &method,
        path,
        query: url.query(),
        headers: &headers,
        body: &body,
    };
    let mut upstream = gateway.check(caller.as_ref(), key.map(|key| &key.shared), &limits, &asked)?;
    // The gate admits nobody without a key, and nobody who pays for nothing.
    let (Some(caller), Some((name, _, key))) = (caller, payer) else {
        return Err(Refusal::missing());
    };
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
        (Scope::Key, id.to_owned()),
    ];
    let call = Call {
        ledger: Ledger::of(env)?,
        upstream,
        secret,
    };
    // From here on it goes on without the caller, for as long as the runtime lets it: what was sent is paid for.
    let (tell, told) = oneshot::channel();
    let accounts = subjects.into_iter().zip(limits).collect();
    context.wait_until(call.make(accounts, tell));
    told.await.unwrap_or_else(|_| Err(Refusal::unreached()))
}

/// On whose account a member asks, see [`Caller::paying`].
fn paying(member: &Member, key: &Key, headers: &HeaderMap) -> Result<Option<Caller>, Refusal> {
    let memberships = member.projects.iter().map(|(name, role)| Membership {
        id: name,
        name,
        may_run: *role >= Role::Editor,
    });
    let named = headers.get(PROJECT).and_then(|name| name.to_str().ok());
    Ok(Caller::paying(memberships, &key.shared, named)?)
}

/// A request's body, up to one piece more than it may have, which tells the gate that it has too much.
async fn read(request: &mut Request, most: usize) -> Result<Vec<u8>, Refusal> {
    let mut read = Vec::new();
    if request.inner().body().is_none() {
        return Ok(read);
    }
    let mut pieces = request.stream()?;
    while let Some(piece) = pieces.next().await {
        read.extend(piece.map_err(|_| Refusal::unreadable())?);
        if read.len() > most {
            break;
        }
    }
    Ok(read)
}

/// A request that the gate admits, ready to be sent.
struct Call {
    ledger: Ledger,
    upstream: UpstreamRequest,
    secret: Secret,
}

/// What the caller is told as soon as it is known.
type Tell = oneshot::Sender<Result<Response, Refusal>>;

/// Pieces of an answer, on their way to the caller.
type Pieces = mpsc::Sender<worker::Result<Vec<u8>>>;

impl Call {
    /// Sets aside what it may cost, sends it, passes the answer on, and settles what it did cost. The caller may go away at
    /// any time.
    async fn make(self, accounts: Vec<(Subject, Limits)>, tell: Tell) {
        let reservation = match self.ledger.reserve(accounts, self.upstream.amount()).await {
            Ok(reservation) => reservation,
            Err(refusal) => return answer(tell, Err(refusal)),
        };
        let cost = self.send(tell).await;
        // What stays set aside when this fails is settled at its full amount later.
        if let Err(error) = self.ledger.settle(reservation, cost).await {
            console_error!("what a request cost could not be written: {error}");
        }
    }

    /// Sends it and passes the answer on; returns what it did cost.
    async fn send(&self, tell: Tell) -> NanoUsd {
        let got = match self.fetch().await {
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

    async fn fetch(&self) -> worker::Result<Response> {
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
        Fetch::Request(Request::new_with_init(url, &init)?).send().await
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
fn answer(tell: Tell, answer: Result<Response, Refusal>) {
    let _ = tell.send(answer);
}

/// Headers as the runtime takes them.
fn written(headers: &HeaderMap) -> Headers {
    let pairs = headers.iter();
    pairs
        .filter_map(|(name, value)| Some((name.as_str(), value.to_str().ok()?)))
        .collect()
}
