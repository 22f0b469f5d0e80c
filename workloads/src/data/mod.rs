//! A user's examples: read from JSONL, CSV or TSV, named, and split.
//!
//! Shared by the kinds `table` and `external`. The split depends on the data and its own seed
//! alone, never on the study's seed: otherwise a prompt found with seed 1 would be judged, under
//! seed 2, on examples its search has seen.

mod held_out;
mod look;
mod rows;
mod split;
#[cfg(test)]
mod tests;

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::hash::Hash;

use capo_core::study::nearest;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

pub use held_out::held_out;
pub(crate) use look::cut;
pub use look::{ASKED, EXPECTED, Look, guess, template};
pub use rows::Format;

use crate::files::{MemoryFiles, Sources};
use crate::kind::{Build, Declared};
use crate::settings::{BuildError, Settings};

/// Which examples there are, and which the search may see.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DataSettings {
    /// File of examples, relative to the study file.
    pub data: String,
    /// Notation of the data files; told by the extension (`.jsonl`, `.csv`, `.tsv`) when left out.
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
    #[schemars(extend("x-left-out" = "all that are not held out"))]
    pub optimize: Option<usize>,
    /// Number of held-out examples; needed unless `evaluate_data` is given, which then counts
    /// whole. 0 for none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-left-out" = "as many as the file of held-out examples has"))]
    pub evaluate: Option<usize>,
    /// A separate file of held-out examples with the same columns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub evaluate_data: Option<String>,
    /// Draw the split at random (the default) or take examples in file order: `optimize` first,
    /// then `evaluate`.
    #[serde(default = "yes")]
    pub shuffle: bool,
    /// Draws the random split. Apart from the study's seed, so that runs over
    /// several seeds share one split; `capo experiment` draws one for each unless told not to.
    #[serde(default)]
    pub seed: u64,
}

fn yes() -> bool {
    true
}

/// An example's name: text or a whole number.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged, expecting = "write a text or a whole number")]
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

/// What workloads of these settings measure whose data are not there yet: built on a single made-up example, with
/// none of the settings but `kept`.
pub(crate) fn declared_by(build: Build, settings: &Map<String, Value>, kept: &[&str]) -> Option<Declared> {
    const FILE: &str = "example.jsonl";
    let kept = kept
        .iter()
        .filter_map(|key| Some(((*key).to_owned(), settings.get(*key)?.clone())));
    let data = [
        ("data".to_owned(), FILE.into()),
        ("evaluate".to_owned(), 0.into()),
    ];
    let settings = Settings::new("workload", kept.chain(data).collect());
    let files = MemoryFiles::new().with(FILE, "{\"example\": 1}");
    Some(Declared::of(&build(settings, &files, 0).ok()?))
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
        let main = split::ordered(settings, main);
        let examples = match separate {
            Some(held_out) => {
                let held_out = split::ordered(settings, held_out);
                let evaluate_file = settings.evaluate_data.as_deref().unwrap_or_default();
                Self {
                    optimize: split::take(
                        main,
                        settings.optimize,
                        &format!("{key}.optimize"),
                        &settings.data,
                    )?,
                    evaluate: split::take(
                        held_out,
                        settings.evaluate,
                        &format!("{key}.evaluate"),
                        evaluate_file,
                    )?,
                }
            }
            None => split::one_file(settings, key, main)?,
        };
        if examples.optimize.is_empty() {
            return Err(BuildError::setting(
                format!("{key}.optimize"),
                "the search needs at least one example",
            ));
        }
        Ok(examples)
    }

    /// [`refuse_overlap`] for data that stand alone.
    pub(crate) fn refuse_overlap<K: Eq + Hash>(
        &self,
        content: impl Fn(&Example) -> K,
    ) -> Result<(), BuildError> {
        refuse_overlap(&[self], |_, example| content(example))
    }

    /// Both splits, what the search sees first.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Example> {
        self.optimize.iter().chain(&self.evaluate)
    }
}

/// Refuses examples that are in both splits under different names or in different sets: what the
/// search has seen cannot measure how well it generalises. Two examples of the same `content`, which
/// is told the position of their set, are the same.
pub(crate) fn refuse_overlap<K: Eq + Hash>(
    sets: &[&Examples],
    content: impl Fn(usize, &Example) -> K,
) -> Result<(), BuildError> {
    let mut seen: HashMap<K, (usize, &Example)> = HashMap::new();
    for (set, examples) in sets.iter().enumerate() {
        let optimize = examples.optimize.iter();
        seen.extend(optimize.map(|example| (content(set, example), (set, example))));
    }
    let held_out = sets.iter().enumerate().flat_map(|(set, examples)| {
        let examples = examples.evaluate.iter();
        examples.map(move |example| (set, example))
    });
    let overlap: Vec<_> = held_out
        .filter_map(|(set, example)| Some((set, example, seen.get(&content(set, example))?)))
        .collect();
    let Some((set, example, (other, twin))) = overlap.first() else {
        return Ok(());
    };
    let hint = if other == set {
        ""
    } else {
        ", or give sets of one file the same optimize, evaluate and seed"
    };
    Err(BuildError::Overlap {
        file: example.file.clone(),
        line: example.line,
        problem: format!(
            "this held-out example is the same as {} line {}, which the search sees; \
             leave one out with exclude = [\"{}\"]{hint}",
            twin.file, twin.line, example.id
        ),
        ids: overlap.iter().map(|(_, example, _)| example.id.clone()).collect(),
    })
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
    format!(
        "there is no column `{column}`{}; there are {}",
        hint.unwrap_or_default(),
        known.join(", ")
    )
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
