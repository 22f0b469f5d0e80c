//! Arguments as somebody gets them wrong.

use capo_core::llm::ToolSpec;
use serde_json::Value;

use crate::simulated::random::Draw;

/// The arguments of a call with one of them wrong; as they are where there is none.
pub(super) fn mistaken(arguments: &Value, tool: Option<&ToolSpec>, draw: Draw) -> Value {
    let mut wrong = arguments.clone();
    let Some(fields) = wrong.as_object_mut() else {
        return wrong;
    };
    let is_something = |value: &Value| match value {
        Value::Null => false,
        Value::String(text) => !text.is_empty(),
        Value::Array(values) => !values.is_empty(),
        Value::Object(fields) => !fields.is_empty(),
        Value::Bool(_) | Value::Number(_) => true,
    };
    let mut possible: Vec<_> = fields
        .iter_mut()
        .filter(|(_, value)| is_something(value))
        .collect();
    let place = draw.named("which").pick(possible.len());
    if let Some((name, value)) = possible.get_mut(place) {
        let choices = tool.and_then(|tool| tool.parameters.pointer(&format!("/properties/{name}/enum")));
        let others: Vec<&Value> = choices
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .filter(|choice| **choice != **value)
            .collect();
        match others.get(draw.named("choice").pick(others.len())) {
            Some(other) => **value = (*other).clone(),
            None => confuse(value, draw),
        }
    }
    wrong
}

/// Makes a value another one of its kind.
fn confuse(value: &mut Value, draw: Draw) {
    match value {
        Value::Null => {}
        Value::Bool(truth) => *truth = !*truth,
        Value::Number(number) => {
            *value = match number.as_i64() {
                Some(number) => number.checked_add(1).unwrap_or(0).into(),
                None => (number.as_f64().unwrap_or_default() + 1.0).into(),
            };
        }
        Value::String(text) => *text = misread(text),
        Value::Array(values) if values.len() > 1 && draw.named("forgotten").chance(0.5) => {
            values.pop();
        }
        Value::Array(values) => {
            let place = draw.named("element").pick(values.len());
            if let Some(value) = values.get_mut(place) {
                confuse(value, draw.named("inside"));
            }
        }
        Value::Object(fields) => {
            let place = draw.named("field").pick(fields.len());
            if let Some((_, value)) = fields.iter_mut().nth(place) {
                confuse(value, draw.named("inside"));
            }
        }
    }
}

/// The same text with its last digit one higher, or without its last character where it has no digit.
fn misread(text: &str) -> String {
    if let Some(at) = text.rfind(|character: char| character.is_ascii_digit()) {
        let digit = (text.as_bytes()[at] - b'0' + 1) % 10;
        return format!("{}{digit}{}", &text[..at], &text[at + 1..]);
    }
    let mut shorter = text.to_owned();
    shorter.pop();
    shorter
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn exactly_one_argument_is_wrong() {
        let arguments = json!({ "id": "ZFA04Y", "line": "", "note": null, "more": [], "bags": 3, "cabin": "economy", "items": ["1", "2"], "paid": 1.5 });
        let tool = ToolSpec {
            name: "update".to_owned(),
            description: String::new(),
            parameters: json!({ "properties": { "cabin": { "enum": ["business", "economy"] } } }),
        };
        for index in 0..50 {
            let wrong = mistaken(&arguments, Some(&tool), Draw::new(index));
            let changed: Vec<&String> = arguments
                .as_object()
                .unwrap()
                .keys()
                .filter(|key| wrong[*key] != arguments[*key])
                .collect();
            assert_eq!(changed.len(), 1, "{wrong}");
            assert!(["business", "economy"].contains(&wrong["cabin"].as_str().unwrap()));
        }
        assert_eq!(mistaken(&json!({}), None, Draw::new(0)), json!({}));
    }
}
