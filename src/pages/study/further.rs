//! The settings of models that most people leave as they are.

use capo_core::llm::Role;
use capo_models::providers::SIMULATED;
use leptos::prelude::*;

use super::form::Form;
use super::headers::HeadersField;
use super::models::{ROLES, role_name};
use super::place::Place;
use super::setting_field::SettingField;
use super::settings::{Setting, settings};
use crate::schemas;

/// Keys of a model's table that have columns of their own.
const IN_COLUMNS: [&str; 4] = ["provider", "model", "api_key_env", "base_url"];

/// The rest of each model's settings.
#[component]
pub(super) fn Further() -> impl IntoView {
    let form = expect_context::<Form>();
    let tables = form.memo(|study| {
        let named = ROLES.into_iter().filter_map(|role| {
            let provider = Place::Model(role).text(study, "provider");
            (!provider.is_empty()).then_some((role, provider))
        });
        named.collect::<Vec<_>>()
    });
    let of_role = move |role: Role, provider: &str| {
        let simulated = provider == SIMULATED;
        let fields = settings(schemas::model())
            .into_iter()
            .filter(|setting| !IN_COLUMNS.contains(&setting.key.as_str()) || setting.key == "base_url")
            .filter(|setting| takes(simulated, setting))
            .map(|setting| view! { <SettingField place=Place::Model(role) setting explained=true/> })
            .collect_view();
        view! {
            <fieldset>
                <legend>{role_name(role)}</legend>
                <div class="fields wide">
                    {fields} {(!simulated).then(|| view! { <HeadersField role/> })}
                </div>
            </fieldset>
        }
    };
    view! {
        <details>
            <summary>"More settings of the models"</summary>
            <div class="stack">
                <For each=move || tables.get() key=Clone::clone let((role, provider))>
                    {of_role(role, &provider)}
                </For>
            </div>
        </details>
    }
}

/// Whether a key means something for models in this page, or for all others.
fn takes(simulated: bool, setting: &Setting) -> bool {
    match setting.key.as_str() {
        "concurrency" => true,
        "latency" | "seed" => simulated,
        _ => !simulated,
    }
}
