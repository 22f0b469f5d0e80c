//! Keys written by mistake into what is kept, found so that they are not.
//!
//! The checks of models and workloads refuse whole tables and for other reasons, too. Here each setting is
//! checked alone, and only those are left out in which a key could stand.

use capo_core::llm::Role;
use capo_core::study::Table;
use indexmap::IndexMap;
use serde_json::{Value, json};

use super::credentials::provider_of;
use super::place::Place;
use super::settings::{Kind, settings};
use crate::schemas;

/// Takes out of a model's table what may hold a key, and returns the keys of that in the study.
pub(super) fn leave_out_of_model(role: Role, table: &mut Value) -> Vec<String> {
    let provider = match provider_of(table) {
        Some(provider) => provider.name,
        None => "openai-compatible",
    };
    let model = table["model"].as_str().filter(|model| !model.trim().is_empty());
    let model = model.unwrap_or("any").to_owned();
    let Some(table) = table.as_object_mut() else {
        *table = json!({});
        return vec![format!("models.{role}")];
    };
    let schema = schemas::model();
    let described = settings(schema);
    let refused = |key: &str, value: &Value| {
        let mut alone = json!({ "provider": provider, "model": model });
        alone[key] = value.clone();
        capo_models::check_tables(&IndexMap::from([(role, alone)])).is_err()
    };
    take_out(table, Place::Model(role), |key, value| {
        let kind = described.iter().find(|setting| setting.key == key);
        let may_hold = match kind.map(|setting| &setting.kind) {
            Some(Kind::Choice(words)) => !words.iter().any(|(word, _)| value == word),
            _ => schema["properties"][key].is_null() || holds_text(value),
        };
        may_hold && refused(key, value)
    })
}

/// Takes out of a workload's table what may hold a key, and returns the keys of that in the study.
pub(super) fn leave_out_of_workload(workload: &mut Table) -> Vec<String> {
    let kind = workload.get("kind").cloned();
    take_out(workload, Place::Workload, |key, value| {
        let mut alone = Table::new();
        alone.extend(kind.clone().map(|kind| ("kind".to_owned(), kind)));
        alone.insert(key.to_owned(), value.clone());
        capo_workloads::check_written(&alone).is_err()
    })
}

fn take_out(table: &mut Table, place: Place, may_hold_key: impl Fn(&str, &Value) -> bool) -> Vec<String> {
    let mut left_out = Vec::new();
    table.retain(|key, value| {
        let goes = may_hold_key(key, value);
        if goes {
            left_out.push(place.path(key));
        }
        !goes
    });
    left_out
}

/// Whether there is text in a value, the names within it aside.
fn holds_text(value: &Value) -> bool {
    match value {
        Value::String(text) => !text.trim().is_empty(),
        Value::Array(items) => items.iter().any(holds_text),
        Value::Object(fields) => fields.values().any(holds_text),
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_may_hold_a_key_is_left_out_of_a_model() {
        let mut table = json!({
            "provider": "openai", "model": "gpt-4o-mini", "temperature": 9.0, "price": { "input": 1.0 },
            "base_url": "proxy.example/v1", "api_key": "sk-secret",
            "headers": { "Authorization": "Bearer sk-secret" },
        });
        assert_eq!(
            leave_out_of_model(Role::Agent, &mut table),
            [
                "models.agent.base_url",
                "models.agent.api_key",
                "models.agent.headers"
            ]
        );
        assert_eq!(
            table,
            json!({ "provider": "openai", "model": "gpt-4o-mini", "temperature": 9.0, "price": { "input": 1.0 } })
        );
        let mut whole = json!({
            "provider": "openai-compatible", "model": "m", "base_url": "http://localhost:1/v1",
            "headers": { "X-Team": "a", "Authorization": { "env": "MY_KEY" } }, "api_key_env": "MY_KEY",
        });
        let before = whole.clone();
        assert!(leave_out_of_model(Role::Agent, &mut whole).is_empty());
        assert_eq!(whole, before);
        let mut text = json!("sk-secret");
        assert_eq!(leave_out_of_model(Role::Critic, &mut text), ["models.critic"]);
        assert_eq!(text, json!({}));
    }

    #[test]
    fn only_what_may_hold_a_key_is_left_out_of_a_workload() {
        let workload = json!({
            "kind": "external", "data": "rows.csv", "endpoint": "https://me:sk-secret@agent.example",
            "token": "sk-secret", "metric": [],
        });
        let mut workload = workload.as_object().cloned().unwrap();
        assert_eq!(
            leave_out_of_workload(&mut workload),
            ["workload.endpoint", "workload.token"]
        );
        assert!(workload.keys().eq(["kind", "data", "metric"]));
    }
}
