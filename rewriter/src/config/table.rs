//! A JSON file's tables, read entry by entry so that errors name the entry.

use std::path::Path;

use capo_core::study::suggest;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use crate::error::FileError;

/// Largest size that is believed.
pub(super) const LARGEST: usize = 1 << 31;

pub(crate) fn read_json(path: &Path) -> Result<Value, FileError> {
    let text = std::fs::read_to_string(path).map_err(FileError::io(path))?;
    serde_json::from_str(&text).map_err(|why| FileError::content(path, suggest(&why.to_string())))
}

/// A table of a JSON file whose entries are read by name.
pub(crate) struct Table<'a> {
    /// Names of the tables around it, each with a dot.
    place: &'static str,
    entries: &'a Map<String, Value>,
}

impl<'a> Table<'a> {
    pub(crate) fn new(place: &'static str, entries: &'a Map<String, Value>) -> Self {
        Self { place, entries }
    }

    pub(super) fn path(&self, name: &str) -> String {
        format!("{}{name}", self.place)
    }

    /// What stands there, null included.
    pub(super) fn stated(&self, name: &str) -> Option<&'a Value> {
        self.entries.get(name)
    }

    /// An entry, `None` where there is none or null.
    pub(crate) fn get<T: DeserializeOwned>(&self, name: &str) -> Result<Option<T>, String> {
        match self.stated(name) {
            None | Some(Value::Null) => Ok(None),
            Some(value) => T::deserialize(value)
                .map(Some)
                .map_err(|why| format!("`{}`: {why}", self.path(name))),
        }
    }

    /// An entry where it is stated, `None` where it is null, else the default.
    pub(super) fn or<T: DeserializeOwned>(
        &self,
        name: &str,
        default: Option<T>,
    ) -> Result<Option<T>, String> {
        match self.stated(name) {
            None => Ok(default),
            Some(_) => self.get(name),
        }
    }

    /// A number of things, at least 1.
    pub(super) fn size(&self, name: &str, default: usize, most: usize) -> Result<usize, String> {
        let size = self.get(name)?.unwrap_or(default);
        if (1..=most).contains(&size) {
            return Ok(size);
        }
        Err(format!(
            "`{}` is {size}: it must be between 1 and {most}",
            self.path(name)
        ))
    }

    /// A finite number above `above`.
    pub(super) fn number(&self, name: &str, default: f64, above: f64) -> Result<f64, String> {
        let number = self.get(name)?.unwrap_or(default);
        if number > above && number.is_finite() {
            return Ok(number);
        }
        Err(format!(
            "`{}` is {number}: it must be above {above} and finite",
            self.path(name)
        ))
    }

    pub(super) fn refuse_quantisation(&self) -> Result<(), String> {
        let Some(table) = self.get::<Map<String, Value>>("quantization_config")? else {
            return Ok(());
        };
        let method = table.get("quant_method").map_or_else(
            || "by an unknown method".to_owned(),
            |method| format!("by {method}"),
        );
        Err(format!(
            "the weights are quantised {method} (`{}`): take a BF16 or F32 checkpoint",
            self.path("quantization_config")
        ))
    }

    /// Refuses a switch whose other position computes something else.
    pub(super) fn refuse_unless(&self, name: &str, value: &Value) -> Result<(), String> {
        match self.stated(name) {
            None | Some(Value::Null) => Ok(()),
            Some(found) if found == value => Ok(()),
            Some(found) => Err(format!(
                "`{}` is {found}, which is not supported: it must be {value}",
                self.path(name)
            )),
        }
    }
}
