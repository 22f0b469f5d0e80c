//! `docs/method.md` lists every hyperparameter with its default.

use std::collections::BTreeMap;

use capo_core::methods;
use capo_core::study::{Format, Study, Table};
use serde_json::Value;

use crate::{page, rows, section};

/// Default and methods of every key of `[method]`, as the table writes them.
fn hyperparameters() -> BTreeMap<String, (String, String)> {
    let mut found: BTreeMap<String, (Value, Vec<&str>)> = BTreeMap::new();
    for entry in methods::ALL {
        let defaults = methods::complete(entry.name, &Table::new()).unwrap();
        let schema = methods::schema(entry.name).unwrap();
        let keys = schema.get("properties").and_then(Value::as_object);
        for key in keys.into_iter().flatten().map(|(key, _)| key) {
            let default = defaults.get(key).cloned().unwrap_or(Value::Null);
            let (known, methods) = found
                .entry(key.clone())
                .or_insert_with(|| (default.clone(), Vec::new()));
            assert_eq!(*known, default, "`{key}` has one default in all methods");
            methods.push(entry.name);
        }
    }
    found
        .into_iter()
        .map(|(key, (default, methods))| (key, (written(&default), methods.join(", "))))
        .collect()
}

fn written(value: &Value) -> String {
    match value {
        Value::Null => "–".into(),
        Value::String(text) => text.clone(),
        other => other.to_string().trim_end_matches(".0").to_owned(),
    }
}

#[test]
fn the_table_of_hyperparameters_is_the_codes() {
    let page = page("method");
    let table: BTreeMap<String, (String, String)> = rows(section(&page, "### Of the methods"))
        .into_iter()
        .map(|cells| (cells[0].clone(), (cells[2].clone(), cells[3].clone())))
        .collect();
    assert_eq!(table, hyperparameters());
}

#[test]
fn the_table_of_search_settings_is_the_codes() {
    let smallest = "[study]\nname = \"n\"\n[workload]\nkind = \"k\"\n[prompt]\ntext = \"p\"\n\
                    [objective]\nmetric = \"m\"\n[[constraint]]\nmetric = \"c\"\nthreshold = 1.0\n\
                    [models.agent]\nprovider = \"x\"\n";
    let study = Study::parse(smallest, Format::Toml).unwrap();
    let study = serde_json::to_value(study).unwrap();
    let page = page("method");
    let table = rows(section(&page, "### Of every search"));
    for cells in &table {
        let pointer = format!(
            "/{}",
            cells[0].replace("constraint.", "constraint.0.").replace('.', "/")
        );
        let default = study.pointer(&pointer).unwrap_or(&Value::Null);
        assert_eq!(cells[2], written(default), "{}", cells[0]);
    }
    for key in [
        "study.rounds",
        "study.repeats",
        "study.batch",
        "feedback.form",
        "feedback.cases",
    ] {
        assert!(table.iter().any(|cells| cells[0] == key), "`{key}` is missing");
    }
}
