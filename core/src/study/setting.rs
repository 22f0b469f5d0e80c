//! Keys of a study that are set beside its file.

use std::fmt;
use std::str::FromStr;

use serde_json::{Map, Value};

use super::error::StudyError;
use super::suggest::nearest;
use super::text_checks::{check_depth, check_finite};

/// A key of a study and its value, as people type them: `budget.usd=2`.
///
/// The key is dotted; an entry of a list is named by its number, from 0, or by its `metric` or `name`. The value is
/// written as in TOML, and a bare word is a text.
#[derive(Debug, Clone, PartialEq)]
pub struct Setting {
    written: String,
    path: Vec<String>,
    value: Value,
}

impl FromStr for Setting {
    type Err = String;

    fn from_str(written: &str) -> Result<Self, String> {
        let split = written.split_once('=');
        let read = split.and_then(|(key, value)| Some((path(key.trim())?, value.trim())));
        let (path, value) =
            read.ok_or("write it as KEY=VALUE with a dotted key, such as budget.usd=2 or study.seed=1")?;
        Ok(Self {
            written: written.to_owned(),
            path,
            value: read_value(value)?,
        })
    }
}

impl fmt::Display for Setting {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.written)
    }
}

impl Setting {
    /// The dotted key.
    pub(super) fn key(&self) -> String {
        self.path.join(".")
    }

    /// Sets the key in a study; tables that lead to it are made.
    ///
    /// # Errors
    /// When a list on the way has no such entry, or what is on the way holds no keys.
    pub(super) fn apply(&self, study: &mut Value) -> Result<(), StudyError> {
        let mut place = study;
        for (depth, name) in self.path.iter().enumerate() {
            if place.is_null() {
                *place = Value::Object(Map::new());
            }
            let wrong = |problem: String| StudyError::invalid(self.path[..depth].join("."), problem);
            place = match place {
                Value::Object(table) => table.entry(name.as_str()).or_insert(Value::Null),
                Value::Array(entries) => {
                    let named = || {
                        let mut names = entries.iter().map(name_of);
                        names.position(|other| other == Some(name.as_str()))
                    };
                    let index: Option<usize> = name.parse().ok().or_else(named);
                    let Some(index) = index.filter(|index| *index < entries.len()) else {
                        let near = nearest(name, entries.iter().filter_map(name_of));
                        let near = near.map(|near| format!("; did you mean `{near}`?"));
                        return Err(wrong(format!(
                            "there is no entry `{name}` among {}, which are numbered from 0{}",
                            entries.len(),
                            near.unwrap_or_default()
                        )));
                    };
                    &mut entries[index]
                }
                _ => return Err(wrong(format!("holds no keys such as `{name}`"))),
            };
        }
        place.clone_from(&self.value);
        Ok(())
    }
}

/// What people call an entry of a list.
fn name_of(entry: &Value) -> Option<&str> {
    let named = entry.get("metric").or_else(|| entry.get("name"));
    named.and_then(Value::as_str)
}

/// The names that a dotted key leads through. Messages write the first constraint as `constraint[0]`.
fn path(key: &str) -> Option<Vec<String>> {
    let key = key.replace('[', ".").replace(']', "");
    let mut table: toml::Table = toml::from_str(&format!("{key} = 0")).ok()?;
    let mut path = Vec::new();
    loop {
        let (name, value) = table.into_iter().next()?;
        path.push(name);
        match value {
            toml::Value::Table(below) => table = below,
            _ => return Some(path),
        }
    }
}

/// A value as TOML writes it. What is none is a text, unless it begins as a text, a list or a table does; so is a date,
/// of which a study has none.
fn read_value(written: &str) -> Result<Value, String> {
    if written.parse::<toml::value::Datetime>().is_ok() {
        return Ok(written.into());
    }
    let text = format!("value = {written}");
    check_depth(&text).map_err(|error| error.to_string())?;
    check_finite(&text).map_err(|(.., problem)| problem)?;
    let read = toml::from_str::<Map<String, Value>>(&text);
    let value = read.ok().filter(|read| read.len() == 1);
    match value.and_then(|mut read| read.shift_remove("value")) {
        Some(value) => Ok(value),
        None if written.starts_with(['"', '\'', '[', '{']) => Err(format!(
            "`{written}` is no value of TOML; is a bracket or a quotation mark missing?"
        )),
        None => Ok(written.into()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn values_are_those_of_toml_and_bare_words_are_texts() {
        for (written, value) in [
            ("2", json!(2)),
            ("\"2\"", json!("2")),
            ("[1, \"a\"]", json!([1, "a"])),
            ("{ a = 1 }", json!({ "a": 1 })),
            ("gpt-5-mini", json!("gpt-5-mini")),
            ("2026-11-27", json!("2026-11-27")),
            ("1\nb = 2", json!("1\nb = 2")),
            ("Be kind. Be brief.", json!("Be kind. Be brief.")),
        ] {
            assert_eq!(read_value(written), Ok(value), "{written:?}");
        }
        for written in ["inf", "[nan]", "{ a = -inf }", "[2026-11-27]", "\"open", "[1"] {
            let problem = read_value(written).unwrap_err();
            assert_eq!(
                problem.contains("is a date"),
                written.contains("2026"),
                "{problem}"
            );
        }
        let problem = read_value(&"[".repeat(60_000)).unwrap_err();
        assert!(problem.contains("brackets are open"), "{problem}");
    }

    #[test]
    fn keys_lead_into_tables_and_lists_that_are_there() {
        let study = json!({
            "study": { "seed": 0 },
            "constraint": [{ "metric": "turns", "threshold": 1 }, { "metric": "tools" }],
        });
        for (setting, pointer) in [
            ("study.seed=7", "/study/seed"),
            ("budget.usd=7", "/budget/usd"),
            ("constraint.1.threshold=7", "/constraint/1/threshold"),
            ("constraint[1].threshold=7", "/constraint/1/threshold"),
            ("constraint.turns.threshold=7", "/constraint/0/threshold"),
        ] {
            let mut study = study.clone();
            setting.parse::<Setting>().unwrap().apply(&mut study).unwrap();
            assert_eq!(study.pointer(pointer), Some(&json!(7)), "{setting}");
        }
        for wrong in ["study.seed", "=7", "study..seed=7", "my key=7"] {
            wrong.parse::<Setting>().unwrap_err();
        }
    }
}
