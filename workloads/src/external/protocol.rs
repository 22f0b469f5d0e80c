//! Messages between Capo and an external agent: protocol 1.
//!
//! Within a version, fields are only ever added, and both sides ignore fields they do not know.

use std::collections::BTreeMap;

use capo_core::llm::{AssistantMessage, Message, ToolCall};
use capo_core::metric::shown;
use capo_core::usage::RoleUsage;
use capo_core::workload::Split;
use indexmap::IndexMap;
use schemars::{JsonSchema, Schema, schema_for};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// The version of the protocol.
pub const PROTOCOL: u32 = 1;

/// What the agent is asked: run one example under one prompt.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(title = "Request")]
pub struct Request {
    /// The version of this protocol, 1.
    pub protocol: u32,
    /// The candidate prompt to run under.
    pub prompt: String,
    /// The example's id.
    pub example_id: String,
    /// The example: one line of the data file, by column.
    pub example: Map<String, Value>,
    /// Whether the search sees this example (`optimize`) or it is held out (`evaluate`).
    pub split: WireSplit,
    /// 0 for the first rollout of this prompt on this example, then 1, 2, …
    pub repeat: u32,
    /// A whole number below 2⁵³, the same for every prompt on this example and repeat: seed
    /// whatever is random with it, and prompts are compared on the same draws.
    pub seed: u64,
}

/// A part of the examples.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum WireSplit {
    /// The search sees it.
    Optimize,
    /// It is held out.
    Evaluate,
}

impl From<Split> for WireSplit {
    fn from(split: Split) -> Self {
        match split {
            Split::Optimize => Self::Optimize,
            Split::Evaluate => Self::Evaluate,
        }
    }
}

/// What the agent answers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(title = "Response")]
pub struct Response {
    /// The version of this protocol, 1.
    pub protocol: u32,
    /// A finite number for each metric the study declares; others are ignored.
    #[schemars(with = "BTreeMap<String, f64>")]
    pub measurements: IndexMap<String, Value>,
    /// The conversation, for people and the critic; without the candidate prompt.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub messages: Vec<WireMessage>,
    /// What was expected and what went wrong, in plain words, for the critic.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub outcome: String,
    /// Anything else worth keeping in the journal.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub details: Value,
    /// What the agent's own model calls consumed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<WireUsage>,
}

/// One message of the agent's conversation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "role", rename_all = "snake_case")]
pub enum WireMessage {
    /// Instructions other than the candidate prompt.
    System {
        /// The text.
        content: String,
    },
    /// What the user said.
    User {
        /// The text.
        content: String,
    },
    /// What the agent said, called, or both.
    Assistant {
        /// The text.
        #[serde(default)]
        content: Option<String>,
        /// The calls, in order.
        #[serde(default)]
        tool_calls: Vec<WireToolCall>,
    },
    /// What a tool answered.
    Tool {
        /// The id of the call this answers.
        call_id: String,
        /// The answer.
        content: String,
    },
}

/// A call of a tool.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WireToolCall {
    /// Names the call within the conversation.
    pub id: String,
    /// The tool.
    pub name: String,
    /// Its arguments, normally an object.
    #[serde(default)]
    pub arguments: Value,
}

impl From<WireMessage> for Message {
    fn from(message: WireMessage) -> Self {
        match message {
            WireMessage::System { content } => Self::system(content),
            WireMessage::User { content } => Self::user(content),
            WireMessage::Tool { call_id, content } => Self::tool(call_id, content),
            WireMessage::Assistant { content, tool_calls } => {
                let call = |call: WireToolCall| ToolCall {
                    id: call.id,
                    name: call.name,
                    arguments: call.arguments,
                };
                Self::Assistant(AssistantMessage {
                    content,
                    tool_calls: tool_calls.into_iter().map(call).collect(),
                })
            }
        }
    }
}

/// What model calls consumed.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WireUsage {
    /// Model calls made.
    pub calls: u64,
    /// Tokens read.
    #[serde(default)]
    pub input_tokens: u64,
    /// Tokens written.
    #[serde(default)]
    pub output_tokens: u64,
    /// US dollars; leave it out when unknown.
    #[serde(default)]
    #[schemars(range(min = 0.0))]
    pub usd: Option<f64>,
    /// Seconds the answers took; the time of the whole rollout when left out.
    #[serde(default)]
    #[schemars(range(min = 0.0))]
    pub seconds: Option<f64>,
}

impl WireUsage {
    /// More calls or tokens than any rollout makes; sums of fewer do not overflow.
    const MOST: u64 = 1_000_000_000_000;

    /// As the journal counts it, of a rollout that took so many seconds.
    pub(super) fn into_role_usage(self, elapsed: f64) -> RoleUsage {
        RoleUsage {
            calls: self.calls,
            input_tokens: self.input_tokens,
            output_tokens: self.output_tokens,
            usd: self.usd,
            seconds: self.seconds.unwrap_or(elapsed),
        }
    }

    /// What is impossible about it.
    pub(super) fn problem(&self) -> Option<String> {
        let bad = |name: &str, value: Option<f64>| {
            value
                .filter(|value| !value.is_finite() || *value < 0.0)
                .map(|value| format!("usage.{name} is {}", shown(value)))
        };
        let many = |name: &str, count: u64| (count > Self::MOST).then(|| format!("usage.{name} is {count}"));
        bad("usd", self.usd)
            .or_else(|| bad("seconds", self.seconds))
            .or_else(|| many("calls", self.calls))
            .or_else(|| many("input_tokens", self.input_tokens))
            .or_else(|| many("output_tokens", self.output_tokens))
    }
}

/// The JSON schemas of `request` and `response`, as printed in `docs/external-protocol.json`.
pub fn schemas() -> IndexMap<&'static str, Schema> {
    IndexMap::from([
        ("request", schema_for!(Request)),
        ("response", schema_for!(Response)),
    ])
}
