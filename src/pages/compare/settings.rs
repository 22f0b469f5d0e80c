//! Settings that the compared studies do not share.

use capo_core::study::Study;
use leptos::prelude::*;
use serde_json::Value;

use crate::format;

/// Characters of a value that are shown; prompts are longer.
const LONGEST: usize = 60;

/// Where changes by hand stand beside the settings of the study file.
const STEERED: &str = "steered";

/// What stands for the values of a run whose journal is not read yet, or cannot be.
const UNREAD: &str = "not read";

/// What was to be done in a run.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Said {
    /// By its study.
    pub(super) study: Study,
    /// By people while it went on, in sentences; empty where they changed nothing.
    pub(super) steered: String,
}

/// A setting in which runs differ.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Differing {
    /// Its place in the study file: `method.beta`.
    pub(super) path: String,
    /// Its value in each of them; an en dash where it is left out, [`UNREAD`] where no study is known.
    pub(super) values: Vec<String>,
}

/// The settings in which those runs differ that are known, their names for people left out.
pub(super) fn differing(runs: &[Option<Said>]) -> Vec<Differing> {
    let flat: Vec<Option<Vec<(String, Value)>>> = runs.iter().map(|run| run.as_ref().map(flat)).collect();
    let mut paths: Vec<&String> = Vec::new();
    for (path, _) in flat.iter().flatten().flatten() {
        if !paths.contains(&path) {
            paths.push(path);
        }
    }
    let of = |path: &str| -> Vec<Option<Option<&Value>>> {
        let value = |study: &'_ Vec<(String, Value)>| study.iter().position(|(other, _)| other == path);
        flat.iter()
            .map(|study| {
                let study = study.as_ref()?;
                Some(value(study).map(|place| &study[place].1))
            })
            .collect()
    };
    paths
        .into_iter()
        .filter(|path| *path != "study.name")
        .filter_map(|path| {
            let values = of(path);
            let known: Vec<Option<&Value>> = values.iter().copied().flatten().collect();
            let differ = known.windows(2).any(|pair| pair[0] != pair[1]);
            let shown = |value: Option<Option<&Value>>| {
                value.map_or_else(|| UNREAD.to_owned(), |value| written(path, value))
            };
            differ.then(|| Differing {
                path: path.clone(),
                values: values.into_iter().map(shown).collect(),
            })
        })
        .collect()
}

fn written(path: &str, value: Option<&Value>) -> String {
    let text = match value {
        None => return format::NOTHING.to_owned(),
        Some(Value::String(text)) => text.clone(),
        Some(other) => other.to_string(),
    };
    if path == STEERED || text.chars().count() <= LONGEST {
        return text;
    }
    text.chars().take(LONGEST - 1).chain(['…']).collect()
}

/// Every leaf of a study with its path, and what was steered; constraints by their metric, wherever they stand.
fn flat(said: &Said) -> Vec<(String, Value)> {
    let mut leaves = Vec::new();
    if let Ok(value) = serde_json::to_value(&said.study) {
        walk(&value, String::new(), &mut leaves);
    }
    if !said.steered.is_empty() {
        leaves.push((STEERED.to_owned(), Value::String(said.steered.clone())));
    }
    leaves
}

fn walk(value: &Value, path: String, leaves: &mut Vec<(String, Value)>) {
    let under = |key: &str| {
        if path.is_empty() {
            key.to_owned()
        } else {
            format!("{path}.{key}")
        }
    };
    match value {
        Value::Object(fields) => {
            for (key, value) in fields {
                walk(value, under(key), leaves);
            }
        }
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                let name = item.get("metric").and_then(Value::as_str);
                walk(
                    item,
                    under(&name.map_or_else(|| index.to_string(), str::to_owned)),
                    leaves,
                );
            }
        }
        Value::Null => {}
        leaf => leaves.push((path, leaf.clone())),
    }
}

/// "Method: dual step β", "Task agent: model".
fn in_words(path: &str) -> String {
    if path == STEERED {
        return "Changed by hand".to_owned();
    }
    let parts: Vec<&str> = path.split('.').collect();
    let Some((last, tables)) = parts.split_last() else {
        return String::new();
    };
    let named = |part: &&str| match *part {
        "study" | "models" => None,
        "workload" => Some("Examples".to_owned()),
        "agent" => Some("Task agent".to_owned()),
        part if part.chars().all(|letter| letter.is_ascii_digit()) => Some(format!("no. {part}")),
        part => Some(format::setting(part)),
    };
    let mut words: Vec<String> = tables.iter().filter_map(named).collect();
    words.push(format::setting(last));
    words.join(": ")
}

/// The table of settings in which the runs differ.
#[component]
pub(super) fn Settings(names: Memo<Vec<String>>, rows: Memo<Vec<Differing>>) -> impl IntoView {
    let head = move || {
        let name = |name: String| view! { <th scope="col">{name}</th> };
        names.get().into_iter().map(name).collect_view()
    };
    let row = |row: Differing| {
        let cells = row.values.into_iter().map(|value| view! { <td>{value}</td> });
        view! {
            <tr class="differs">
                <th scope="row">
                    <span title=row.path.clone()>{in_words(&row.path)}</span>
                </th>
                {cells.collect_view()}
            </tr>
        }
    };
    view! {
        <section class="plate" aria-labelledby="settings-title">
            <header>
                <h2 class="pt" id="settings-title">
                    <span>"Settings that differ"</span>
                </h2>
            </header>
            <Show
                when=move || rows.with(|rows| !rows.is_empty())
                fallback=|| {
                    view! { <p class="empty">"None: the same study was run again, and nothing was changed by hand."</p> }
                }
            >
                <div class="scroll" tabindex="0" role="group" aria-label="Settings that differ, scrolls sideways">
                    <table class="sticky-1">
                        <thead>
                            <tr>
                                <th scope="col">"Setting"</th>
                                {head}
                            </tr>
                        </thead>
                        <tbody>{move || rows.get().into_iter().map(row).collect_view()}</tbody>
                    </table>
                </div>
            </Show>
        </section>
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::studies;

    fn said(study: Study, steered: &str) -> Said {
        Said {
            study,
            steered: steered.to_owned(),
        }
    }

    #[test]
    fn only_what_differs_is_listed() {
        let one = said(studies::help_desk().unwrap(), "");
        let mut other = one.study.clone();
        other.study.name = "another".into();
        other.study.seed = 3;
        other.constraints.reverse();
        other.constraints[0].scale = Some(2.0);
        let other = said(other, "You lifted the budget.");
        let rows = differing(&[Some(one.clone()), Some(other)]);
        let rows: Vec<(&str, Vec<&str>)> = rows
            .iter()
            .map(|row| (row.path.as_str(), row.values.iter().map(String::as_str).collect()))
            .collect();
        assert_eq!(
            rows,
            [
                ("study.seed", vec!["0", "3"]),
                ("constraint.prompt_length.scale", vec!["–", "2.0"]),
                ("steered", vec!["–", "You lifted the budget."]),
            ]
        );
        assert!(differing(&[Some(one.clone()), Some(one)]).is_empty());
    }

    #[test]
    fn values_stand_under_their_own_run_while_another_is_not_read() {
        let one = studies::help_desk().unwrap();
        let mut other = one.clone();
        other.study.seed = 3;
        let rows = differing(&[Some(said(one, "")), None, Some(said(other, ""))]);
        assert_eq!(rows.len(), 1);
        assert_eq!(rows[0].values, ["0", UNREAD, "3"]);
    }
}
