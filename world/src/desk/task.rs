//! Tasks: what a dialogue is about: the customer's side, and what must come of it.

use indexmap::IndexMap;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::language::{Operation, Topic};
use super::state::Changes;
use super::tools::{self, Kind};

/// One dialogue to be had.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Task {
    /// Unique, such as `desk-001`; the example's name in journals.
    pub id: String,
    /// The template it was made from. Splits hold the same mix of them.
    pub scenario: String,
    /// The customer's side.
    pub script: Script,
    /// What must come of it.
    pub expected: Expected,
    /// A shortest sequence of calls that gets there and looks up everything the policy needs.
    pub reference: Vec<Action>,
}

/// What the customer wants, knows and says.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Script {
    /// What the customer answers when asked, by topic: the first answer, the second, …; the last one
    /// is repeated.
    pub facts: IndexMap<Topic, Vec<String>>,
    /// What the customer wants, one after the other. Never empty.
    pub requests: Vec<Request>,
    /// Whether the customer likes the idea of being handed to a human.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub wants_human: bool,
    /// Picks among equivalent wordings.
    pub voice: usize,
}

/// One thing a customer wants.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Request {
    /// The customer's first words about it.
    pub text: String,
    /// The same in other words, when the customer is asked what it is about or does not follow.
    pub again: String,
    /// What the customer agrees to.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub wants: Vec<Operation>,
    /// What the customer does not agree to, even together with something wanted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub declines: Vec<Operation>,
    /// Ids and times the customer knows; a proposal with another one of the same shape is
    /// corrected.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub recognises: Vec<String>,
    /// What the customer says to the first refusal, the second, …, before giving in.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pushes: Vec<String>,
    /// What the customer says to the first proposal before agreeing to the second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub haggles: Option<String>,
    /// When the request is a question: its answer, as told by any of these texts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub answer: Vec<String>,
    /// Answers that hold for this request only, see [`Script::facts`].
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub facts: IndexMap<Topic, Vec<String>>,
}

/// What must come of a dialogue.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Expected {
    /// Exactly what must differ in the shop, new values by path.
    #[serde(default, skip_serializing_if = "Changes::is_empty")]
    pub changes: Changes,
    /// Whether the dialogue must be handed to a human.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub transfer: bool,
    /// What the customer must be told.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub told: Vec<RequiredStatement>,
}

/// Something the customer must be told.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RequiredStatement {
    /// What it is, for people.
    pub what: String,
    /// Texts of which one must stand in what the agent said, whatever the case of its letters.
    pub any_of: Vec<String>,
}

/// A call of a tool.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Action {
    /// The tool's name.
    pub tool: String,
    /// Its arguments.
    pub arguments: Value,
}

/// How hard a task is, in properties that can be counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Difficulty {
    /// Look-ups in the reference.
    pub lookups: usize,
    /// Whether the customer cannot name the order, so that it must be found.
    pub ambiguous: bool,
    /// How often the customer pushes or haggles; one more when they would rather have a human.
    pub pushes: usize,
    /// Whether what the customer wants must not be done by the agent.
    pub impossible: bool,
}

impl Task {
    /// How hard it is.
    pub fn difficulty(&self) -> Difficulty {
        let lookup = |action: &&Action| tools::named(&action.tool).is_ok_and(|tool| tool.kind == Kind::Read);
        let mut orders = self
            .script
            .requests
            .iter()
            .filter_map(|request| request.facts.get(&Topic::Order));
        Difficulty {
            lookups: self.reference.iter().filter(lookup).count(),
            ambiguous: orders.any(|answers| !answers.iter().any(|answer| answer.contains("O-"))),
            pushes: self
                .script
                .requests
                .iter()
                .map(|request| request.pushes.len() + usize::from(request.haggles.is_some()))
                .sum::<usize>()
                + usize::from(self.script.wants_human),
            impossible: self.expected.transfer
                || (self.expected.changes.is_empty()
                    && self
                        .script
                        .requests
                        .iter()
                        .all(|request| request.answer.is_empty())),
        }
    }
}
