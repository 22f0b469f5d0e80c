//! The page and the key gate on Cloudflare's runtime, for a team without a server: the adapter of `gateway/` that
//! `docs/edge.md` describes.
#![cfg(target_arch = "wasm32")]

mod configuration;
mod ledger;
mod proxy;
mod refusal;
mod runtime;

use capo_api::{About, LimitScope, Myself, UsageShown};
use capo_gateway::{PAGE_HEADERS, Scope, token};
use http::HeaderMap;
use worker::js_sys::Date as Calendar;
use worker::{Context, Env, Request, Response, console_error, event};

use configuration::Configuration;
use ledger::{Ledger, MILLISECONDS_OF_A_DAY};
use refusal::Refusal;
use runtime::plain;

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

async fn answer(request: Request, env: &Env, context: &Context) -> Result<Response, Refusal> {
    let configuration = Configuration::read(env).map_err(|error| {
        console_error!("the variable {error}");
        Refusal::misconfigured()
    })?;
    let path = request.path();
    if path.starts_with("/api/proxy/") {
        return proxy::proxy(request, env, context, configuration).await;
    }
    let headers = plain(request.headers());
    match (request.inner().method().as_str(), path.as_str()) {
        ("GET" | "HEAD", "/healthz") => Ok(Response::ok("ok\n")?),
        ("GET", "/api") => Ok(Response::from_json(&about(&configuration, &headers))?),
        ("GET", "/api/usage") => usage(&request, env, &configuration, &headers).await,
        (_, "/healthz" | "/api" | "/api/usage") => Err(Refusal::method()),
        _ => Err(Refusal::missing()),
    }
}

/// What this is, and whose token came along.
fn about(configuration: &Configuration, headers: &HeaderMap) -> About {
    let member = token(headers).and_then(|token| configuration.member(token));
    About {
        version: env!("CARGO_PKG_VERSION").into(),
        is_set_up: true,
        oidc: None,
        has_accounts: false,
        member: member.map(|(name, member)| Myself {
            name: name.to_owned(),
            is_admin: member.is_admin,
            has_password: false,
        }),
    }
}

/// What members, projects and keys have used in the last days, for administrators.
async fn usage(
    request: &Request,
    env: &Env,
    configuration: &Configuration,
    headers: &HeaderMap,
) -> Result<Response, Refusal> {
    let member = token(headers).and_then(|token| configuration.member(token));
    let (_, member) = member.ok_or_else(Refusal::unknown_token)?;
    if !member.is_admin {
        return Err(Refusal::forbidden());
    }
    let url = request.url()?;
    let days = url.query_pairs().find(|(name, _)| name == "days");
    let days: u64 = days.and_then(|(_, days)| days.parse().ok()).unwrap_or(30);
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
    let moment = Calendar::new(&((day * MILLISECONDS_OF_A_DAY) as f64).into());
    let mut text = String::from(moment.to_iso_string());
    text.truncate("2026-11-26".len());
    text
}
