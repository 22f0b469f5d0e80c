//! The keys of a table as its JSON schema describes them: what a form can offer for each.

use serde_json::{Map, Value};

/// What a key takes.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Kind {
    /// A whole number of at least 0.
    Whole,
    Number,
    Text,
    /// Yes or no.
    Flag,
    /// One of several words, each with its meaning.
    Choice(Vec<(String, String)>),
}

/// One key of a table.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Setting {
    /// Its name in the study.
    pub(super) key: String,
    /// What it means, in the words of the study file's reference.
    pub(super) explanation: String,
    /// What it takes.
    pub(super) kind: Kind,
    /// What holds when it is left out.
    pub(super) default: Option<Value>,
    /// Whether it must be there.
    pub(super) needed: bool,
    /// The least and the most a number may be.
    pub(super) range: (f64, f64),
    /// What stands behind a number; may be empty.
    pub(super) unit: String,
    /// What holds when it is left out, in words; empty where the default says it.
    pub(super) left_out: String,
}

/// The keys of an object's schema that a form can show. Others, such as nested tables, are left to
/// the study file.
pub(super) fn settings(schema: &Value) -> Vec<Setting> {
    let needed = |key: &str| {
        schema["required"]
            .as_array()
            .is_some_and(|required| required.iter().any(|name| name == key))
    };
    let properties = schema["properties"].as_object().into_iter().flatten();
    properties
        .filter_map(|(key, property)| {
            let whole = resolved(property, &schema["$defs"]);
            Some(Setting {
                key: key.clone(),
                explanation: one_line(whole.get("description")),
                kind: kind(&whole)?,
                default: whole.get("default").filter(|value| !value.is_null()).cloned(),
                needed: needed(key),
                range: range(key, &whole),
                unit: one_line(whole.get("x-unit")),
                left_out: one_line(whole.get("x-left-out")),
            })
        })
        .collect()
}

/// The variants of a schema that is one of several tables told apart by `tag`: the tag's value, the
/// variant's meaning, its schema.
pub(super) fn variants(schema: &Value, tag: &str) -> Vec<(String, String, Value)> {
    let all = schema["oneOf"].as_array().into_iter().flatten();
    all.filter_map(|variant| {
        let name = variant["properties"][tag]["const"].as_str()?;
        Some((
            name.to_owned(),
            one_line(variant.get("description")),
            variant.clone(),
        ))
    })
    .collect()
}

/// A property with what it refers to put in its place, and without the possibility of `null`.
fn resolved(property: &Value, definitions: &Value) -> Map<String, Value> {
    let mut whole = Map::new();
    let alternatives = property["anyOf"].as_array().into_iter().flatten();
    let target = property["$ref"]
        .as_str()
        .or_else(|| {
            alternatives
                .clone()
                .find_map(|alternative| alternative["$ref"].as_str())
        })
        .and_then(|path| path.strip_prefix("#/$defs/"))
        .map(|name| &definitions[name]);
    let inline = alternatives
        .clone()
        .find(|alternative| alternative["type"] != "null");
    // An alternative of several types has no one field; it keeps its `anyOf`.
    let several = alternatives
        .filter(|alternative| alternative["type"] != "null")
        .count()
        > 1;
    for source in [target, inline.filter(|_| !several), Some(property)]
        .into_iter()
        .flatten()
    {
        let fields = source.as_object().into_iter().flatten();
        whole.extend(
            fields
                .filter(|(key, _)| several || key.as_str() != "anyOf")
                .map(|(key, value)| (key.clone(), value.clone())),
        );
    }
    whole
}

/// What a number may be: as its schema says, or as makes sense for the steps of a search, whose schema leaves
/// them open.
fn range(key: &str, schema: &Map<String, Value>) -> (f64, f64) {
    const STEEP: f64 = 1e6;
    let stated = |bound: &str| schema.get(bound).and_then(Value::as_f64);
    let (least, most) = match key {
        "beta" | "gamma" | "lambda_max" | "lambda_init" | "noise" | "kp" | "ki" | "kd" | "rho" | "weight" => {
            (0.0, STEEP)
        }
        _ => (f64::NEG_INFINITY, f64::INFINITY),
    };
    (
        stated("minimum").unwrap_or(least).max(least),
        stated("maximum").unwrap_or(most).min(most),
    )
}

fn kind(schema: &Map<String, Value>) -> Option<Kind> {
    if let Some(words) = choice(schema) {
        return Some(Kind::Choice(words));
    }
    let types: Vec<&str> = match schema.get("type")? {
        Value::String(one) => vec![one],
        Value::Array(several) => several.iter().filter_map(Value::as_str).collect(),
        _ => return None,
    };
    let types: Vec<&str> = types.into_iter().filter(|name| *name != "null").collect();
    match types.as_slice() {
        ["integer"] => Some(Kind::Whole),
        ["number"] => Some(Kind::Number),
        ["string"] => Some(Kind::Text),
        ["boolean"] => Some(Kind::Flag),
        _ => None,
    }
}

fn choice(schema: &Map<String, Value>) -> Option<Vec<(String, String)>> {
    if let Some(Value::Array(words)) = schema.get("enum") {
        let words = words.iter().filter_map(Value::as_str);
        return Some(words.map(|word| (word.to_owned(), String::new())).collect());
    }
    let all = schema.get("oneOf")?.as_array()?;
    // Variants without words of their own stand together in one `enum`.
    let mut words = Vec::new();
    for one in all {
        match (one["const"].as_str(), one["enum"].as_array()) {
            (Some(word), _) => words.push((word.to_owned(), one_line(one.get("description")))),
            (None, Some(several)) => {
                let several = several.iter().filter_map(Value::as_str);
                words.extend(several.map(|word| (word.to_owned(), String::new())));
            }
            (None, None) => return None,
        }
    }
    Some(words)
}

/// A doc comment as running text.
fn one_line(description: Option<&Value>) -> String {
    let text = description.and_then(Value::as_str).unwrap_or_default();
    let words: Vec<&str> = text.split_whitespace().collect();
    words.join(" ").replace('`', "")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schemas;

    fn of_method(name: &str) -> Vec<Setting> {
        settings(schemas::method(name))
    }

    fn find<'a>(settings: &'a [Setting], key: &str) -> &'a Setting {
        settings.iter().find(|setting| setting.key == key).unwrap()
    }

    #[test]
    fn the_paper_s_method_is_described_key_by_key() {
        let settings = of_method("capo");
        assert_eq!(find(&settings, "parents").kind, Kind::Whole);
        assert_eq!(find(&settings, "parents").default, Some(4.into()));
        assert_eq!(find(&settings, "beta").kind, Kind::Number);
        assert_eq!(find(&settings, "mask").kind, Kind::Whole);
        let Kind::Choice(steps) = &find(&settings, "dual_step").kind else {
            panic!("a choice")
        };
        assert!(
            steps
                .iter()
                .any(|(word, meaning)| word == "subgradient" && meaning.contains("paper"))
        );
    }

    #[test]
    fn every_metric_of_a_table_is_offered() {
        let schema = schemas::workload("table");
        let variants = variants(&schema["properties"]["metric"]["items"], "type");
        assert!(variants.len() >= 12, "{}", variants.len());
        let (_, meaning, schema) = variants.iter().find(|(name, ..)| name == "contains").unwrap();
        assert!(meaning.starts_with("The answer holds"), "{meaning}");
        let settings = settings(schema);
        assert!(find(&settings, "expected").needed);
        assert_eq!(find(&settings, "ignore_case").kind, Kind::Flag);
    }

    #[test]
    fn a_model_s_table_is_described() {
        let settings = settings(schemas::model());
        assert_eq!(find(&settings, "temperature").kind, Kind::Number);
        assert!(matches!(
            find(&settings, "reasoning_effort").kind,
            Kind::Choice(_)
        ));
        assert_eq!(find(&settings, "base_url").kind, Kind::Text);
        assert!(settings.iter().all(|setting| setting.key != "headers"));
    }
}
