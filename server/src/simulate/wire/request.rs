//! Requests.

use capo_core::llm::{AssistantMessage, Message, ToolCall, ToolSpec};
use serde_json::{Value, json};

use super::fields::Fields;
use super::{Completion, Form, ResponseForm, Wishes};
use crate::simulate::refusal::Refusal;

/// The most sequences that may end an answer, as OpenAI has it.
const STOPS: usize = 4;

/// Reads a request body.
///
/// # Errors
/// When it is not JSON, lacks something, or asks for what this server does not do.
pub(in crate::simulate) fn read(body: &[u8]) -> Result<Completion, Refusal> {
    let body: Value = serde_json::from_slice(body).map_err(|error| {
        Refusal::body(format!(
            "The body is not JSON: it cannot be read from line {}, column {} on.",
            error.line(),
            error.column()
        ))
    })?;
    let body = Fields::of("", &body)?;
    let model = body.text("model")?;
    let model =
        model.ok_or_else(|| body.wrong("model", "`model` is missing; name one of GET /v1/models."))?;
    if body.get("n").is_some_and(|n| *n != json!(1)) {
        return Err(body.wrong("n", "One answer per request: leave `n` out or make it 1."));
    }
    for name in ["logprobs", "top_logprobs"] {
        if body.get(name).is_some_and(|wanted| *wanted != json!(false)) {
            let message = format!("No model here tells probabilities of tokens: leave `{name}` out.");
            return Err(body.wrong(name, message));
        }
    }
    let (tools, must_call) = chosen(&body, tools(&body)?)?;
    Ok(Completion {
        model: model.to_owned(),
        messages: messages(&body)?,
        tools,
        seed: body.get("seed").map(seed).transpose()?,
        wishes: Wishes {
            temperature: body.number("temperature", 0.0, 2.0)?,
            top_p: body.number("top_p", 0.0, 1.0)?,
            max_tokens: match body.count("max_completion_tokens")? {
                None => body.count("max_tokens")?,
                most => most,
            },
        },
        form: Form {
            stop: stop(&body)?,
            must_call,
            response: response_form(&body)?,
        },
        stream: stream(&body)?,
    })
}

fn stream(body: &Fields) -> Result<Option<bool>, Refusal> {
    let wanted = body.flag("stream")?;
    let Some(options) = body.get("stream_options") else {
        return Ok(wanted.then_some(false));
    };
    if !wanted {
        return Err(body.wrong(
            "stream_options",
            "`stream_options` is for answers that are streamed: set `stream` to true, or leave it out.",
        ));
    }
    let options = Fields::of("stream_options", options)?;
    Ok(Some(options.flag("include_usage")?))
}

fn stop(body: &Fields) -> Result<Vec<String>, Refusal> {
    let refuse = || {
        let message = format!("`stop` must be a string or a list of at most {STOPS}, none of them empty.");
        body.wrong("stop", message)
    };
    let sequences: Vec<String> = match body.get("stop") {
        None => Vec::new(),
        Some(Value::String(sequence)) => vec![sequence.clone()],
        Some(Value::Array(sequences)) => {
            let each = sequences
                .iter()
                .map(|sequence| sequence.as_str().map(str::to_owned));
            each.collect::<Option<_>>().ok_or_else(refuse)?
        }
        Some(_) => return Err(refuse()),
    };
    if sequences.len() > STOPS || sequences.iter().any(String::is_empty) {
        return Err(refuse());
    }
    Ok(sequences)
}

fn response_form(body: &Fields) -> Result<ResponseForm, Refusal> {
    let Some(form) = body.get("response_format") else {
        return Ok(ResponseForm::Text);
    };
    let form = Fields::of("response_format", form)?;
    match form.text("type")? {
        Some("text") => Ok(ResponseForm::Text),
        Some("json_object") => Ok(ResponseForm::Json),
        Some("json_schema") => {
            let named = Fields::of("response_format.json_schema", form.required("json_schema")?)?;
            let schema = Fields::of("response_format.json_schema.schema", named.required("schema")?)?;
            let required = schema.list("required")?.unwrap_or_default();
            let required: Vec<String> = required
                .iter()
                .filter_map(Value::as_str)
                .map(str::to_owned)
                .collect();
            let properties = schema.get("properties").and_then(Value::as_object);
            let only = properties.filter(|properties| properties.len() == 1);
            let text = only
                .and_then(|properties| properties.iter().next())
                .filter(|(_, property)| property["type"] == "string" && property.get("enum").is_none());
            Ok(ResponseForm::Schema {
                required,
                text: text.map(|(name, _)| name.clone()),
            })
        }
        other => Err(form.wrong(
            "type",
            format!(
                "`response_format.type` is {}; use text, json_object or json_schema.",
                other.unwrap_or("missing")
            ),
        )),
    }
}

fn tools(body: &Fields) -> Result<Vec<ToolSpec>, Refusal> {
    let tools = body.list("tools")?.unwrap_or_default();
    let each = tools.iter().enumerate().map(|(index, tool)| {
        let tool = Fields::of(format!("tools[{index}]"), tool)?;
        let function = Fields::of(tool.path("function"), tool.required("function")?)?;
        function.required("name")?;
        Ok(ToolSpec {
            name: function.text("name")?.unwrap_or_default().to_owned(),
            description: function.text("description")?.unwrap_or_default().to_owned(),
            parameters: function
                .get("parameters")
                .cloned()
                .unwrap_or_else(|| json!({"type": "object", "properties": {}})),
        })
    });
    each.collect()
}

/// The tools that may be called, and whether one must be.
fn chosen(body: &Fields, mut tools: Vec<ToolSpec>) -> Result<(Vec<ToolSpec>, bool), Refusal> {
    let Some(choice) = body.get("tool_choice") else {
        return Ok((tools, false));
    };
    let named = choice["function"]["name"].as_str();
    match (choice.as_str(), named) {
        (Some("auto"), _) => return Ok((tools, false)),
        (Some("none"), _) => return Ok((Vec::new(), false)),
        (Some("required"), _) => {}
        (None, Some(name)) => tools.retain(|tool| tool.name == name),
        _ => {
            let message = "`tool_choice` must be auto, none, required, or an object that names a function.";
            return Err(body.wrong("tool_choice", message));
        }
    }
    if tools.is_empty() {
        let message = match named {
            Some(name) => format!("`tool_choice` names {name:?}, which is not among the `tools`."),
            None => "`tool_choice` is required, and there are no `tools`.".into(),
        };
        return Err(body.wrong("tool_choice", message));
    }
    Ok((tools, true))
}

fn seed(value: &Value) -> Result<u64, Refusal> {
    value
        .as_u64()
        .or_else(|| value.as_i64().map(i64::cast_unsigned))
        .ok_or_else(|| Refusal::field("seed", format!("`seed` is {value}; it must be a 64-bit integer.")))
}

fn messages(body: &Fields) -> Result<Vec<Message>, Refusal> {
    body.required("messages")?;
    let messages = body.list("messages")?.unwrap_or_default();
    if messages.is_empty() {
        return Err(body.wrong("messages", "`messages` is empty; send at least one."));
    }
    messages.iter().enumerate().map(message).collect()
}

fn message((index, message): (usize, &Value)) -> Result<Message, Refusal> {
    let message = Fields::of(format!("messages[{index}]"), message)?;
    let content = || {
        message
            .get("content")
            .map(|content| text(&message, content))
            .transpose()
    };
    let required = || content()?.ok_or_else(|| message.wrong("content", "This message needs `content`."));
    message.required("role")?;
    match message.text("role")?.unwrap_or_default() {
        "system" | "developer" => Ok(Message::System { content: required()? }),
        "user" => Ok(Message::User { content: required()? }),
        "assistant" => {
            let calls = message.list("tool_calls")?.unwrap_or_default().iter().enumerate();
            let calls = calls.map(|(place, call)| {
                tool_call(&Fields::of(message.path(&format!("tool_calls[{place}]")), call)?)
            });
            Ok(Message::Assistant(AssistantMessage {
                content: content()?,
                tool_calls: calls.collect::<Result<_, _>>()?,
            }))
        }
        "tool" => {
            let call = message.text("tool_call_id")?;
            let unnamed = || {
                message.wrong(
                    "tool_call_id",
                    "A tool message needs the `tool_call_id` it answers.",
                )
            };
            Ok(Message::Tool {
                call_id: call.ok_or_else(unnamed)?.to_owned(),
                content: required()?,
            })
        }
        other => Err(message.wrong(
            "role",
            format!("Unknown role {other:?}; use system, developer, user, assistant or tool."),
        )),
    }
}

fn tool_call(call: &Fields) -> Result<ToolCall, Refusal> {
    let function = Fields::of(call.path("function"), call.required("function")?)?;
    for (fields, name) in [(call, "id"), (&function, "name"), (&function, "arguments")] {
        fields.required(name)?;
    }
    let arguments = function.text("arguments")?.unwrap_or_default();
    Ok(ToolCall {
        id: call.text("id")?.unwrap_or_default().to_owned(),
        name: function.text("name")?.unwrap_or_default().to_owned(),
        arguments: match arguments.trim() {
            "" => json!({}),
            // What a model wrote and nobody can parse is still what it wrote.
            _ => serde_json::from_str(arguments).unwrap_or_else(|_| Value::String(arguments.to_owned())),
        },
    })
}

/// The text of a `content`: a string, or parts of text set one after another.
fn text(message: &Fields, content: &Value) -> Result<String, Refusal> {
    match content {
        Value::String(text) => Ok(text.clone()),
        Value::Array(parts) => parts
            .iter()
            .map(|part| match (part["type"].as_str(), part["text"].as_str()) {
                (Some("text"), Some(text)) => Ok(text),
                (kind, _) => Err(message.wrong(
                    "content",
                    format!(
                        "A content part of type {:?} cannot be read; only text parts can.",
                        kind.unwrap_or("(none)")
                    ),
                )),
            })
            .collect(),
        _ => Err(message.wrong("content", "`content` must be a string or a list of text parts.")),
    }
}
