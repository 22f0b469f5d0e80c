//! The form of the workload: what a prompt is measured on.

use capo_core::study::{LARGEST_BATCH_GROWTH, Study};
use capo_workloads::KINDS;
use leptos::prelude::*;
use serde_json::Value;

use super::endpoint::Endpoint;
use super::field::{Number, NumberField, TextField, Wrong, id as field_id};
use super::form::Form;
use super::labels::label;
use super::metrics::Metrics;
use super::place::Place;
use super::rows::{Exclude, Rows};
use super::section::Section;
use super::setting_field::{SettingField, number};
use super::settings::{Setting, settings};
use super::tau2::Tau2;
use crate::schemas;

/// Workload, its examples, and what it measures.
#[component]
pub(super) fn WorkloadSection() -> impl IntoView {
    let form = expect_context::<Form>();
    let kind = form.memo(kind);
    let kinds = KINDS
        .iter()
        .map(|of| {
            let take = move |_| form.renew(|draft| draft.take_kind(of.name));
            view! {
                <button
                    type="button"
                    aria-pressed=move || kind.with(|kind| kind == of.name).to_string()
                    on:click=take
                >
                    {of.title}
                </button>
            }
        })
        .collect_view();
    // Kinds with a form of their own; of others every setting has its field.
    let own = move || match kind.get().as_str() {
        "table" => view! { <OwnTable/> }.into_any(),
        "external" => view! { <Endpoint/> }.into_any(),
        "tau2" => view! { <Tau2/> }.into_any(),
        other => view! { <EverySetting kind=other.to_owned()/> }.into_any(),
    };
    let lead = || "What a prompt is measured on. The held-out examples are never seen by the search.";
    view! {
        <Section number=2 title="Workload" lead=lead>
            <div class="seg" role="group" aria-label="Workload">
                {kinds}
            </div>
            {own}
            <Examples/>
        </Section>
    }
}

/// The kind of a study's workload.
pub(super) fn kind(study: &Study) -> String {
    Place::Workload.text(study, "kind")
}

/// The settings of a kind of workload by key.
pub(super) fn of_kind(kind: &str, keys: &[&str]) -> Vec<Setting> {
    let described = settings(schemas::workload(kind));
    let named = |key: &&str| described.iter().find(|setting| setting.key == **key).cloned();
    keys.iter().filter_map(named).collect()
}

/// The settings that every kind has which splits its examples.
const SPLITS: [&str; 2] = ["optimize", "evaluate"];

/// How many examples, in which splits, how often.
#[component]
fn Examples() -> impl IntoView {
    let form = expect_context::<Form>();
    let kind = form.memo(kind);
    let fields = move || {
        let split = |setting: Setting| {
            let label = label(&Place::Workload.path(&setting.key));
            let number = number(Place::Workload, &setting).called(&label);
            view! { <NumberField number/> }
        };
        of_kind(&kind.get(), &SPLITS)
            .into_iter()
            .map(split)
            .collect_view()
    };
    let repeats = Number::new(
        "study.repeats",
        &label("study.repeats"),
        |study| Some(f64::from(study.study.repeats)),
        |study, value| study.study.repeats = value.unwrap_or_default() as u32,
    )
    .counted();
    let batch = Number::new(
        "study.batch",
        &label("study.batch"),
        |study| study.study.batch.map(|batch| batch as f64),
        |study, value| study.study.batch = value.map(|value| value as usize),
    )
    .counted()
    .optional("all of them");
    let growth = Number::new(
        "study.batch_growth",
        &label("study.batch_growth"),
        |study| study.study.batch_growth,
        |study, value| study.study.batch_growth = value,
    )
    .at_least(1.0)
    .at_most(LARGEST_BATCH_GROWTH)
    .optional("drawn anew, of one size");
    view! {
        <div class="fields">
            <TextField
                key="study.name"
                label=label("study.name")
                read=|study| study.study.name.clone()
                write=|study, name| study.study.name = name
            />
            {fields}
            <NumberField number=repeats/>
            <NumberField number=batch/>
            <NumberField number=growth/>
        </div>
        <Wrong key="workload"/>
    }
}

/// What a kind without a form of its own says of itself, and a field for each of its settings.
#[component]
fn EverySetting(kind: String) -> impl IntoView {
    let of = KINDS.iter().find(|of| of.name == kind);
    let Some(of) = of else {
        let key = Place::Workload.path("kind");
        let id = field_id(&key);
        return view! { <div id=id tabindex="-1"><Wrong key/></div> }.into_any();
    };
    let fields = settings(schemas::workload(of.name))
        .into_iter()
        .filter(|setting| !SPLITS.contains(&setting.key.as_str()))
        .map(|setting| view! { <SettingField place=Place::Workload setting explained=true/> })
        .collect_view();
    view! {
        {(!of.summary.is_empty()).then(|| view! { <p class="note">{of.summary}</p> })}
        <div class="fields wide">{fields}</div>
    }
    .into_any()
}

/// Rows of somebody's own: what is asked about each, and what is measured of the answer.
#[component]
fn OwnTable() -> impl IntoView {
    view! {
        <Rows/>
        <Exclude/>
        <TextField
            key="workload.user"
            label=label("workload.user")
            explanation="Names of columns in double braces are replaced by what the example holds, as in {{ question }}."
            lines=2
            code=true
            read=|study| Place::Workload.text(study, "user")
            write=|study, text| Place::Workload.set(study, "user", Some(Value::String(text)))
        />
        <Metrics kind="table"/>
    }
}
