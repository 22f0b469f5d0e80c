//! Answers, whole or in chunks.

use capo_core::llm::{CallUsage, ChatResponse, Finish, ToolCall};
use serde_json::{Value, json};

/// What every answer is headed by.
#[derive(Debug, Clone, Copy)]
pub(in crate::simulate) struct Heading<'a> {
    /// Names the answer.
    pub(in crate::simulate) id: &'a str,
    /// In seconds since the Unix epoch.
    pub(in crate::simulate) created: u64,
    pub(in crate::simulate) model: &'a str,
}

impl Heading<'_> {
    fn object(self, kind: &str, choices: &Value) -> Value {
        json!({
            "id": self.id,
            "object": kind,
            "created": self.created,
            "model": self.model,
            "choices": choices,
        })
    }
}

/// Writes an answer as the body of a `chat.completion`.
pub(in crate::simulate) fn whole(heading: Heading, response: &ChatResponse) -> String {
    let mut message = json!({"role": "assistant", "content": response.message.content});
    if !response.message.tool_calls.is_empty() {
        message["tool_calls"] = response.message.tool_calls.iter().map(tool_call).collect();
    }
    let choice = json!({
        "index": 0,
        "message": message,
        "logprobs": null,
        "finish_reason": finish_reason(response.finish),
    });
    let mut body = heading.object("chat.completion", &json!([choice]));
    body["usage"] = usage(response.usage);
    body.to_string()
}

/// Writes an answer as server-sent events: who speaks, the text word by word, each call of a tool
/// and then its arguments, why it ended, where it is wished the usage, and `[DONE]`.
pub(in crate::simulate) fn chunks(heading: Heading, response: &ChatResponse, tells_usage: bool) -> String {
    let mut deltas = vec![json!({"role": "assistant", "content": ""})];
    let text = response.message.content.as_deref().unwrap_or_default();
    deltas.extend(text.split_inclusive(' ').map(|word| json!({"content": word})));
    for (index, call) in response.message.tool_calls.iter().enumerate() {
        let whole = tool_call(call);
        let arguments = whole["function"]["arguments"]
            .as_str()
            .unwrap_or_default()
            .to_owned();
        let mut begun = whole;
        begun["index"] = index.into();
        begun["function"]["arguments"] = "".into();
        let pieces = arguments.split_inclusive(' ');
        let pieces = pieces.map(|piece| json!({"index": index, "function": {"arguments": piece}}));
        deltas.extend(
            std::iter::once(begun)
                .chain(pieces)
                .map(|call| json!({"tool_calls": [call]})),
        );
    }
    let reason = Some(finish_reason(response.finish));
    let said = deltas.into_iter().map(|delta| (delta, None));
    let mut events = String::new();
    for (delta, finish_reason) in said.chain([(json!({}), reason)]) {
        let choice = json!({"index": 0, "delta": delta, "logprobs": null, "finish_reason": finish_reason});
        let mut chunk = heading.object("chat.completion.chunk", &json!([choice]));
        if tells_usage {
            chunk["usage"] = Value::Null;
        }
        events.extend(event(&chunk));
    }
    if tells_usage {
        let mut last = heading.object("chat.completion.chunk", &json!([]));
        last["usage"] = usage(response.usage);
        events.extend(event(&last));
    }
    events + "data: [DONE]\n\n"
}

/// A chunk as one server-sent event.
fn event(chunk: &Value) -> [String; 3] {
    ["data: ".to_owned(), chunk.to_string(), "\n\n".to_owned()]
}

fn usage(usage: CallUsage) -> Value {
    let CallUsage {
        input_tokens,
        output_tokens,
        ..
    } = usage;
    json!({
        "prompt_tokens": input_tokens,
        "completion_tokens": output_tokens,
        "total_tokens": input_tokens + output_tokens,
    })
}

fn finish_reason(finish: Finish) -> &'static str {
    match finish {
        Finish::Stop => "stop",
        Finish::ToolCalls => "tool_calls",
        Finish::Length => "length",
        Finish::Filter => "content_filter",
    }
}

fn tool_call(call: &ToolCall) -> Value {
    let arguments = match &call.arguments {
        Value::String(raw) => raw.clone(),
        other => other.to_string(),
    };
    json!({"id": call.id, "type": "function", "function": {"name": call.name, "arguments": arguments}})
}
