//! A user's examples: read from JSONL or CSV, named, and split.
//!
//! Shared by the kinds `table` and `external`. The split depends on the data and its own seed
//! alone, never on the study's seed: otherwise a prompt found with seed 1 would be judged, under
//! seed 2, on examples its search has seen.

mod rows;

use std::collections::{HashMap, HashSet};
use std::fmt;

use capo_core::study::nearest;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

pub use rows::Format;

use crate::files::Sources;
use crate::settings::BuildError;

/// Which examples there are, and which the search may see.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DataSettings {
    /// File of examples, relative to the study file.
    pub data: String,
    /// Notation of the data files; told by the extension (`.jsonl`, `.csv`) when left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub format: Option<Format>,
    /// Column that names each example; the line number does when left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// Examples to leave out, by id.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub exclude: Vec<ExampleId>,
    /// Number of examples the search sees; all that are not held out when left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub optimize: Option<usize>,
    /// Number of held-out examples; needed unless `evaluate_data` is given, which then counts
    /// whole. 0 for none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub evaluate: Option<usize>,
    /// A separate file of held-out examples with the same columns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub evaluate_data: Option<String>,
    /// Draw the split at random (the default) or take examples in file order: `optimize` first,
    /// then `evaluate`.
    #[serde(default = "yes")]
    pub shuffle: bool,
    /// Draws the random split. Apart from the study's seed, so that runs over
    /// several seeds share one split.
    #[serde(default)]
    pub seed: u64,
}

fn yes() -> bool {
    true
}

/// An example's name: text or a whole number.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum ExampleId {
    /// A whole number, such as a line number.
    Number(u64),
    /// Text.
    Text(String),
}

impl fmt::Display for ExampleId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(number) => number.fmt(f),
            Self::Text(text) => text.fmt(f),
        }
    }
}

/// One example of a user's data.
#[derive(Debug, Clone, PartialEq)]
pub struct Example {
    /// Unique over both splits.
    pub id: String,
    /// The file it comes from.
    pub file: String,
    /// Its line there, counted from 1.
    pub line: u64,
    /// Values by column.
    pub fields: Map<String, Value>,
}

/// Both splits of a user's data.
#[derive(Debug, Clone, PartialEq)]
pub struct Examples {
    /// What the search sees.
    pub optimize: Vec<Example>,
    /// What it never sees.
    pub evaluate: Vec<Example>,
}

impl Examples {
    /// Reads and splits the data. `key` is where the settings stand, for errors.
    pub(crate) fn load(
        settings: &DataSettings,
        key: &str,
        sources: &mut Sources<'_>,
    ) -> Result<Self, BuildError> {
        let main = read(settings, &settings.data, "", &format!("{key}.data"), sources)?;
        let separate = match &settings.evaluate_data {
            Some(file) => Some(read(
                settings,
                file,
                "evaluate:",
                &format!("{key}.evaluate_data"),
                sources,
            )?),
            None => None,
        };
        refuse_duplicates(main.iter().chain(separate.iter().flatten()))?;
        let (main, separate) = exclude(settings, key, main, separate)?;
        let main = ordered(settings, main);
        let examples = match separate {
            Some(held_out) => {
                let held_out = ordered(settings, held_out);
                let evaluate_file = settings.evaluate_data.as_deref().unwrap_or_default();
                Self {
                    optimize: take(
                        main,
                        settings.optimize,
                        &format!("{key}.optimize"),
                        &settings.data,
                    )?,
                    evaluate: take(
                        held_out,
                        settings.evaluate,
                        &format!("{key}.evaluate"),
                        evaluate_file,
                    )?,
                }
            }
            None => split(settings, key, main)?,
        };
        if examples.optimize.is_empty() {
            return Err(BuildError::setting(
                format!("{key}.optimize"),
                "the search needs at least one example",
            ));
        }
        Ok(examples)
    }

    /// Refuses examples that are in both splits under different names: what the search has seen
    /// cannot measure how well it generalises. Two examples of the same `content` are the same.
    pub(crate) fn refuse_overlap<K: Eq + std::hash::Hash>(
        &self,
        content: impl Fn(&Example) -> K,
    ) -> Result<(), BuildError> {
        let seen: HashMap<K, &Example> = self
            .optimize
            .iter()
            .map(|example| (content(example), example))
            .collect();
        for example in &self.evaluate {
            if let Some(twin) = seen.get(&content(example)) {
                return Err(BuildError::line(
                    &example.file,
                    example.line,
                    format!(
                        "this held-out example is the same as {} line {}, which the search sees; \
                         leave one out with exclude = [\"{}\"]",
                        twin.file, twin.line, example.id
                    ),
                ));
            }
        }
        Ok(())
    }

    /// Both splits, what the search sees first.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Example> {
        self.optimize.iter().chain(&self.evaluate)
    }
}

fn read(
    settings: &DataSettings,
    file: &str,
    prefix: &str,
    key: &str,
    sources: &mut Sources<'_>,
) -> Result<Vec<Example>, BuildError> {
    let bytes = sources.read(file).map_err(|error| BuildError::file(key, error))?;
    rows::parse(file, &bytes, settings.format)?
        .into_iter()
        .map(|row| {
            let id = match &settings.id {
                None => format!("{prefix}{}", row.line),
                Some(column) => name(file, &row, column)?,
            };
            Ok(Example {
                id,
                file: file.to_owned(),
                line: row.line,
                fields: row.fields,
            })
        })
        .collect()
}

fn name(file: &str, row: &rows::Row, column: &str) -> Result<String, BuildError> {
    match row.fields.get(column) {
        Some(Value::String(id)) if !id.trim().is_empty() => Ok(id.clone()),
        Some(Value::Number(id)) if !id.is_f64() => Ok(id.to_string()),
        Some(_) => Err(BuildError::line(
            file,
            row.line,
            format!("the id in column `{column}` must be text or a whole number, and not empty"),
        )),
        None => Err(BuildError::line(
            file,
            row.line,
            missing_column(column, &row.fields),
        )),
    }
}

/// Says that a column is missing, which is nearest, and which there are.
pub(crate) fn missing_column(column: &str, fields: &Map<String, Value>) -> String {
    let known: Vec<&str> = fields.keys().map(String::as_str).collect();
    let hint = nearest(column, known.iter().copied()).map(|near| format!(" (did you mean `{near}`?)"));
    format!("there is no column `{column}`{}; there are {}", hint.unwrap_or_default(), known.join(", "))
}

fn refuse_duplicates<'a>(examples: impl Iterator<Item = &'a Example>) -> Result<(), BuildError> {
    let mut seen: HashMap<&str, &Example> = HashMap::new();
    for example in examples {
        if let Some(first) = seen.insert(&example.id, example) {
            return Err(BuildError::line(
                &example.file,
                example.line,
                format!(
                    "the id `{}` is taken by {} line {}; ids must be unique",
                    example.id, first.file, first.line
                ),
            ));
        }
    }
    Ok(())
}

type Parts = (Vec<Example>, Option<Vec<Example>>);

fn exclude(
    settings: &DataSettings,
    key: &str,
    main: Vec<Example>,
    separate: Option<Vec<Example>>,
) -> Result<Parts, BuildError> {
    let excluded: HashSet<String> = settings.exclude.iter().map(ToString::to_string).collect();
    let known: HashSet<&str> = main
        .iter()
        .chain(separate.iter().flatten())
        .map(|example| example.id.as_str())
        .collect();
    if let Some(stranger) = settings
        .exclude
        .iter()
        .map(ToString::to_string)
        .find(|id| !known.contains(id.as_str()))
    {
        let hint = nearest(&stranger, known.iter().copied()).map(|id| format!("; did you mean `{id}`?"));
        return Err(BuildError::setting(
            format!("{key}.exclude"),
            format!("no example has the id `{stranger}`{}", hint.unwrap_or_default()),
        ));
    }
    let keep = |examples: Vec<Example>| -> Vec<Example> {
        examples
            .into_iter()
            .filter(|example| !excluded.contains(&example.id))
            .collect()
    };
    Ok((keep(main), separate.map(keep)))
}

/// The examples in the order in which splits take them. A random order follows from each example's
/// id and the seed, so a line added to the file leaves the others in the same order.
fn ordered(settings: &DataSettings, mut examples: Vec<Example>) -> Vec<Example> {
    if settings.shuffle {
        examples.sort_by_cached_key(|example| {
            let mut hash = Sha256::new();
            hash.update(settings.seed.to_le_bytes());
            hash.update(example.id.as_bytes());
            <[u8; 32]>::from(hash.finalize())
        });
    }
    examples
}

fn take(
    mut examples: Vec<Example>,
    count: Option<usize>,
    key: &str,
    file: &str,
) -> Result<Vec<Example>, BuildError> {
    if let Some(count) = count {
        if count > examples.len() {
            return Err(too_many(key, count, examples.len(), file));
        }
        examples.truncate(count);
    }
    Ok(examples)
}

fn too_many(key: &str, wanted: usize, available: usize, file: &str) -> BuildError {
    BuildError::setting(
        key,
        format!("{wanted} examples are asked for, but {file} leaves {available}"),
    )
}

fn split(settings: &DataSettings, key: &str, mut examples: Vec<Example>) -> Result<Examples, BuildError> {
    let Some(evaluate) = settings.evaluate else {
        return Err(BuildError::setting(
            format!("{key}.evaluate"),
            "say how many examples to hold out (0 for none), or name a file with `evaluate_data`",
        ));
    };
    let available = examples.len();
    if evaluate > available {
        return Err(too_many(
            &format!("{key}.evaluate"),
            evaluate,
            available,
            &settings.data,
        ));
    }
    let optimize = settings.optimize.unwrap_or(available - evaluate);
    if optimize + evaluate > available {
        return Err(BuildError::setting(
            format!("{key}.optimize"),
            format!(
                "{optimize} and {evaluate} held-out examples are asked for, but {} leaves {available}",
                settings.data
            ),
        ));
    }
    let mut rest = examples.split_off(optimize);
    rest.truncate(evaluate);
    Ok(Examples {
        optimize: examples,
        evaluate: rest,
    })
}

#[cfg(test)]
mod tests {
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
            load(json!({"data": "ten.jsonl", "evaluate_data": "three.csv", "evaluate": 1, "id": "id"}))
                .unwrap();
        assert_eq!(examples.evaluate.len(), 1);
    }

    #[test]
    fn impossible_splits_are_refused_by_name() {
        for (settings, expected) in [
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
        let examples =
            load(json!({"data": "ten.jsonl", "evaluate": 5, "shuffle": false, "id": "id"})).unwrap();
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
}
