//! The tables of a study whose keys are described by a schema, and how the form calls their keys.

use capo_core::llm::Role;
use capo_core::study::{Study, Table};
use serde_json::Value;

use crate::format::setting;

/// A table of a study.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    /// `[workload]`.
    Workload,
    /// One `[[workload.metric]]`, by position.
    Metric(usize),
    /// `[method]`.
    Method,
    /// `[models.ROLE]`.
    Model(Role),
}

impl Place {
    /// The table, if the study has it.
    pub(super) fn table(self, study: &Study) -> Option<&Table> {
        match self {
            Self::Workload => Some(&study.workload),
            Self::Metric(index) => study.workload.get("metric")?.get(index)?.as_object(),
            Self::Method => Some(&study.method),
            Self::Model(role) => study.models.get(&role)?.as_object(),
        }
    }

    /// The table, to be changed.
    pub(super) fn table_mut(self, study: &mut Study) -> Option<&mut Table> {
        match self {
            Self::Workload => Some(&mut study.workload),
            Self::Metric(index) => study.workload.get_mut("metric")?.get_mut(index)?.as_object_mut(),
            Self::Method => Some(&mut study.method),
            Self::Model(role) => study.models.get_mut(&role)?.as_object_mut(),
        }
    }

    /// The dotted path of one of its keys.
    pub(super) fn path(self, key: &str) -> String {
        match self {
            Self::Workload => format!("workload.{key}"),
            Self::Metric(index) => format!("workload.metric[{index}].{key}"),
            Self::Method => format!("method.{key}"),
            Self::Model(role) => format!("models.{role}.{key}"),
        }
    }

    /// What one of its keys is called on screen.
    pub(super) fn label(self, key: &str) -> String {
        match (self, key) {
            // Of a judge's grades, not of the search.
            (Self::Metric(_), "best") => "Best grade".to_owned(),
            _ => setting(key),
        }
    }

    /// A text in it, empty when left out.
    pub(super) fn text(self, study: &Study, key: &str) -> String {
        let value = self.table(study).and_then(|table| table.get(key));
        value.and_then(Value::as_str).unwrap_or_default().to_owned()
    }

    /// Sets a key, or leaves it out.
    pub(super) fn set(self, study: &mut Study, key: &str, value: Option<Value>) {
        let Some(table) = self.table_mut(study) else {
            return;
        };
        match value {
            Some(value) => {
                table.insert(key.to_owned(), value);
            }
            None => {
                table.shift_remove(key);
            }
        }
    }
}

/// A value that a table can hold of a number.
pub(super) fn number(value: f64, whole: bool) -> Value {
    if whole {
        (value as u64).into()
    } else {
        value.into()
    }
}
