//! Messages of a chat request: the system prompt, what the user said.

use capo_core::llm::{ChatRequest, Message};

/// The system message, or the empty string.
pub(super) fn system(request: &ChatRequest) -> &str {
    request
        .messages
        .iter()
        .find_map(|message| match message {
            Message::System { content } => Some(content.as_str()),
            _ => None,
        })
        .unwrap_or_default()
}

/// The last thing the user said, or the empty string.
pub(super) fn last_user(request: &ChatRequest) -> &str {
    users(request).last().unwrap_or_default()
}

pub(super) fn users(request: &ChatRequest) -> impl Iterator<Item = &str> {
    request.messages.iter().filter_map(|message| match message {
        Message::User { content } => Some(content.as_str()),
        _ => None,
    })
}

/// What a system message of DSPy's adapters wants done, beside its fields: a signature's instructions.
pub(super) fn objective(system: &str) -> Option<&str> {
    let (_, after) = system.split_once("Your output fields are:")?;
    after
        .split_once("your objective is:")
        .map(|(_, objective)| objective.trim())
}
