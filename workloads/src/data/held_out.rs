//! Held-out examples of a study's data as a file that needs no other one.

use std::collections::HashMap;

use serde_json::{Map, Value, json};

use super::{DataSettings, Example, Examples};
use crate::files::{Files, Sources};
use crate::settings::{BuildError, Settings};

/// The settings that say which examples of which files there are.
const OF_THE_FILES: [&str; 6] = [
    "format",
    "exclude",
    "optimize",
    "evaluate",
    "evaluate_data",
    "seed",
];

/// The held-out examples of these ids as JSON Lines, in the order asked for, and the settings of a workload that has no other
/// examples, with this `file` of them to search on. They keep their ids: with which seed a model is asked about an example
/// depends on its id.
///
/// # Errors
/// When the data do not read, or hold none of such an id out.
pub fn held_out<'a>(
    settings: &Map<String, Value>,
    files: &dyn Files,
    ids: impl IntoIterator<Item = &'a str>,
    file: &str,
) -> Result<(Map<String, Value>, String), BuildError> {
    const KEY: &str = "workload";
    let data: DataSettings = Settings::new(KEY, settings.clone()).take()?;
    let examples = Examples::load(&data, KEY, &mut Sources::new(files))?.evaluate;
    let column = data.id.unwrap_or_else(|| {
        // Rows that are named by their lines have no column of ids.
        let mut free = "example_id".to_owned();
        while examples.iter().any(|example| example.fields.contains_key(&free)) {
            free.push('_');
        }
        free
    });
    let by_id: HashMap<&str, &Example> = examples
        .iter()
        .map(|example| (example.id.as_str(), example))
        .collect();
    let mut rows = String::new();
    for id in ids {
        let example = by_id.get(id).ok_or_else(|| {
            let problem = format!("no held-out example has the id `{id}`; these are other rows");
            BuildError::data(&data.data, problem)
        })?;
        let mut row = Map::from_iter([(column.clone(), json!(id))]);
        row.extend(example.fields.clone());
        rows += &Value::Object(row).to_string();
        rows.push('\n');
    }
    let mut settings = settings.clone();
    settings.retain(|key, _| !OF_THE_FILES.contains(&key.as_str()));
    settings.extend([
        ("data".to_owned(), json!(file)),
        ("id".to_owned(), json!(column)),
        ("evaluate".to_owned(), json!(0)),
        ("shuffle".to_owned(), json!(false)),
    ]);
    Ok((settings, rows))
}

#[cfg(test)]
mod tests {
    use capo_core::workload::Split;

    use super::*;
    use crate::files::MemoryFiles;

    #[test]
    fn held_out_examples_are_all_of_a_workload_of_their_own() {
        let rows = [1, 2, 3, 4, 5, 6, 7, 8, 9]
            .map(|n| format!("{n} + 1?,{},x{n}\n", n + 1))
            .concat();
        let files = MemoryFiles::new()
            .with("rows.csv", format!("q,a,example_id\n{rows}"))
            .with("more.tsv", "q\ta\texample_id\n0 + 1?\t1\tx0\n");
        let ids = |settings: &Map<String, Value>, files: &MemoryFiles, split| {
            crate::build(settings, files, 0).unwrap()[0]
                .examples(split)
                .to_vec()
        };
        for which in [
            json!({ "evaluate": 3, "exclude": [2], "seed": 4 }),
            json!({ "evaluate": 3, "id": "example_id" }),
            json!({ "evaluate_data": "more.tsv", "optimize": 2 }),
        ] {
            let mut settings = which.as_object().unwrap().clone();
            let table = json!({
                "kind": "table", "data": "rows.csv", "user": "{{ q }}",
                "metric": [{ "type": "exact", "name": "correct", "expected": "{{ a }}" }],
            });
            settings.extend(table.as_object().unwrap().clone());
            let wanted = ids(&settings, &files, Split::Evaluate);
            let asked = wanted.iter().map(String::as_str);
            let (alone, rows) = held_out(&settings, &files, asked, "alone.jsonl").unwrap();
            let alone_files = MemoryFiles::new().with("alone.jsonl", rows);
            assert_eq!(ids(&alone, &alone_files, Split::Optimize), wanted);
            assert!(ids(&alone, &alone_files, Split::Evaluate).is_empty());
            let error = held_out(&settings, &files, ["12"], "alone.jsonl").unwrap_err();
            assert!(
                error
                    .to_string()
                    .starts_with("rows.csv: no held-out example has the id `12`"),
                "{error}"
            );
        }
    }
}
