//! The keys of `[workload]` for `kind = "desk"`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The help desk's settings in a study file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct DeskSettings {
    /// Tasks used by the search, at least 1.
    #[schemars(extend("x-unit" = "of 114"))]
    pub optimize: usize,
    /// Held-out tasks, at least 1. Together with `optimize` at most 114.
    #[schemars(extend("x-unit" = "of 114"))]
    pub evaluate: usize,
    /// Draws which tasks are in which split. Both splits hold the same mix of scenarios.
    pub seed: u64,
    /// Who plays the customers.
    pub user: UserKind,
    /// Answers the agent may give in a dialogue, 1 to 200; the dialogue is over after the last.
    pub max_steps: u32,
}

impl Default for DeskSettings {
    fn default() -> Self {
        Self {
            optimize: 74,
            evaluate: 40,
            seed: 0,
            user: UserKind::Scripted,
            max_steps: 30,
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
        "[workload] optimize = {optimize} and evaluate = {evaluate} need {} tasks, but the help desk has {available}; lower one of them",
        optimize.saturating_add(*evaluate)
    )]
    TooMany {
        /// Asked for.
        optimize: usize,
        /// Asked for.
        evaluate: usize,
        /// There are.
        available: usize,
    },
    /// A dialogue of no steps, or of absurdly many.
    #[error("[workload] max_steps = {0}: a dialogue may have 1 to 200 answers of the agent")]
    Steps(u32),
    /// The embedded data cannot be read: a defect of this program.
    #[error("the embedded file {file} cannot be read: {message}")]
    Data {
        /// Its name.
        file: &'static str,
        /// What is wrong with it.
        message: String,
    },
}
