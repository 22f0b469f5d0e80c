//! The kinds of workload, one line each.

use std::rc::Rc;

use capo_core::study::nearest;
use capo_core::workload::Workload;
use indexmap::IndexMap;
use schemars::Schema;
use serde_json::{Map, Value};

use crate::files::Files;
use crate::settings::BuildError;
use crate::{external, table};

/// A study's `[workload]` table without `kind`, the files it names, the study's seed.
type Build = fn(Map<String, Value>, &dyn Files, u64) -> Result<Vec<Rc<dyn Workload>>, BuildError>;

/// A kind of workload: its name in study files, what makes it, what settings it takes.
struct Kind(&'static str, Build, fn() -> Schema);

const KINDS: &[Kind] = &[
    Kind(
        "external",
        |settings, files, _| external::build(settings, files),
        external::settings_schema,
    ),
    Kind(
        "table",
        |settings, files, _| table::build(settings, files),
        table::settings_schema,
    ),
];

/// Makes the workloads of a study from its `[workload]` table, the main one first.
///
/// # Errors
/// When the kind is unknown, a setting is unknown or impossible, or a data file does not hold what
/// it should. Messages name the setting or the file and line.
pub fn build(
    kind_and_settings: &Map<String, Value>,
    files: &dyn Files,
    seed: u64,
) -> Result<Vec<Rc<dyn Workload>>, BuildError> {
    let mut settings = kind_and_settings.clone();
    let known = || KINDS.iter().map(|kind| kind.0).collect::<Vec<_>>();
    let name = match settings.shift_remove("kind") {
        Some(Value::String(name)) => name,
        Some(_) => {
            return Err(BuildError::setting(
                "workload.kind",
                format!("must be text, one of {}", known().join(", ")),
            ));
        }
        None => {
            return Err(BuildError::setting(
                "workload.kind",
                format!("is missing; there are {}", known().join(", ")),
            ));
        }
    };
    let Some(Kind(_, build, _)) = KINDS.iter().find(|kind| kind.0 == name) else {
        let hint = nearest(&name, known()).map(|near| format!(" did you mean `{near}`?"));
        return Err(BuildError::setting(
            "workload.kind",
            format!(
                "there is no kind `{name}`;{} there are {}",
                hint.unwrap_or_default(),
                known().join(", ")
            ),
        ));
    };
    build(settings, files, seed)
}

/// The JSON schema of each kind's settings, `kind` itself left out.
pub fn schemas() -> IndexMap<&'static str, Schema> {
    KINDS
        .iter()
        .map(|Kind(name, _, schema)| (*name, schema()))
        .collect()
}
