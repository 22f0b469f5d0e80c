//! What a table of the user's own says of itself.

use capo_core::study::Table;
use schemars::Schema;
use serde_json::{Value, json};

use super::{SETS, SetName, TableSettings, build};
use crate::data::{DataSettings, declared_by};
use crate::kind::{Declared, Kind, Making, drawn_rows};
use crate::settings::{merged, names, schema};

pub(crate) const KIND: Kind = Kind {
    files: &["data", "evaluate_data"],
    about: |_| Some("own table".to_owned()),
    drawn: drawn_rows,
    ..Kind::new("table", "Own table", include_str!("beginning.toml"), || {
        [names::<DataSettings>(), names::<TableSettings>(), &[SETS]].concat()
    })
};

pub(crate) const MAKING: Making = Making {
    declared,
    ..Making::by(build)
};

/// What its metrics are does not depend on what they compare with.
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
