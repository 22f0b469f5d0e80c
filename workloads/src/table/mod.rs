//! A user's own examples and metrics: one question, one answer, measured as the study file says.
//!
//! The candidate prompt is the system message; the user message is rendered from the example's
//! columns. `docs/own-table.md` is the guide.

mod kind;
mod rollout;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::rc::Rc;
use std::time::Duration;

use capo_core::metric::{MetricSpec, PROMPT_LENGTH};
use capo_core::workload::Workload;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use web_time::Instant;

use crate::data::{DataSettings, Example, Examples, refuse_overlap};
use crate::files::{Files, Sources};
use crate::metrics::{Metric, MetricDefinition};
use crate::settings::{BuildError, Settings, Workloads};
use crate::template::Template;

pub(crate) use kind::{KIND, MAKING, settings_schema};

/// The name of the main table's workload; further sets have names of their own.
const NAME: &str = "table";

/// The setting that holds the further sets.
const SETS: &str = "set";

/// Most bytes of text that the templates of a table make of all its rows, which are kept.
const MOST_WRITTEN: usize = 512 << 20;

/// The longest that they may take for it. Rows alone are bounded by what a template may do for one.
const MOST_TIME: Duration = Duration::from_mins(1);

/// Keys of a metric that say how a scorer is waited for, or are words for people.
const OF_NO_VALUE: [&str; 4] = ["concurrency", "explanation", "retries", "timeout"];

/// What is asked about each example, and how answers are measured.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TableSettings {
    /// Template (minijinja) of the user message over the example's columns, such as
    /// `{{ question }}`.
    pub user: String,
    /// What to measure of each answer.
    #[serde(rename = "metric")]
    pub metrics: Vec<MetricDefinition>,
}

/// The name of a further set of examples.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
struct SetName {
    /// Unique within the study; names the set in journals.
    name: String,
}

/// Examples, how to put them to the agent, and what to measure.
pub struct Table {
    name: String,
    template: String,
    specs: Vec<MetricSpec>,
    metrics: Vec<Metric>,
    optimize: Vec<String>,
    evaluate: Vec<String>,
    cases: HashMap<String, Case>,
    /// What is measured and how, and what that reads.
    measuring: String,
    measures_dollars: bool,
    fingerprint: String,
}

/// One example, rendered.
struct Case {
    user: String,
    /// What each metric compares with, in the metrics' order.
    references: Vec<Option<String>>,
    /// The columns, where a metric must know them.
    columns: Option<Map<String, Value>>,
}

/// Builds the main table and one workload for each `[[workload.set]]`.
fn build(mut settings: Settings, files: &dyn Files, _seed: u64) -> Result<Workloads, BuildError> {
    let sets = take_sets(&mut settings)?;
    let (main, examples) = Table::read(settings, NAME.to_owned(), files)?;
    let (mut tables, mut data) = (vec![main], vec![examples]);
    for mut set in sets {
        let SetName { name } = set.take()?;
        if name.trim().is_empty() {
            return Err(BuildError::setting(
                format!("{}.name", set.key()),
                "a set needs a name",
            ));
        }
        if tables.iter().any(|table| table.name == name) {
            return Err(BuildError::setting(
                format!("{}.name", set.key()),
                format!("the name `{name}` is taken"),
            ));
        }
        let key = format!("{}.metric", set.key());
        let (table, examples) = Table::read(set, name, files)?;
        // A constraint names a metric alone: the name must say which set measures it.
        let mut own = table.specs.iter().map(|spec| &spec.name);
        if let Some(twice) =
            own.find(|name| *name != PROMPT_LENGTH && tables.iter().any(|other| other.measures(name)))
        {
            return Err(BuildError::setting(
                key,
                format!("another set has a metric `{twice}`; give this one its own name"),
            ));
        }
        tables.push(table);
        data.push(examples);
    }
    let data: Vec<&Examples> = data.iter().collect();
    refuse_overlap(&data, |set, example| &tables[set].cases[&example.id].user)?;
    // The same line under another template is the same example.
    refuse_overlap(&data, |_, example| (example.file.clone(), example.line))?;
    Ok(tables
        .into_iter()
        .map(|table| Rc::new(table) as Rc<dyn Workload>)
        .collect())
}

fn take_sets(settings: &mut Settings) -> Result<Vec<Settings>, BuildError> {
    let sets = match settings.take_raw(SETS) {
        None => return Ok(Vec::new()),
        Some(Value::Array(sets)) => sets,
        Some(_) => {
            return Err(BuildError::setting(
                "workload.set",
                "write each set as a [[workload.set]] table",
            ));
        }
    };
    sets.into_iter()
        .enumerate()
        .map(|(index, set)| {
            let key = format!("workload.set[{index}]");
            match set {
                Value::Object(table) => Ok(Settings::new(key, table)),
                _ => Err(BuildError::setting(
                    key,
                    "write each set as a [[workload.set]] table",
                )),
            }
        })
        .collect()
}

impl Table {
    fn read(mut settings: Settings, name: String, files: &dyn Files) -> Result<(Self, Examples), BuildError> {
        let key = settings.key().to_owned();
        let data: DataSettings = settings.take()?;
        check_types(&settings)?;
        let TableSettings { user, metrics } = settings.take()?;
        settings.finish()?;

        let mut sources = Sources::new(files);
        let examples = Examples::load(&data, &key, &mut sources)?;
        sources.begin_part();
        let columns = compile(&metrics, &key, &mut sources)?;
        let measuring = json!({ "metrics": measured_by(&metrics), "files": sources.part() }).to_string();
        let of_dollars = |metric: &MetricDefinition| matches!(metric, MetricDefinition::Dollars(_));
        let measures_dollars = metrics.iter().any(of_dollars);
        let template = Template::compile(format!("{key}.user"), &user)?;
        let (mut cases, mut bytes) = (HashMap::new(), 0);
        let started = Instant::now();
        for example in examples.iter() {
            let case = Case::render(example, &template, &columns)?;
            bytes += case.bytes();
            let problem = if bytes > MOST_WRITTEN {
                format!("more than {} MiB of text", MOST_WRITTEN >> 20)
            } else if started.elapsed() > MOST_TIME {
                format!("more than {} s", MOST_TIME.as_secs())
            } else {
                cases.insert(example.id.clone(), case);
                continue;
            };
            return Err(BuildError::line(
                &example.file,
                example.line,
                format!(
                    "the templates of {key} made {problem} of the rows up to here; shorten them, or give fewer rows"
                ),
            ));
        }

        let metrics: Vec<Metric> = columns.into_iter().map(|column| column.metric).collect();
        let specs = metrics
            .iter()
            .flat_map(|metric| [Some(metric.spec()), metric.agreement()])
            .flatten()
            .cloned()
            .chain([MetricSpec::prompt_length()])
            .collect();
        let ids = |examples: &[Example]| examples.iter().map(|example| example.id.clone()).collect();
        let table = Self {
            name,
            template: user,
            specs,
            metrics,
            optimize: ids(&examples.optimize),
            evaluate: ids(&examples.evaluate),
            cases,
            measuring,
            measures_dollars,
            fingerprint: sources.fingerprint(),
        };
        Ok((table, examples))
    }

    fn measures(&self, metric: &str) -> bool {
        self.specs.iter().any(|own| own.name == metric)
    }
}

/// What of the metrics' definitions their values depend on.
fn measured_by(metrics: &[MetricDefinition]) -> Value {
    let mut all = json!(metrics);
    let tables = all.as_array_mut().into_iter().flatten();
    for table in tables.filter_map(Value::as_object_mut) {
        table.retain(|key, _| !OF_NO_VALUE.contains(&key.as_str()));
    }
    all
}

/// Refuses metrics that are no tables: by their `type` is told whether a study runs programs of its own.
fn check_types(settings: &Settings) -> Result<(), BuildError> {
    let metrics = settings.get("metric").and_then(Value::as_array);
    for (index, metric) in metrics.into_iter().flatten().enumerate() {
        if !metric.is_object() {
            return Err(BuildError::setting(
                format!("{}.metric[{index}]", settings.key()),
                "write each metric as a [[workload.metric]] table",
            ));
        }
    }
    Ok(())
}

/// A metric with the template of what it compares with.
struct Column {
    metric: Metric,
    reference: Option<Template>,
    key: String,
}

fn compile(
    definitions: &[MetricDefinition],
    key: &str,
    sources: &mut Sources<'_>,
) -> Result<Vec<Column>, BuildError> {
    if definitions.is_empty() {
        return Err(BuildError::setting(
            format!("{key}.metric"),
            "declare at least one [[workload.metric]]",
        ));
    }
    let mut columns: Vec<Column> = Vec::new();
    for (index, definition) in definitions.iter().enumerate() {
        let key = format!("{key}.metric[{index}]");
        let name = definition.name();
        check_name(
            name,
            definitions[..index].iter().map(MetricDefinition::name),
            &key,
        )?;
        let metric = definition.compile(sources).map_err(|error| error.at(&key))?;
        let reference = definition
            .reference()
            .map(|source| Template::compile(format!("{key} ({name})"), source))
            .transpose()?;
        columns.push(Column {
            metric,
            reference,
            key,
        });
    }
    for Column { metric, key, .. } in &columns {
        let agreement = metric.agreement().map(|spec| spec.name.as_str());
        if let Some(taken) = definitions
            .iter()
            .map(MetricDefinition::name)
            .find(|name| Some(*name) == agreement)
        {
            return Err(BuildError::setting(
                format!("{key}.repeats"),
                format!("`{taken}` is how far its grades agree; give the metric of that name another one"),
            ));
        }
    }
    Ok(columns)
}

/// Refuses an empty, reserved or repeated metric name, and one that a line of text or of a command could not
/// hold: names stand in tables, in messages and before `=` on the command line.
pub(crate) fn check_name<'a>(
    name: &str,
    mut earlier: impl Iterator<Item = &'a str>,
    key: &str,
) -> Result<(), BuildError> {
    let problem = if name.trim().is_empty() {
        "a metric needs a name".to_owned()
    } else if name == PROMPT_LENGTH {
        format!("`{PROMPT_LENGTH}` is measured for every workload; choose another name")
    } else if name
        .chars()
        .any(|c| c == '=' || c.is_control() || is_line_break(c))
    {
        format!("the name {name:?} holds `=`, a line break or another control character; choose one without")
    } else if earlier.any(|other| other == name) {
        format!("two metrics are named `{name}`")
    } else {
        return Ok(());
    };
    Err(BuildError::setting(format!("{key}.name"), problem))
}

/// Unicode's line and paragraph separators, which are no control characters.
fn is_line_break(c: char) -> bool {
    matches!(c, '\u{2028}' | '\u{2029}')
}

impl Case {
    /// The bytes of its texts.
    fn bytes(&self) -> usize {
        let references = self.references.iter().flatten().map(String::len);
        self.user.len() + references.sum::<usize>()
    }

    fn render(example: &Example, user: &Template, columns: &[Column]) -> Result<Self, BuildError> {
        let references = columns
            .iter()
            .map(|column| {
                let Some(template) = &column.reference else {
                    return Ok(None);
                };
                let reference = template.render(example)?;
                column.metric.check_reference(&reference).map_err(|problem| {
                    BuildError::line(&example.file, example.line, format!("{}: {problem}", column.key))
                })?;
                Ok(Some(reference))
            })
            .collect::<Result<_, BuildError>>()?;
        let text = user.render(example)?;
        if text.trim().is_empty() {
            return Err(BuildError::line(
                &example.file,
                example.line,
                format!("the user message from {} is empty", user.key()),
            ));
        }
        let wants_columns = columns.iter().any(|column| column.metric.wants_columns());
        Ok(Self {
            user: text,
            references,
            columns: wants_columns.then(|| example.fields.clone()),
        })
    }
}
