//! Text templates over the columns of a user's data.

use minijinja::{AutoEscape, Environment, UndefinedBehavior};
use serde_json::{Map, Value};

use crate::data::{Example, missing_column};
use crate::settings::BuildError;

/// A minijinja template in which every variable must be a column that holds something.
#[derive(Debug)]
pub(crate) struct Template {
    environment: Environment<'static>,
    key: String,
}

impl Template {
    /// Compiles the template written under `key`, such as `workload.user`.
    pub(crate) fn compile(key: impl Into<String>, source: &str) -> Result<Self, BuildError> {
        let key = key.into();
        let mut environment = Environment::new();
        environment.set_undefined_behavior(UndefinedBehavior::Strict);
        environment.set_auto_escape_callback(|_| AutoEscape::None);
        environment
            .add_template_owned(String::new(), source.to_owned())
            .map_err(|error| BuildError::setting(&key, format!("not a template: {}", reason(&error))))?;
        Ok(Self { environment, key })
    }

    /// Where the template stands in the study.
    pub(crate) fn key(&self) -> &str {
        &self.key
    }

    /// The text for one example.
    pub(crate) fn render(&self, example: &Example) -> Result<String, BuildError> {
        let present = without_nulls(&example.fields);
        let template = self
            .environment
            .get_template("")
            .map_err(|error| self.failed(example, &error))?;
        template
            .render(minijinja::value::Serde(&present))
            .map_err(|error| {
                let missing = template
                    .undeclared_variables(true)
                    .into_iter()
                    .filter(|path| is_missing(path, example))
                    .min();
                match missing {
                    Some(path) => BuildError::line(
                        &example.file,
                        example.line,
                        format!(
                            "the template {} uses `{path}`, but {}",
                            self.key,
                            explain(&path, example)
                        ),
                    ),
                    None => self.failed(example, &error),
                }
            })
    }

    fn failed(&self, example: &Example, error: &minijinja::Error) -> BuildError {
        BuildError::line(
            &example.file,
            example.line,
            format!("the template {} failed: {}", self.key, reason(error)),
        )
    }
}

/// The fields that hold something. An empty cell of a CSV is text; a JSON null is nothing, and would
/// be printed as "none".
fn without_nulls(fields: &Map<String, Value>) -> Map<String, Value> {
    let held = |value: &Value| match value {
        Value::Object(fields) => Value::Object(without_nulls(fields)),
        other => other.clone(),
    };
    fields
        .iter()
        .filter(|(_, value)| !value.is_null())
        .map(|(name, value)| (name.clone(), held(value)))
        .collect()
}

fn reason(error: &minijinja::Error) -> String {
    let detail = error
        .detail()
        .map(|detail| format!(": {detail}"))
        .unwrap_or_default();
    let line = error
        .line()
        .map(|line| format!(" (template line {line})"))
        .unwrap_or_default();
    format!("{}{detail}{line}", error.kind())
}

fn is_missing(path: &str, example: &Example) -> bool {
    let mut names = path.split('.');
    let first = names.next().and_then(|name| example.fields.get(name));
    names
        .fold(first, |value, name| value.and_then(|value| value.get(name)))
        .is_none_or(Value::is_null)
}

fn explain(path: &str, example: &Example) -> String {
    let column = path.split('.').next().unwrap_or(path);
    match example.fields.get(column) {
        None => missing_column(column, &example.fields),
        Some(Value::Null) => format!("column `{column}` is null"),
        Some(_) => format!("column `{column}` holds no such value"),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn example(fields: Value) -> Example {
        let Value::Object(fields) = fields else {
            panic!("an object")
        };
        Example {
            id: "7".into(),
            file: "data.jsonl".into(),
            line: 7,
            fields,
        }
    }

    fn render(source: &str, fields: Value) -> Result<String, String> {
        let template = Template::compile("workload.user", source).map_err(|error| error.to_string())?;
        template
            .render(&example(fields))
            .map_err(|error| error.to_string())
    }

    #[test]
    fn fills_in_columns_without_escaping() {
        let text = render(
            "{{ a }} & {{ b.c }} {{ l | join('|') }}",
            json!({"a": "<x>", "b": {"c": 2}, "l": [1, 2]}),
        );
        assert_eq!(text.unwrap(), "<x> & 2 1|2");
    }

    #[test]
    fn a_missing_column_is_named_with_line_template_and_nearest() {
        assert_eq!(
            render("{{ qestion }}", json!({"question": "x"})).unwrap_err(),
            "data.jsonl line 7: the template workload.user uses `qestion`, but there is no column `qestion` \
             (did you mean `question`?); there are question"
        );
        assert!(
            render("{{ a }}", json!({"a": null}))
                .unwrap_err()
                .ends_with("but column `a` is null")
        );
        for nested in [json!({"a": {"b": null}}), json!({"a": {"b": {"c": null}}})] {
            let path = if nested["a"]["b"].is_null() {
                "a.b"
            } else {
                "a.b.c"
            };
            let error = render(&format!("{{{{ {path} }}}}"), nested).unwrap_err();
            assert!(error.ends_with("but column `a` holds no such value"), "{error}");
        }
        assert!(
            render("{{ a.b }}", json!({"a": {}}))
                .unwrap_err()
                .ends_with("but column `a` holds no such value")
        );
    }

    #[test]
    fn optional_columns_can_be_asked_for() {
        let source = "{% if hint is defined %}{{ hint }}{% else %}-{% endif %}";
        assert_eq!(render(source, json!({})).unwrap(), "-");
        assert_eq!(render(source, json!({"hint": "h"})).unwrap(), "h");
    }

    #[test]
    fn a_broken_template_is_refused_with_its_key() {
        let error = render("{{ question", json!({})).unwrap_err();
        assert!(
            error.starts_with("workload.user: not a template: syntax error"),
            "{error}"
        );
    }
}
