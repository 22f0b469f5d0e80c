//! What a workload measures, for the form that sets it up.

use capo_core::llm::Role;
use capo_core::study::Table;
use capo_core::workload::Split;
use capo_workloads::tau2::{self, settings::KIND};
use serde_json::{Value, json};

use super::protocol::{DataFiles, Looked};
use super::session::memory;

/// Builds the workload and looks at it. When it cannot be built, the metrics are those that its
/// settings declare.
pub(crate) fn look(workload: &Table, files: &DataFiles, seed: u64) -> Looked {
    built(workload, files, seed).unwrap_or_else(|wrong| without_data(workload, wrong))
}

/// What a workload declares that cannot be built for the reason `wrong`.
pub(super) fn without_data(workload: &Table, wrong: String) -> Looked {
    let declared = if workload.get("kind").and_then(Value::as_str) == Some(KIND) {
        Looked {
            metrics: tau2::metrics(),
            roles: vec![Role::Agent, Role::User],
            ..Looked::default()
        }
    } else {
        let (declared, example) = stand_in(workload);
        built(&declared, &example, 0).unwrap_or_default()
    };
    Looked {
        optimize: 0,
        evaluate: 0,
        wrong: Some(wrong),
        ..declared
    }
}

fn built(workload: &Table, files: &DataFiles, seed: u64) -> Result<Looked, String> {
    let workloads =
        capo_workloads::build(workload, &memory(files), seed).map_err(|error| error.to_string())?;
    let mut looked = Looked::default();
    for workload in workloads {
        for metric in workload.metrics() {
            if looked.metrics.iter().all(|known| known.name != metric.name) {
                looked.metrics.push(metric.clone());
            }
        }
        looked.optimize += workload.examples(Split::Optimize).len();
        looked.evaluate += workload.examples(Split::Evaluate).len();
        for (role, _) in workload.max_calls() {
            if !looked.roles.contains(&role) {
                looked.roles.push(role);
            }
        }
    }
    Ok(looked)
}

/// The same metrics on a single made-up example, so that they can be chosen before there are data.
fn stand_in(workload: &Table) -> (Table, DataFiles) {
    let mut table = Table::new();
    for key in ["kind", "metric"] {
        if let Some(value) = workload.get(key) {
            table.insert(key.to_owned(), value.clone());
        }
    }
    table.insert("data".into(), json!("example.jsonl"));
    table.insert("evaluate".into(), json!(0));
    match workload.get("kind").and_then(Value::as_str) {
        Some("external") => table.insert("endpoint".into(), json!("http://localhost")),
        _ => table.insert("user".into(), json!("1")),
    };
    let metrics = table.get_mut("metric").and_then(Value::as_array_mut);
    for metric in metrics.into_iter().flatten().filter_map(Value::as_object_mut) {
        for template in ["expected", "rubric"] {
            if metric.contains_key(template) {
                metric.insert(template.into(), json!("1"));
            }
        }
    }
    let example = DataFiles::from([("example.jsonl".to_owned(), "{\"example\": 1}".into())]);
    (table, example)
}
