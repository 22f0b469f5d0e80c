//! Answers from outside: JSON with numbers by name.

use capo_core::metric::{MetricSpec, shown};
use capo_core::study::suggest;
use indexmap::IndexMap;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::transport::Answer;

/// Reads an answer. Numbers that JSON does not have become `null`, to be named later.
///
/// # Errors
/// Says that it is not `what`, and how it ends.
pub(crate) fn parse<T: DeserializeOwned>(answer: &Answer, what: &str) -> Result<T, String> {
    let text = std::str::from_utf8(&answer.bytes)
        .map_err(|error| format!("its answer is not UTF-8 at byte offset {}", error.valid_up_to()))?;
    serde_json::from_str(text).or_else(|error| {
        serde_json::from_str(&without_nan(text)).map_err(|_| {
            let end = answer.secrets.tail(&answer.bytes);
            let told = suggest(&error.to_string());
            format!("its answer is not {what}: {told}; the answer ends with: {end}")
        })
    })
}

/// The value of a metric that was given under a name.
///
/// # Errors
/// When it is missing, no finite number, or outside the metric's range.
pub(crate) fn measured(
    spec: &MetricSpec,
    name: &str,
    given: &IndexMap<String, Value>,
) -> Result<f64, String> {
    let value = match given.get(name) {
        None => {
            let names: Vec<&str> = given.keys().map(String::as_str).collect();
            return Err(format!(
                "its answer has no measurement `{name}`; it has: {}",
                names.join(", ")
            ));
        }
        Some(Value::Null) => {
            return Err(format!(
                "measurement `{name}` is not a number (NaN, infinite or null)"
            ));
        }
        Some(Value::Bool(holds)) => f64::from(u8::from(*holds)),
        Some(value) => value
            .as_f64()
            .ok_or_else(|| format!("measurement `{name}` is not a number but {value}"))?,
    };
    if spec.min.is_some_and(|min| value < min) || spec.max.is_some_and(|max| value > max) {
        let bound = |bound: Option<f64>| bound.map_or("…".to_owned(), |bound| bound.to_string());
        return Err(format!(
            "measurement `{name}` is {}, outside its range {} to {}",
            shown(value),
            bound(spec.min),
            bound(spec.max)
        ));
    }
    Ok(value)
}

/// `NaN`, `Infinity` and `-Infinity` outside strings as `null`. Python writes them though JSON has
/// no such values; this way the error can name the metric instead of a column of the text.
fn without_nan(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut rest = text;
    let (mut quoted, mut escaped) = (false, false);
    while let Some(c) = rest.chars().next() {
        if !quoted
            && let Some(word) = ["NaN", "Infinity", "-Infinity"]
                .into_iter()
                .find(|word| rest.starts_with(word))
        {
            plain.push_str("null");
            rest = &rest[word.len()..];
            continue;
        }
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = quoted,
            '"' => quoted = !quoted,
            _ => {}
        }
        plain.push(c);
        rest = &rest[c.len_utf8()..];
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nan_is_replaced_outside_strings_only() {
        let text = r#"{"a": NaN, "b \" NaN": "NaN", "c": [-Infinity, Infinity]}"#;
        assert_eq!(
            without_nan(text),
            r#"{"a": null, "b \" NaN": "NaN", "c": [null, null]}"#
        );
    }
}
