//! The page, the key gate and runs on Cloudflare's runtime, for a team without a server, as `docs/edge.md` describes it.
#![cfg(target_arch = "wasm32")]

mod body;
mod call;
mod caller;
mod configuration;
mod ledger;
mod notify;
mod object;
mod places;
mod project;
mod proxy;
mod refusal;
mod run;
mod runs;
mod runtime;

use capo_api::{About, LimitScope, UsageShown};
use capo_gateway::{PAGE_HEADERS, Scope};
use worker::js_sys::decode_uri_component;
use worker::{Context, Env, Request, Response, Url, console_error, event};

use body::document;
use caller::{Caller, counted, network, sign_in, sign_out};
use configuration::Configuration;
use ledger::{Ledger, MILLISECONDS_OF_A_DAY};
use refusal::Refusal;
use runtime::{moment, plain, query};

/// Answers a request, always with what keeps browsers from doing more with it than it is for.
#[event(fetch)]
async fn fetch(request: Request, env: Env, context: Context) -> worker::Result<Response> {
    let url = request.url()?;
    let path = url.path();
    let is_page = path != "/healthz" && path != "/api" && !path.starts_with("/api/");
    let is_encrypted = url.scheme() == "https";
    let answered = if is_page {
        let page = env.assets("ASSETS")?;
        page.fetch_request(request).await.map_err(Refusal::from)
    } else {
        answer(request, &env, &context).await
    };
    let response = answered.or_else(Refusal::into_response)?;
    // Those of a page cannot be changed.
    let headers = response.headers().clone();
    for (name, value) in PAGE_HEADERS {
        headers.set(name, value)?;
    }
    if is_page {
        // The page states the rest of its policy itself; by what it may be framed, browsers take from a header only.
        headers.set("content-security-policy", "frame-ancestors 'none'")?;
    } else {
        headers.set(
            "content-security-policy",
            "default-src 'none'; frame-ancestors 'none'",
        )?;
        headers.set("cache-control", "no-store")?;
    }
    if is_encrypted {
        headers.set("strict-transport-security", "max-age=63072000")?;
    }
    Ok(response.with_headers(headers))
}

async fn answer(mut request: Request, env: &Env, context: &Context) -> Result<Response, Refusal> {
    let configuration = Configuration::read(env).map_err(|error| {
        console_error!("the variable {error}");
        Refusal::misconfigured()
    })?;
    let path = request.path();
    if path.starts_with("/api/proxy/") {
        return proxy::proxy(request, env, context, configuration).await;
    }
    let (headers, url) = (plain(request.headers()), request.url()?);
    let method = request.inner().method();
    if path != "/healthz" {
        let network = network(&headers);
        let caller = counted(&headers, &url, &network);
        Ledger::count(env, &configuration, network, Some(caller)).await?;
    }
    match (method.as_str(), path.as_str()) {
        ("GET" | "HEAD", "/healthz") => return Ok(Response::ok("ok\n")?),
        ("GET", "/api") => {
            let caller = Caller::known(&configuration, &headers, &url);
            return Ok(Response::from_json(&about(caller.ok().flatten()))?);
        }
        ("POST", "/api/session") => {
            let credentials = document(&mut request).await?;
            return sign_in(&configuration, &headers, &url, &credentials);
        }
        (_, "/healthz" | "/api") => return Err(Refusal::method()),
        _ => {}
    }
    let caller = Caller::of(&configuration, &headers, &url, &method)?;
    match (method.as_str(), path.as_str()) {
        ("GET", "/api/usage") => usage(env, caller, &url).await,
        ("DELETE", "/api/session") => sign_out(&url),
        (_, "/api/usage" | "/api/session") => Err(Refusal::method()),
        _ => {
            let parts = path.trim_start_matches("/api/").split('/');
            let parts: Result<Vec<String>, _> = parts
                .map(|part| decode_uri_component(part).map(String::from))
                .collect();
            let parts = parts.map_err(|_| Refusal::missing())?;
            let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
            runs::answer(request, env, &configuration, caller, &parts).await
        }
    }
}

/// What this is, and who asks.
fn about(caller: Option<Caller<'_>>) -> About {
    About {
        version: env!("CARGO_PKG_VERSION").into(),
        is_set_up: true,
        oidc: None,
        has_accounts: false,
        member: caller.map(Caller::myself),
    }
}

/// What members, projects and keys have used in the last days, for administrators.
async fn usage(env: &Env, caller: Caller<'_>, url: &Url) -> Result<Response, Refusal> {
    if !caller.member.is_admin {
        return Err(Refusal::forbidden("This takes an administrator."));
    }
    let days: u64 = query(url, "days")?.unwrap_or(30);
    let used = Ledger::of(env)?.used_in(days.clamp(1, 366)).await?;
    let shown = used.into_iter().map(|used| UsageShown {
        scope: match used.scope {
            Scope::Member => LimitScope::Member,
            Scope::Project => LimitScope::Project,
            Scope::Key => LimitScope::Key,
        },
        name: used.subject,
        day: written(used.day),
        usd: used.consumption.used.usd(),
        reserved_usd: used.consumption.reserved.usd(),
        requests: used.consumption.requests,
    });
    Ok(Response::from_json(&shown.collect::<Vec<_>>())?)
}

/// A day as `2026-11-26`.
fn written(day: u64) -> String {
    let mut text = moment(day * MILLISECONDS_OF_A_DAY);
    text.truncate("2026-11-26".len());
    text
}
