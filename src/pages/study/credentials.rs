//! Credentials of a model: its address and its key.

use capo_core::llm::Role;
use capo_models::ProviderName;
use capo_models::providers::{Key, Provider};
use leptos::prelude::*;
use serde_json::Value;

use super::draft::Draft;
use super::form::Form;
use super::models::{message_id, role_name};
use super::place::Place;
use super::shared::{KeyChoice, is_shared};
use crate::keys::Destination;
use crate::live::sending;
use crate::servers;

/// The provider of a table, if it names one that exists.
pub(super) fn provider_of(table: &Value) -> Option<&'static Provider> {
    ProviderName::find(table["provider"].as_str()?).map(ProviderName::get)
}

/// Where a role's model is, and the key it wants.
#[component]
pub(super) fn KeyFields(role: Role, wrong: Signal<bool>) -> impl IntoView {
    let form = expect_context::<Form>();
    let provider = form.memo(move |study| Place::Model(role).text(study, "provider"));
    let fields = move || {
        let provider = provider
            .with(|name| ProviderName::find(name))
            .map(ProviderName::get)?;
        if provider.in_process {
            return Some(view! { <span class="quiet">"none needed"</span> }.into_any());
        }
        let needs_key = matches!(provider.key, Key::Required(_));
        let shared = is_shared(form, role);
        // An address that is being deleted letter by letter keeps its field.
        let with_address = Memo::new(move |before: Option<&bool>| {
            let elsewhere = form
                .draft
                .with(|draft| !Place::Model(role).text(&draft.study, "base_url").is_empty());
            !needs_key || (elsewhere && !shared.get()) || before == Some(&true)
        });
        Some(
            view! {
                <div class="stack close">
                    <KeyChoice role/>
                    <Show when=move || !shared.get()>
                        <Show when=move || with_address.get()>
                            <Address role wrong usual=provider.base_url/>
                        </Show>
                        <KeyField role wrong needed=needs_key/>
                    </Show>
                    <HeaderKeys role/>
                </div>
            }
            .into_any(),
        )
    };
    move || fields().into_any()
}

#[component]
fn Address(role: Role, wrong: Signal<bool>, usual: Option<&'static str>) -> impl IntoView {
    let form = expect_context::<Form>();
    let address = form.memo(move |study| Place::Model(role).text(study, "base_url"));
    let input = move |event| {
        let address = event_target_value(&event).trim().to_owned();
        let address = (!address.is_empty()).then_some(Value::String(address));
        form.edit(|draft| Place::Model(role).set(&mut draft.study, "base_url", address));
    };
    view! {
        <input
            type="url"
            aria-label=format!("Base URL of {}", role_name(role).to_lowercase())
            placeholder=usual.unwrap_or("http://…")
            aria-invalid=move || wrong.get().then_some("true")
            aria-describedby=move || wrong.get().then(|| message_id(role))
            prop:value=move || address.get()
            on:input=input
        />
    }
}

#[component]
fn KeyField(role: Role, wrong: Signal<bool>, needed: bool) -> impl IntoView {
    let form = expect_context::<Form>();
    let to = form.memo(move |study| sending::destination(role, study.models.get(&role)?));
    let key = move || {
        let keys = form.keys.get();
        to.with(|to| keys.of(to.as_ref()?).map(str::to_owned))
            .unwrap_or_default()
    };
    let placeholder = move || match to.with(Option::is_some) {
        false => "first the base URL",
        true if needed => "key",
        true => "key, if it wants one",
    };
    let unencrypted =
        Memo::new(move |_| to.with(|to| to.as_ref().is_some_and(|to| servers::is_unencrypted(&to.origin))));
    let input = move |event| {
        let key = event_target_value(&event).trim().to_owned();
        let Some(to) = to.get_untracked() else { return };
        form.keys.set(&to, &key);
        form.edit(|draft| name_variable(draft, role, &to.variable, !key.is_empty()));
    };
    view! {
        <input
            type="password"
            autocomplete="off"
            aria-label=format!("Key of {}", role_name(role).to_lowercase())
            placeholder=placeholder
            disabled=move || to.with(Option::is_none)
            aria-invalid=move || wrong.get().then_some("true")
            aria-describedby=move || wrong.get().then(|| message_id(role))
            prop:value=key
            on:input=input
        />
        <Show when=move || unencrypted.get()>
            <span class="note">"This address is not encrypted: others on the way could read the key."</span>
        </Show>
    }
}

/// The keys that a model's headers carry.
#[component]
fn HeaderKeys(role: Role) -> impl IntoView {
    let form = expect_context::<Form>();
    let wanted = form.memo(move |study| {
        let table = study.models.get(&role);
        table.map(|table| of_headers(role, table)).unwrap_or_default()
    });
    let field = move |to: Destination| {
        let label = format!(
            "{}, for a header of {}",
            to.variable,
            role_name(role).to_lowercase()
        );
        let placeholder = to.variable.clone();
        let held = to.clone();
        let key = move || form.keys.get().of(&held).unwrap_or_default().to_owned();
        let input = move |event| form.keys.set(&to, event_target_value(&event).trim());
        view! {
            <input
                type="password"
                autocomplete="off"
                aria-label=label
                placeholder=placeholder
                prop:value=key
                on:input=input
            />
        }
    };
    view! {
        <For each=move || wanted.get() key=Clone::clone let(to)>
            {field(to)}
        </For>
    }
}

/// Where the keys of a model's headers go.
pub(super) fn of_headers(role: Role, table: &Value) -> Vec<Destination> {
    let own = sending::destination(role, table);
    let mut all = sending::destinations(table);
    all.retain(|to| Some(to) != own.as_ref());
    all.dedup();
    all
}

/// Names the variable of a key in the table where the provider has no usual one.
fn name_variable(draft: &mut Draft, role: Role, name: &str, there: bool) {
    let table = draft.study.models.get(&role);
    let usual = table
        .and_then(provider_of)
        .is_some_and(|provider| provider.key != Key::None);
    let own = Place::Model(role).text(&draft.study, "api_key_env");
    if usual || (!own.is_empty() && own != name) {
        return;
    }
    let value = there.then(|| Value::String(name.to_owned()));
    Place::Model(role).set(&mut draft.study, "api_key_env", value);
}
