//! Loading and splitting, from settings to ids.

use serde_json::json;

use super::*;
use crate::files::MemoryFiles;

fn files() -> MemoryFiles {
    let lines: Vec<String> = (1..=10)
        .map(|n| json!({"id": format!("q{n}"), "q": n % 9}).to_string())
        .collect();
    MemoryFiles::new()
        .with("ten.jsonl", lines.join("\n"))
        .with("three.csv", "id,q\nx,20\ny,21\nz,22\n")
        .with("twice.csv", "id,q\nx,1\ny,2\nx,3\n")
}

fn load(settings: Value) -> Result<Examples, BuildError> {
    let settings: DataSettings = serde_json::from_value(settings).unwrap();
    let files = files();
    Examples::load(&settings, "workload", &mut Sources::new(&files))
}

fn ids(examples: &[Example]) -> Vec<&str> {
    examples.iter().map(|example| example.id.as_str()).collect()
}

#[test]
fn file_order_takes_optimize_first() {
    let examples =
        load(json!({"data": "ten.jsonl", "shuffle": false, "optimize": 2, "evaluate": 1})).unwrap();
    assert_eq!(
        (ids(&examples.optimize), ids(&examples.evaluate)),
        (vec!["1", "2"], vec!["3"])
    );
}

#[test]
fn a_random_split_is_a_partition_that_repeats_and_moves_with_its_seed() {
    let split = |seed: u64| {
        let examples = load(json!({"data": "ten.jsonl", "evaluate": 4, "seed": seed})).unwrap();
        let mut all = ids(&examples.optimize);
        all.extend(ids(&examples.evaluate));
        all.into_iter().map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(split(0), split(0));
    assert_ne!(split(0), split(1));
    let mut sorted: Vec<u32> = split(0).iter().map(|id| id.parse().unwrap()).collect();
    assert!(!sorted.is_sorted());
    sorted.sort_unstable();
    assert_eq!(sorted, (1..=10).collect::<Vec<_>>());
}

#[test]
fn a_separate_file_counts_whole_unless_told_otherwise() {
    let examples = load(json!({"data": "ten.jsonl", "evaluate_data": "three.csv"})).unwrap();
    assert_eq!((examples.optimize.len(), examples.evaluate.len()), (10, 3));
    assert!(
        examples
            .evaluate
            .iter()
            .all(|example| example.id.starts_with("evaluate:"))
    );
    let examples =
        load(json!({"data": "ten.jsonl", "evaluate_data": "three.csv", "evaluate": 1, "id": "id"})).unwrap();
    assert_eq!(examples.evaluate.len(), 1);
}

#[test]
fn impossible_splits_are_refused_by_name() {
    for (settings, expected) in [
        (
            json!({"data": "ten.jsonl", "evaluate": 5, "optimize": u64::MAX}),
            "workload.optimize: 18446744073709551615 and 5 held-out examples",
        ),
        (
            json!({"data": "ten.jsonl"}),
            "workload.evaluate: say how many examples to hold out",
        ),
        (
            json!({"data": "ten.jsonl", "evaluate": 10}),
            "workload.optimize: the search needs at least one example",
        ),
        (
            json!({"data": "ten.jsonl", "evaluate": 11}),
            "workload.evaluate: 11 examples are asked for, but ten.jsonl leaves 10",
        ),
        (
            json!({"data": "ten.jsonl", "evaluate": 5, "optimize": 6}),
            "workload.optimize: 6 and 5 held-out examples are asked for, but ten.jsonl leaves 10",
        ),
        (
            json!({"data": "ten.jsonl", "evaluate_data": "three.csv", "evaluate": 4}),
            "workload.evaluate: 4 examples are asked for, but three.csv leaves 3",
        ),
    ] {
        let error = load(settings).unwrap_err().to_string();
        assert!(error.starts_with(expected), "{error}");
    }
}

#[test]
fn excluded_examples_are_gone_and_unknown_ones_are_named() {
    let examples =
        load(json!({"data": "ten.jsonl", "evaluate": 0, "exclude": [3, "4"], "shuffle": false})).unwrap();
    assert_eq!(ids(&examples.optimize), ["1", "2", "5", "6", "7", "8", "9", "10"]);
    let error = load(json!({"data": "ten.jsonl", "evaluate": 0, "exclude": ["q77"], "id": "id"}))
        .unwrap_err()
        .to_string();
    assert!(
        error.starts_with("workload.exclude: no example has the id `q77`; did you mean `q7`?"),
        "{error}"
    );
}

#[test]
fn duplicate_ids_name_both_lines() {
    let error = load(json!({"data": "twice.csv", "id": "id", "evaluate": 0}))
        .unwrap_err()
        .to_string();
    assert_eq!(
        error,
        "twice.csv line 4: the id `x` is taken by twice.csv line 2; ids must be unique"
    );
}

#[test]
fn the_same_content_in_both_splits_names_both_lines() {
    let examples = load(json!({"data": "ten.jsonl", "evaluate": 5, "shuffle": false, "id": "id"})).unwrap();
    let error = examples
        .refuse_overlap(|example| example.fields["q"].to_string())
        .unwrap_err()
        .to_string();
    assert!(
        error.starts_with("ten.jsonl line 10: this held-out example is the same as ten.jsonl line 1"),
        "{error}"
    );
    assert!(error.contains("exclude = [\"q10\"]"), "{error}");
    examples.refuse_overlap(|example| example.id.clone()).unwrap();
}

#[test]
fn a_missing_id_column_and_a_missing_file_are_named() {
    let error = load(json!({"data": "three.csv", "id": "idd", "evaluate": 0}))
        .unwrap_err()
        .to_string();
    assert_eq!(
        error,
        "three.csv line 2: there is no column `idd` (did you mean `id`?); there are id, q"
    );
    let error = load(json!({"data": "four.csv", "evaluate": 0}))
        .unwrap_err()
        .to_string();
    assert!(error.starts_with("workload.data: no file `four.csv`"), "{error}");
}
