//! The keys of `[workload]` for `kind = "tau2"`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What `kind` is for these domains.
pub const KIND: &str = "tau2";

/// A domain of the tau2 benchmark, played on the data of a checkout.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Tau2Settings {
    /// Which domain.
    pub domain: DomainName,
    /// The folder `data/tau2` of a checkout of tau2-bench.
    pub data: String,
    /// Which tasks are searched on and which are held out.
    #[serde(default)]
    pub split: SplitRule,
    /// Which actions of the reference solutions the agent's calls are compared with.
    #[serde(default)]
    pub reference: ReferenceActions,
    /// The list of `split_tasks.json` that the tasks are drawn from, `base` without; not with `split =
    /// "benchmark"`.
    #[serde(default)]
    pub tasks: Option<String>,
    /// With `split = "cluster-shift"`: clusters made of the tasks that are not held out, 3 without; 2 to half
    /// as many as those tasks.
    #[serde(default)]
    pub clusters: Option<usize>,
    /// With `split = "cluster-shift"`: the file with the vectors that a model made of the tasks' texts, which
    /// `capo embed` makes; without, vectors count words.
    #[serde(default)]
    pub embeddings: Option<String>,
    /// Tasks used by the search; all of its split without.
    #[serde(default)]
    #[schemars(extend("x-left-out" = "all of the split"))]
    pub optimize: Option<usize>,
    /// Held-out tasks; all of their split without.
    #[serde(default)]
    #[schemars(extend("x-left-out" = "all of the split"))]
    pub evaluate: Option<usize>,
    /// Draws the splits and starts the clusters; the benchmark's own splits are not drawn.
    #[serde(default)]
    pub seed: u64,
    /// Ids of tasks to leave out, such as those with a wrong reference.
    #[serde(default)]
    pub exclude: Vec<String>,
    /// Which policy stands beside the prompt; only telecom has two.
    #[serde(default)]
    pub policy: Policy,
    /// A JSON file with other descriptions of the tools, of the form of the benchmark's own list: an object
    /// with the lists `assistant` and `user`.
    #[serde(default)]
    pub tool_descriptions: Option<String>,
    /// Messages exchanged in a conversation, calls and their results included, 1 to 1000.
    #[serde(default = "max_steps")]
    pub max_steps: u32,
    /// Failed calls after which a conversation ends, 1 to 1000.
    #[serde(default = "max_errors")]
    pub max_errors: u32,
}

fn max_steps() -> u32 {
    200
}

fn max_errors() -> u32 {
    10
}

/// A domain.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum DomainName {
    /// An airline's reservations, 50 tasks.
    Airline,
    /// An online shop's orders, 114 tasks.
    Retail,
    /// A telephone company and the customer's telephone, 114 tasks of 2,285.
    Telecom,
}

impl DomainName {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Airline, Self::Retail, Self::Telecom];

    /// As settings write it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Airline => "airline",
            Self::Retail => "retail",
            Self::Telecom => "telecom",
        }
    }
}

/// How tasks come to be searched on or held out.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum SplitRule {
    /// The benchmark's own, as in the paper: its list `train` is searched on, its list `test` is held out.
    #[default]
    Benchmark,
    /// Drawn by the seed: 39 of 50 tasks for airline, 74 of 114 for the others are searched on, the rest is held out.
    #[serde(alias = "paper")]
    Drawn,
    /// The tasks that `drawn` holds out are held out; of the others, those of the cluster whose texts are
    /// farthest from theirs are searched on.
    ClusterShift,
}

/// Which actions of a task's reference solution count.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ReferenceActions {
    /// All of them, those of a customer with tools of its own too, as in the paper.
    #[default]
    All,
    /// The agent's.
    Agent,
}

/// A policy of telecom.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Policy {
    /// What there is to know about telephones.
    #[default]
    Manual,
    /// What to do step by step.
    Workflow,
}
