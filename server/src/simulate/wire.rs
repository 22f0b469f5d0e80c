//! OpenAI's chat-completions format, read and written.
//!
//! Source: <https://platform.openai.com/docs/api-reference/chat/create>. Fields that no model here heeds
//! (`user`, penalties …) are accepted and have no effect;
//! fields that ask for another kind of answer (`stream`, `n`, a forced tool, a response format)
//! are refused by name.

use axum::http::StatusCode;
use capo_core::llm::{AssistantMessage, CallUsage, ChatResponse, Finish, Message, ToolCall, ToolSpec};
use serde::Deserialize;
use serde_json::{Value, json};

use super::refusal::Refusal;

/// A request body as it arrives.
#[derive(Debug, Deserialize)]
struct Body {
    model: String,
    messages: Vec<WireMessage>,
    tools: Option<Vec<WireTool>>,
    tool_choice: Option<Value>,
    seed: Option<Value>,
    temperature: Option<f64>,
    top_p: Option<f64>,
    max_tokens: Option<u64>,
    max_completion_tokens: Option<u64>,
    n: Option<u64>,
    stream: Option<bool>,
    response_format: Option<Value>,
}

#[derive(Debug, Deserialize)]
struct WireMessage {
    role: String,
    content: Option<Value>,
    tool_calls: Option<Vec<WireToolCall>>,
    tool_call_id: Option<String>,
}

#[derive(Debug, Deserialize)]
struct WireToolCall {
    id: String,
    function: WireFunctionCall,
}

#[derive(Debug, Deserialize)]
struct WireFunctionCall {
    name: String,
    arguments: String,
}

#[derive(Debug, Deserialize)]
struct WireTool {
    function: WireFunction,
}

#[derive(Debug, Deserialize)]
struct WireFunction {
    name: String,
    #[serde(default)]
    description: Option<String>,
    #[serde(default)]
    parameters: Option<Value>,
}

/// A request that can be answered.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Completion {
    /// The model asked for, as the client wrote it.
    pub(super) model: String,
    pub(super) messages: Vec<Message>,
    /// Empty as well when the client forbids tools (`tool_choice: "none"`).
    pub(super) tools: Vec<ToolSpec>,
    /// As the client gave it; negative seeds by their two's complement.
    pub(super) seed: Option<u64>,
    pub(super) wishes: Wishes,
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

/// Reads a request body.
///
/// # Errors
/// When it is not JSON, lacks something, or asks for what this server does not do.
pub(super) fn read(body: &[u8]) -> Result<Completion, Refusal> {
    let body: Body = serde_json::from_slice(body).map_err(|error| {
        Refusal::unreadable(
            StatusCode::BAD_REQUEST,
            format!("The body is not a chat completion request: {error}."),
        )
    })?;
    if body.stream == Some(true) {
        return Err(Refusal::field(
            "stream",
            "Streaming is not supported; leave `stream` out.",
        ));
    }
    if body.n.is_some_and(|n| n != 1) {
        return Err(Refusal::field(
            "n",
            "One answer per request: leave `n` out or make it 1.",
        ));
    }
    if let Some(format) = &body.response_format
        && format.get("type").and_then(Value::as_str) != Some("text")
    {
        return Err(Refusal::field(
            "response_format",
            "Only `{\"type\": \"text\"}` is supported; ask for JSON in the messages.",
        ));
    }
    if let Some(temperature) = body.temperature
        && !(0.0..=2.0).contains(&temperature)
    {
        return Err(Refusal::field(
            "temperature",
            format!("`temperature` is {temperature}; it must lie in 0 to 2."),
        ));
    }
    if let Some(top_p) = body.top_p
        && !(0.0..=1.0).contains(&top_p)
    {
        return Err(Refusal::field(
            "top_p",
            format!("`top_p` is {top_p}; it must lie in 0 to 1."),
        ));
    }
    let max_tokens = body.max_completion_tokens.or(body.max_tokens);
    if max_tokens == Some(0) {
        return Err(Refusal::field("max_tokens", "`max_tokens` must be at least 1."));
    }
    if body.messages.is_empty() {
        return Err(Refusal::field(
            "messages",
            "`messages` is empty; send at least one.",
        ));
    }
    let mut tools: Vec<ToolSpec> = body.tools.unwrap_or_default().into_iter().map(tool).collect();
    match body
        .tool_choice
        .as_ref()
        .map(|choice| choice.as_str().unwrap_or_default())
    {
        None | Some("auto") => {}
        Some("none") => tools.clear(),
        Some(_) => {
            return Err(Refusal::field(
                "tool_choice",
                "Only `auto` and `none` are supported; a simulated model cannot be forced to call.",
            ));
        }
    }
    let messages = body
        .messages
        .into_iter()
        .enumerate()
        .map(|(index, wire)| message(index, wire))
        .collect::<Result<_, _>>()?;
    Ok(Completion {
        model: body.model,
        messages,
        tools,
        seed: body.seed.as_ref().map(seed).transpose()?,
        wishes: Wishes {
            temperature: body.temperature,
            top_p: body.top_p,
            max_tokens,
        },
    })
}

fn seed(value: &Value) -> Result<u64, Refusal> {
    value
        .as_u64()
        .or_else(|| value.as_i64().map(i64::cast_unsigned))
        .ok_or_else(|| Refusal::field("seed", format!("`seed` is {value}; it must be a 64-bit integer.")))
}

fn tool(wire: WireTool) -> ToolSpec {
    ToolSpec {
        name: wire.function.name,
        description: wire.function.description.unwrap_or_default(),
        parameters: wire
            .function
            .parameters
            .unwrap_or_else(|| json!({"type": "object", "properties": {}})),
    }
}

fn message(index: usize, wire: WireMessage) -> Result<Message, Refusal> {
    let content = wire
        .content
        .as_ref()
        .map(|content| text(index, content))
        .transpose()?;
    let required = || {
        content.clone().ok_or_else(|| {
            Refusal::field(
                format!("messages[{index}].content"),
                "This message needs `content`.",
            )
        })
    };
    match wire.role.as_str() {
        "system" | "developer" => Ok(Message::System { content: required()? }),
        "user" => Ok(Message::User { content: required()? }),
        "assistant" => Ok(Message::Assistant(AssistantMessage {
            content,
            tool_calls: wire
                .tool_calls
                .unwrap_or_default()
                .into_iter()
                .map(tool_call)
                .collect(),
        })),
        "tool" => Ok(Message::Tool {
            call_id: wire.tool_call_id.ok_or_else(|| {
                Refusal::field(
                    format!("messages[{index}].tool_call_id"),
                    "A tool message needs the `tool_call_id` it answers.",
                )
            })?,
            content: required()?,
        }),
        other => Err(Refusal::field(
            format!("messages[{index}].role"),
            format!("Unknown role {other:?}; use system, developer, user, assistant or tool."),
        )),
    }
}

fn tool_call(wire: WireToolCall) -> ToolCall {
    let WireFunctionCall { name, arguments } = wire.function;
    let arguments = match arguments.trim() {
        "" => json!({}),
        // What a model wrote and nobody can parse is still what it wrote.
        _ => serde_json::from_str(&arguments).unwrap_or(Value::String(arguments)),
    };
    ToolCall {
        id: wire.id,
        name,
        arguments,
    }
}

/// The text of a `content`: a string, or parts of text set one after another.
fn text(index: usize, content: &Value) -> Result<String, Refusal> {
    let wrong = |message: String| Refusal::field(format!("messages[{index}].content"), message);
    match content {
        Value::String(text) => Ok(text.clone()),
        Value::Array(parts) => parts
            .iter()
            .map(|part| match (part["type"].as_str(), part["text"].as_str()) {
                (Some("text"), Some(text)) => Ok(text),
                (kind, _) => Err(wrong(format!(
                    "A content part of type {:?} cannot be read; only text parts can.",
                    kind.unwrap_or("(none)")
                ))),
            })
            .collect(),
        _ => Err(wrong(
            "`content` must be a string or a list of text parts.".into(),
        )),
    }
}

/// Cuts an answer of a model that heeds no wishes at a number of output tokens, in proportion to its characters, as a
/// provider does: a text that ran into the limit calls no tools any more. Time and tokens shrink with it.
pub(super) fn cut(response: &mut ChatResponse, max_tokens: u64) {
    let written = response.usage.output_tokens;
    if written <= max_tokens {
        return;
    }
    let share = max_tokens as f64 / written as f64;
    if let Some(text) = &mut response.message.content {
        let keep = (text.chars().count() as f64 * share) as usize;
        if let Some((end, _)) = text.char_indices().nth(keep) {
            text.truncate(end);
        }
    }
    response.message.tool_calls.clear();
    response.finish = Finish::Length;
    response.usage.output_tokens = max_tokens;
    response.usage.seconds *= share;
}

/// Writes an answer as the body of a `chat.completion`.
///
/// `id` names the answer, `created` is in seconds since the Unix epoch.
pub(super) fn write(id: &str, created: u64, model: &str, response: &ChatResponse) -> Value {
    let mut message = json!({"role": "assistant", "content": response.message.content});
    if !response.message.tool_calls.is_empty() {
        message["tool_calls"] = response.message.tool_calls.iter().map(write_tool_call).collect();
    }
    let CallUsage {
        input_tokens,
        output_tokens,
        ..
    } = response.usage;
    json!({
        "id": id,
        "object": "chat.completion",
        "created": created,
        "model": model,
        "choices": [{
            "index": 0,
            "message": message,
            "logprobs": null,
            "finish_reason": match response.finish {
                Finish::Stop => "stop",
                Finish::ToolCalls => "tool_calls",
                Finish::Length => "length",
                Finish::Filter => "content_filter",
            },
        }],
        "usage": {
            "prompt_tokens": input_tokens,
            "completion_tokens": output_tokens,
            "total_tokens": input_tokens + output_tokens,
        },
    })
}

fn write_tool_call(call: &ToolCall) -> Value {
    let arguments = match &call.arguments {
        Value::String(raw) => raw.clone(),
        other => other.to_string(),
    };
    json!({"id": call.id, "type": "function", "function": {"name": call.name, "arguments": arguments}})
}
