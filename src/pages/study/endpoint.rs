//! An agent of somebody's own behind an HTTP address.

use leptos::prelude::*;
use serde_json::Value;

use super::field::TextField;
use super::metrics::Metrics;
use super::place::Place;
use super::rows::Rows;
use super::setting_field::SettingField;
use super::workload::of_kind;

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
                label="Address"
                explanation="Each example is sent here with the prompt as JSON (POST); the answer holds the measurements. The server must allow this page’s origin (CORS). One that wants a secret header is for the command line: a study holds none."
                code=true
                placeholder="https://…"
                read=|study| Place::Workload.text(study, "endpoint")
                write=|study, text| {
                    Place::Workload.set(study, "endpoint", Some(Value::String(text.trim().into())));
                }
            />
            <TextField
                key="workload.description"
                label="What the agent does"
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
        <Metrics kind="external"/>
    }
}
