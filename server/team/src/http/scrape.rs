//! Metrics for Prometheus: what is counted, for who operates the server.

use std::net::{IpAddr, SocketAddr};
use std::time::Instant;

use axum::extract::{ConnectInfo, MatchedPath, Request, State};
use axum::http::uri::Authority;
use axum::http::{HeaderMap, HeaderValue, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use capo_gateway::bearer;

use super::Server;
use super::problem::{Kind, Refusal};
use crate::secret::Secret;
use crate::telemetry;

/// What proxies add to a request: then it comes from elsewhere, whoever connects.
const FORWARDED: [&str; 4] = ["forwarded", "x-forwarded-for", "x-real-ip", "via"];

/// `/metrics`: for who shows the token or, where none was named, asks from this machine and through no proxy.
pub(super) async fn scrape(State(server): State<Server>, request: Request) -> Result<Response, Refusal> {
    let Some(metrics) = &server.0.metrics else {
        return Err(Refusal::missing("address"));
    };
    let headers = request.headers();
    match metrics.is_opened_by(bearer(headers).map(Secret::presented).as_ref()) {
        Some(true) => {}
        Some(false) => return Err(Refusal::unknown_token()),
        None if is_near(request.extensions().get(), headers) => {}
        None => {
            return Err(Refusal::forbidden(
                "Without --metrics-token-file only programs on the server's machine may read this, at localhost.",
            ));
        }
    }
    let text = metrics.render(server.store(), server.watching()).await?;
    Ok(([(header::CONTENT_TYPE, "text/plain; version=0.0.4")], text).into_response())
}

fn is_near(peer: Option<&ConnectInfo<SocketAddr>>, headers: &HeaderMap) -> bool {
    peer.is_some_and(|ConnectInfo(peer)| peer.ip().to_canonical().is_loopback())
        && !FORWARDED.iter().any(|name| headers.contains_key(*name))
        && headers.get(header::HOST).is_none_or(names_this_machine)
}

/// Whether a request was sent to this machine by name, and not to one that a page has had lead here or a proxy stands for.
fn names_this_machine(host: &HeaderValue) -> bool {
    let host = host.to_str().ok().and_then(|host| host.parse::<Authority>().ok());
    host.is_some_and(|host| {
        let name = host.host().trim_matches(['[', ']']);
        name.eq_ignore_ascii_case("localhost")
            || name.parse().is_ok_and(|address: IpAddr| address.is_loopback())
    })
}

/// Counts answers and refusals.
pub(super) async fn counted(request: Request, next: Next) -> Response {
    let began = Instant::now();
    let method = request.method().clone();
    let route = request.extensions().get::<MatchedPath>().cloned();
    let response = next.run(request).await;
    let route = route.as_ref().map(MatchedPath::as_str);
    telemetry::answered(route, &method, response.status(), began.elapsed());
    if let Some(Kind(kind)) = response.extensions().get() {
        telemetry::refused(kind);
    }
    response
}
