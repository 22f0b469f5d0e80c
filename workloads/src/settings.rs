//! From the keys of `[workload]` to typed settings, with errors that name the key.
//!
//! A kind's settings may come from several structs (what to load, what to do with it) that share
//! one flat table; [`Settings::take`] hands each struct its keys, and [`Settings::finish`] refuses
//! what nobody took.

use std::fmt;
use std::rc::Rc;

use capo_core::study::{at_fault, nearest, suggest};
use capo_core::workload::Workload;
use schemars::{JsonSchema, Schema, SchemaGenerator, generate::SchemaSettings};
use serde::de::DeserializeOwned;
use serde_aux::serde_introspection::serde_introspect;
use serde_json::{Map, Value, json};

use crate::files::FileError;

/// A study's workloads, the main one first.
pub(crate) type Workloads = Vec<Rc<dyn Workload>>;

/// Why a workload cannot be built.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BuildError {
    /// A setting is missing, unknown or impossible.
    #[error("{key}: {problem}")]
    Setting {
        /// Where it stands, such as `workload.metric[0].expected`.
        key: String,
        /// What is wrong and what to do.
        problem: String,
    },
    /// A data file does not hold what it should.
    #[error("{}: {problem}", place(file, *line))]
    Data {
        /// The file as named in the study.
        file: String,
        /// The line, counted from 1, where one line is to blame.
        line: Option<u64>,
        /// What is wrong and what to do.
        problem: String,
    },
    /// Held-out examples are the same as some that the search sees.
    #[error("{}: {problem}", place(file, Some(*line)))]
    Overlap {
        /// The file of the first of them, as named in the study.
        file: String,
        /// Its line, counted from 1.
        line: u64,
        /// What is wrong with it and what to do.
        problem: String,
        /// The ids of all of them.
        ids: Vec<String>,
    },
    /// A kind refuses its settings in its own words.
    #[error("{0}")]
    Kind(String),
    /// A file cannot be read.
    #[error("{key}: {error}")]
    File {
        /// The setting that names the file.
        key: String,
        /// The error that this one passes on.
        error: FileError,
    },
}

fn place(file: &str, line: Option<u64>) -> String {
    line.map_or_else(|| file.to_owned(), |line| format!("{file} line {line}"))
}

impl BuildError {
    /// A bad setting.
    pub fn setting(key: impl Into<String>, problem: impl fmt::Display) -> Self {
        Self::Setting {
            key: key.into(),
            problem: problem.to_string(),
        }
    }

    /// Bad data in a file as a whole.
    pub fn data(file: &str, problem: impl fmt::Display) -> Self {
        Self::Data {
            file: file.to_owned(),
            line: None,
            problem: problem.to_string(),
        }
    }

    /// Bad data on one line, counted from 1.
    pub fn line(file: &str, line: u64, problem: impl fmt::Display) -> Self {
        Self::Data {
            file: file.to_owned(),
            line: Some(line),
            problem: problem.to_string(),
        }
    }

    /// A file that cannot be read.
    pub fn file(key: impl Into<String>, error: FileError) -> Self {
        Self::File {
            key: key.into(),
            error,
        }
    }
}

/// What is wrong with one table of settings, wherever it stands, and in which of its keys.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum DefinitionError {
    /// A value that makes no sense.
    Value {
        /// The key within the table.
        key: String,
        /// What is wrong and what to do.
        problem: String,
    },
    /// A file that cannot be read.
    File {
        /// The key that names the file.
        key: &'static str,
        /// The error that this one passes on.
        error: FileError,
    },
}

impl DefinitionError {
    pub(crate) fn new(key: impl Into<String>, problem: impl Into<String>) -> Self {
        Self::Value {
            key: key.into(),
            problem: problem.into(),
        }
    }

    /// The error of the table that stands there.
    pub(crate) fn at(self, table: &str) -> BuildError {
        match self {
            Self::Value { key, problem } => BuildError::setting(format!("{table}.{key}"), problem),
            Self::File { key, error } => BuildError::file(format!("{table}.{key}"), error),
        }
    }
}

/// One table of settings, handed out key by key.
pub(crate) struct Settings {
    key: String,
    rest: Map<String, Value>,
    known: Vec<&'static str>,
}

impl Settings {
    /// The table at `key`, such as `workload` or `workload.set[0]`.
    pub(crate) fn new(key: impl Into<String>, table: Map<String, Value>) -> Self {
        Self {
            key: key.into(),
            rest: table,
            known: Vec::new(),
        }
    }

    /// Where this table stands in the study file.
    pub(crate) fn key(&self) -> &str {
        &self.key
    }

    /// Takes the keys of `T` out of the table.
    pub(crate) fn take<T: DeserializeOwned>(&mut self) -> Result<T, BuildError> {
        let mut own = Map::new();
        for &name in names::<T>() {
            if let Some(value) = self.rest.remove(name) {
                own.insert(name.to_owned(), value);
            }
        }
        self.known.extend(names::<T>());
        serde_path_to_error::deserialize(Value::Object(own.clone())).map_err(|error| {
            let message = error.inner().to_string();
            // Of a table whose kind is told by a key, the path ends there.
            let path = at_fault::<T>(&own, &message).unwrap_or_else(|| error.path().to_string());
            let key = if path == "." {
                self.key.clone()
            } else {
                format!("{}.{path}", self.key)
            };
            BuildError::setting(key, suggest(&message))
        })
    }

    /// One key's raw value, which is still to be taken.
    pub(crate) fn get(&self, name: &str) -> Option<&Value> {
        self.rest.get(name)
    }

    /// Takes one key's raw value.
    pub(crate) fn take_raw(&mut self, name: &'static str) -> Option<Value> {
        self.known.push(name);
        self.rest.remove(name)
    }

    /// Refuses keys that nobody took, naming the nearest known one.
    pub(crate) fn finish(self) -> Result<(), BuildError> {
        let Some(unknown) = self.rest.keys().next() else {
            return Ok(());
        };
        Err(no_such_setting(&self.key, unknown, &self.known))
    }
}

/// Says that the table at `key` has no setting `name`, and which one may have been meant.
pub(crate) fn no_such_setting(key: &str, name: &str, known: &[&str]) -> BuildError {
    let hint = nearest(name, known.iter().copied()).map_or_else(
        || format!("known are {}", known.join(", ")),
        |name| format!("did you mean `{name}`?"),
    );
    BuildError::setting(
        format!("{key}.{name}"),
        format!("there is no such setting; {hint}"),
    )
}

/// The keys of a settings struct. Its schema has them as well, but brings along what it describes.
pub(crate) fn names<T: DeserializeOwned>() -> &'static [&'static str] {
    serde_introspect::<T>()
}

/// The schema of a settings struct, without `$schema` and with definitions inlined.
pub(crate) fn schema<T: JsonSchema>() -> Schema {
    let settings = SchemaSettings::draft2020_12().with(|settings| {
        settings.meta_schema = None;
        settings.inline_subschemas = true;
    });
    SchemaGenerator::new(settings).into_root_schema_for::<T>()
}

/// One object schema with the keys of all `parts`; no others are allowed.
pub(crate) fn merged(parts: &[Schema]) -> Schema {
    let mut fields = Map::new();
    let mut required = Vec::new();
    for part in parts {
        if let Some(Value::Object(own)) = part.get("properties") {
            fields.extend(own.clone());
        }
        if let Some(Value::Array(own)) = part.get("required") {
            required.extend(own.clone());
        }
    }
    let whole = json!({
        "type": "object", "properties": fields, "required": required, "additionalProperties": false,
    });
    match whole {
        Value::Object(object) => object.into(),
        _ => Schema::default(),
    }
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::*;

    #[derive(Debug, Deserialize, JsonSchema)]
    struct Loading {
        #[allow(dead_code)]
        data: String,
    }

    #[derive(Debug, Deserialize, JsonSchema)]
    struct Counting {
        count: Option<u32>,
    }

    fn settings(table: Value) -> Settings {
        let Value::Object(table) = table else {
            panic!("a table")
        };
        Settings::new("workload", table)
    }

    #[test]
    fn two_structs_share_one_flat_table() {
        let mut settings = settings(json!({"data": "a.csv", "count": 3}));
        settings.take::<Loading>().unwrap();
        assert_eq!(settings.take::<Counting>().unwrap().count, Some(3));
        settings.finish().unwrap();
    }

    #[test]
    fn an_unknown_key_is_named_with_the_nearest_of_all_structs() {
        let mut settings = settings(json!({"data": "a.csv", "cuont": 3}));
        settings.take::<Counting>().unwrap();
        settings.take::<Loading>().unwrap();
        let error = settings.finish().unwrap_err().to_string();
        assert_eq!(
            error,
            "workload.cuont: there is no such setting; did you mean `count`?"
        );
    }

    #[test]
    fn a_wrong_type_names_the_key() {
        let error = settings(json!({"count": "many"}))
            .take::<Counting>()
            .unwrap_err()
            .to_string();
        assert!(
            error.starts_with(
                "workload.count: expected a whole number of at least 0, found the text \"many\""
            ),
            "{error}"
        );
        let error = settings(json!({})).take::<Loading>().unwrap_err().to_string();
        assert_eq!(error, "workload: missing field `data`");
    }
}
