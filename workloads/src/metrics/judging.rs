//! Asking a judge model for a verdict that can be read.

use capo_core::llm::{AssistantMessage, ChatRequest, FailureKind, Message, Role};
use capo_core::workload::{RolloutContext, RolloutError};

use super::visible;

/// Calls of the judge's model for one verdict, the retry included.
pub(crate) const ATTEMPTS: u64 = 2;

/// Asks the judge and hands what it answers, without its reasoning, to `read`. A verdict that cannot be
/// read is asked for once more, with the reason; `who` begins the error when that does not help.
///
/// # Errors
/// When a call fails, or no verdict can be read in [`ATTEMPTS`].
pub(crate) async fn ask<T>(
    context: &RolloutContext<'_>,
    instructions: String,
    question: String,
    who: &str,
    read: impl Fn(&str) -> Result<T, String>,
) -> Result<T, RolloutError> {
    let mut messages = vec![Message::system(instructions), Message::user(question)];
    let mut problem = String::new();
    for _ in 0..ATTEMPTS {
        let response = context
            .chat(Role::Judge, ChatRequest::new(messages.clone()))
            .await?;
        let text = response.message.text().to_owned();
        match read(unfenced(&visible(&text))) {
            Ok(verdict) => return Ok(verdict),
            Err(reason) => problem = reason,
        }
        messages.push(Message::Assistant(AssistantMessage {
            content: Some(text),
            tool_calls: Vec::new(),
        }));
        messages.push(Message::user(format!(
            "That verdict cannot be read: {problem}. Reply again with the JSON object alone."
        )));
    }
    Err(RolloutError::failed(
        FailureKind::Malformed,
        true,
        format!("{who} gave no usable verdict in {ATTEMPTS} attempts: {problem}"),
    ))
}

/// What stands alone or in one Markdown fence.
fn unfenced(answer: &str) -> &str {
    let text = answer.trim();
    text.strip_prefix("```json")
        .or_else(|| text.strip_prefix("```"))
        .and_then(|rest| rest.strip_suffix("```"))
        .unwrap_or(text)
}

/// A text inside a tag that it cannot close.
pub(crate) fn quoted(tag: &str, text: &str) -> String {
    let text = text.replace(&format!("</{tag}"), &format!("<\\/{tag}"));
    format!("<{tag}>\n{text}\n</{tag}>")
}
