//! The keys of `[workload]` for `kind = "desk"`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The help desk's settings in a study file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct DeskSettings {
    /// Tasks used by the search, at least 1.
    #[schemars(extend("x-unit" = "tasks"))]
    pub optimize: usize,
    /// Held-out tasks, at least 1. Together with `optimize` at most 20,000, and with `skip` 285,000.
    #[schemars(extend("x-unit" = "tasks"))]
    pub evaluate: usize,
    /// Draws which tasks are in which split. Both splits hold the same mix of scenarios.
    pub seed: u64,
    /// Who plays the customers.
    pub user: UserKind,
    /// Answers the agent may give in a dialogue, 1 to 200; the dialogue is over after the last.
    pub max_steps: u32,
    /// Tasks passed over: the splits are drawn from the 114 after them, or from as many as both need.
    #[schemars(extend("x-unit" = "tasks"))]
    pub skip: usize,
}

impl Default for DeskSettings {
    fn default() -> Self {
        Self {
            optimize: 74,
            evaluate: 40,
            seed: 0,
            user: UserKind::Scripted,
            max_steps: 30,
            skip: 0,
        }
    }
}

/// Who plays the customers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum UserKind {
    /// The tasks' scripts: free, and the same words get the same answer.
    #[default]
    Scripted,
    /// The model of the role `user`.
    Llm,
}

/// Why the help desk cannot be set up.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum DeskError {
    /// A split would be empty.
    #[error(
        "[workload] {split} = 0: the help desk needs at least one task in each split; write {split} = 1 or more"
    )]
    EmptySplit {
        /// `optimize` or `evaluate`.
        split: &'static str,
    },
    /// There are not that many tasks.
    #[error(
        "[workload] optimize = {optimize} and evaluate = {evaluate} need {} tasks{}, but the help desk has {available}; lower {}",
        optimize.saturating_add(*evaluate),
        if *skip == 0 { String::new() } else { format!(" after skip = {skip}") },
        if *skip == 0 { "one of them" } else { "one of the three" }
    )]
    TooMany {
        /// Asked for.
        optimize: usize,
        /// Asked for.
        evaluate: usize,
        /// Asked to be passed over.
        skip: usize,
        /// There are.
        available: usize,
    },
    /// More tasks than a study may have.
    #[error(
        "[workload] optimize = {optimize} and evaluate = {evaluate} are {} tasks, and a study has at most {}; lower one of them",
        optimize + evaluate,
        super::MOST_TASKS
    )]
    Large {
        /// Asked for.
        optimize: usize,
        /// Asked for.
        evaluate: usize,
    },
    /// A dialogue of no steps, or of absurdly many.
    #[error("[workload] max_steps = {0}: a dialogue may have 1 to 200 answers of the agent")]
    Steps(u32),
}
