//! Who answers for each role, and whether it does.

use capo_core::llm::Role;
use capo_models::providers::{Key, PROVIDERS, Provider};
use capo_models::{ModelSpec, ProviderName, serving};
use leptos::prelude::*;
use serde_json::{Value, json};

use super::asking::{Test, Tested};
use super::field::SettingField;
use super::form::Form;
use super::place::Place;
use super::remember::Remember;
use super::section::Section;
use super::settings::{Setting, settings};
use crate::format::decimals;
use crate::live::sending;

/// The order in which roles are listed: who does most first, who is seldom needed last.
const ROLES: [Role; 5] = [Role::Agent, Role::Rewriter, Role::Critic, Role::User, Role::Judge];

/// Keys of a model's table that have columns of their own.
const IN_COLUMNS: [&str; 4] = ["provider", "model", "api_key_env", "base_url"];

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
        <Section number=5 title="Models" lead=lead full=true>
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
                    <tbody>{ROLES.map(|role| view! { <RoleRow role/> }).collect_view()}</tbody>
                </table>
            </div>
            <Further/>
        </Section>
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
    }
}

fn does(role: Role) -> &'static str {
    match role {
        Role::Agent => "runs every example",
        Role::Rewriter => "writes new prompts",
        Role::Critic => "explains what went wrong",
        Role::User => "plays the customer",
        Role::Judge => "grades answers",
    }
}

/// The provider of a table, if it names one that exists.
fn provider_of(table: &Value) -> Option<&'static Provider> {
    ProviderName::find(table["provider"].as_str()?).map(ProviderName::get)
}

/// The variable that a role's key is in.
fn variable(role: Role, table: &Value) -> Option<String> {
    let provider = provider_of(table).filter(|provider| !provider.in_process())?;
    let named = table["api_key_env"].as_str().map(str::to_owned);
    let usual = sending::usual_variable(provider.key).map(str::to_owned);
    // A server of somebody's own has no usual variable: its key belongs to the role.
    named
        .or(usual)
        .or_else(|| Some(format!("{}_SERVER_KEY", role.name().to_uppercase())))
}

#[component]
fn RoleRow(role: Role) -> impl IntoView {
    let form = expect_context::<Form>();
    let own = form.memo(move |study| study.models.get(&role).cloned());
    let asked = Memo::new(move |_| {
        let measured = form.measured.get();
        form.draft
            .with(|draft| measured.asked(&draft.study).contains(&role))
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
    let needed = move || asked.get() || own.with(Option::is_some);
    let note = move || {
        if asked.get() {
            does(role)
        } else {
            "not used by this study"
        }
    };
    let test = Memo::new(move |_| current_test(form, role));
    let failed = Memo::new(move |_| row_message(form, role, test));
    let cells = move || {
        if !needed() {
            return view! {
                <td>
                    <span class="quiet">"–"</span>
                </td>
                <td></td>
                <td></td>
                <td>
                    <span class="quiet">"not needed"</span>
                </td>
            }
            .into_any();
        }
        let other = move || {
            let of = serves.get().map(|(of, _)| role_name(of).to_lowercase());
            of.unwrap_or_else(|| "nobody".into())
        };
        if own.with(Option::is_some) {
            view! {
                <td>
                    <ProviderSelect role/>
                </td>
                <td>
                    <ModelName role/>
                </td>
                <td>
                    <KeyFields role wrong=Signal::derive(move || failed.with(Option::is_some))/>
                </td>
                <td>
                    <TestButton role test/>
                </td>
            }
            .into_any()
        } else {
            view! {
                <td>
                    <ProviderSelect role/>
                </td>
                <td>
                    <span class="quiet">{move || serves.get().map(|(_, model)| model)}</span>
                </td>
                <td>
                    <span class="quiet">"as " {other}</span>
                </td>
                <td></td>
            }
            .into_any()
        }
    };
    let message = move || {
        let (what, advice) = failed.get()?;
        let has_script = role == Role::User && form.draft.with(|draft| draft.kind() == "desk");
        let scripted = has_script.then(|| view! { <LetTheScriptPlay/> });
        Some(view! {
            <tr>
                <td colspan="5" class="across">
                    <div class="msg" id=message_id(role) role="alert">
                        <b>{what}</b>
                        <span>{advice} {scripted}</span>
                    </div>
                </td>
            </tr>
        })
    };
    view! {
        <tr class:with-message=move || failed.with(Option::is_some)>
            <th scope="row" class="col-role">
                <b>{role_name(role)}</b>
                <div class="note">{note}</div>
            </th>
            {cells}
        </tr>
        {message}
    }
}

fn message_id(role: Role) -> String {
    format!("model-{role}-message")
}

/// The latest test of a role's model, if it was of what stands there now.
fn current_test(form: Form, role: Role) -> Option<Test> {
    let test = form.asking.tests.with(|tests| tests.get(&role).cloned())?;
    let same_table = form
        .draft
        .with(|draft| draft.study.models.get(&role) == Some(&test.table));
    let keys = form
        .typed_for
        .with(|typed_for| sending::allowed_for(&test.table, &form.keys.get(), typed_for));
    (same_table && keys == test.keys).then_some(test)
}

/// What is wrong with a role's model: its settings, where its key would go, or its test.
fn row_message(form: Form, role: Role, test: Memo<Option<Test>>) -> Option<(String, String)> {
    let table = form.draft.with(|draft| draft.study.models.get(&role).cloned())?;
    if let Err(message) = ModelSpec::parse(&table) {
        let message = message.replace('`', "");
        return Some(("This model’s settings do not read.".into(), format!("{message}.")));
    }
    let keys = form.keys.get();
    let strange = form.typed_for.with(|typed_for| {
        sending::sent(&table)
            .into_iter()
            .find(|(sent, own)| !own && keys.contains_key(&sent.variable) && !typed_for.contains(sent))
    });
    if let Some((sent, _)) = strange {
        return Some((
            format!(
                "This study would send the key in {} to {}.",
                sent.variable, sent.host
            ),
            "It is not sent there unless you type it here again.".into(),
        ));
    }
    match test.get()?.tested {
        Tested::Fails(what, advice) => Some((what, advice)),
        Tested::Asking | Tested::Answers(_) => None,
    }
}

#[component]
fn LetTheScriptPlay() -> impl IntoView {
    let form = expect_context::<Form>();
    let scripted = move |_| {
        form.renew(|draft| {
            Place::Workload.set(&mut draft.study, "user", Some("scripted".into()));
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
    };
    let fallback = role.fallback().map(|other| {
        view! {
            <option value="" selected=move || chosen.with(String::is_empty)>
                "As "
                {role_name(other).to_lowercase()}
            </option>
        }
    });
    let options = PROVIDERS
        .iter()
        .map(|provider| {
            view! {
                <option
                    value=provider.name
                    selected=move || chosen.with(|chosen| chosen == provider.name)
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
fn fresh(role: Role, provider: &str) -> Value {
    match provider {
        "simulated" => json!({
            "provider": provider,
            "model": if role == Role::Rewriter { "sim-large" } else { "sim-medium" },
            "latency": crate::studies::WATCHABLE,
        }),
        "openai-compatible" => json!({ "provider": provider, "base_url": "http://localhost:8000/v1" }),
        _ => json!({ "provider": provider }),
    }
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
                prop:value=move || model.get()
                on:input=input
            />
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
fn KeyFields(role: Role, wrong: Signal<bool>) -> impl IntoView {
    let form = expect_context::<Form>();
    let provider = form.memo(move |study| Place::Model(role).text(study, "provider"));
    let elsewhere = form.memo(move |study| !Place::Model(role).text(study, "base_url").is_empty());
    let fields = move || {
        let provider = provider
            .with(|name| ProviderName::find(name))
            .map(ProviderName::get)?;
        if provider.in_process() {
            return Some(view! { <span class="quiet">"none needed"</span> }.into_any());
        }
        let with_address = elsewhere.get() || !matches!(provider.key, Key::Required(_));
        Some(
            view! {
                <div class="stack close">
                    {with_address.then(|| view! { <Address role wrong usual=provider.base_url/> })}
                    <KeyField role wrong needed=matches!(provider.key, Key::Required(_))/>
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
    let name = form.memo(move |study| variable(role, study.models.get(&role)?));
    let key = move || {
        let keys = form.keys.get();
        name.get()
            .and_then(|name| keys.get(&name).cloned())
            .unwrap_or_default()
    };
    let input = move |event| {
        let key = event_target_value(&event).trim().to_owned();
        let Some(name) = name.get_untracked() else { return };
        form.keys.set(&name, &key);
        form.edit(|draft| name_variable(draft, role, &name, !key.is_empty()));
        let sent = form.draft.with_untracked(|draft| {
            draft
                .study
                .models
                .get(&role)
                .map(sending::sent)
                .unwrap_or_default()
        });
        // Whoever types a key beside an address means that address.
        form.typed_for.update(|typed_for| {
            let meant = sent.into_iter().map(|(sent, _)| sent);
            typed_for.extend(meant.filter(|sent| sent.variable == name));
        });
    };
    view! {
        <input
            type="password"
            autocomplete="off"
            aria-label=format!("Key of {}", role_name(role).to_lowercase())
            placeholder=if needed { "key" } else { "key, if it wants one" }
            aria-invalid=move || wrong.get().then_some("true")
            aria-describedby=move || wrong.get().then(|| message_id(role))
            prop:value=key
            on:input=input
        />
    }
}

/// Names the variable of a key in the table where the provider has no usual one.
fn name_variable(draft: &mut super::draft::Draft, role: Role, name: &str, there: bool) {
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

#[component]
fn TestButton(role: Role, test: Memo<Option<Test>>) -> impl IntoView {
    let form = expect_context::<Form>();
    let simulated = form.memo(move |study| Place::Model(role).text(study, "provider") == "simulated");
    let ask = move |_| {
        let table = form
            .draft
            .with_untracked(|draft| draft.study.models.get(&role).cloned());
        if let Some(table) = table {
            let keys = form
                .typed_for
                .with_untracked(|typed_for| sending::allowed_for(&table, &form.keys.now(), typed_for));
            form.asking.test(role, table, keys);
        }
    };
    let button = move |name: &'static str| {
        view! {
            <button type="button" on:click=ask>
                {name}
                <span class="sr">" " {role_name(role).to_lowercase()}</span>
            </button>
        }
        .into_any()
    };
    move || match test.get().map(|test| test.tested) {
        _ if simulated.get() => view! { <span class="quiet">"always answers"</span> }.into_any(),
        None => button("Test"),
        Some(Tested::Asking) => view! { <span class="quiet" role="status">"asking"</span> }.into_any(),
        Some(Tested::Fails(..)) => button("Test again"),
        Some(Tested::Answers(seconds)) => view! {
            <span class="is-f" role="status">
                <span class="m f" aria-hidden="true"></span>
                "answers, "
                {decimals(seconds, 1)}
                " s"
            </span>
        }
        .into_any(),
    }
}

/// The rest of each model's settings.
#[component]
fn Further() -> impl IntoView {
    let form = expect_context::<Form>();
    let tables = form.memo(|study| {
        let named = ROLES.into_iter().filter_map(|role| {
            let provider = Place::Model(role).text(study, "provider");
            (!provider.is_empty()).then_some((role, provider))
        });
        named.collect::<Vec<_>>()
    });
    let of_role = move |role: Role, provider: &str| {
        let simulated = provider == "simulated";
        let described = serde_json::to_value(capo_models::schema())
            .map(|schema| settings(&schema))
            .unwrap_or_default();
        let fields = described
            .into_iter()
            .filter(|setting| !IN_COLUMNS.contains(&setting.key.as_str()) || setting.key == "base_url")
            .filter(|setting| takes(simulated, setting))
            .map(|setting| view! { <SettingField place=Place::Model(role) setting explained=true/> })
            .collect_view();
        view! {
            <fieldset>
                <legend>{role_name(role)}</legend>
                <div class="fields wide">{fields}</div>
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

/// The roles a run asks whose model has no name, or wants a key that this study may not use yet, each
/// with what is missing.
pub(super) fn lacking(form: Form) -> Vec<String> {
    let measured = form.measured.get();
    form.draft.with(|draft| {
        let allowed = form.allowed_keys(&draft.study);
        let mut missing: Vec<String> = Vec::new();
        for role in measured.asked(&draft.study) {
            let Some((of, table)) = serving(role, &draft.study.models) else {
                missing.push(format!("the {} has no model", role_name(role).to_lowercase()));
                continue;
            };
            let Some(provider) = provider_of(table) else {
                continue;
            };
            let unnamed = provider.model.is_none() && !table["model"].is_string();
            let words = format!("the {} has no model name", role_name(of).to_lowercase());
            if unnamed && !missing.contains(&words) {
                missing.push(words);
            }
            let named = table["api_key_env"].is_string();
            let wants = matches!(provider.key, Key::Required(_)) || (named && !provider.in_process());
            let there = variable(of, table).is_some_and(|name| allowed.contains_key(&name));
            let words = format!(
                "the {} has no key for {}",
                role_name(of).to_lowercase(),
                provider.title
            );
            if wants && !there && !missing.contains(&words) {
                missing.push(words);
            }
        }
        missing
    })
}

/// The roles whose model was tested and did not answer.
pub(super) fn silent(form: Form) -> Vec<String> {
    let failed = ROLES.into_iter().filter(|role| {
        let test = current_test(form, *role);
        test.is_some_and(|test| matches!(test.tested, Tested::Fails(..)))
    });
    failed.map(|role| role_name(role).to_lowercase()).collect()
}
