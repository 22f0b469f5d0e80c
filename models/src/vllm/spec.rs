//! Address and settings of a vLLM server.

use std::collections::BTreeMap;
use std::num::{NonZeroU32, NonZeroUsize};

use capo_core::llm::Role;
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::error::BuildError;
use crate::spec::{HeaderText, ModelSpec};

/// How long one try may take unless stated, in seconds: a server works off many long answers at once.
const TIMEOUT_SECONDS: f64 = 600.0;

/// The table that names a vLLM server.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct VllmSpec {
    /// The root of its API, such as `http://127.0.0.1:8000/v1`.
    pub base_url: String,
    /// Where the server sees the folder in which adapters are handed over to it, if it sees it under another path than
    /// this machine does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server_folder: Option<String>,
    /// The variable that holds its key, `VLLM_API_KEY` unless stated. The name, never the key itself. One that is
    /// stated must be set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub api_key_env: Option<String>,
    /// How long one try may take, in seconds: 600 unless stated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_seconds: Option<f64>,
    /// The most requests under way at once: 64 unless stated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub concurrency: Option<NonZeroUsize>,
    /// How often a failed request is tried again: 5 times unless stated, 0 for never.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retries: Option<u32>,
    /// After how many failed tries in a row the server is given up: 50 unless stated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub abort_after: Option<NonZeroU32>,
    /// Further HTTP headers.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, HeaderText>,
}

/// The most requests under way at once unless stated: the server batches them.
const CONCURRENCY: usize = 64;

impl VllmSpec {
    /// The same as the table of a model, whose rules it is held to.
    pub(super) fn table(&self) -> Result<ModelSpec, BuildError> {
        let mut table = json!(self);
        if let Some(table) = table.as_object_mut() {
            table.shift_remove("server_folder");
        }
        table["provider"] = json!("openai-compatible");
        table["model"] = json!("adapter");
        table["timeout_seconds"] = json!(self.timeout_seconds.unwrap_or(TIMEOUT_SECONDS));
        table["concurrency"] = json!(self.concurrency.map_or(CONCURRENCY, usize::from));
        let role = Role::Rewriter;
        ModelSpec::parse(&table).map_err(|message| BuildError::Spec { role, message })
    }
}
