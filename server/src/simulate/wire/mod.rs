//! OpenAI's chat-completions format, read and written.
//!
//! Source: <https://platform.openai.com/docs/api-reference/chat/create>. Fields that no model here heeds
//! (`user`, penalties …) are accepted and have no effect; fields that ask for another kind of answer
//! than there is (`n`, `logprobs`) are refused by name.

mod fields;
mod request;
mod shape;
mod write;

use capo_core::llm::{Message, ToolSpec};

pub(super) use request::read;
pub(super) use shape::{cut, shape};
pub(super) use write::{Heading, chunks, whole};

/// A request that can be answered.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Completion {
    /// The model asked for, as the client wrote it.
    pub(super) model: String,
    pub(super) messages: Vec<Message>,
    /// Empty as well when the client forbids tools (`tool_choice: "none"`); the one that must be called.
    pub(super) tools: Vec<ToolSpec>,
    /// As the client gave it; negative seeds by their two's complement.
    pub(super) seed: Option<u64>,
    pub(super) wishes: Wishes,
    pub(super) form: Form,
    /// Whether it is written in chunks as they come; then, whether the last one tells the usage.
    pub(super) stream: Option<bool>,
}

/// What a request says of how its answer is drawn.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(crate) struct Wishes {
    /// In 0 to 2; 0 asks to be answered alike each time.
    pub(crate) temperature: Option<f64>,
    /// In 0 to 1.
    pub(crate) top_p: Option<f64>,
    /// Tokens of the longest answer, at least 1.
    pub(crate) max_tokens: Option<u64>,
}

/// What a request says of the form of its answer.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Form {
    /// The answer ends before any of these.
    pub(super) stop: Vec<String>,
    /// Whether it must call a tool.
    pub(super) must_call: bool,
    pub(super) response: ResponseForm,
}

/// What the text of an answer must be.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) enum ResponseForm {
    /// Anything.
    #[default]
    Text,
    /// A JSON object.
    Json,
    /// A JSON object with at least these keys; where one key alone is there, and holds a text, its name.
    Schema {
        required: Vec<String>,
        text: Option<String>,
    },
}
