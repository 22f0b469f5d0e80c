//! Conversations in the core's words and in the provider library's.

use std::collections::{HashMap, VecDeque};

use capo_core::llm::{AssistantMessage, ChatRequest, Finish, Message, ToolCall};
use rig_core::completion::{CompletionRequest, CompletionResponse, FinishReason, ToolDefinition};
use rig_core::message::{
    AssistantContent, AssistantMessage as Turn, CallId, Message as Spoken, Text, ToolCall as Call,
    ToolFunction, ToolName, ToolResult, ToolResultContent, UserContent,
};
use serde_json::Value;

/// Builds the library's request.
///
/// # Errors
///
/// Says what in the conversation cannot be sent: nothing at all, a tool without a name, an answer
/// to a call that nobody made.
pub(crate) fn request(chat: &ChatRequest, turns: &Turns) -> Result<CompletionRequest, String> {
    let mut spoken: Vec<Spoken> = Vec::with_capacity(chat.messages.len());
    // The library tells ids of the provider's from ids of its own, which their text does not show.
    let mut called: HashMap<String, (CallId, ToolName)> = HashMap::new();
    for message in chat.messages.iter() {
        match message {
            Message::System { content } => {
                spoken.push(Spoken::System {
                    content: content.clone(),
                });
            }
            Message::User { content } => {
                spoken.push(Spoken::User {
                    content: vec![UserContent::Text(Text::new(content))],
                });
            }
            Message::Assistant(message) => {
                let turn = match turns.recall(message) {
                    Some(kept) => Some(kept.clone()),
                    None => turn(message)?,
                };
                if let Some(turn) = turn {
                    called
                        .extend(turn.tool_calls().map(|call| {
                            (call.id.to_string(), (call.id.clone(), call.function.name.clone()))
                        }));
                    spoken.push(Spoken::Assistant(turn));
                }
            }
            Message::Tool { call_id, content } => {
                let (call, name) = called.get(call_id).cloned().ok_or_else(|| {
                    format!("the conversation answers the tool call `{call_id}`, which nobody made")
                })?;
                let content = vec![ToolResultContent::Text(Text::new(content))];
                answer_tool(
                    &mut spoken,
                    ToolResult {
                        call,
                        name,
                        content,
                        is_error: false,
                    },
                );
            }
        }
    }
    let last = spoken.pop().ok_or("the conversation is empty")?;
    let tools = chat
        .tools
        .iter()
        .map(|tool| {
            let name = tool_name(&tool.name)?;
            Ok(ToolDefinition::new(
                name,
                tool.description.clone(),
                tool.parameters.clone(),
            ))
        })
        .collect::<Result<Vec<_>, String>>()?;
    Ok(CompletionRequest::new(last).messages(spoken).tools(tools))
}

/// As much of a seed as every provider takes: Gemini's is a 32-bit signed integer.
pub(crate) fn portable_seed(seed: u64) -> u64 {
    seed & 0x7fff_ffff
}

/// Adds a tool's answer to the turn that holds the answers to the same calls: some providers want
/// all of them together.
fn answer_tool(spoken: &mut Vec<Spoken>, result: ToolResult) {
    let result = UserContent::ToolResult(result);
    match spoken.last_mut() {
        Some(Spoken::User { content }) if matches!(content.first(), Some(UserContent::ToolResult(_))) => {
            content.push(result);
        }
        _ => spoken.push(Spoken::User {
            content: vec![result],
        }),
    }
}

/// The library's turn for `message`, or `None` for one that says nothing.
fn turn(message: &AssistantMessage) -> Result<Option<Turn>, String> {
    let mut content = Vec::new();
    if !message.text().is_empty() {
        content.push(AssistantContent::Text(Text::new(message.text())));
    }
    for call in &message.tool_calls {
        let function = ToolFunction::new(tool_name(&call.name)?, call.arguments.clone());
        content.push(AssistantContent::ToolCall(Call::from_wire(&call.id, function)));
    }
    Ok((!content.is_empty()).then(|| Turn::new(content)))
}

fn tool_name(name: &str) -> Result<ToolName, String> {
    ToolName::new(name).map_err(|_| "a tool has no name".to_owned())
}

/// The ids that a provider gave the tool calls of a conversation, in order.
#[derive(Debug, Clone, Default)]
pub(crate) struct CallIds {
    /// Of each call, if it has one of the provider's.
    pub(crate) called: Vec<Option<String>>,
    /// Of the call that each answer of a tool is for.
    pub(crate) answered: Vec<Option<String>>,
}

impl CallIds {
    /// Those of a request.
    pub(crate) fn of(request: &CompletionRequest) -> Self {
        let given = |id: &CallId| id.provider().map(|id| id.as_str().to_owned());
        let mut ids = Self::default();
        for message in &request.chat_history {
            match message {
                Spoken::Assistant(turn) => ids.called.extend(turn.tool_calls().map(|call| given(&call.id))),
                Spoken::User { content } => {
                    ids.answered.extend(content.iter().filter_map(|part| match part {
                        UserContent::ToolResult(result) => Some(given(&result.call)),
                        _ => None,
                    }));
                }
                Spoken::System { .. } => {}
            }
        }
        ids
    }
}

/// What the model said, in the core's words.
fn message(content: &[AssistantContent]) -> AssistantMessage {
    let mut text = String::new();
    let mut tool_calls = Vec::new();
    for block in content {
        match block {
            AssistantContent::Text(block) => text.push_str(&block.text),
            AssistantContent::ToolCall(call) => tool_calls.push(ToolCall {
                id: call.id.to_string(),
                name: call.function.name.to_string(),
                arguments: match &call.function.invalid_arguments {
                    Some(text) => Value::String(text.clone()),
                    None => call.function.arguments_value(),
                },
            }),
            // Reasoning and provider items are no part of the answer.
            _ => {}
        }
    }
    AssistantMessage {
        content: (!text.is_empty()).then_some(text),
        tool_calls,
    }
}

/// The answer in `response`, why it ended, or why it cannot be used.
pub(crate) fn answer(response: &CompletionResponse) -> Result<(AssistantMessage, Finish), String> {
    let message = message(&response.choice);
    let reason = response.finish_reason();
    let finish = match &reason {
        Some(FinishReason::Length) => Finish::Length,
        Some(FinishReason::ContentFilter) => Finish::Filter,
        _ if message.is_empty() => {
            let why = match (&response.error, reason) {
                (Some(error), _) => error.clone(),
                (None, Some(FinishReason::Other(reason))) => format!("it stopped for `{reason}`"),
                (None, _) => "it says nothing and calls no tool".to_owned(),
            };
            return Err(format!("the answer is empty: {why}"));
        }
        // Without a reason the library reports an error too, but the answer is whole.
        Some(_) if response.error.is_some() => {
            let why = response.error.as_deref().unwrap_or_default();
            return Err(format!("the answer is unusable: {why}"));
        }
        _ if !message.tool_calls.is_empty() => Finish::ToolCalls,
        _ => Finish::Stop,
    };
    Ok((message, finish))
}

/// Turns kept as the provider gave them.
///
/// Reasoning models want their reasoning back beside their tool calls (Anthropic's signed
/// thinking, Gemini's thought signatures, `reasoning_details` of `OpenRouter`); the core's messages
/// hold only what was said. A turn that is continued gets its full form from here. The memory is
/// short: a conversation goes on within seconds or not at all, and without it the turn is still
/// sent, only without the reasoning.
#[derive(Debug, Default)]
pub(crate) struct Turns {
    by_call: HashMap<String, (AssistantMessage, Turn)>,
    oldest_first: VecDeque<String>,
}

impl Turns {
    /// How many turns are kept.
    const KEPT: usize = 1024;

    /// Keeps the turn of `response`, which says `message`, if it calls tools.
    pub(crate) fn remember(&mut self, message: &AssistantMessage, response: &CompletionResponse) {
        let Some(call) = message.tool_calls.first() else {
            return;
        };
        let Some(Spoken::Assistant(turn)) = response.message() else {
            return;
        };
        let key = call.id.clone();
        if self
            .by_call
            .insert(key.clone(), (message.clone(), turn))
            .is_none()
        {
            self.oldest_first.push_back(key);
        }
        if self.oldest_first.len() > Self::KEPT
            && let Some(oldest) = self.oldest_first.pop_front()
        {
            self.by_call.remove(&oldest);
        }
    }

    /// The full form of `message`, if it is kept and unchanged.
    fn recall(&self, message: &AssistantMessage) -> Option<&Turn> {
        let (kept, turn) = self.by_call.get(&message.tool_calls.first()?.id)?;
        (kept == message).then_some(turn)
    }
}
