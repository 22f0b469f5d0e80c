//! What a workload measures, for the form that sets it up.

use capo_core::llm::Role;
use capo_core::study::Table;
use capo_core::workload::Split;
use capo_workloads::BuildError;
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

/// How often rows are split anew for those that are left out: each time all are found that overlap then.
const MOST_SPLITS: usize = 30;

/// The examples to leave out, so that none is in both splits. When some are left out, the others are split anew,
/// and others may overlap.
pub(super) fn duplicates(mut workload: Table, files: &DataFiles, seed: u64) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    for _ in 0..MOST_SPLITS {
        let Err(BuildError::Overlap { ids, .. }) = capo_workloads::build(&workload, &memory(files), seed)
        else {
            break;
        };
        let excluded = workload.entry("exclude").or_insert_with(|| json!([]));
        if let Some(excluded) = excluded.as_array_mut() {
            excluded.extend(ids.iter().map(|id| json!(id)));
        }
        found.extend(ids);
    }
    found
}

/// What stands before the example that is to be left out in the message about one in both splits.
pub(crate) const ADVICE: &str = "; leave one out with exclude = [\"";

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_duplicates_are_found_at_once() {
        // Two of three questions come twice.
        let row = |number: u32| {
            let question = if number.is_multiple_of(3) {
                number
            } else {
                number % 15
            };
            format!("q{question},{number}\n")
        };
        let rows: String = std::iter::once("question,answer\n".to_owned())
            .chain((0..30).map(row))
            .collect();
        let files = DataFiles::from([("rows.csv".to_owned(), rows.into())]);
        let workload = json!({
            "kind": "table", "data": "rows.csv", "user": "{{ question }}", "evaluate": 10,
            "metric": [{ "name": "correct", "type": "exact", "expected": "{{ answer }}" }],
        });
        let mut workload = workload.as_object().cloned().unwrap();
        assert!(look(&workload, &files, 0).wrong.unwrap().contains(ADVICE));
        let found = duplicates(workload.clone(), &files, 0);
        assert!(found.len() > 1, "{found:?}");
        workload.insert("exclude".into(), json!(found));
        assert_eq!(look(&workload, &files, 0).wrong, None);
    }
}
