//! Whether the answer is JSON, and JSON of the wanted shape.

use capo_core::metric::MetricSpec;
use capo_core::study::suggest;
use capo_core::workload::RolloutError;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{DefinitionError, Evaluator, Family, Finding, Rule, Sample, shortened, shown};
use crate::files::Sources;

/// 1 if the whole answer is one JSON value (RFC 8259).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Json {
    /// The metric's name in this study.
    pub name: String,
    /// Accept the value inside one Markdown code fence, with nothing around it.
    #[serde(default)]
    pub fenced: bool,
    /// Measure 1 − value, a cost.
    #[serde(default)]
    pub invert: bool,
}

/// 1 if the whole answer is one JSON value that fits a JSON schema (drafts 4 to 2020-12, as the
/// schema's `$schema` says; `$ref` only within the schema).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct JsonSchemaMetric {
    /// The metric's name in this study.
    pub name: String,
    /// The schema: a file, or the schema itself as a table.
    pub schema: SchemaSource,
    /// Accept the value inside one Markdown code fence, with nothing around it.
    #[serde(default)]
    pub fenced: bool,
    /// Measure 1 − value, a cost.
    #[serde(default)]
    pub invert: bool,
}

/// Where a JSON schema comes from.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged, expecting = "write the name of a file, or a table")]
pub enum SchemaSource {
    /// A JSON file, relative to the study file.
    File(String),
    /// The schema itself.
    Inline(serde_json::Map<String, Value>),
}

/// The JSON value an answer consists of.
fn parse(answer: &str, fenced: bool) -> Result<Value, String> {
    let text = if fenced { unfenced(answer) } else { answer };
    if text.trim().is_empty() {
        return Err("the answer is empty".to_owned());
    }
    serde_json::from_str(text).map_err(|error| {
        let why = suggest(&error.to_string());
        format!("not JSON: {why}; got {}", shown(answer))
    })
}

/// What stands inside a Markdown code fence that is all of the text; otherwise the text.
fn unfenced(text: &str) -> &str {
    let inside = || {
        let (_, body) = text.trim().strip_prefix("```")?.split_once('\n')?;
        body.strip_suffix("```")
    };
    inside().unwrap_or(text)
}

impl Rule for Json {
    fn measure(&self, sample: &Sample<'_>) -> Result<Finding, RolloutError> {
        Ok(match parse(sample.answer, self.fenced) {
            Ok(_) => Finding::new(1.0, ""),
            Err(problem) => Finding::new(0.0, problem),
        })
    }
}

impl Family for Json {
    fn spec(&self) -> MetricSpec {
        MetricSpec::objective(&self.name, "The answer is valid JSON and nothing else.").two_valued()
    }

    fn compile(&self, _sources: &mut Sources<'_>) -> Result<Evaluator, DefinitionError> {
        Ok(Evaluator::rule(self.clone()))
    }
}

struct Shape {
    validator: jsonschema::Validator,
    fenced: bool,
}

impl Rule for Shape {
    fn measure(&self, sample: &Sample<'_>) -> Result<Finding, RolloutError> {
        let value = match parse(sample.answer, self.fenced) {
            Ok(value) => value,
            Err(problem) => return Ok(Finding::new(0.0, problem)),
        };
        let problems: Vec<String> = self
            .validator
            .iter_errors(&value)
            .take(3)
            .map(|error| match error.instance_path().to_string() {
                path if path.is_empty() => error.to_string(),
                path => format!("at {path}: {error}"),
            })
            // The error quotes the part of the answer that does not fit, which may be all of it.
            .map(|problem| match shortened(&problem) {
                Some(start) => format!("{start}…"),
                None => problem,
            })
            .collect();
        Ok(Finding::holds(problems.is_empty(), problems.join("; ")))
    }
}

impl Family for JsonSchemaMetric {
    fn spec(&self) -> MetricSpec {
        MetricSpec::objective(&self.name, "The answer is JSON that fits the schema.").two_valued()
    }

    fn compile(&self, sources: &mut Sources<'_>) -> Result<Evaluator, DefinitionError> {
        let bad = |problem: String| DefinitionError::new("schema", problem);
        let schema = match &self.schema {
            SchemaSource::Inline(schema) => Value::Object(schema.clone()),
            SchemaSource::File(path) => {
                let bytes = sources
                    .read(path)
                    .map_err(|error| DefinitionError::File { key: "schema", error })?;
                serde_json::from_slice(&bytes)
                    .map_err(|error| bad(format!("`{path}` is not JSON: {}", suggest(&error.to_string()))))?
            }
        };
        let validator =
            jsonschema::validator_for(&schema).map_err(|error| bad(format!("not a JSON schema: {error}")))?;
        Ok(Evaluator::rule(Shape {
            validator,
            fenced: self.fenced,
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{compile, compile_with, measure, measure_with};
    use crate::files::MemoryFiles;

    #[test]
    fn only_a_whole_json_value_counts() {
        let definition = r#"{"type": "json", "name": "m"}"#;
        for (answer, value) in [
            (" {\"a\": [1, null]}\n", 1.0),
            ("3", 1.0),
            ("{\"a\": NaN}", 0.0),
            ("{'a': 1}", 0.0),
            ("{\"a\": 1,}", 0.0),
            ("Here it is: {}", 0.0),
            ("```json\n{}\n```", 0.0),
            ("", 0.0),
        ] {
            assert_eq!(measure(definition, answer, "").value, value, "{answer:?}");
        }
    }

    #[test]
    fn a_fence_is_accepted_on_request() {
        let definition = r#"{"type": "json", "name": "m", "fenced": true}"#;
        for (answer, value) in [
            ("```json\n{}\n```\n", 1.0),
            ("{}", 1.0),
            ("Sure!\n```\n{}\n```", 0.0),
            ("```", 0.0),
        ] {
            assert_eq!(measure(definition, answer, "").value, value, "{answer:?}");
        }
    }

    const SCHEMA: &str = r#"{"type": "object", "required": ["a"], "properties": {"a": {"type": "integer"}}}"#;

    #[test]
    fn a_schema_says_where_the_answer_departs_from_it() {
        let definition = format!(r#"{{"type": "json_schema", "name": "m", "schema": {SCHEMA}}}"#);
        assert_eq!(measure(&definition, "{\"a\": 1}", "").value, 1.0);
        let finding = measure(&definition, "{\"a\": \"x\"}", "");
        assert_eq!(finding.value, 0.0);
        assert!(
            finding
                .note
                .starts_with("at /a: \"x\" is not of type \"integer\""),
            "{}",
            finding.note
        );
        assert_eq!(measure(&definition, "[]", "").value, 0.0);
    }

    #[test]
    fn a_large_answer_is_not_repeated_in_the_note() {
        let definition = format!(r#"{{"type": "json_schema", "name": "m", "schema": {SCHEMA}}}"#);
        let answer = format!("[{:?}]", "x".repeat(100_000));
        let finding = measure(&definition, &answer, "");
        assert_eq!(finding.value, 0.0);
        assert!(
            finding.note.chars().count() < 1000,
            "{}",
            finding.note.chars().count()
        );
    }

    #[test]
    fn a_schema_may_come_from_a_file() {
        let definition = r#"{"type": "json_schema", "name": "m", "schema": "s.json"}"#;
        let files = MemoryFiles::new().with("s.json", SCHEMA);
        assert_eq!(measure_with(definition, "{\"a\": 1}", "", &files).value, 1.0);
        assert!(compile(definition).is_err());
        assert!(compile_with(definition, &MemoryFiles::new().with("s.json", "{")).is_err());
        assert!(compile_with(definition, &MemoryFiles::new().with("s.json", "{\"type\": 3}")).is_err());
    }
}
