//! The record of a conversation, as far as an agent who follows a script needs it.

use capo_core::llm::{Message, ToolSpec};
use serde_json::{Map, Value};

use super::required;
use crate::simulated::random::Draw;
use crate::simulated::trace_reading::{is_transfer, is_write};

/// The agent's turns after its greeting, and what was heard.
pub(super) struct Record<'a> {
    /// For each turn what a tool said to it; empty where it was a text.
    pub(super) answers: Vec<&'a str>,
    /// Calls made so far.
    pub(super) calls: usize,
    /// What the customer said, in order.
    heard: Vec<&'a str>,
    /// How many of these texts came before each turn.
    heard_before: Vec<usize>,
    /// What tools said, in order.
    told: Vec<&'a str>,
}

impl<'a> Record<'a> {
    pub(super) fn of(messages: &'a [Message]) -> Self {
        let mut record = Self {
            answers: Vec::new(),
            calls: 0,
            heard: Vec::new(),
            heard_before: Vec::new(),
            told: Vec::new(),
        };
        let mut greeted = false;
        for message in messages {
            match message {
                // The greeting is not the agent's own.
                Message::Assistant(answer) if !greeted && answer.tool_calls.is_empty() => greeted = true,
                Message::Assistant(answer) => {
                    record.calls += answer.tool_calls.len();
                    record.answers.push("");
                    record.heard_before.push(record.heard.len());
                }
                Message::User { content } => record.heard.push(content),
                Message::Tool { content, .. } => {
                    record.told.push(content);
                    if let Some(answer) = record.answers.last_mut() {
                        *answer = content;
                    }
                }
                Message::System { .. } => {}
            }
        }
        record
    }

    /// What a tool said last that did not fail.
    pub(super) fn last_result(&self) -> Option<&'a str> {
        let results = self.told.iter().rev();
        results.copied().find(|text| !text.starts_with("Error"))
    }

    /// A telephone number that the customer gave before a turn, such as `555-123-2002`.
    pub(super) fn telephone_number(&self, turn: usize) -> Option<&'a str> {
        let heard = self.heard_before.get(turn).copied().unwrap_or(self.heard.len());
        let is_number = |word: &&str| {
            let mut parts = word.split('-');
            let mut next = |digits: usize| {
                parts.next().is_some_and(|part| {
                    part.len() == digits && part.bytes().all(|byte| byte.is_ascii_digit())
                })
            };
            next(3) && next(3) && next(4)
        };
        let words = self.heard[..heard]
            .iter()
            .flat_map(|text| text.split_whitespace());
        words
            .map(|word| word.trim_matches(|character: char| !character.is_ascii_digit()))
            .find(is_number)
    }

    /// A change that can be made with what the tools have told, whether it should be or not.
    pub(super) fn wrong_write(&self, tools: &[ToolSpec], draw: Draw) -> Option<(String, Value)> {
        let mut known = Map::new();
        for text in &self.told {
            if let Ok(value) = serde_json::from_str(text) {
                collect(&value, &mut known);
            }
        }
        let possible: Vec<(String, Value)> = tools
            .iter()
            .filter(|tool| is_write(&tool.name) && !is_transfer(&tool.name))
            .filter_map(|tool| Some((tool.name.clone(), filled(tool, &known)?)))
            .collect();
        let place = draw.pick(possible.len());
        possible.into_iter().nth(place)
    }
}

/// Keeps the texts and numbers of a JSON value by their keys, the first of each.
fn collect(value: &Value, known: &mut Map<String, Value>) {
    match value {
        Value::Object(fields) => {
            for (key, field) in fields {
                if field.is_string() || field.is_number() {
                    known.entry(key.clone()).or_insert_with(|| field.clone());
                } else {
                    collect(field, known);
                }
            }
        }
        Value::Array(values) => values.iter().for_each(|value| collect(value, known)),
        _ => {}
    }
}

/// The arguments of a tool, each something known of its name or one of the values it may have; `None`
/// where one is neither.
fn filled(tool: &ToolSpec, known: &Map<String, Value>) -> Option<Value> {
    let argument = |name: &str| {
        let choices = tool.parameters.pointer(&format!("/properties/{name}/enum/0"));
        Some((name.to_owned(), known.get(name).or(choices)?.clone()))
    };
    let arguments: Option<Map<String, Value>> = required(tool).map(argument).collect();
    arguments.map(Value::Object)
}
