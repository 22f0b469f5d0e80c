//! Models asked with a shared key, which the caller never sees.

use capo_api::Role;
use capo_gateway::{Caller as Asker, Membership, PROJECT, Request as Asked, split_path};
use futures::channel::oneshot;
use http::HeaderMap;
use worker::{Context, Env, Request, Response};

use crate::body;
use crate::call::Call;
use crate::caller::{Caller, network};
use crate::configuration::{Configuration, Key, Member};
use crate::ledger::Ledger;
use crate::refusal::Refusal;
use crate::runtime::plain;

/// `/api/proxy/{key}/{path…}`: passes a request on with the key of that name.
pub(crate) async fn proxy(
    request: Request,
    env: &Env,
    context: &Context,
    configuration: Configuration,
) -> Result<Response, Refusal> {
    let headers = plain(request.headers());
    let network = network(&headers);
    let call = match check(request, env, &configuration, &headers).await {
        Ok(call) => call,
        Err(refusal) => {
            // Those that are let through are counted when something is set aside for them.
            Ledger::count(env, &configuration, network, None).await?;
            return Err(refusal);
        }
    };
    // From here on it goes on without the caller, for as long as the runtime lets it: what was sent is paid for.
    let (tell, told) = oneshot::channel();
    context.wait_until(call.make(Some(network), tell));
    told.await.unwrap_or_else(|_| Err(Refusal::unreached()))
}

/// Reads a request, and has the gate decide.
async fn check(
    mut request: Request,
    env: &Env,
    configuration: &Configuration,
    headers: &HeaderMap,
) -> Result<Call, Refusal> {
    let url = request.url()?;
    let (id, path) = split_path(url.path()).ok_or_else(Refusal::missing)?;
    let method = request.inner().method().parse().map_err(|_| Refusal::method())?;
    let known = Caller::known(configuration, headers, &url)?;
    if let Some(known) = known {
        known.may_change(headers, &url)?;
    }
    let key = configuration.key(id);
    let (caller, payer) = match (known, key) {
        (Some(known), Some(key)) => match paying(known.member, key, headers)? {
            Some(caller) => (Some(caller), Some((known.name, known.member))),
            None => (Some(Asker::without_project()), None),
        },
        (Some(_), None) => (Some(Asker::without_project()), None),
        (None, _) => (None, None),
    };
    // Nothing is read from whom the gate turns away anyway.
    let body = if payer.is_some() {
        body::read(&mut request, configuration.max_body).await?
    } else {
        Vec::new()
    };
    let asked = Asked {
        method: &method,
        path,
        query: url.query(),
        headers,
        body: &body,
    };
    let origins = vec![url.origin().ascii_serialization()];
    Call::check(env, configuration, origins, caller, payer, key, &asked)
}

/// On whose account a member asks, see [`Caller::paying`].
fn paying(member: &Member, key: &Key, headers: &HeaderMap) -> Result<Option<Asker>, Refusal> {
    let memberships = member.projects.iter().map(|(name, role)| Membership {
        id: name,
        name,
        may_run: *role >= Role::Editor,
    });
    let named = headers.get(PROJECT).and_then(|name| name.to_str().ok());
    Ok(Asker::paying(memberships, &key.shared, named)?)
}
