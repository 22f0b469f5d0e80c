//! A user's own agent: a rollout is done by an HTTP endpoint or a command, which answers with
//! measurements.
//!
//! [`protocol`] holds the two JSON messages; `docs/external-agents.md` is the guide, with example
//! agents in Python.

mod kind;
pub mod protocol;
mod rollout;
#[cfg(not(target_arch = "wasm32"))]
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, HashMap};
use std::rc::Rc;

use capo_core::metric::MetricSpec;
use capo_core::workload::{RolloutError, Split};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::data::{DataSettings, Example, Examples};
use crate::files::{Files, Sources};
use crate::outside::{Endpoint, NO_ANSWER, Outside, Party, Transport, usual_concurrency, usual_timeout};
use crate::settings::{BuildError, Settings, Workloads};
use crate::table::check_name;

pub use crate::outside::ExternalMetric;
pub(crate) use kind::{KIND, MAKING, settings_schema};

/// The workload's name.
const NAME: &str = "external";

/// Where the agent is, and what it measures.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ExternalSettings {
    /// Address the request is POSTed to, without a query; either this or `command`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub endpoint: Option<String>,
    /// Headers sent with each request. Not for secrets: the study is kept in the journal, and names
    /// that speak of one are refused.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, String>,
    /// Headers whose values are in environment variables: header = variable.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub headers_env: BTreeMap<String, String>,
    /// Environment variable with a token, sent as `Authorization: Bearer …`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bearer_env: Option<String>,
    /// Program and arguments, run in the study file's folder without a shell; either this or
    /// `endpoint`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<Vec<String>>,
    /// Environment variables the command gets, by name. Of all others it gets only the likes of
    /// `PATH` and `HOME`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub env: Vec<String>,
    /// Seconds one rollout may take.
    #[serde(default = "usual_timeout")]
    #[schemars(range(max = 86_400.0))]
    pub timeout: f64,
    /// How often a request that failed is tried again: 5 times unless stated, 0 for never.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retries: Option<u32>,
    /// Rollouts the agent does at a time.
    #[serde(default = "usual_concurrency")]
    #[schemars(range(min = 1))]
    pub concurrency: usize,
    /// What the agent does and what surrounds the prompt, for the rewriter.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// What the agent measures.
    #[serde(rename = "metric")]
    pub metrics: Vec<ExternalMetric>,
}

/// A user's own agent with its examples.
pub struct External {
    outside: Outside,
    specs: Vec<MetricSpec>,
    optimize: Vec<String>,
    evaluate: Vec<String>,
    examples: HashMap<String, (Split, Example)>,
    description: String,
    /// Who is asked and what is read of the answer.
    asked: String,
    fingerprint: String,
}

/// The way to the agent.
fn transport(settings: &ExternalSettings, sources: &Sources<'_>) -> Result<Transport, BuildError> {
    let transport = match (&settings.endpoint, &settings.command) {
        (Some(endpoint), None) => {
            if !settings.env.is_empty() {
                return Err(BuildError::setting(
                    "workload.env",
                    "is for `command`; for `endpoint` use headers_env",
                ));
            }
            Endpoint::read(
                &Party::Agent,
                endpoint,
                &settings.headers,
                &settings.headers_env,
                settings.bearer_env.as_deref(),
                sources,
            )
            .map(Transport::Endpoint)
        }
        (None, Some(command)) => {
            if !(settings.headers.is_empty()
                && settings.headers_env.is_empty()
                && settings.bearer_env.is_none())
            {
                return Err(BuildError::setting(
                    "workload.headers",
                    "headers are for `endpoint`; for `command` use env",
                ));
            }
            Transport::command(&Party::Agent, command, &settings.env, sources)
        }
        (Some(_), Some(_)) | (None, None) => {
            return Err(BuildError::setting(
                "workload",
                "give exactly one of `endpoint` and `command`",
            ));
        }
    };
    transport.map_err(|error| error.at("workload"))
}

/// Builds the workload of an external agent.
fn build(mut settings: Settings, files: &dyn Files, _seed: u64) -> Result<Workloads, BuildError> {
    let data: DataSettings = settings.take()?;
    let own: ExternalSettings = settings.take()?;
    settings.finish()?;

    let specs = specs(&own.metrics)?;
    let read: Vec<_> = specs
        .iter()
        .map(|spec| (&spec.name, spec.min, spec.max))
        .collect();
    let asked = json!([
        own.endpoint,
        own.headers,
        own.headers_env,
        own.command,
        own.env,
        read
    ])
    .to_string();
    let mut sources = Sources::new(files);
    let outside = Outside::new(
        Party::Agent,
        transport(&own, &sources)?,
        own.timeout,
        own.retries,
        own.concurrency,
    )
    .map_err(|error| error.at("workload"))?;
    let examples = Examples::load(&data, "workload", &mut sources)?;
    examples.refuse_overlap(|example| content(example, data.id.as_deref()))?;

    let ids = |examples: &[Example]| examples.iter().map(|example| example.id.clone()).collect();
    let (optimize, evaluate) = (ids(&examples.optimize), ids(&examples.evaluate));
    let part = |split, examples: Vec<Example>| {
        examples
            .into_iter()
            .map(move |example| (example.id.clone(), (split, example)))
    };
    let workload = External {
        outside,
        specs,
        optimize,
        evaluate,
        examples: part(Split::Optimize, examples.optimize)
            .chain(part(Split::Evaluate, examples.evaluate))
            .collect(),
        description: own.description.unwrap_or_else(|| {
            "The prompt is handed to an agent outside of Capo, which runs each example under it and reports \
             measurements."
                .to_owned()
        }),
        asked,
        fingerprint: sources.fingerprint(),
    };
    Ok(vec![Rc::new(workload)])
}

fn specs(metrics: &[ExternalMetric]) -> Result<Vec<MetricSpec>, BuildError> {
    if metrics.is_empty() {
        return Err(BuildError::setting(
            "workload.metric",
            "declare at least one [[workload.metric]]",
        ));
    }
    let mut specs = Vec::new();
    for (index, metric) in metrics.iter().enumerate() {
        let key = format!("workload.metric[{index}]");
        check_name(
            &metric.name,
            metrics[..index].iter().map(|earlier| earlier.name.as_str()),
            &key,
        )?;
        metric
            .check()
            .map_err(|problem| BuildError::setting(&key, problem))?;
        specs.push(metric.spec("external agent"));
    }
    specs.push(MetricSpec::prompt_length());
    Ok(specs)
}

/// What makes two examples the same: every column but the id.
fn content(example: &Example, id: Option<&str>) -> String {
    let fields: BTreeMap<&String, &Value> = example
        .fields
        .iter()
        .filter(|(name, _)| Some(name.as_str()) != id)
        .collect();
    serde_json::json!(fields).to_string()
}

/// Whether an endpoint gave no answer at all: nobody is there, the network is gone or, in a page, the
/// server does not let it read the answer (CORS).
pub fn is_unreached(error: &RolloutError) -> bool {
    matches!(error, RolloutError::Failed { message, .. } if message.contains(NO_ANSWER))
}
