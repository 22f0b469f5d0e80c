//! The kinds of workload, one name each in the list of `lib.rs`.

use std::rc::Rc;

use capo_core::study::{Table, nearest};
use capo_core::workload::Workload;
use indexmap::IndexMap;
use schemars::Schema;
use serde_json::Value;

use crate::embeddings::Wanted;
use crate::files::Files;
use crate::kind::{Declared, Kind, Making};
use crate::outside::Written;
use crate::settings::{BuildError, Settings, no_such_setting};
use crate::{KINDS, MAKINGS, SCHEMAS};

/// Declares the kinds by their modules, each of which has a `KIND`, a `MAKING` and a `settings_schema`.
///
/// Three lists come of it: what only looks at settings, as a page's form does, links no workload and no
/// schema.
macro_rules! kinds {
    ($($module:ident),* $(,)?) => {
        $(pub mod $module;)*

        /// Every kind, in the order they are listed to people.
        pub const KINDS: &[$crate::Kind] = &[$($module::KIND),*];

        /// How each of them is made, in the same order.
        const MAKINGS: &[$crate::kind::Making] = &[$($module::MAKING),*];

        /// The schemas of their settings, in the same order.
        const SCHEMAS: &[$crate::kind::MakeSchema] = &[$($module::settings_schema),*];
    };
}

/// The kind that a `[workload]` table names, if there is one of that name.
pub fn of(kind_and_settings: &Table) -> Option<&'static Kind> {
    let name = kind_and_settings.get("kind")?.as_str()?;
    KINDS.iter().find(|kind| kind.name == name)
}

/// How workloads of the kind that a table names are made, and the settings beside the kind.
fn making(kind_and_settings: &Table) -> Result<(&'static Making, Settings), BuildError> {
    let refuse = |problem: String| {
        let known: Vec<&str> = KINDS.iter().map(|kind| kind.name).collect();
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
    let Some(place) = KINDS.iter().position(|kind| kind.name == name) else {
        let near = nearest(&name, KINDS.iter().map(|kind| kind.name));
        let hint = near
            .map(|near| format!(" (did you mean `{near}`?)"))
            .unwrap_or_default();
        return refuse(format!("there is no kind `{name}`{hint}"));
    };
    Ok((&MAKINGS[place], Settings::new("workload", settings)))
}

/// Makes the workloads of a study from its `[workload]` table, the main one first.
///
/// # Errors
/// When the kind is unknown, a setting is unknown or impossible, or a data file does not hold what
/// it should. Messages name the setting or the file and line.
pub fn build(
    kind_and_settings: &Table,
    files: &dyn Files,
    seed: u64,
) -> Result<Vec<Rc<dyn Workload>>, BuildError> {
    let (making, settings) = making(kind_and_settings)?;
    (making.build)(settings, files, seed)
}

/// What the workloads of a table would measure, and whom they would ask, before there are data; none where only
/// the data say it.
pub fn declared(kind_and_settings: &Table) -> Option<Declared> {
    let (making, _) = making(kind_and_settings).ok()?;
    (making.declared)(kind_and_settings)
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
pub fn check_written(kind_and_settings: &Table) -> Result<(), BuildError> {
    let Some(kind) = of(kind_and_settings) else {
        return Ok(());
    };
    let known = (kind.settings)();
    let mut keys = kind_and_settings.keys().filter(|key| *key != "kind");
    if let Some(key) = keys.find(|key| !known.contains(&key.as_str())) {
        return Err(no_such_setting("workload", key, &known));
    }
    (kind.outside)(kind_and_settings)
        .iter()
        .try_for_each(Written::check)
}

/// What names a program or an address of the study's author.
fn outside(kind_and_settings: &Table) -> Vec<Written<'_>> {
    of(kind_and_settings).map_or_else(Vec::new, |kind| (kind.outside)(kind_and_settings))
}

/// Whether rollouts run a program or ask an address of the study's author, beside the models.
///
/// ```
/// let metric = serde_json::json!([{ "type": "command", "name": "tone", "command": ["sh", "tone.sh"] }]);
/// let workload = serde_json::json!({ "kind": "table", "metric": metric });
/// assert!(capo_workloads::asks_outside(workload.as_object().unwrap()));
/// ```
pub fn asks_outside(kind_and_settings: &Table) -> bool {
    !outside(kind_and_settings).is_empty()
}

/// The addresses among what [`asks_outside`] finds, as they are written.
pub fn endpoints(kind_and_settings: &Table) -> Vec<&str> {
    let written = outside(kind_and_settings).into_iter();
    written
        .filter_map(|written| written.settings.get("endpoint")?.as_str())
        .collect()
}

/// The programs, with their arguments, and the addresses that [`asks_outside`] finds, as they are written, each once.
pub fn asked_outside(kind_and_settings: &Table) -> Vec<String> {
    let mut asked = Vec::new();
    for written in outside(kind_and_settings) {
        let shown = match (written.settings.get("command"), written.settings.get("endpoint")) {
            (Some(Value::Array(command)), _) => {
                let words: Vec<&str> = command.iter().filter_map(Value::as_str).collect();
                words.join(" ")
            }
            (_, Some(Value::String(endpoint))) => endpoint.clone(),
            _ => continue,
        };
        if !asked.contains(&shown) {
            asked.push(shown);
        }
    }
    asked
}

/// What these lack for a run: the variables that they name and that are neither set nor beside the study, in words.
/// Nothing is asked and nothing is started.
pub fn missing(kind_and_settings: &Table, files: &dyn Files) -> Vec<String> {
    outside(kind_and_settings)
        .iter()
        .flat_map(|written| written.missing(files))
        .collect()
}

/// The texts that a `[workload]` table wants vectors of, and where they are kept.
///
/// # Errors
/// When it wants none, a setting is wrong, or a data file does not hold what it should.
pub fn texts_to_embed(kind_and_settings: &Table, files: &dyn Files) -> Result<Wanted, BuildError> {
    let (making, settings) = making(kind_and_settings)?;
    if let Some(texts_to_embed) = making.texts_to_embed {
        return texts_to_embed(settings, files);
    }
    let wanting = KINDS
        .iter()
        .zip(MAKINGS)
        .filter(|(_, making)| making.texts_to_embed.is_some());
    let wanting: Vec<&str> = wanting.map(|(kind, _)| kind.name).collect();
    Err(BuildError::setting(
        "workload.kind",
        format!(
            "{} wants no vectors of texts; {} may",
            kind_and_settings["kind"],
            wanting.join(", ")
        ),
    ))
}

/// The JSON schema of each kind's settings, `kind` itself left out.
pub fn schemas() -> IndexMap<&'static str, Schema> {
    let made = KINDS.iter().zip(SCHEMAS);
    made.map(|(kind, schema)| (kind.name, schema())).collect()
}

#[cfg(test)]
mod tests {
    use capo_core::study::{Format, Study};
    use serde_json::json;

    use super::*;
    use crate::files::MemoryFiles;
    use crate::settings::Workloads;

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
            "workload.kind: there is no kind `dsk` (did you mean `desk`?); there are desk, table, external, tau2"
        );
        assert_eq!(
            build_value(json!({})).err().unwrap(),
            "workload.kind: is missing; there are desk, table, external, tau2"
        );
        assert!(
            build_value(json!({"kind": 3}))
                .err()
                .unwrap()
                .contains("must be text, not 3")
        );
    }

    /// A study of every kind begins as one that its form can be filled in over.
    #[test]
    fn every_kind_begins_with_a_study_of_its_own() {
        for kind in KINDS {
            let study = Study::parse(kind.beginning, Format::Toml);
            let study = study.unwrap_or_else(|error| panic!("{}: {error}", kind.name));
            assert_eq!(study.workload["kind"], kind.name);
        }
    }

    #[test]
    fn the_names_of_settings_are_those_of_their_schema() {
        for (kind, schema) in KINDS.iter().zip(SCHEMAS) {
            let described: Vec<String> = schema()
                .get("properties")
                .unwrap()
                .as_object()
                .unwrap()
                .keys()
                .cloned()
                .collect();
            assert_eq!((kind.settings)(), described, "{}", kind.name);
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
        let error = build_value(json!({"kind": "desk", "optimize": 285_000}))
            .err()
            .unwrap();
        assert!(error.contains("optimize = 285000"), "{error}");
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
