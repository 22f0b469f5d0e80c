//! Metrics of a server: what is counted and measured for those who operate a server, as Prometheus reads it.
//!
//! Labels are routes, keys' names and words of closed sets: no member, project, run or prompt, and no secret.

use std::time::Duration;

use axum::http::{Method, StatusCode};
use metrics::{Unit, counter, describe_counter, describe_gauge, describe_histogram, gauge, histogram};
use metrics_exporter_prometheus::{Matcher, PrometheusBuilder, PrometheusHandle, PrometheusRecorder};

use crate::secret::{Secret, is_same};
use crate::store::{Store, StoreError};

const REQUESTS: &str = "capo_http_request_duration_seconds";
const REFUSALS: &str = "capo_refusals_total";
const RUNS: &str = "capo_runs";
const UNDER_WAY: &str = "capo_runs_under_way";
const ROLLOUTS: &str = "capo_rollouts_total";
const LINES: &str = "capo_journal_lines_total";
const WATCHERS: &str = "capo_watchers";
const CALLS: &str = "capo_model_calls_total";
const TOKENS: &str = "capo_model_tokens_total";
const COST: &str = "capo_model_cost_nanodollars_total";
const CONNECTIONS: &str = "capo_database_connections";

/// Bounds of the durations that are counted together, in seconds: from a page's file to a model's long answer.
const DURATIONS: [f64; 12] = [
    0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0, 60.0, 600.0,
];

/// Stages of runs, of which each is shown, with no run in it, too.
const STAGES: [&str; 5] = ["queued", "running", "paused", "ended", "failed"];

/// What is counted in this process, and who may read it.
#[derive(Clone)]
pub struct Metrics {
    handle: PrometheusHandle,
    /// Hash of the token that readers show; without one they must ask from this machine.
    token: Option<String>,
}

impl std::fmt::Debug for Metrics {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("Metrics")
    }
}

impl Metrics {
    /// Counts from now on. Who reads it shows the token, or without one asks from this machine.
    ///
    /// # Errors
    /// When something else in this process counts already.
    pub fn start(token: Option<&Secret>) -> Result<Self, String> {
        let recorder = recorder()?;
        let handle = recorder.handle();
        metrics::set_global_recorder(recorder).map_err(|error| error.to_string())?;
        Ok(Self::told(handle, token))
    }

    /// Counts what this thread does.
    #[cfg(test)]
    pub(crate) fn of_this_thread(token: Option<&Secret>) -> Self {
        let recorder: &'static _ = Box::leak(Box::new(recorder().unwrap()));
        std::mem::forget(metrics::set_default_local_recorder(recorder));
        Self::told(recorder.handle(), token)
    }

    fn told(handle: PrometheusHandle, token: Option<&Secret>) -> Self {
        describe();
        Self {
            handle,
            token: token.map(Secret::hash),
        }
    }

    /// Whether a token opens it; `None` where it takes none.
    pub(crate) fn is_opened_by(&self, shown: Option<&Secret>) -> Option<bool> {
        let token = self.token.as_ref()?;
        Some(shown.is_some_and(|shown| is_same(shown.hash().as_bytes(), token.as_bytes())))
    }

    /// Keeps what was measured from piling up while nobody reads it. To be called every few seconds or minutes.
    pub fn sum_up(&self) {
        self.handle.run_upkeep();
    }

    /// Everything, as Prometheus reads it, while so many watch runs.
    ///
    /// # Errors
    /// When the database fails.
    pub(crate) async fn render(&self, store: &Store, watching: usize) -> Result<String, StoreError> {
        // Before this itself takes one.
        for (pool, open, idle) in store.connections() {
            gauge!(CONNECTIONS, "pool" => pool, "state" => "idle").set(f64::from(idle));
            gauge!(CONNECTIONS, "pool" => pool, "state" => "used").set(f64::from(open.saturating_sub(idle)));
        }
        let by_stage = store.runs_by_stage().await?;
        for stage in STAGES {
            let count = by_stage.get(stage).copied().unwrap_or(0);
            gauge!(RUNS, "stage" => stage).set(count as f64);
        }
        gauge!(WATCHERS).set(watching as f64);
        Ok(self.handle.render())
    }
}

fn recorder() -> Result<PrometheusRecorder, String> {
    let builder = PrometheusBuilder::new().set_buckets_for_metric(Matcher::Full(REQUESTS.into()), &DURATIONS);
    let builder = builder.map_err(|error| error.to_string())?;
    Ok(builder.build_recorder())
}

fn describe() {
    describe_histogram!(REQUESTS, Unit::Seconds, "Time until an answer began.");
    describe_counter!(REFUSALS, "Refusals by the kind of problem.");
    describe_gauge!(RUNS, "Runs by stage.");
    describe_gauge!(UNDER_WAY, "Runs that this process works on.");
    describe_counter!(ROLLOUTS, "Rollouts that runs of this process have written down.");
    describe_counter!(
        LINES,
        "Lines that runs of this process have written to their journals."
    );
    describe_gauge!(WATCHERS, "Streams of events that are open.");
    describe_counter!(CALLS, "Calls to providers with shared keys.");
    describe_counter!(
        TOKENS,
        "Tokens of calls with shared keys, read and written by models."
    );
    describe_counter!(COST, "What calls with shared keys cost, in 10^-9 dollars.");
    describe_gauge!(CONNECTIONS, "Connections to the database.");
}

/// A request that was answered. What belongs to no route of the API is the page.
pub(crate) fn answered(route: Option<&str>, method: &Method, status: StatusCode, took: Duration) {
    let route = route.unwrap_or("page").to_owned();
    // Anybody can make methods up.
    let method = match *method {
        Method::GET => "GET",
        Method::HEAD => "HEAD",
        Method::POST => "POST",
        Method::PUT => "PUT",
        Method::PATCH => "PATCH",
        Method::DELETE => "DELETE",
        _ => "other",
    };
    let status = status.as_u16().to_string();
    histogram!(REQUESTS, "route" => route, "method" => method, "status" => status).record(took);
}

/// A request that was refused, by the type of its problem document.
pub(crate) fn refused(kind: &str) {
    let kind = kind.rsplit('/').next().unwrap_or_default().to_owned();
    counter!(REFUSALS, "kind" => kind).increment(1);
}

/// A call to a provider that has ended.
pub(crate) struct Call<'a> {
    /// Name of the key.
    pub(crate) key: &'a str,
    /// Whose key it is.
    pub(crate) provider: &'a str,
    /// The provider's answer; `None` when it was not reached.
    pub(crate) status: Option<StatusCode>,
    /// Tokens read and written.
    pub(crate) tokens: [u64; 2],
    /// Nanodollars.
    pub(crate) cost: u64,
}

impl Call<'_> {
    pub(crate) fn count(&self) {
        let (key, provider) = (self.key.to_owned(), self.provider.to_owned());
        let status = self.status.map(|status| status.as_u16().to_string());
        let status = status.unwrap_or_else(|| "none".into());
        let labels = [("key", key), ("provider", provider)];
        for (direction, tokens) in ["read", "written"].into_iter().zip(self.tokens) {
            let [key, provider] = labels.clone();
            let labels = [key, provider, ("direction", direction.to_owned())];
            counter!(TOKENS, &labels).increment(tokens);
        }
        counter!(COST, &labels).increment(self.cost);
        let [key, provider] = labels;
        counter!(CALLS, &[key, provider, ("status", status)]).increment(1);
    }
}

/// A run that this process works on, for as long as this lives.
pub(crate) struct UnderWay;

impl UnderWay {
    pub(crate) fn begin() -> Self {
        gauge!(UNDER_WAY).increment(1);
        Self
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        gauge!(UNDER_WAY).decrement(1);
    }
}

/// A rollout was written down.
pub(crate) fn rolled_out() {
    counter!(ROLLOUTS).increment(1);
}

/// So many lines of a journal were kept.
pub(crate) fn appended(lines: u64) {
    counter!(LINES).increment(lines);
}
