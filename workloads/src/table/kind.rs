//! The kind of workload of a table of the user's own.

use capo_core::study::Table;
use schemars::Schema;
use serde_json::{Value, json};

use super::rollout::JUDGED;
use super::{SETS, SetName, TableSettings, build};
use crate::data::{DataSettings, declared_by};
use crate::kind::{Declared, Fact, Kind, Making, TraceView, drawn_rows};
use crate::metrics::SCORERS;
use crate::outside::{Party, Written};
use crate::settings::{merged, names, schema};

pub(crate) const KIND: Kind = Kind {
    files: &["data", "evaluate_data"],
    one_call: true,
    about: |_| Some("own table".to_owned()),
    drawn: drawn_rows,
    view,
    outside,
    ..Kind::new("table", "Own table", include_str!("beginning.toml"), || {
        [names::<DataSettings>(), names::<TableSettings>(), &[SETS]].concat()
    })
};

pub(crate) const MAKING: Making = Making {
    declared,
    ..Making::by(build)
};

/// The scorers among its metrics and those of its further sets.
fn outside(settings: &Table) -> Vec<Written<'_>> {
    let sets = settings.get(SETS).and_then(Value::as_array).into_iter().flatten();
    let sets = sets
        .enumerate()
        .filter_map(|(index, set)| Some((format!("workload.set[{index}]"), set.as_object()?)));
    let tables = std::iter::once(("workload".to_owned(), settings)).chain(sets);
    tables.flat_map(|(key, table)| scorers(&key, table)).collect()
}

fn scorers<'a>(key: &str, table: &'a Table) -> Vec<Written<'a>> {
    let metrics = table
        .get("metric")
        .and_then(Value::as_array)
        .into_iter()
        .flatten();
    let metrics = metrics.enumerate();
    let scorer = |(index, metric): (usize, &'a Value)| {
        let is_scorer = SCORERS.contains(&metric["type"].as_str()?);
        let settings = metric.as_object().filter(|_| is_scorer)?;
        Some(Written {
            party: Party::Scorer(metric["name"].as_str().unwrap_or_default().to_owned()),
            key: format!("{key}.metric[{index}]"),
            settings,
        })
    };
    metrics.filter_map(scorer).collect()
}

/// How far the grades agree of judges that were asked several times.
fn view(details: &Value) -> TraceView {
    let judged = details[JUDGED].as_object().into_iter().flatten();
    let fact = |(metric, judged): (&String, &Value)| {
        let grades = judged["grades"].as_array()?.iter().filter_map(Value::as_f64);
        let grades: Vec<String> = grades.map(|grade| grade.to_string()).collect();
        let agreement = judged["agreement"].as_f64()?;
        Some(Fact {
            name: format!("Grades for {metric}"),
            value: Some(grades.join(", ")),
            note: format!("{:.0} % of their pairs agree", 100.0 * agreement),
        })
    };
    TraceView {
        facts: judged.filter_map(fact).collect(),
        ..TraceView::default()
    }
}

/// What its metrics are does not depend on what they compare with, or on where scorers are.
fn declared(settings: &Table) -> Option<Declared> {
    let mut settings = settings.clone();
    settings.insert("user".to_owned(), json!("1"));
    let metrics = settings.get_mut("metric").and_then(Value::as_array_mut);
    for metric in metrics.into_iter().flatten().filter_map(Value::as_object_mut) {
        for template in ["expected", "rubric"] {
            if let Some(text) = metric.get_mut(template) {
                *text = json!("1");
            }
        }
        if metric
            .get("type")
            .is_some_and(|of_type| SCORERS.iter().any(|scorer| of_type == scorer))
        {
            metric.retain(|key, _| !["command", "env"].contains(&key.as_str()));
            metric.insert("type".to_owned(), json!("http"));
            metric.insert("endpoint".to_owned(), json!("http://localhost"));
        }
    }
    declared_by(build, &settings, &["user", "metric"])
}

pub(crate) fn settings_schema() -> Schema {
    let one_set = [schema::<DataSettings>(), schema::<TableSettings>()];
    let named = merged(&[&[schema::<SetName>()], one_set.as_slice()].concat());
    let mut whole = merged(&one_set);
    if let Some(Value::Object(properties)) = whole.get_mut("properties") {
        properties.insert(
            SETS.to_owned(),
            json!({
                "description": "Further sets of examples with metrics of their own, for constraints on other data.",
                "type": "array", "items": named,
            }),
        );
    }
    whole
}
