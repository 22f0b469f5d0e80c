//! Models of the roles, and whether they answer.

use capo_core::llm::Role;
use capo_core::study::Study;
use capo_models::providers::{Key, PROVIDERS, SIMULATED};
use capo_models::{ProviderName, serving};
use leptos::prelude::*;
use serde_json::{Value, json};

use super::asking::{Test, Tested};
use super::credentials::{KeyFields, provider_of};
use super::form::Form;
use super::further::Further;
use super::place::Place;
use super::section::Section;
use super::settings::{Kind, Setting};
use super::shared;
use super::workload;
use crate::components::Message;
use crate::format::{self, decimals};
use crate::frame::remember::Remember;
use crate::keys::Keys;
use crate::live::sending;
use crate::studies;

/// The order in which roles are listed: who does most first, who is seldom needed last.
pub(super) const ROLES: [Role; 6] = [
    Role::Agent,
    Role::Rewriter,
    Role::Critic,
    Role::User,
    Role::Judge,
    Role::Embeddings,
];

/// Models per role.
#[component]
pub(super) fn ModelsSection() -> impl IntoView {
    let lead = || {
        view! {
            <p>"Keys live in this tab’s memory and go to their provider only."</p>
            <Remember/>
        }
    };
    view! {
        <Section number=3 title="Models" lead=lead full=true>
            <ModelsTable roles=&ROLES/>
            <Further/>
        </Section>
    }
}

/// The models of some roles.
#[component]
pub(super) fn ModelsTable(roles: &'static [Role]) -> impl IntoView {
    view! {
        <div class="scroll" tabindex="0" role="group" aria-label="Models, scroll sideways">
            <table class="stackable">
                <thead>
                    <tr>
                        <th scope="col" class="col-role">
                            "Role"
                        </th>
                        <th scope="col" class="col-provider">
                            "Provider"
                        </th>
                        <th scope="col">"Model"</th>
                        <th scope="col">"Key or base URL"</th>
                        <th scope="col" class="col-test">
                            "Test"
                        </th>
                    </tr>
                </thead>
                <tbody>{roles.iter().map(|role| view! { <RoleRow role=*role/> }).collect_view()}</tbody>
            </table>
        </div>
    }
}

/// A role's name and what it does.
pub(super) fn role_name(role: Role) -> &'static str {
    match role {
        Role::Agent => "Task agent",
        Role::Rewriter => "Rewriter",
        Role::Critic => "Critic",
        Role::User => "User simulator",
        Role::Judge => "Judge",
        Role::Embeddings => "Embeddings",
    }
}

fn does(role: Role) -> &'static str {
    match role {
        Role::Agent => "runs every example",
        Role::Rewriter => "writes new prompts",
        Role::Critic => "explains what went wrong",
        Role::User => "plays the customer",
        Role::Judge => "grades answers",
        Role::Embeddings => "makes vectors of texts",
    }
}

/// What a role's cells hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Served {
    /// Nobody asks it.
    NotNeeded,
    /// A model of its own does.
    Own,
    /// Another role's model does.
    ByOther,
    /// Nobody can: it needs a model of its own.
    ByNobody,
}

#[component]
fn RoleRow(role: Role) -> impl IntoView {
    let form = expect_context::<Form>();
    let asked = Memo::new(move |_| {
        let measured = form.measured.get();
        form.draft
            .with(|draft| measured.asked(&draft.study).contains(&role))
    });
    // The cells change with this alone: with the table itself they would be made anew at every key that is
    // pressed in them, and lose the focus.
    let served = Memo::new(move |_| {
        if form.draft.with(|draft| draft.study.models.contains_key(&role)) {
            Served::Own
        } else if !asked.get() {
            Served::NotNeeded
        } else if role.fallback().is_some() {
            Served::ByOther
        } else {
            Served::ByNobody
        }
    });
    let serves = form.memo(move |study| {
        serving(role, &study.models).map(|(of, table)| {
            let model = table["model"]
                .as_str()
                .map(str::to_owned)
                .or_else(|| provider_of(table)?.model.map(str::to_owned));
            (of, model.unwrap_or_default())
        })
    });
    let note = move || {
        if asked.get() {
            does(role)
        } else {
            "not used by this study"
        }
    };
    let test = Memo::new(move |_| current_test(form, role));
    let failed = Memo::new(move |_| row_message(form, role, test));
    let is_needed = Memo::new(move |_| served.get() != Served::NotNeeded);
    let other = move || {
        let of = serves.get().map(|(of, _)| role_name(of).to_lowercase());
        of.unwrap_or_else(|| "nobody".into())
    };
    let model = move || match served.get() {
        Served::Own => view! { <ModelName role/> }.into_any(),
        Served::ByOther => {
            view! { <span class="quiet">{move || serves.get().map(|(_, model)| model)}</span> }.into_any()
        }
        Served::NotNeeded | Served::ByNobody => ().into_any(),
    };
    let key = move || match served.get() {
        Served::Own => {
            view! { <KeyFields role wrong=Signal::derive(move || failed.with(Option::is_some))/> }.into_any()
        }
        Served::ByOther => view! { <span class="quiet">"as " {other}</span> }.into_any(),
        Served::NotNeeded | Served::ByNobody => ().into_any(),
    };
    let tested = move || match served.get() {
        Served::Own => view! { <TestButton role test/> }.into_any(),
        Served::ByOther | Served::ByNobody => ().into_any(),
        Served::NotNeeded => view! { <span class="quiet">"not needed"</span> }.into_any(),
    };
    let simulated = Memo::new(move |_| simulated_words(form, role));
    let has_message = move || failed.with(Option::is_some) || simulated.with(Option::is_some);
    let message = move || {
        let said = if let Some((what, advice)) = failed.get() {
            let has_script = role == Role::User && form.draft.with(|draft| has_script(&draft.study));
            let scripted = has_script.then(|| view! { <LetTheScriptPlay/> });
            view! {
                <div class="msg" id=message_id(role) role="alert">
                    <b>{what}</b>
                    <span>{advice} {scripted}</span>
                </div>
            }
            .into_any()
        } else {
            let words = simulated.get()?;
            view! {
                <Message what="Simulated models are made for the help desk." info=true>
                    <span>{words}</span>
                </Message>
            }
            .into_any()
        };
        Some(view! {
            <tr>
                <td colspan="5" class="across">
                    {said}
                </td>
            </tr>
        })
    };
    // Few studies compare meanings: elsewhere there is nothing to choose.
    let hidden = move || role == Role::Embeddings && !is_needed.get();
    view! {
        <tr class:with-message=has_message hidden=hidden>
            <th scope="row" class="col-role">
                <b>{role_name(role)}</b>
                <div class="note">{note}</div>
            </th>
            <td class:hide-s=move || !is_needed.get()>
                <Show when=move || is_needed.get() fallback=|| view! { <span class="quiet">"–"</span> }>
                    <ProviderSelect role/>
                </Show>
            </td>
            <td>{model}</td>
            <td>{key}</td>
            <td>{tested}</td>
        </tr>
        {message}
    }
}

/// The id of what is said about a role's model.
pub(super) fn message_id(role: Role) -> String {
    format!("model-{role}-message")
}

/// The latest test of a role's model, if it was of what stands there now.
pub(super) fn current_test(form: Form, role: Role) -> Option<Test> {
    let test = form.asking.tests.with(|tests| tests.get(&role).cloned())?;
    let same_table = form
        .draft
        .with(|draft| draft.study.models.get(&role) == Some(&test.table));
    let keys = sending::allowed_for(&test.table, &form.keys.get());
    (same_table && keys == test.keys).then_some(test)
}

/// What is wrong with a role's model: its settings, where its key would go, or its test.
fn row_message(form: Form, role: Role, test: Memo<Option<Test>>) -> Option<(String, String)> {
    let table = form.draft.with(|draft| draft.study.models.get(&role).cloned())?;
    let refused = form.problem(format!("models.{role}"));
    if let Some(message) = refused.get() {
        return Some(("This model’s settings cannot be used.".into(), message));
    }
    if let Some(message) = form.keys.with(|keys| typed_for_another(keys, &table)) {
        return Some(message);
    }
    match test.get()?.tested {
        Tested::Fails(what, advice) => Some((what, advice)),
        Tested::Asking | Tested::Answers(_) => None,
    }
}

/// What a role's simulated model is worth where it does not know what is asked.
fn simulated_words(form: Form, role: Role) -> Option<String> {
    let measured = form.measured.get();
    let served = form.draft.with(|draft| {
        studies::simulated_beyond_their_world(&draft.study, role, &measured.asked(&draft.study))
    });
    let served: Vec<String> = served
        .into_iter()
        .map(|role| role_name(role).to_lowercase())
        .collect();
    (!served.is_empty()).then(|| {
        format!(
            "As {}, this one shows how a search goes, and nothing more. For a prompt that you can use, choose another \
             provider here.",
            format::listed(&served)
        )
    })
}

/// Says that a key of this tab stands under the name that a model's table asks for, but was typed for
/// another server than the table's.
fn typed_for_another(keys: &Keys, table: &Value) -> Option<(String, String)> {
    let wanted = table["api_key_env"].is_string()
        || provider_of(table).is_some_and(|provider| matches!(provider.key, Key::Required(_)));
    let missing = sending::destinations(table)
        .into_iter()
        .find(|to| wanted && keys.of(to).is_none())?;
    let held = keys
        .destinations()
        .find(|held| held.variable == missing.variable)?;
    Some((
        format!(
            "The {} of this tab was typed for {}.",
            held.variable,
            held.server()
        ),
        format!(
            "It is not sent to {}: type the key for it here.",
            missing.server()
        ),
    ))
}

/// Whether the workload has scripts that can play the user.
fn has_script(study: &Study) -> bool {
    let user = workload::of_kind(&workload::kind(study), &["user"]);
    let is_scripted = |(word, _): &(String, String)| word == SCRIPTED;
    let has =
        |setting: &Setting| matches!(&setting.kind, Kind::Choice(words) if words.iter().any(is_scripted));
    user.iter().any(has)
}

/// The choice of a workload's setting `user` that asks no model.
const SCRIPTED: &str = "scripted";

#[component]
fn LetTheScriptPlay() -> impl IntoView {
    let form = expect_context::<Form>();
    let scripted = move |_| {
        form.renew(|draft| {
            Place::Workload.set(&mut draft.study, "user", Some(SCRIPTED.into()));
            draft.study.models.shift_remove(&Role::User);
        });
    };
    view! {
        " Or "
        <button type="button" class="link" on:click=scripted>
            "let the task’s script play the customer"
        </button>
        "."
    }
}

#[component]
fn ProviderSelect(role: Role) -> impl IntoView {
    let form = expect_context::<Form>();
    let chosen = form.memo(move |study| Place::Model(role).text(study, "provider"));
    let change = move |event| {
        let name = event_target_value(&event);
        form.renew(|draft| {
            draft.forget_wrong(&Place::Model(role).path(""));
            if name.is_empty() {
                draft.study.models.shift_remove(&role);
            } else {
                draft.study.models.insert(role, fresh(role, &name));
            }
        });
        form.bound_dollars();
    };
    let fallback = match role.fallback() {
        Some(other) => Some(format!("As {}", role_name(other).to_lowercase())),
        None => (role != Role::Agent).then(|| "Nobody".to_owned()),
    };
    let fallback = fallback.map(|name| {
        view! {
            <option value="" prop:selected=move || chosen.with(String::is_empty)>
                {name}
            </option>
        }
    });
    // Not those that a page cannot open, nor those that have no model for it.
    let options = PROVIDERS
        .iter()
        .filter(|provider| !provider.in_process || provider.model.is_some())
        .filter(|provider| provider.embeds || role != Role::Embeddings)
        .map(|provider| {
            view! {
                <option
                    value=provider.name
                    prop:selected=move || chosen.with(|chosen| chosen == provider.name)
                >
                    {provider.title}
                </option>
            }
        })
        .collect_view();
    view! {
        <select aria-label=format!("Provider of {}", role_name(role).to_lowercase()) on:change=change>
            {fallback}
            {options}
        </select>
    }
}

/// A table that names a provider and nothing that another one was asked for.
pub(super) fn fresh(role: Role, provider: &str) -> Value {
    if provider == SIMULATED {
        return json!({
            "provider": provider,
            "model": if role == Role::Rewriter { "sim-large" } else { "sim-medium" },
            "latency": crate::studies::WATCHABLE,
        });
    }
    let mut table = json!({ "provider": provider });
    if let Some(url) = ProviderName::find(provider).and_then(|provider| provider.get().usual_url) {
        table["base_url"] = url.into();
    }
    table
}

#[component]
fn ModelName(role: Role) -> impl IntoView {
    let form = expect_context::<Form>();
    let model = form.memo(move |study| Place::Model(role).text(study, "model"));
    let missing = form.memo(move |study| {
        study
            .models
            .get(&role)
            .and_then(provider_of)
            .is_some_and(|provider| provider.model.is_none())
            && Place::Model(role).text(study, "model").trim().is_empty()
    });
    let allowed = shared::models(form, role);
    let list = format!("model-{role}-allowed");
    let input = move |event| {
        let name = event_target_value(&event);
        let name = (!name.trim().is_empty()).then(|| Value::String(name.trim().to_owned()));
        form.edit(|draft| Place::Model(role).set(&mut draft.study, "model", name));
    };
    view! {
        <div class="field">
            <input
                type="text"
                autocomplete="off"
                spellcheck="false"
                aria-label=format!("Model of {}", role_name(role).to_lowercase())
                aria-describedby=move || missing.get().then(|| format!("model-{role}-missing"))
                placeholder="model"
                list=list.clone()
                prop:value=move || model.get()
                on:input=input
                on:change=move |_| form.bound_dollars()
            />
            <datalist id=list>
                {move || allowed.get().into_iter().map(|name| view! { <option value=name></option> }).collect_view()}
            </datalist>
            {move || {
                missing.get().then(|| {
                    view! {
                        <span class="note" id=format!("model-{role}-missing")>
                            "the provider’s name for it"
                        </span>
                    }
                })
            }}
        </div>
    }
}

#[component]
fn TestButton(role: Role, test: Memo<Option<Test>>) -> impl IntoView {
    let form = expect_context::<Form>();
    let simulated = form.memo(move |study| Place::Model(role).text(study, "provider") == SIMULATED);
    let ask = move |_| {
        if test.with_untracked(|test| test.as_ref().is_some_and(|test| test.tested == Tested::Asking)) {
            return;
        }
        let table = form
            .draft
            .with_untracked(|draft| draft.study.models.get(&role).cloned());
        if let Some(table) = table {
            let keys = sending::allowed_for(&table, &form.keys.now());
            form.asking.test(role, table, keys);
        }
    };
    // One button throughout: the focus stays on it while it is pressed again and again.
    let name = move || match test.get().map(|test| test.tested) {
        None => "Test",
        Some(Tested::Asking) => "Asking",
        Some(Tested::Fails(..) | Tested::Answers(_)) => "Test again",
    };
    let said = move || match test.get().map(|test| test.tested) {
        Some(Tested::Answers(seconds)) => Some(view! {
            <span class="is-f">
                <span class="m f" aria-hidden="true"></span>
                "answers, "
                {decimals(seconds, 1)}
                " s"
            </span>
        }),
        _ => None,
    };
    view! {
        <Show
            when=move || !simulated.get()
            fallback=|| view! { <span class="quiet">"always answers"</span> }
        >
            <div class="stack close">
                <button type="button" on:click=ask>
                    {name}
                    <span class="sr">" " {role_name(role).to_lowercase()}</span>
                </button>
                <span role="status">{said}</span>
            </div>
        </Show>
    }
}
