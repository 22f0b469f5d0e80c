//! TOML with its keys in the order in which they are written, in which apps are listed.

use capo_core::study::told_of_toml;
use serde_json::{Map, Value};
use toml::de::{DeTable, DeValue};

/// Reads a file.
///
/// # Errors
/// What is wrong with it, and where.
pub(super) fn parse(text: &str) -> Result<Value, String> {
    let document = DeTable::parse(text).map_err(|error| told_of_toml(text, &error))?;
    Ok(table(document.get_ref()))
}

fn table(table: &DeTable) -> Value {
    let mut entries: Vec<_> = table.iter().collect();
    entries.sort_by_key(|(key, _)| key.span().start);
    let entries = entries.into_iter();
    Value::Object(
        entries
            .map(|(key, entry)| (key.get_ref().to_string(), value(entry.get_ref())))
            .collect::<Map<String, Value>>(),
    )
}

/// Numbers that JSON does not have are null, which is refused where a number is wanted.
fn value(value: &DeValue) -> Value {
    match value {
        DeValue::String(text) => text.as_ref().into(),
        DeValue::Integer(int) => {
            i64::from_str_radix(int.as_str(), int.radix()).map_or(Value::Null, Value::from)
        }
        DeValue::Float(float) => float.as_str().parse::<f64>().map_or(Value::Null, Value::from),
        DeValue::Boolean(flag) => (*flag).into(),
        DeValue::Datetime(moment) => moment.to_string().into(),
        DeValue::Array(values) => values.iter().map(|entry| self::value(entry.get_ref())).collect(),
        DeValue::Table(entries) => table(entries),
    }
}
