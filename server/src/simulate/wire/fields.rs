//! The fields of a JSON object, taken with their types; what is wrong is told with the field's name.

use serde_json::{Map, Value};

use crate::simulate::refusal::Refusal;

/// A JSON object and where it stands in the request, such as `messages[0]`; the request itself is
/// at the empty path.
pub(super) struct Fields<'a> {
    path: String,
    map: &'a Map<String, Value>,
}

impl<'a> Fields<'a> {
    /// The object at `path`.
    pub(super) fn of(path: impl Into<String>, value: &'a Value) -> Result<Self, Refusal> {
        let path = path.into();
        match value {
            Value::Object(map) => Ok(Self { path, map }),
            other if path.is_empty() => Err(Refusal::body(format!(
                "The body must be a JSON object, not {}.",
                shown(other)
            ))),
            other => Err(mistyped(&path, "an object", other)),
        }
    }

    /// The path of a field.
    pub(super) fn path(&self, name: &str) -> String {
        match self.path.as_str() {
            "" => name.to_owned(),
            path => format!("{path}.{name}"),
        }
    }

    /// A field that is there and not null.
    pub(super) fn get(&self, name: &str) -> Option<&'a Value> {
        self.map.get(name).filter(|value| !value.is_null())
    }

    /// A field that must be there.
    pub(super) fn required(&self, name: &str) -> Result<&'a Value, Refusal> {
        self.get(name).ok_or_else(|| {
            let path = self.path(name);
            Refusal::field(path.clone(), format!("`{path}` is missing."))
        })
    }

    pub(super) fn text(&self, name: &str) -> Result<Option<&'a str>, Refusal> {
        self.typed(name, "a string", Value::as_str)
    }

    pub(super) fn flag(&self, name: &str) -> Result<bool, Refusal> {
        Ok(self
            .typed(name, "true or false", Value::as_bool)?
            .unwrap_or(false))
    }

    pub(super) fn list(&self, name: &str) -> Result<Option<&'a [Value]>, Refusal> {
        self.typed(name, "a list", |value| value.as_array().map(Vec::as_slice))
    }

    /// A number in a range.
    pub(super) fn number(&self, name: &str, low: f64, high: f64) -> Result<Option<f64>, Refusal> {
        let number = self.typed(name, "a number", Value::as_f64)?;
        match number {
            Some(number) if !(low..=high).contains(&number) => Err(self.wrong(
                name,
                format!(
                    "`{}` is {number}; it must lie in {low} to {high}.",
                    self.path(name)
                ),
            )),
            number => Ok(number),
        }
    }

    /// A whole number of at least 1.
    pub(super) fn count(&self, name: &str) -> Result<Option<u64>, Refusal> {
        let Some(value) = self.get(name) else {
            return Ok(None);
        };
        match value.as_u64() {
            Some(count) if count > 0 => Ok(Some(count)),
            _ => Err(self.wrong(
                name,
                format!(
                    "`{}` is {}; it must be a whole number of at least 1.",
                    self.path(name),
                    shown(value)
                ),
            )),
        }
    }

    /// A refusal of a field.
    pub(super) fn wrong(&self, name: &str, message: impl Into<String>) -> Refusal {
        Refusal::field(self.path(name), message)
    }

    fn typed<T>(
        &self,
        name: &str,
        expected: &str,
        read: impl Fn(&'a Value) -> Option<T>,
    ) -> Result<Option<T>, Refusal> {
        let Some(value) = self.get(name) else {
            return Ok(None);
        };
        let typed = read(value).ok_or_else(|| mistyped(&self.path(name), expected, value))?;
        Ok(Some(typed))
    }
}

fn mistyped(path: &str, expected: &str, found: &Value) -> Refusal {
    let message = format!("`{path}` must be {expected}, not {}.", shown(found));
    Refusal::field(path, message)
}

/// A value as a message names it: a short one itself, else its kind.
fn shown(value: &Value) -> String {
    match value {
        Value::Array(_) => "a list".into(),
        Value::Object(_) => "an object".into(),
        Value::String(text) if text.chars().count() > 40 => "a string".into(),
        other => other.to_string(),
    }
}
