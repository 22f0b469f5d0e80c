//! The trajectory: what was said and called in a conversation.

use capo_core::llm::{Message, ToolCall};
use serde::Serialize;

use super::environment::Side;
use super::prompts::STOPS;

/// An event of a conversation, in order.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum Event {
    /// One side spoke to the other.
    Said {
        /// The side that spoke.
        by: Side,
        /// What was said.
        text: String,
    },
    /// One side called tools.
    Called {
        /// The side that made the call.
        by: Side,
        /// What was said beside it, which nobody hears.
        #[serde(skip_serializing_if = "Option::is_none")]
        text: Option<String>,
        /// The calls.
        calls: Vec<ToolCall>,
    },
    /// A tool answered.
    Answered {
        /// Who had called it.
        to: Side,
        /// Which call.
        call_id: String,
        /// What it said.
        content: String,
        /// Whether it failed.
        error: bool,
    },
}

/// Why a conversation ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// The user ended it.
    UserStop,
    /// It took too many steps.
    MaxSteps,
    /// Too many calls failed.
    TooManyErrors,
}

impl End {
    /// As the benchmark names it.
    pub fn name(self) -> &'static str {
        match self {
            Self::UserStop => "user_stop",
            Self::MaxSteps => "max_steps",
            Self::TooManyErrors => "too_many_errors",
        }
    }
}

/// A conversation.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[serde(transparent)]
pub struct Trajectory(pub Vec<Event>);

impl Trajectory {
    /// All calls with who made them, in order.
    pub fn calls(&self) -> impl Iterator<Item = (Side, &ToolCall)> {
        self.0.iter().flat_map(|event| {
            let (by, calls) = match event {
                Event::Called { by, calls, .. } => (*by, calls.as_slice()),
                _ => (Side::Assistant, &[][..]),
            };
            calls.iter().map(move |call| (by, call))
        })
    }

    /// The calls of one side.
    pub fn calls_of(&self, side: Side) -> impl Iterator<Item = &ToolCall> {
        self.calls()
            .filter(move |(by, _)| *by == side)
            .map(|(_, call)| call)
    }

    /// Each call with its answer, in order: who called, the call, what came back and whether it failed.
    ///
    /// # Errors
    /// A call that the next answer is not for, or that has none, or an answer to no call.
    pub fn answered(&self) -> Result<Vec<Answered<'_>>, Unpaired> {
        let mut pairs = Vec::new();
        let mut events = self.0.iter();
        while let Some(event) = events.next() {
            let (by, calls) = match event {
                Event::Called { by, calls, .. } => (by, calls),
                Event::Said { .. } => continue,
                Event::Answered { call_id, .. } => return Err(Unpaired(call_id.clone())),
            };
            for call in calls {
                match events.next() {
                    Some(Event::Answered {
                        call_id,
                        content,
                        error,
                        ..
                    }) if *call_id == call.id => pairs.push(Answered {
                        by: *by,
                        call,
                        content,
                        error: *error,
                    }),
                    _ => return Err(Unpaired(call.name.clone())),
                }
            }
        }
        Ok(pairs)
    }

    /// What one side said to the other.
    pub fn said_by(&self, side: Side) -> impl Iterator<Item = &str> {
        self.0.iter().filter_map(move |event| match event {
            Event::Said { by, text } if *by == side => Some(text.as_str()),
            _ => None,
        })
    }

    /// The agent's texts, those beside calls included.
    pub fn agent_texts(&self) -> impl Iterator<Item = &str> {
        self.0.iter().filter_map(|event| match event {
            Event::Said {
                by: Side::Assistant,
                text,
            }
            | Event::Called {
                by: Side::Assistant,
                text: Some(text),
                ..
            } => Some(text.as_str()),
            _ => None,
        })
    }

    /// The conversation as one side sees it: its own texts, calls and answers, and what the other says.
    pub fn seen_by(&self, side: Side) -> Vec<Message> {
        let seen = self.0.iter().filter_map(|event| event.seen_by(side));
        seen.collect()
    }
}

impl Event {
    /// The event as one side sees it; `None` where it is none of its business.
    pub fn seen_by(&self, side: Side) -> Option<Message> {
        match self {
            Self::Said { by, text } if *by == side => Some(Message::assistant(text)),
            Self::Said { text, .. } => Some(Message::user(text)),
            Self::Called { by, text, calls } if *by == side => {
                Some(Message::Assistant(capo_core::llm::AssistantMessage {
                    content: text.clone(),
                    tool_calls: calls.clone(),
                }))
            }
            Self::Answered {
                to, call_id, content, ..
            } if *to == side => Some(Message::tool(call_id, content)),
            _ => None,
        }
    }

    /// Whether the user ends the conversation with it.
    pub fn ends(&self) -> bool {
        match self {
            Self::Said { by: Side::User, text } => STOPS.iter().any(|stop| text.contains(stop)),
            _ => false,
        }
    }
}

/// A call and what came back.
#[derive(Debug, Clone, Copy)]
pub struct Answered<'a> {
    /// Who called.
    pub by: Side,
    /// The call.
    pub call: &'a ToolCall,
    /// What came back.
    pub content: &'a str,
    /// Whether it failed.
    pub error: bool,
}

/// A call without its answer, by the tool's name, or an answer without its call, by its id.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0} is a call without its answer or an answer without its call")]
pub struct Unpaired(String);
