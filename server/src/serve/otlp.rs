//! Traces for a collector, by OTLP over HTTP.

use std::time::Duration;

use capo_team::spans::SPANS;
use opentelemetry::trace::TracerProvider as _;
use opentelemetry_otlp::{SpanExporter, WithExportConfig as _};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::trace::SdkTracerProvider;
use tracing::Subscriber;
use tracing_subscriber::Layer;
use tracing_subscriber::filter::filter_fn;
use tracing_subscriber::registry::LookupSpan;

/// How long a collector may take, and how long the last spans are waited for at the end.
const PATIENCE: Duration = Duration::from_secs(5);

/// What sends spans to a collector, some seconds' worth at a time. One that is down loses them, and the server goes on.
#[derive(Debug)]
pub(crate) struct Traces(SdkTracerProvider);

impl Traces {
    /// Sends from now on to the collector at this address, to which `/v1/traces` is added.
    ///
    /// # Errors
    /// When the address is none, or has a password in it.
    pub(crate) fn to(collector: &str) -> Result<Self, String> {
        let said = "the address of the collector is that of an HTTP server, such as http://127.0.0.1:4318";
        let rest = collector
            .strip_prefix("https://")
            .or_else(|| collector.strip_prefix("http://"));
        let host = rest.and_then(|rest| rest.split('/').next()).unwrap_or_default();
        if host.is_empty() || collector.contains(['?', '#', ' ']) {
            return Err(said.into());
        }
        if host.contains('@') {
            return Err(format!(
                "{said}; what it is to be shown stands in the variable OTEL_EXPORTER_OTLP_HEADERS"
            ));
        }
        let exporter = SpanExporter::builder()
            .with_http()
            .with_endpoint(format!("{}/v1/traces", collector.trim_end_matches('/')))
            .with_timeout(PATIENCE)
            .build();
        let exporter = exporter.map_err(|error| format!("{said}: {error}"))?;
        let resource = Resource::builder()
            .with_service_name("capo")
            .with_attribute(opentelemetry::KeyValue::new(
                "service.version",
                env!("CARGO_PKG_VERSION"),
            ))
            .build();
        let provider = SdkTracerProvider::builder()
            .with_batch_exporter(exporter)
            .with_resource(resource)
            .build();
        Ok(Self(provider))
    }

    /// What hears of the spans of requests and calls, and of nothing else.
    pub(crate) fn layer<S>(&self) -> impl Layer<S> + use<S>
    where
        S: Subscriber + for<'span> LookupSpan<'span>,
    {
        tracing_opentelemetry::layer()
            .with_tracer(self.0.tracer("capo"))
            .with_location(false)
            .with_threads(false)
            .with_target(false)
            .with_tracked_inactivity(false)
            .with_filter(filter_fn(|about| about.is_span() && about.target() == SPANS))
    }

    /// Sends what is left.
    pub(crate) fn end(self) {
        if let Err(error) = self.0.shutdown_with_timeout(PATIENCE) {
            tracing::warn!(%error, "the last spans did not reach the collector");
        }
    }
}
