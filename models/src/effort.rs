//! Reasoning effort, as studies state it.

use rig_core::completion::{Effort, Reasoning};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How hard a reasoning model thinks. Which levels a model takes is the provider's business.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[expect(missing_docs, reason = "the names say it")]
pub enum ReasoningEffort {
    None,
    Minimal,
    Low,
    Medium,
    High,
    Xhigh,
    Max,
}

impl From<ReasoningEffort> for Reasoning {
    fn from(effort: ReasoningEffort) -> Self {
        Self::Effort(match effort {
            ReasoningEffort::None => return Self::Off,
            ReasoningEffort::Minimal => Effort::Minimal,
            ReasoningEffort::Low => Effort::Low,
            ReasoningEffort::Medium => Effort::Medium,
            ReasoningEffort::High => Effort::High,
            ReasoningEffort::Xhigh => Effort::XHigh,
            ReasoningEffort::Max => Effort::Max,
        })
    }
}
