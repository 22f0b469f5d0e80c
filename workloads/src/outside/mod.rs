//! HTTP endpoints and commands of a study's author, run outside of Capo and asked by a request.
//!
//! The agents of the kind `external` and the scorers of a table are reached in the same way.

mod answer;
mod ask;
#[cfg(not(target_arch = "wasm32"))]
mod command;
mod http;
mod metric;
mod pace;
#[cfg(not(target_arch = "wasm32"))]
mod process_tree;
#[cfg(not(target_arch = "wasm32"))]
#[cfg(test)]
pub(crate) mod testing;
mod transport;

use capo_core::llm::Role;
use capo_core::study::Table;
use capo_core::usage::{RoleUsage, Usage};
use serde_json::Value;

use crate::files::{Files, Sources};
use crate::settings::BuildError;

pub(crate) use answer::{measured, parse};
pub(crate) use ask::{Outside, SEED_BITS, Transport, usual_concurrency, usual_timeout};
pub(crate) use http::{Endpoint, NO_ANSWER};
pub use metric::ExternalMetric;
pub(crate) use metric::rate;
pub(crate) use transport::{Answer, Secrets, cut};

/// What it does in a study: messages name it and its settings by that.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Party {
    /// The agent of a workload.
    Agent,
    /// A scorer of answers, by the name of the metric that asks it.
    Scorer(String),
}

impl Party {
    /// What messages call it that is found at a place.
    fn called(&self, place: &str) -> String {
        match self {
            Self::Agent => format!("external agent {place}"),
            Self::Scorer(metric) => format!("metric `{metric}`: the scorer {place}"),
        }
    }

    /// One of its settings within a sentence.
    fn setting(&self, name: &str) -> String {
        match self {
            Self::Agent => format!("workload.{name}"),
            Self::Scorer(metric) => format!("`{name}` of metric `{metric}`"),
        }
    }

    /// What it consumed that worked so many seconds and does not say: of an agent it is unknown, of a scorer none
    /// is counted.
    pub(crate) fn unsaid(&self, seconds: f64) -> Usage {
        let mut usage = Usage::default();
        if *self == Self::Agent {
            let unknown = RoleUsage {
                usd: None,
                seconds,
                ..RoleUsage::ZERO
            };
            usage.add(Role::Agent, unknown);
        }
        usage
    }
}

/// Whether the message of a failed rollout is about a scorer of a table, and not about a model.
pub fn is_scorers_failure(message: &str) -> bool {
    message.contains("`: the scorer ")
}

/// The table of a study that says how one is reached.
pub(crate) struct Written<'a> {
    pub(crate) party: Party,
    /// Where it stands, such as `workload.metric[0]`.
    pub(crate) key: String,
    pub(crate) settings: &'a Table,
}

impl Written<'_> {
    /// Refuses an address or a header with a key in it, whatever else the settings say.
    pub(crate) fn check(&self) -> Result<(), BuildError> {
        http::check_written(self.settings).map_err(|error| error.at(&self.key))
    }

    /// The variables that it names and that are neither set nor beside the study, in words.
    pub(crate) fn missing(&self, files: &dyn Files) -> Vec<String> {
        let mut lacks = Vec::new();
        for setting in ["env", "headers_env", "bearer_env"] {
            let named: Vec<&Value> = match self.settings.get(setting) {
                Some(Value::Array(names)) => names.iter().collect(),
                Some(Value::Object(headers)) => headers.values().collect(),
                single => single.into_iter().collect(),
            };
            let unset = |name: &Value| {
                let name = name.as_str()?;
                let beside = Sources::new(files).variables([name]);
                transport::variable(name, &self.party.setting(setting), &beside).err()
            };
            lacks.extend(named.into_iter().filter_map(unset));
        }
        lacks
    }
}
