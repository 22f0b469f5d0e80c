//! Models asked with a shared key, which the caller never sees.

use capo_api::Role;
use capo_gateway::{Caller as Asker, Membership, PROJECT, Request as Asked, split_path};
use futures::channel::oneshot;
use http::HeaderMap;
use worker::{Context, Env, Request, Response};

use crate::body;
use crate::call::Call;
use crate::caller::Caller;
use crate::configuration::{Configuration, Key, Member};
use crate::refusal::Refusal;
use crate::runtime::plain;

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
    let known = Caller::known(&configuration, &headers, &url)?;
    if let Some(known) = known {
        known.may_change(&headers, &url)?;
    }
    let key = configuration.key(id);
    let (caller, payer) = match (known, key) {
        (Some(known), Some(key)) => match paying(known.member, key, &headers)? {
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
        headers: &headers,
        body: &body,
    };
    let origins = vec![url.origin().ascii_serialization()];
    let call = Call::admit(env, &configuration, origins, caller, payer, key, &asked)?;
    // From here on it goes on without the caller, for as long as the runtime lets it: what was sent is paid for.
    let (tell, told) = oneshot::channel();
    context.wait_until(call.make(tell));
    told.await.unwrap_or_else(|_| Err(Refusal::unreached()))
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
