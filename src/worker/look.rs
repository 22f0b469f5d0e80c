//! Metrics and examples of a workload, for the form that sets it up.

use std::rc::Rc;

use capo_core::study::Table;
use capo_core::workload::{Split, Workload};
use capo_workloads::{BuildError, Declared};
use serde_json::json;

use super::protocol::{DataFiles, Looked, memory};

/// Builds the workload and looks at it. When it cannot be built, the metrics are those that its
/// settings declare.
pub(crate) fn look(workload: &Table, files: &DataFiles, seed: u64) -> Looked {
    built(workload, files, seed).unwrap_or_else(|wrong| without_data(workload, wrong))
}

/// What a workload declares that cannot be built for the reason `wrong`.
pub(super) fn without_data(workload: &Table, wrong: String) -> Looked {
    let declared = capo_workloads::declared(workload).unwrap_or_default();
    Looked {
        optimize: 0,
        evaluate: 0,
        metrics: declared.metrics,
        roles: declared.roles,
        wrong: Some(wrong),
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
    let examples = |split| {
        let of = |workload: &Rc<dyn Workload>| workload.examples(split).len();
        workloads.iter().map(of).sum()
    };
    let Declared { metrics, roles } = Declared::of(&workloads);
    Ok(Looked {
        metrics,
        roles,
        optimize: examples(Split::Optimize),
        evaluate: examples(Split::Evaluate),
        wrong: None,
    })
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
