//! Text templates over the columns of a user's data.

mod growth;
mod language;

use minijinja::{AutoEscape, Environment, ErrorKind, UndefinedBehavior};
use serde_json::{Map, Value};

use crate::data::{Example, missing_column};
use crate::settings::BuildError;

/// Most steps (instructions of the engine) that a template takes for one example. A step may copy or compare what
/// the columns hold, so large examples are given fewer: [`MOST_COPIED`] bytes' worth.
const MOST_STEPS: u64 = 100_000;
const MOST_COPIED: u64 = 1 << 34;

/// Bytes that a filter may give whatever the example holds.
const LEAST_GIVEN: usize = 64 << 10;

/// A minijinja template in which every variable must be a column that holds something.
#[derive(Debug)]
pub(crate) struct Template {
    environment: Environment<'static>,
    key: String,
    length: usize,
    operands: usize,
}

impl Template {
    /// Compiles the template written under `key`, such as `workload.user`.
    pub(crate) fn compile(key: impl Into<String>, source: &str) -> Result<Self, BuildError> {
        let key = key.into();
        language::check(source)
            .map_err(|problem| BuildError::setting(&key, format!("not a template: {problem}")))?;
        let mut environment = Environment::new();
        environment.set_undefined_behavior(UndefinedBehavior::Strict);
        environment.set_auto_escape_callback(|_| AutoEscape::None);
        environment
            .add_template_owned(String::new(), source.to_owned())
            .map_err(|error| BuildError::setting(&key, format!("not a template: {}", reason(&error))))?;
        Ok(Self {
            environment,
            key,
            length: source.len(),
            operands: language::most_operands(source),
        })
    }

    /// Where the template stands in the study.
    pub(crate) fn key(&self) -> &str {
        &self.key
    }

    /// The text for one example.
    pub(crate) fn render(&self, example: &Example) -> Result<String, BuildError> {
        let present = minijinja::Value::from(minijinja::value::Serde(without_nulls(&example.fields)));
        let mut environment = self.environment.clone();
        let largest = self.largest(example);
        growth::restrict(&mut environment, largest);
        let steps = MOST_COPIED / largest as u64 / self.operands as u64;
        environment.set_fuel(Some(steps.clamp(1, MOST_STEPS)));
        let template = environment
            .get_template("")
            .map_err(|error| self.failed(example, &error))?;
        let mut text = growth::Text::default();
        template.render_captured_to(present, &mut text).map_err(|error| {
            let unbounded = matches!(error.kind(), ErrorKind::OutOfFuel | ErrorKind::WriteFailure);
            let missing = template
                .undeclared_variables(true)
                .into_iter()
                .filter(|path| !unbounded && path != growth::FUNCTION && is_missing(path, example))
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
        })?;
        text.read()
            .map_err(|error| BuildError::line(&example.file, example.line, error))
    }

    /// The bytes that one value of an example has at most, whether the example holds it or a filter gives it.
    fn largest(&self, example: &Example) -> usize {
        let held = serde_json::to_string(&example.fields).map_or(0, |text| text.len());
        LEAST_GIVEN + 4 * held + self.length
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
    match error.kind() {
        ErrorKind::OutOfFuel => {
            return format!("it takes more than {MOST_STEPS} steps (fewer for large examples)");
        }
        ErrorKind::WriteFailure => return format!("it writes more than {} MiB", growth::MOST_BYTES >> 20),
        _ => {}
    }
    let unknown = error
        .detail()
        .and_then(|detail| detail.strip_suffix(" is unknown"));
    let what = match (error.kind(), unknown, error.detail()) {
        (ErrorKind::UnknownFunction, Some(name), _) => format!("there is no function {name}"),
        (ErrorKind::UnknownFilter | ErrorKind::UnknownTest, Some(name), _) => format!("there is no {name}"),
        (_, _, Some("template exceeds maximum recursion limits")) => "it is nested too deeply".to_owned(),
        (kind, _, Some(detail)) => format!("{kind}: {detail}"),
        (kind, _, None) => kind.to_string(),
    };
    let line = error
        .line()
        .map(|line| format!(" (template line {line})"))
        .unwrap_or_default();
    what + &line
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
    fn work_without_bounds_ends_with_its_reason() {
        let fields = || json!({"q": "abcdefgh".repeat(1000), "l": [1, 2, 3]});
        for (source, problem) in [
            (
                "{% for i in range(10000) %}{% for j in range(10000) %}{% endfor %}{% endfor %}",
                "it takes more than 100000 steps",
            ),
            (
                "{{ '%0999999999d' | format(1) }}",
                "format takes numbers of at most 3 digits",
            ),
            (
                "{{ '%0*d' | format(999999999, 1) }}",
                "format takes numbers of at most 3 digits",
            ),
            (
                "{% for i in range(10000) %}{{ q }}{% endfor %}",
                "it writes more than 16 MiB",
            ),
            (
                "{{ q | replace('a', q) | replace('b', q) | length }}",
                "the filter replace gives more than",
            ),
            (
                "{{ [q] | map('replace', 'a', q) | map('replace', 'b', q) | list }}",
                "the filter replace gives more than",
            ),
            ("{{ q | list | join(d=q) }}", "the filter join gives more than"),
            (
                "{{ range(10000) | map(attribute='x', default=q) | join }}",
                "its filters read and write more than 64 MiB",
            ),
            (
                "{{ range(10000) | map('default', q) | list | string | length }}",
                "its filters read and write more than 64 MiB",
            ),
            (
                "{{ (q | replace('a', '%(q)s') | replace('b', '%(q)s')) | format(q=q) | length }}",
                "the filter format gives more than",
            ),
            ("{{ q | list | join(q) }}", "the filter join gives more than"),
            ("{{ q | indent(999999999) }}", "indent takes at most 100 columns"),
            ("{{ range(10001) | length }}", "range gives at most 10000 numbers"),
            ("{{ [1] | sum(start=q) }}", "sum takes no `start`"),
            (
                &format!("{{{{ q{} }}}}", " | tojson".repeat(40)),
                "the filter tojson gives more than",
            ),
            (
                &format!("{{{{ {}q{} }}}}", "[".repeat(40), "] | string".repeat(40)),
                "the filter string gives more than",
            ),
            (
                &format!("{{{{ {}q{} }}}}", "[".repeat(40), "] ~ ''".repeat(40)),
                "not there in a list within a list",
            ),
            (
                "{% for i in range(9000) %}{% if range(10000)|join|length %}{% endif %}{% endfor %}",
                "its filters read and write more than 64 MiB",
            ),
            (
                &format!("{{{{ (q{})|list }}}}", " ~ q".repeat(119)),
                "the filter list gives more than",
            ),
            (
                "{% for a in q|replace('a', q)|split('~') %}{% for i in range(10000) %}\
                 {% if (a ~ a)|upper == q %}{% endif %}{% endfor %}{% endfor %}",
                "the filter replace gives more than",
            ),
            (
                "{% for i in range(10000) %}{% if (q ~ q)|upper == q %}{% endif %}{% endfor %}",
                "its filters read and write more than 64 MiB",
            ),
            (
                "{{ q | list | select('in', q ~ q) | length }}",
                "its filters read and write more than 64 MiB",
            ),
            (
                "{{ l | tojson(indent=999999999) }}",
                "tojson takes an indent of at most 8",
            ),
            ("{{ namespace() }}", "uses `namespace`, but there is no column"),
        ] {
            let started = web_time::Instant::now();
            let error = render(source, fields()).unwrap_err();
            assert!(error.contains(problem), "{source}: {error}");
            assert!(started.elapsed().as_secs() < 5, "{source}");
        }
        let started = web_time::Instant::now();
        let large = render(
            "{% for i in range(10000) %}{% if q ~ q ~ q == q %}{% endif %}{% endfor %}",
            json!({"q": "x".repeat(1 << 20)}),
        );
        assert!(large.unwrap_err().contains("steps") && started.elapsed().as_secs() < 60);
    }

    #[test]
    fn ordinary_filters_and_names_work() {
        for (source, text) in [
            ("{% set t = q | trim %}{{ t }}{% set u = t %}{{ u }}", "a\nba\nb"),
            ("{{ q | trim | indent(2) }}", "a\n  b"),
            ("{{ missing | default('-') | upper }}", "-"),
            ("{{ l | map('string') | join(' and then ') }}", "2 and then 1"),
            (
                "{{ l | sort | first }}{{ l | select('gt', 1) | sum }}{{ l | tojson }}",
                "12[2, 1]",
            ),
            (
                "{{ [q | trim ~ '!', 1] | tojson }}{{ l | sort(reverse=true) | list }}",
                "[\"a\\nb!\", 1][2, 1]",
            ),
            (
                "{{ [1] | tojson(indent=2) }}{{ [1] | tojson(true) }}",
                "[\n  1\n][\n  1\n]",
            ),
        ] {
            assert_eq!(
                render(source, json!({"q": " a\nb ", "l": [2, 1]})).as_deref(),
                Ok(text),
                "{source}"
            );
        }
    }

    #[test]
    fn the_longest_tags_fit_a_small_stack() {
        let sources = [
            format!("{{{{ {}q }}}}", "not ".repeat(249)),
            format!("{{{{ {}1 }}}}", "-".repeat(249)),
            format!("{{{{ q{} }}}}", ".x".repeat(124)),
            format!("{{{{ q{} }}}}", " ~ q".repeat(124)),
            format!("{{{{ q{} }}}}", "|d".repeat(124)),
            format!("{{{{ {}q{} }}}}", "[".repeat(120), "]".repeat(120)),
            format!("{{{{ {}q{} }}}}", "(".repeat(120), ")".repeat(120)),
            format!("{{{{ {}q }}}}", "q if q else ".repeat(60)),
            format!("{{{{ q{} }}}}", " ** q".repeat(124)),
            format!("{{% if q %}}{}{{% endif %}}", "{% elif q %}".repeat(100)),
            format!("{}{}", "{% if q %}".repeat(140), "{% endif %}".repeat(140)),
            format!("{}{}", "{% for a in q %}".repeat(140), "{% endfor %}".repeat(140)),
        ];
        let reads = move || {
            for source in sources {
                // Too long a tag never gets to the parser; these do. Some fail to render; none may overflow.
                assert_eq!(language::check(&source), Ok(()), "{source}");
                let _ = render(&source, json!({"q": "x"}));
            }
        };
        std::thread::Builder::new()
            .stack_size(512 << 10)
            .spawn(reads)
            .unwrap()
            .join()
            .unwrap();
    }

    #[test]
    fn what_is_not_there_is_told_in_plain_words() {
        for (source, told) in [
            ("{{ a | uper }}", "there is no filter uper (template line 1)"),
            ("{% if a is evn %}{% endif %}", "there is no test evn"),
            (&"{% if a %}".repeat(400), "it is nested too deeply"),
        ] {
            let error = render(source, json!({"a": "x"})).unwrap_err();
            assert!(error.contains(told), "{error}");
        }
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
