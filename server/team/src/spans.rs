//! Spans of requests and of calls to models, for who collects traces, named as OpenTelemetry's conventions for HTTP and for
//! generative AI have it.
//!
//! They say routes, models and numbers: no contents, and no key, member, project or run.

use axum::extract::{MatchedPath, Request};
use axum::http::StatusCode;
use axum::middleware::Next;
use axum::response::Response;
use capo_api::REWRITER;
use capo_models::ProviderName;
use tracing::field::Empty;
use tracing::{Instrument as _, Span, info_span};

/// The target by which these spans are told from all else that is said.
pub const SPANS: &str = "capo::spans";

/// The provider of the models that the server has itself.
const ITSELF: &str = "capo";

/// A request, until its answer began.
pub(crate) async fn traced(request: Request, next: Next) -> Response {
    let (method, route) = (request.method(), request.extensions().get::<MatchedPath>());
    let route = route.map_or("page", MatchedPath::as_str);
    let span = info_span!(
        target: SPANS,
        "request",
        otel.name = format!("{method} {route}"),
        otel.kind = "server",
        http.request.method = method.as_str(),
        http.route = route,
        http.response.status_code = Empty,
        otel.status_code = Empty,
    );
    let response = next.run(request).instrument(span.clone()).await;
    let status = response.status();
    span.record("http.response.status_code", i64::from(status.as_u16()));
    if status.is_server_error() {
        span.record("otel.status_code", "ERROR");
    }
    response
}

/// A call to a model, which `operation` names as the conventions do, on behalf of a request.
pub(crate) fn call(request: &Span, operation: &'static str, provider: &str, model: &str) -> Span {
    info_span!(
        target: SPANS,
        parent: request,
        "call",
        otel.name = format!("{operation} {model}"),
        otel.kind = if provider == ITSELF { "internal" } else { "client" },
        gen_ai.operation.name = operation,
        gen_ai.provider.name = well_known(provider),
        gen_ai.request.model = model,
        gen_ai.usage.input_tokens = Empty,
        gen_ai.usage.output_tokens = Empty,
        http.response.status_code = Empty,
        error.r#type = Empty,
        otel.status_code = Empty,
    )
}

/// A call to a model that the server has itself, on behalf of the request that is answered. What trainings came to has one name.
pub fn call_here(model: &str) -> Span {
    let model = if model.starts_with(REWRITER) {
        "training"
    } else {
        model
    };
    call(&Span::current(), "chat", ITSELF, model)
}

/// Says of a call how it ended: with what status, if any came, and tokens read and written.
pub fn ended(span: &Span, status: Option<StatusCode>, tokens: [u64; 2]) {
    let [read, written] = tokens.map(|tokens| i64::try_from(tokens).unwrap_or(i64::MAX));
    span.record("gen_ai.usage.input_tokens", read);
    span.record("gen_ai.usage.output_tokens", written);
    let error = match status {
        Some(status) => {
            span.record("http.response.status_code", i64::from(status.as_u16()));
            (!status.is_success()).then(|| status.as_str().to_owned())
        }
        None => Some("unreached".to_owned()),
    };
    if let Some(error) = error {
        span.record("error.type", error);
        span.record("otel.status_code", "ERROR");
    }
}

/// A provider as the conventions name it.
fn well_known(provider: &str) -> &str {
    ProviderName::find(provider).map_or(provider, |found| found.get().telemetry_name)
}
