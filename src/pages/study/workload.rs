//! What a prompt is measured on.

use capo_core::study::Study;
use capo_workloads::tau2::settings::KIND;
use leptos::prelude::*;
use serde_json::Value;

use super::endpoint::Endpoint;
use super::field::{Number, NumberField, TextField, Wrong};
use super::form::Form;
use super::labels::label;
use super::metrics::Metrics;
use super::place::Place;
use super::rows::{Exclude, Rows};
use super::section::Section;
use super::setting_field::{SettingField, when_left_out};
use super::settings::{Setting, settings};
use super::tau2::Tau2;
use crate::schemas;

/// The kinds of workload, and what they are called here.
pub(super) const KINDS: [(&str, &str); 4] = [
    ("desk", "Help desk"),
    ("table", "Own table"),
    ("external", "HTTP endpoint"),
    (KIND, "tau2 benchmark"),
];

/// Tasks of the help desk.
const TASKS: usize = 114;

/// Workload, its examples, and what it measures.
#[component]
pub(super) fn WorkloadSection() -> impl IntoView {
    let form = expect_context::<Form>();
    let kind = form.memo(kind);
    let kinds = KINDS
        .map(|(name, title)| {
            let take = move |_| form.renew(|draft| draft.take_kind(name));
            view! {
                <button
                    type="button"
                    aria-pressed=move || kind.with(|kind| kind == name).to_string()
                    on:click=take
                >
                    {title}
                </button>
            }
        })
        .collect_view();
    let own = move || match kind.get().as_str() {
        "table" => view! { <OwnTable/> }.into_any(),
        "external" => view! { <Endpoint/> }.into_any(),
        KIND => view! { <Tau2/> }.into_any(),
        _ => view! { <Desk/> }.into_any(),
    };
    let lead = || "What a prompt is measured on. The held-out examples are never seen by the search.";
    view! {
        <Section number=1 title="Workload" lead=lead>
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

/// How many examples, in which splits, how often.
#[component]
fn Examples() -> impl IntoView {
    let form = expect_context::<Form>();
    let kind = form.memo(kind);
    let fields = move || {
        let desk = kind.with(|kind| kind == "desk");
        let split = |key: &'static str, blank: &'static str| {
            let number = Number::of(Place::Workload, key, true).called(&label(&Place::Workload.path(key)));
            if desk {
                let unsaid = of_kind("desk", &[key]).first().map(when_left_out);
                number
                    .in_unit(&format!("of {TASKS}"), 1.0)
                    .optional(&unsaid.unwrap_or_default())
            } else {
                number.optional(blank)
            }
        };
        let of_benchmark = kind.with(|kind| kind == KIND);
        let (all, held_out) = if of_benchmark {
            ("all of the split", "all of the split")
        } else {
            (
                "all that are not held out",
                "as many as the file of held-out examples has",
            )
        };
        let optimize = split("optimize", all);
        let evaluate = split("evaluate", held_out);
        view! {
            <NumberField number=optimize/>
            <NumberField number=evaluate/>
        }
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
        </div>
        <Wrong key="workload"/>
    }
}

/// What only the help desk has.
#[component]
fn Desk() -> impl IntoView {
    let fields = of_kind("desk", &["user", "max_steps"])
        .into_iter()
        .map(|setting| view! { <SettingField place=Place::Workload setting explained=true/> })
        .collect_view();
    view! {
        <p class="note">
            "A bicycle shop’s customers want orders, returns, exchanges and repairs; the agent talks to them and acts \
             through tools. Every task knows the right outcome."
        </p>
        <div class="fields wide">{fields}</div>
    }
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
