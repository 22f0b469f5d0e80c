//! A user's own agent: a rollout is done by an HTTP endpoint or a command, which answers with
//! measurements.
//!
//! [`protocol`] holds the two JSON messages; `docs/external-agents.md` is the guide, with example
//! agents in Python.

#[cfg(not(target_arch = "wasm32"))]
mod command;
#[cfg(not(target_arch = "wasm32"))]
mod family;
mod http;
mod kind;
mod pace;
pub mod protocol;
mod rollout;
#[cfg(not(target_arch = "wasm32"))]
#[cfg(test)]
mod tests;
mod transport;

use std::collections::{BTreeMap, HashMap};
use std::rc::Rc;
use std::time::Duration;

use capo_core::backoff::{self, Backoff};
use capo_core::metric::{Direction, LARGEST_MEASUREMENT, MetricSpec};
use capo_core::workload::{RolloutError, Split};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use tokio::sync::Semaphore;

use crate::data::{DataSettings, Example, Examples};
use crate::files::{Files, Sources};
use crate::settings::{BuildError, Settings, Workloads};
use crate::table::check_name;

pub(crate) use kind::{KIND, MAKING, settings_schema};

/// The workload's name.
const NAME: &str = "external";

/// The longest time one rollout may be given: a day.
const MOST_SECONDS: f64 = 86_400.0;

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
    #[serde(default = "default_timeout")]
    #[schemars(range(max = 86_400.0))]
    pub timeout: f64,
    /// How often a request that failed is tried again: 5 times unless stated, 0 for never.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retries: Option<u32>,
    /// Rollouts the agent does at a time.
    #[serde(default = "default_concurrency")]
    #[schemars(range(min = 1))]
    pub concurrency: usize,
    /// What the agent does and what surrounds the prompt, for the rewriter.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// What the agent measures.
    #[serde(rename = "metric")]
    pub metrics: Vec<ExternalMetric>,
}

fn default_timeout() -> f64 {
    120.0
}

fn default_concurrency() -> usize {
    4
}

/// A metric the agent measures itself.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ExternalMetric {
    /// Its name in the response's `measurements`.
    pub name: String,
    /// Which way is better.
    pub direction: Direction,
    /// Unit of one measurement.
    #[serde(default = "default_unit")]
    pub unit: String,
    /// One sentence on what is measured, for people and the rewriter.
    #[serde(default)]
    pub explanation: String,
    /// Smallest possible value; 0 unless stated. An objective's is 0.
    #[serde(default)]
    pub min: Option<f64>,
    /// Largest possible value; unbounded unless stated. An objective's is 1.
    #[serde(default)]
    pub max: Option<f64>,
    /// Whether every value is either the smallest or the largest one, such as 0 or 1: certificates need fewer
    /// examples then.
    #[serde(default)]
    pub binary: bool,
}

fn default_unit() -> String {
    "rate".to_owned()
}

impl ExternalMetric {
    fn spec(&self, key: &str) -> Result<MetricSpec, BuildError> {
        let (min, max) = match self.direction {
            Direction::Objective => (Some(self.min.unwrap_or(0.0)), Some(self.max.unwrap_or(1.0))),
            Direction::Cost => (Some(self.min.unwrap_or(0.0)), self.max),
        };
        if self.direction == Direction::Objective && (min, max) != (Some(0.0), Some(1.0)) {
            return Err(BuildError::setting(
                key,
                "an objective lies between 0 and 1; scale it in the agent",
            ));
        }
        let is_far = |bound: f64| !(-LARGEST_MEASUREMENT..=LARGEST_MEASUREMENT).contains(&bound);
        if min.zip(max).is_some_and(|(min, max)| min >= max) || [min, max].into_iter().flatten().any(is_far) {
            return Err(BuildError::setting(
                key,
                format!(
                    "`min` must be below `max`, and both between -{LARGEST_MEASUREMENT:e} and {LARGEST_MEASUREMENT:e}"
                ),
            ));
        }
        if self.binary && max.is_none() {
            return Err(BuildError::setting(
                key,
                "`binary` says that every value is `min` or `max`: state `max`",
            ));
        }
        let explanation = match self.explanation.trim() {
            "" => format!("`{}` as the external agent measures it.", self.name),
            text => text.to_owned(),
        };
        Ok(MetricSpec {
            name: self.name.clone(),
            direction: self.direction,
            unit: self.unit.clone(),
            explanation,
            min,
            max,
            default_scale: 1.0,
            binary: self.binary,
        })
    }
}

/// A user's own agent with its examples.
pub struct External {
    agent: Agent,
    specs: Vec<MetricSpec>,
    optimize: Vec<String>,
    evaluate: Vec<String>,
    examples: HashMap<String, (Split, Example)>,
    description: String,
    /// Who is asked and what is read of the answer.
    asked: String,
    fingerprint: String,
    timeout: Duration,
    permits: Semaphore,
    backoff: Backoff,
    pace: pace::Pace,
}

/// The two ways to reach an agent.
enum Agent {
    Endpoint(http::Endpoint),
    #[cfg(not(target_arch = "wasm32"))]
    Command(command::Program),
}

impl Agent {
    fn read(settings: &ExternalSettings, sources: &Sources<'_>) -> Result<Self, BuildError> {
        match (&settings.endpoint, &settings.command) {
            (Some(endpoint), None) => {
                if !settings.env.is_empty() {
                    return Err(BuildError::setting(
                        "workload.env",
                        "is for `command`; for `endpoint` use headers_env",
                    ));
                }
                http::Endpoint::read(settings, endpoint).map(Self::Endpoint)
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
                Self::command(command, settings, sources)
            }
            (Some(_), Some(_)) | (None, None) => Err(BuildError::setting(
                "workload",
                "give exactly one of `endpoint` and `command`",
            )),
        }
    }

    #[cfg(target_arch = "wasm32")]
    fn command(_: &[String], _: &ExternalSettings, _: &Sources<'_>) -> Result<Self, BuildError> {
        Err(BuildError::setting(
            "workload.command",
            "a browser cannot run commands; use `endpoint`, or run the study with `capo`",
        ))
    }

    #[cfg(not(target_arch = "wasm32"))]
    fn command(
        command: &[String],
        settings: &ExternalSettings,
        sources: &Sources<'_>,
    ) -> Result<Self, BuildError> {
        let Some((program, arguments)) = command.split_first().filter(|(program, _)| !program.is_empty())
        else {
            return Err(BuildError::setting(
                "workload.command",
                "is empty; write it as [\"python3\", \"agent.py\"]",
            ));
        };
        let directory = sources.directory().map(std::path::Path::to_path_buf);
        Ok(Self::Command(command::Program::new(
            program,
            arguments,
            &settings.env,
            directory,
        )))
    }
}

/// Builds the workload of an external agent.
fn build(mut settings: Settings, files: &dyn Files, _seed: u64) -> Result<Workloads, BuildError> {
    let data: DataSettings = settings.take()?;
    let own: ExternalSettings = settings.take()?;
    settings.finish()?;

    if !own.timeout.is_finite() || own.timeout <= 0.0 || own.timeout > MOST_SECONDS {
        return Err(BuildError::setting(
            "workload.timeout",
            format!("must be above 0 and at most {MOST_SECONDS} seconds"),
        ));
    }
    if own.concurrency == 0 || own.concurrency > Semaphore::MAX_PERMITS {
        return Err(BuildError::setting("workload.concurrency", "must be at least 1"));
    }
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
    let agent = Agent::read(&own, &sources)?;
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
        agent,
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
        timeout: Duration::from_secs_f64(own.timeout),
        permits: Semaphore::new(own.concurrency),
        backoff: Backoff {
            retries: own.retries.unwrap_or(backoff::RETRIES),
            // Tests do not wait as long.
            first_wait: if cfg!(test) {
                Duration::from_millis(50)
            } else {
                backoff::FIRST_WAIT
            },
        },
        pace: pace::Pace::default(),
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
        specs.push(metric.spec(&key)?);
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
    matches!(error, RolloutError::Failed { message, .. } if message.contains(http::NO_ANSWER))
}

/// What an agent lacks for a run: the environment variables that a `[workload]` table names and that are not set,
/// in words. Nothing is asked and nothing is started.
pub fn missing(kind_and_settings: &Map<String, Value>) -> Vec<String> {
    if kind_and_settings.get("kind").and_then(Value::as_str) != Some(NAME) {
        return Vec::new();
    }
    let mut lacks = Vec::new();
    for setting in ["env", "headers_env", "bearer_env"] {
        let named: Vec<&Value> = match kind_and_settings.get(setting) {
            Some(Value::Array(names)) => names.iter().collect(),
            Some(Value::Object(headers)) => headers.values().collect(),
            single => single.into_iter().collect(),
        };
        let unset = |name: &Value| transport::variable(name.as_str()?, setting).err();
        lacks.extend(named.into_iter().filter_map(unset).map(|error| error.to_string()));
    }
    lacks
}

/// Refuses an address or a header with a key in it, whatever else the settings say. An address that is
/// not typed yet holds none.
fn check_written(settings: &Map<String, Value>) -> Result<(), BuildError> {
    let endpoint = settings.get("endpoint").and_then(Value::as_str);
    if let Some(endpoint) = endpoint.filter(|endpoint| !endpoint.is_empty()) {
        http::address(endpoint)?;
    }
    let headers = settings.get("headers").and_then(Value::as_object);
    for (header, value) in headers.into_iter().flatten() {
        http::check_header(header, value.as_str().unwrap_or_default())?;
    }
    Ok(())
}
