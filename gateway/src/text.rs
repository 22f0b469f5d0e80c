//! Whether a request holds its whole input as text.
//!
//! The bytes of a request bound the tokens of its input only if it is all text: an image of a few hundred bytes, a URL
//! or a stored file may be tens of thousands of tokens. Tools that the provider runs itself cost extra and bring input
//! of their own. Studies send neither, so both are refused.

use serde_json::{Map, Value};

use crate::dialect::is_word_of;
use crate::problem::Problem;

/// Where bodies hold input, in any dialect.
const INPUT: [&str; 6] = [
    "contents",
    "input",
    "messages",
    "requests",
    "system",
    "systemInstruction",
];

/// The fields of messages and content, and where they hold more content.
const CONTENT_FIELDS: &str = "annotations arguments cache_control call_id content data encrypted_content functionCall
    functionResponse id index input is_error model name output outputDimensionality output_dimensionality parts phase
    prefix reasoning reasoning_content reasoning_details refusal response role signature status summary taskType text
    thinking thought thoughtSignature title tool_call_id tool_calls tool_use_id type";
const NESTED: [&str; 4] = ["content", "functionResponse", "output", "parts"];

/// The types of content that are text.
const CONTENT_TYPES: &str =
    "function_call function_call_output input_text message output_text reasoning reasoning_text
    redacted_thinking refusal summary_text text thinking tool_result tool_use";

/// The fields and types of tools that the caller runs.
const TOOL_FIELDS: &str =
    "cache_control description eager_input_streaming function functionDeclarations input_examples
    input_schema name parameters strict type";
const TOOL_TYPES: &str = "custom function";

/// Refuses input that is not text in the request itself, and tools that the provider runs.
pub(crate) fn check(body: &Map<String, Value>) -> Result<(), Problem> {
    if let Some(control) = body.get("cache_control") {
        check_cache(control, "")?;
    }
    for field in INPUT {
        if let Some(input) = body.get(field) {
            check_content(input, &format!("/{field}"))?;
        }
    }
    let tools = body.get("tools").unwrap_or(&Value::Null);
    let each = tools.as_array().into_iter().flatten().enumerate();
    each.into_iter()
        .try_for_each(|(index, tool)| check_object(tool, &format!("/tools/{index}"), TOOL_FIELDS, TOOL_TYPES))
}

/// Refuses an object with fields besides those listed, unless they are null.
pub(crate) fn only(value: &Value, fields: &str, at: &str) -> Result<(), Problem> {
    let object = value
        .as_object()
        .ok_or_else(|| Problem::of_body(at, "must be an object"))?;
    let is_other = |(name, value): &(&String, &Value)| !is_word_of(fields, name) && !value.is_null();
    match object.iter().find(is_other) {
        Some((name, _)) => Err(Problem::of_body(&format!("{at}/{name}"), "is not passed on")),
        None => Ok(()),
    }
}

fn check_object(value: &Value, at: &str, fields: &str, types: &str) -> Result<(), Problem> {
    only(value, fields, at)?;
    let kind = value.get("type").filter(|kind| !kind.is_null());
    if kind.is_some_and(|kind| !kind.as_str().is_some_and(|kind| is_word_of(types, kind))) {
        return Err(Problem::of_body(
            &format!("{at}/type"),
            "is not passed on: only text and functions are",
        ));
    }
    value
        .get("cache_control")
        .map_or(Ok(()), |control| check_cache(control, at))
}

fn check_content(value: &Value, at: &str) -> Result<(), Problem> {
    match value {
        Value::Array(items) => {
            let mut each = items.iter().enumerate();
            each.try_for_each(|(index, item)| check_content(item, &format!("{at}/{index}")))
        }
        Value::Object(fields) => {
            check_object(value, at, CONTENT_FIELDS, CONTENT_TYPES)?;
            let nested = NESTED.iter().filter_map(|name| Some((name, fields.get(*name)?)));
            nested
                .into_iter()
                .try_for_each(|(name, value)| check_content(value, &format!("{at}/{name}")))
        }
        _ => Ok(()),
    }
}

/// Writing into Anthropic's cache for an hour costs more than the price table says of writing into it.
fn check_cache(control: &Value, at: &str) -> Result<(), Problem> {
    match control.get("ttl") {
        Some(ttl) if ttl != "5m" => Err(Problem::of_body(&format!("{at}/cache_control/ttl"), "must be 5m")),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Where a body is refused; empty if it passes.
    fn refused_at(body: &str) -> String {
        let body: Value = serde_json::from_str(body).unwrap();
        let refused = check(body.as_object().unwrap()).err();
        refused.map_or(String::new(), |problem| {
            problem.members["pointer"].as_str().unwrap().to_owned()
        })
    }

    #[test]
    fn text_and_functions_pass() {
        for body in r#"{"messages":[{"role":"system","content":[{"type":"text","text":"image_url"}]},{"role":"user","content":"a"}]}
            {"messages":[{"role":"assistant","content":null,"tool_calls":[{"type":"function","id":"a","function":{}}]}]}
            {"tools":[{"type":"function","function":{"parameters":{"type":"image_url","image":{}}}}]}
            {"input":[{"role":"user","content":[{"type":"input_text","text":"a"}]},{"type":"function_call_output","call_id":"a","output":"b"}]}
            {"input":["a","b"]}
            {"input":[[1,2],[3]]}
            {"system":[{"type":"text","text":"a","cache_control":{"type":"ephemeral","ttl":"5m"}}],"tools":[{"name":"a","input_schema":{}}]}
            {"messages":[{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":[{"type":"text","text":"a"}]}]}]}
            {"contents":[{"role":"user","parts":[{"functionResponse":{"name":"a","response":{"image":{}}}}]}]}
            {"tools":[{"functionDeclarations":[],"codeExecution":null}],"systemInstruction":{"parts":[{"text":"a"}]}}
            {"requests":[{"model":"models/a","content":{"parts":[{"text":"a"}]},"output_dimensionality":8}]}"#
            .lines()
        {
            assert_eq!(refused_at(body), "", "{body}");
        }
    }

    #[test]
    fn what_is_not_text_in_the_request_is_refused() {
        for line in r#"/messages/0/content/0/type {"messages":[{"role":"user","content":[{"type":"image"}]}]}
            /messages/0/content/0/image_url {"messages":[{"role":"user","content":[{"type":"image_url","image_url":{}}]}]}
            /messages/0/content/0/content/0/source {"messages":[{"content":[{"type":"tool_result","content":[{"source":{}}]}]}]}
            /messages/0/audio {"messages":[{"role":"assistant","audio":{"id":"a"}}]}
            /input/0/type {"input":[{"type":"item_reference","id":"a"}]}
            /input/0/content/0/file_id {"input":[{"role":"user","content":[{"type":"input_file","file_id":"a"}]}]}
            /input/0/image {"input":[{"image":"https://a"}]}
            /tools/0/type {"tools":[{"type":"web_search_20250305","name":"web_search"}]}
            /tools/0/container {"tools":[{"type":"code_interpreter","container":{}}]}
            /tools/0/googleSearch {"tools":[{"googleSearch":{}}]}
            /system/0/cache_control/ttl {"system":[{"type":"text","cache_control":{"ttl":"1h"}}]}
            /cache_control/ttl {"cache_control":{"ttl":"1h"}}
            /contents/0/parts/0/inlineData {"contents":[{"parts":[{"inlineData":{}}]}]}
            /contents/parts/fileData {"contents":{"parts":{"fileData":{}}}}
            /contents/0/parts/0/functionResponse/parts/0/inlineData {"contents":[{"parts":[{"functionResponse":{"parts":[{"inlineData":{}}]}}]}]}
            /requests/0/content/parts/0/fileData {"requests":[{"content":{"parts":[{"fileData":{}}]}}]}"#
            .lines()
        {
            let (pointer, body) = line.trim().split_once(' ').unwrap();
            assert_eq!(refused_at(body), pointer, "{body}");
        }
    }
}
