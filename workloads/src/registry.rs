//! The kinds of workload, one line each.

use std::rc::Rc;

use capo_core::study::nearest;
use capo_core::workload::Workload;
use capo_world::desk::{Desk, DeskSettings};
use indexmap::IndexMap;
use schemars::Schema;
use serde_json::{Map, Value};

use crate::embeddings::Wanted;
use crate::files::Files;
use crate::settings::{BuildError, Settings, Workloads, names, no_such_setting, schema};
use crate::tau2::settings::Tau2Settings;
use crate::{external, table, tau2};

/// Makes workloads of a kind's settings, the files they name, and the study's seed.
type Build = fn(Settings, &dyn Files, u64) -> Result<Workloads, BuildError>;

/// A kind of workload: its name in study files and the names of its settings.
struct Kind(&'static str, fn() -> Vec<&'static str>);

/// Declares the kinds: name in study files, what makes it, names and schema of its settings.
///
/// Three lists come of it: what only looks at settings, as a page's form does, links no workload and no
/// schema.
macro_rules! kinds {
    ($($name:literal => $build:expr, $names:expr, $schema:expr;)*) => {
        const KINDS: &[Kind] = &[$(Kind($name, $names)),*];

        /// The schemas of their settings, in the same order.
        const SCHEMAS: &[fn() -> Schema] = &[$($schema),*];

        /// What makes each of them, in the same order.
        const BUILDS: &[Build] = &[$($build),*];
    };
}

kinds! {
    "desk" => desk, || names::<DeskSettings>().to_vec(), schema::<DeskSettings>;
    "external" => external::build, external::settings_names, external::settings_schema;
    "table" => table::build, table::settings_names, table::settings_schema;
    "tau2" => tau2::build, || names::<Tau2Settings>().to_vec(), schema::<Tau2Settings>;
}

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
    let refuse = |problem: String| {
        let known: Vec<&str> = KINDS.iter().map(|kind| kind.0).collect();
        Err(BuildError::setting(
            "workload.kind",
            format!("{problem}; there are {}", known.join(", ")),
        ))
    };
    let mut settings = kind_and_settings.clone();
    let name = match settings.shift_remove("kind") {
        Some(Value::String(name)) => name,
        Some(other) => return refuse(format!("must be text, not {other}")),
        None => return refuse("is missing".to_owned()),
    };
    let Some(place) = KINDS.iter().position(|kind| kind.0 == name) else {
        let near = nearest(&name, KINDS.iter().map(|kind| kind.0));
        let hint = near
            .map(|near| format!(" (did you mean `{near}`?)"))
            .unwrap_or_default();
        return refuse(format!("there is no kind `{name}`{hint}"));
    };
    BUILDS[place](Settings::new("workload", settings), files, seed)
}

/// Refuses a `[workload]` table that people must not pass on, whatever data it names: one with a key in
/// its address or headers, or with settings that its kind does not have, which may be keys as well.
///
/// ```
/// let workload = serde_json::json!({ "kind": "external", "endpoint": "https://agent.example/?key=sk-1" });
/// let error = capo_workloads::check_written(workload.as_object().unwrap()).unwrap_err();
/// assert!(error.to_string().starts_with("workload.endpoint: must not hold a query"));
/// ```
///
/// # Errors
/// The first such setting; nothing of a key is repeated.
pub fn check_written(kind_and_settings: &Map<String, Value>) -> Result<(), BuildError> {
    let kind = kind_and_settings.get("kind").and_then(Value::as_str);
    let Some(Kind(kind, names)) = KINDS.iter().find(|known| Some(known.0) == kind) else {
        return Ok(());
    };
    let known = names();
    let mut keys = kind_and_settings.keys().filter(|key| *key != "kind");
    if let Some(key) = keys.find(|key| !known.contains(&key.as_str())) {
        return Err(no_such_setting("workload", key, &known));
    }
    if *kind == "external" {
        external::check_written(kind_and_settings)?;
    }
    Ok(())
}

/// The texts that a `[workload]` table wants vectors of, and where they are kept.
///
/// # Errors
/// When it wants none, a setting is wrong, or a data file does not hold what it should.
pub fn texts_to_embed(
    kind_and_settings: &Map<String, Value>,
    files: &dyn Files,
) -> Result<Wanted, BuildError> {
    let mut settings = kind_and_settings.clone();
    match settings.shift_remove("kind") {
        Some(kind) if kind == tau2::settings::KIND => {
            tau2::texts_to_embed(Settings::new("workload", settings), files)
        }
        kind => Err(BuildError::setting(
            "workload.kind",
            match kind {
                Some(kind) => {
                    format!("{kind} wants no vectors of texts; \"tau2\" does, with split = \"cluster-shift\"")
                }
                None => "is missing".to_owned(),
            },
        )),
    }
}

/// The JSON schema of each kind's settings, `kind` itself left out.
pub fn schemas() -> IndexMap<&'static str, Schema> {
    let made = KINDS.iter().zip(SCHEMAS);
    made.map(|(Kind(name, _), schema)| (*name, schema())).collect()
}

/// Builds the help desk.
fn desk(mut settings: Settings, _: &dyn Files, _: u64) -> Result<Workloads, BuildError> {
    let own: DeskSettings = settings.take()?;
    settings.finish()?;
    let desk = Desk::new(own).map_err(|error| BuildError::Kind(error.to_string()))?;
    Ok(vec![Rc::new(desk)])
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::files::MemoryFiles;

    fn build_value(settings: Value) -> Result<Workloads, String> {
        let Value::Object(settings) = settings else {
            panic!("an object")
        };
        build(&settings, &MemoryFiles::new(), 0).map_err(|error| error.to_string())
    }

    #[test]
    fn an_unknown_or_missing_kind_lists_the_known_ones() {
        assert_eq!(
            build_value(json!({"kind": "dsk"})).err().unwrap(),
            "workload.kind: there is no kind `dsk` (did you mean `desk`?); there are desk, external, table, tau2"
        );
        assert_eq!(
            build_value(json!({})).err().unwrap(),
            "workload.kind: is missing; there are desk, external, table, tau2"
        );
        assert!(
            build_value(json!({"kind": 3}))
                .err()
                .unwrap()
                .contains("must be text, not 3")
        );
    }

    #[test]
    fn the_names_of_settings_are_those_of_their_schema() {
        for (Kind(kind, names), schema) in KINDS.iter().zip(SCHEMAS) {
            let described: Vec<String> = schema()
                .get("properties")
                .unwrap()
                .as_object()
                .unwrap()
                .keys()
                .cloned()
                .collect();
            assert_eq!(names(), described, "{kind}");
        }
    }

    #[test]
    fn the_desk_needs_no_settings_and_refuses_unknown_and_impossible_ones() {
        assert_eq!(build_value(json!({"kind": "desk"})).unwrap()[0].name(), "desk");
        let error = build_value(json!({"kind": "desk", "optimise": 3})).err().unwrap();
        assert_eq!(
            error,
            "workload.optimise: there is no such setting; did you mean `optimize`?"
        );
        let error = build_value(json!({"kind": "desk", "optimize": 1000}))
            .err()
            .unwrap();
        assert!(error.contains("optimize = 1000"), "{error}");
    }

    #[test]
    fn keys_written_into_settings_are_refused_before_there_are_data() {
        let refused = |more: Value| {
            let mut table = json!({ "kind": "external", "data": "", "metric": [] });
            let (Some(table), Value::Object(more)) = (table.as_object_mut(), more) else {
                panic!("objects")
            };
            table.extend(more);
            check_written(table).err().map(|error| error.to_string())
        };
        for more in [
            json!({ "endpoint": "https://me:sk-1@agent.example" }),
            json!({ "endpoint": "https://agent.example/?key=sk-1" }),
            json!({ "headers": { "Authorization": "Bearer sk-1" } }),
            json!({ "api_key": "sk-1" }),
        ] {
            let message = refused(more.clone()).unwrap_or_else(|| panic!("{more} passed"));
            assert!(!message.contains("sk-1"), "{message}");
        }
        assert_eq!(refused(json!({ "endpoint": "" })), None);
        let sound = json!({ "endpoint": "https://agent.example", "headers": { "X-Team": "a" } });
        assert_eq!(refused(sound), None);
    }

    #[test]
    fn every_kind_has_a_valid_schema_that_allows_no_other_keys() {
        let schemas = schemas();
        assert_eq!(schemas.len(), KINDS.len());
        for (kind, schema) in schemas {
            let schema = serde_json::to_value(schema).unwrap();
            assert!(jsonschema::meta::is_valid(&schema), "{kind}");
            assert_eq!(schema["additionalProperties"], false, "{kind}");
        }
    }
}
