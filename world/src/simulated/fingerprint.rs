//! Hashes of JSON values.

use serde_json::Value;

use super::random::Draw;

/// A hash of a JSON value, without writing it out.
pub(super) fn value_fingerprint(value: &Value) -> u64 {
    let key = match value {
        Value::Null => Draw::new(5),
        Value::Bool(truth) => Draw::new(6).keyed(u64::from(*truth)),
        Value::Number(number) => Draw::new(7).keyed(number.as_f64().unwrap_or_default().to_bits()),
        Value::String(text) => Draw::new(8).named(text),
        Value::Array(items) => items
            .iter()
            .fold(Draw::new(9), |key, item| key.keyed(value_fingerprint(item))),
        Value::Object(fields) => fields.iter().fold(Draw::new(10), |key, (name, item)| {
            key.named(name).keyed(value_fingerprint(item))
        }),
    };
    key.key()
}
