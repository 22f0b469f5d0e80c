//! Metrics of answers, where a study declares them.

use capo_core::study::{Study, Table};
use leptos::ev;
use leptos::prelude::*;
use serde_json::{Value, json};

use super::draft::Draft;
use super::field::TextField;
use super::form::Form;
use super::place::Place;
use super::setting_field::SettingField;
use super::settings::{Kind, Setting, settings, variants};
use crate::components::removing;
use crate::format;
use crate::schemas;

/// The key that tells one type of metric from another.
const TYPE: &str = "type";

/// A type of metric: its name, what it measures, its schema.
type Variant = (String, String, Value);

/// The metrics of a table, or of an agent that measures itself.
#[component]
pub(super) fn Metrics(
    /// The kind of workload.
    kind: &'static str,
) -> impl IntoView {
    let form = expect_context::<Form>();
    let schema = StoredValue::new(schemas::workload(kind)["properties"]["metric"]["items"].clone());
    // A metric of another type has other fields; one of another name has the same.
    let rows = form.memo(|study| {
        let metrics = listed(study).iter().enumerate();
        metrics
            .map(|(index, metric)| (index, metric[TYPE].as_str().unwrap_or_default().to_owned()))
            .collect::<Vec<_>>()
    });
    let add = move |_| form.renew(|draft| append(&mut draft.study, kind));
    view! {
        <fieldset>
            <legend>"What is measured"</legend>
            <div class="stack">
                <For each=move || rows.get() key=Clone::clone let((index, of_type))>
                    <Metric index of_type schema/>
                </For>
                <div class="row">
                    <button type="button" on:click=add>
                        "Add a metric"
                    </button>
                </div>
            </div>
        </fieldset>
    }
}

fn listed(study: &Study) -> &[Value] {
    let metrics = study.workload.get("metric").and_then(Value::as_array);
    metrics.map(Vec::as_slice).unwrap_or_default()
}

#[component]
fn Metric(index: usize, of_type: String, schema: StoredValue<Value>) -> impl IntoView {
    let form = expect_context::<Form>();
    let place = Place::Metric(index);
    let types = schema.with_value(|schema| variants(schema, TYPE));
    let own = types.iter().find(|(name, ..)| *name == of_type).cloned();
    let (meaning, described) = match &own {
        Some((_, meaning, schema)) => (meaning.clone(), settings(schema)),
        None => (String::new(), schema.with_value(settings)),
    };
    let fields = described
        .into_iter()
        .filter(|setting| setting.key != TYPE && setting.key != "name")
        .map(|setting| view! { <SettingField place setting explained=true/> })
        .collect_view();
    let choice = (!types.is_empty()).then(|| view! { <TypeSelect index of_type types meaning/> });
    let remove = move |draft: &mut Draft| {
        draft.forget_wrong("workload.metric");
        if let Some(metrics) = draft
            .study
            .workload
            .get_mut("metric")
            .and_then(Value::as_array_mut)
            && index < metrics.len()
        {
            metrics.remove(index);
        }
    };
    let remove = move |event: ev::MouseEvent| removing(&event, || form.renew(remove));
    let only = form.memo(|study| listed(study).len() < 2);
    view! {
        <div class="plate">
            <div class="fields wide">
                <TextField
                    key=place.path("name")
                    label="Name"
                    read=move |study| place.text(study, "name")
                    write=move |study, name| rename(study, index, name)
                />
                {choice}
                {fields}
            </div>
            <div class="row">
                <button type="button" class="link" disabled=move || only.get() on:click=remove>
                    "Remove this metric"
                </button>
            </div>
        </div>
    }
}

#[component]
fn TypeSelect(index: usize, of_type: String, types: Vec<Variant>, meaning: String) -> impl IntoView {
    let form = expect_context::<Form>();
    let id = format!("metric-{index}-type");
    let note = format!("{id}-note");
    let options = types
        .iter()
        .map(|(name, ..)| {
            let selected = *name == of_type;
            view! {
                <option value=name.clone() prop:selected=selected>
                    {format::label(name)}
                </option>
            }
        })
        .collect_view();
    let change = move |event| {
        let chosen = event_target_value(&event);
        let variant = types.iter().find(|(name, ..)| *name == chosen);
        if let Some((name, _, schema)) = variant {
            form.renew(|draft| become_type(draft, index, name, &settings(schema)));
        }
    };
    view! {
        <div class="field">
            <label for=id.clone()>"Compared by"</label>
            <select id=id aria-describedby=note.clone() on:change=change>
                {options}
            </select>
            <span class="note" id=note>
                {meaning}
            </span>
        </div>
    }
}

/// Gives a metric another name, wherever the study names it.
fn rename(study: &mut Study, index: usize, name: String) {
    let place = Place::Metric(index);
    let before = place.text(study, "name");
    if study.objective.metric == before {
        study.objective.metric.clone_from(&name);
    }
    for constraint in &mut study.constraints {
        if constraint.metric == before {
            constraint.metric.clone_from(&name);
        }
    }
    place.set(study, "name", Some(name.into()));
}

/// Makes the metric of a table that is the objective one of the type of this name.
pub(super) fn aim_at(draft: &mut Draft, name: &str) {
    let types = variants(&schemas::workload("table")["properties"]["metric"]["items"], TYPE);
    let mut metrics = listed(&draft.study).iter();
    let index = metrics.position(|metric| metric["name"] == draft.study.objective.metric);
    let of_name = types.iter().find(|(known, ..)| known == name);
    if let Some((index, (name, _, schema))) = index.zip(of_name) {
        become_type(draft, index, name, &settings(schema));
    }
}

/// Makes a metric one of another type; keys that both have are kept, those it needs are added.
fn become_type(draft: &mut Draft, index: usize, name: &str, described: &[Setting]) {
    draft.forget_wrong("workload.metric");
    let expected = listed(&draft.study)
        .iter()
        .find_map(|metric| metric["expected"].as_str())
        .unwrap_or_default()
        .to_owned();
    let Some(table) = Place::Metric(index).table_mut(&mut draft.study) else {
        return;
    };
    let mut next = Table::new();
    for setting in described {
        let kept = table.get(&setting.key).cloned();
        let empty = match (setting.key.as_str(), &setting.kind) {
            _ if !setting.needed => None,
            ("expected", _) => Some(Value::String(expected.clone())),
            (_, Kind::Flag) => Some(Value::Bool(false)),
            (_, Kind::Text) => Some(Value::String(String::new())),
            _ => None,
        };
        if let Some(value) = kept.or(empty) {
            next.insert(setting.key.clone(), value);
        }
    }
    next.insert(TYPE.into(), name.into());
    *table = next;
}

/// One more metric, of a name that is free.
fn append(study: &mut Study, kind: &str) {
    let taken: Vec<String> = (0..listed(study).len())
        .map(|index| Place::Metric(index).text(study, "name"))
        .collect();
    // One of so many names is not among those taken.
    let free = (1..=taken.len() + 1)
        .rev()
        .map(|number| format!("metric_{number}"))
        .find(|name| !taken.contains(name));
    let name = free.unwrap_or_default();
    let is_typed = !variants(&schemas::workload(kind)["properties"]["metric"]["items"], TYPE).is_empty();
    let metric = if is_typed {
        json!({ "name": name, TYPE: "length" })
    } else {
        json!({ "name": name, "direction": "cost" })
    };
    let metrics = study
        .workload
        .entry("metric")
        .or_insert_with(|| Value::Array(Vec::new()));
    if let Some(metrics) = metrics.as_array_mut() {
        metrics.push(metric);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pages::study::measured::Measured;

    fn table() -> Draft {
        let mut draft = Draft::new().unwrap();
        draft.take_kind("table");
        draft
    }

    #[test]
    fn a_renamed_metric_stays_what_it_was() {
        let mut draft = table();
        rename(&mut draft.study, 0, "right".into());
        assert_eq!(draft.study.objective.metric, "right");
        assert_eq!(Place::Metric(0).text(&draft.study, "name"), "right");
    }

    #[test]
    fn every_type_a_metric_can_become_has_what_it_needs() {
        let schema = schemas::workload("table");
        let types = variants(&schema["properties"]["metric"]["items"], TYPE);
        for (name, _, schema) in types.iter().filter(|(name, ..)| name != "json_schema") {
            let mut draft = table();
            become_type(&mut draft, 0, name, &settings(schema));
            let measured = Measured::of(&draft.study.workload, &draft.files, 0);
            assert!(measured.metric("correct").is_some(), "{name}");
        }
    }

    #[test]
    fn metrics_are_added_under_free_names() {
        for kind in ["table", "external"] {
            let mut draft = Draft::new().unwrap();
            draft.take_kind(kind);
            append(&mut draft.study, kind);
            append(&mut draft.study, kind);
            let measured = Measured::of(&draft.study.workload, &draft.files, 0);
            assert!(measured.metric("metric_3").is_some(), "{kind}");
        }
    }
}
