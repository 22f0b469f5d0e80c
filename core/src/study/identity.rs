//! Identity of a run: the settings by which its journal is known again.

use std::iter;

use serde_json::{Map, Value, json};

use super::Study;
use super::ids::sha256_hex;
use crate::llm::Role;

/// Keys of a `[models.ROLE]` table that say how a model is reached, not what it answers or costs: a
/// metric may measure dollars.
const OF_MODELS: [&str; 6] = [
    "abort_after",
    "api_key_env",
    "concurrency",
    "latency",
    "retries",
    "timeout_seconds",
];

/// The same of the `[workload]` table, whatever its kind.
const OF_WORKLOADS: [&str; 4] = ["bearer_env", "concurrency", "retries", "timeout"];

impl Study {
    /// What makes two studies the same: everything but the budget, frozen thresholds, what becomes of
    /// rollouts that fail (which the journal tells), how models
    /// and workload are reached (keys, waits, retries, concurrency), and who made the vectors
    /// that a file keeps, which are data by now. Those may change while a run is interrupted: no answer depends on them.
    pub fn identity(&self) -> Value {
        let mut study = self.clone();
        study.models = study.asked_tables();
        for model in study.models.values_mut().filter_map(Value::as_object_mut) {
            model.retain(|key, _| !OF_MODELS.contains(&key.as_str()));
        }
        study
            .workload
            .retain(|key, _| !OF_WORKLOADS.contains(&key.as_str()));
        study.former_identity()
    }

    /// What the identity was in the first journals of schema 1: everything but the budget and frozen
    /// thresholds.
    pub(crate) fn former_identity(&self) -> Value {
        let mut study = self.clone();
        study.budget = super::budget::Budget::default();
        study.failures = super::Failures::default();
        for constraint in &mut study.constraints {
            if constraint.relative_to_seed.is_some() {
                constraint.threshold = None;
            }
        }
        serde_json::to_value(&study).unwrap_or(Value::Null)
    }

    /// Who answers these roles, as far as the answers depend on it: their tables and those of the roles that they fall back
    /// to, without what says how models are reached and what they cost; and the seed that the luck of every call follows.
    pub(crate) fn answering(&self, roles: &[Role]) -> Value {
        self.tables_of(roles.iter().flat_map(|role| with_fallbacks(*role)))
    }

    /// The same of the one table that serves a role.
    pub(crate) fn serving(&self, role: Role) -> Value {
        let stated = with_fallbacks(role).filter(|role| self.models.contains_key(role));
        self.tables_of(stated.take(1))
    }

    fn tables_of(&self, roles: impl Iterator<Item = Role>) -> Value {
        let mut tables = Map::new();
        for role in roles {
            let Some(mut table) = self.models.get(&role).cloned() else {
                continue;
            };
            if let Some(keys) = table.as_object_mut() {
                keys.retain(|key, _| key != "price" && key != "batch" && !OF_MODELS.contains(&key.as_str()));
            }
            tables.insert(role.name().to_owned(), table);
        }
        json!({ "models": tables, "seed": self.study.seed })
    }

    /// The study's id: lower-case hex SHA-256 of the canonical JSON of [`Study::identity`] and of
    /// the workloads' fingerprints (name → hash of their data).
    ///
    /// ```
    /// # mod tiny { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/tiny/mod.rs")); }
    /// let of = |study: &str| tiny::problem(study).map(|problem| problem.id());
    /// let id = of(tiny::STUDY)?;
    /// assert_eq!(of(&format!("{}[budget]\nrollouts = 50", tiny::STUDY))?, id);
    /// assert_ne!(of(&tiny::STUDY.replace("rounds = 2", "rounds = 3"))?, id);
    /// # Ok::<(), capo_core::study::StudyError>(())
    /// ```
    pub fn id(&self, fingerprints: &Map<String, Value>) -> String {
        hash(&self.identity(), fingerprints)
    }
}

/// A role and those that it falls back to, in this order.
fn with_fallbacks(role: Role) -> impl Iterator<Item = Role> {
    iter::successors(Some(role), |role| role.fallback())
}

pub(crate) fn hash(identity: &Value, fingerprints: &Map<String, Value>) -> String {
    canonical_hash(&json!({ "study": identity, "fingerprints": fingerprints }))
}

/// Lower-case hex SHA-256 of canonical JSON.
pub(crate) fn canonical_hash(value: &Value) -> String {
    sha256_hex(canonical(value))
}

/// JSON with sorted keys and no white space.
pub(crate) fn canonical(value: &Value) -> String {
    let mut text = String::new();
    write_canonical(value, &mut text);
    text
}

fn write_canonical(value: &Value, text: &mut String) {
    match value {
        Value::Object(fields) => {
            let mut names: Vec<&String> = fields.keys().collect();
            names.sort_unstable();
            text.push('{');
            for (index, name) in names.into_iter().enumerate() {
                if index > 0 {
                    text.push(',');
                }
                text.push_str(&Value::String(name.clone()).to_string());
                text.push(':');
                write_canonical(&fields[name], text);
            }
            text.push('}');
        }
        Value::Array(items) => {
            text.push('[');
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    text.push(',');
                }
                write_canonical(item, text);
            }
            text.push(']');
        }
        scalar => text.push_str(&scalar.to_string()),
    }
}

/// The first differences between two studies as `path: old → new` lines, at most `limit`.
pub fn differences(old: &Value, new: &Value, limit: usize) -> Vec<String> {
    let mut found = Vec::new();
    collect(old, new, "", &mut found);
    let more = found.len().saturating_sub(limit);
    found.truncate(limit);
    if more > 0 {
        found.push(format!("… and {more} more"));
    }
    found
}

fn collect(old: &Value, new: &Value, path: &str, found: &mut Vec<String>) {
    let join = |key: &str| {
        if path.is_empty() {
            key.to_owned()
        } else {
            format!("{path}.{key}")
        }
    };
    match (old, new) {
        (Value::Object(old), Value::Object(new)) => {
            for (key, value) in old {
                collect(value, new.get(key).unwrap_or(&Value::Null), &join(key), found);
            }
            for (key, value) in new.iter().filter(|(key, _)| !old.contains_key(*key)) {
                collect(&Value::Null, value, &join(key), found);
            }
        }
        (Value::Array(old), Value::Array(new)) if old.len() == new.len() => {
            for (index, (old, new)) in old.iter().zip(new).enumerate() {
                collect(old, new, &format!("{path}[{index}]"), found);
            }
        }
        _ if old != new => {
            let shown = |value: &Value| match value {
                Value::Null => "(absent)".to_owned(),
                other => {
                    let text = other.to_string();
                    if text.chars().count() > 60 {
                        text.chars().take(60).chain(['…']).collect()
                    } else {
                        text
                    }
                }
            };
            found.push(format!("{path}: {} → {}", shown(old), shown(new)));
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn canonical_json_sorts_keys_at_every_depth() {
        let value = serde_json::json!({"b": [{"z": 1, "a": null}], "a": "x\"y"});
        assert_eq!(canonical(&value), r#"{"a":"x\"y","b":[{"a":null,"z":1}]}"#);
    }

    #[test]
    fn differences_name_the_path() {
        let old = serde_json::json!({"study": {"seed": 1, "name": "a"}});
        let new = serde_json::json!({"study": {"seed": 2, "name": "a", "batch": 3}});
        assert_eq!(
            differences(&old, &new, 5),
            ["study.seed: 1 → 2", "study.batch: (absent) → 3"]
        );
    }
}
