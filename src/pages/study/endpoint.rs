//! An agent of somebody's own behind an HTTP address.

use leptos::prelude::*;
use serde_json::Value;

use super::asking::Tested;
use super::field::TextField;
use super::form::Form;
use super::labels::label;
use super::metrics::Metrics;
use super::place::Place;
use super::rows::{Exclude, Rows};
use super::setting_field::SettingField;
use super::workload::of_kind;
use crate::format::decimals;

/// Address, pace, rows and metrics of an outside agent.
#[component]
pub(super) fn Endpoint() -> impl IntoView {
    let further = of_kind("external", &["timeout", "concurrency"])
        .into_iter()
        .map(|setting| view! { <SettingField place=Place::Workload setting explained=true/> })
        .collect_view();
    view! {
        <div class="endpoint">
            <TextField
                key="workload.endpoint"
                label=label("workload.endpoint")
                explanation="Each example is sent here with the prompt as JSON (POST); the answer holds the measurements. The server must allow this page’s origin (CORS). One that wants a secret header is for the command line: a study holds none."
                code=true
                placeholder="https://…"
                read=|study| Place::Workload.text(study, "endpoint")
                write=|study, text| {
                    Place::Workload.set(study, "endpoint", Some(Value::String(text.trim().into())));
                }
            />
            <TestAgent/>
            <TextField
                key="workload.description"
                label=label("workload.description")
                explanation="What surrounds the prompt, for the rewriter."
                lines=2
                read=|study| Place::Workload.text(study, "description")
                write=|study, text| {
                    let text = (!text.trim().is_empty()).then_some(Value::String(text));
                    Place::Workload.set(study, "description", text);
                }
            />
            <div class="fields wide">{further}</div>
        </div>
        <Rows/>
        <Exclude/>
        <Metrics kind="external"/>
    }
}

/// Has the agent do the first example, and says what is wrong.
#[component]
fn TestAgent() -> impl IntoView {
    let form = expect_context::<Form>();
    let tested = Memo::new(move |_| {
        let test = form.asking.agent.get()?;
        let same = form.draft.with(|draft| draft.study.workload == test.workload);
        same.then_some(test.tested)
    });
    let go = move |_| {
        if tested.get_untracked() != Some(Tested::Asking) {
            form.draft
                .with_untracked(|draft| form.asking.try_agent(&draft.study, draft.files.clone()));
        }
    };
    let name = move || match tested.get() {
        None => "Test with the first example",
        Some(Tested::Asking) => "Waiting for its answer",
        Some(Tested::Fails(..) | Tested::Answers(_)) => "Test again",
    };
    let said = move || match tested.get() {
        Some(Tested::Answers(seconds)) => Some(format!("answers, {} s", decimals(seconds, 1))),
        _ => None,
    };
    let failed = move || match tested.get()? {
        Tested::Fails(what, advice) => Some(view! {
            <div class="msg" role="alert">
                <b>{what}</b>
                <span>{advice}</span>
            </div>
        }),
        Tested::Asking | Tested::Answers(_) => None,
    };
    view! {
        <div class="stack close">
            <div class="row">
                <button type="button" on:click=go>
                    {name}
                </button>
                <span role="status">{said}</span>
            </div>
            {failed}
        </div>
    }
}
