//! Keys that projects of one's own share, in place of a key of one's own.

use capo_api::{ProjectKey, Role as ProjectRole};
use capo_core::llm::Role;
use leptos::prelude::*;
use serde_json::{Value, json};
use wasm_bindgen_futures::spawn_local;

use super::draft::Draft;
use super::form::Form;
use super::models::{fresh, role_name};
use super::place::Place;
use crate::shared_keys::{PROJECT, address, name};
use crate::team::{Server, Team};

/// A key, and the project on whose account it is used.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Shared {
    project: String,
    title: String,
    key: ProjectKey,
}

/// The keys of all projects in which one may run studies, as far as they are known.
#[derive(Clone, Copy)]
pub(super) struct Offered(RwSignal<Vec<Shared>>);

/// Asks for them, now and whenever one's projects change.
pub(super) fn offered() -> Offered {
    let team = expect_context::<Team>();
    let found = RwSignal::new(Vec::new());
    let places = Memo::new(move |_| {
        let places = team.projects().into_iter();
        let places = places.filter(|place| place.role >= ProjectRole::Editor);
        places.map(|place| (place.name, place.title)).collect::<Vec<_>>()
    });
    Effect::new(move |_| {
        let asked = places.get();
        spawn_local(async move {
            let mut all = Vec::new();
            for (project, title) in &asked {
                // A project whose keys cannot be read offers none.
                let keys = team
                    .ask(async |server: Server| server.project_keys(project).await)
                    .await;
                all.extend(keys.unwrap_or_default().into_iter().map(|key| Shared {
                    project: project.clone(),
                    title: title.clone(),
                    key,
                }));
            }
            // The page may be left by then, or somebody else signed in.
            if places.try_get_untracked() == Some(asked) {
                found.set(all);
            }
        });
    });
    Offered(found)
}

/// The shared key that a role's model is asked with, and the project that pays, as far as the study says.
fn chosen(draft: &Draft, role: Role) -> Option<(String, Option<String>)> {
    let base_url = Place::Model(role).text(&draft.study, "base_url");
    let key = name(&base_url)?.to_owned();
    let table = Place::Model(role).table(&draft.study)?;
    let project = table.get("headers").and_then(|headers| headers[PROJECT].as_str());
    Some((key, project.map(str::to_owned)))
}

/// Whether a role's model is asked with a shared key.
pub(super) fn is_shared(form: Form, role: Role) -> Memo<bool> {
    Memo::new(move |_| form.draft.with(|draft| chosen(draft, role).is_some()))
}

/// Names of models that the chosen key allows; beginnings of names are none.
pub(super) fn models(form: Form, role: Role) -> Memo<Vec<String>> {
    let Offered(shared) = expect_context();
    Memo::new(move |_| {
        let Some((key, _)) = form.draft.with(|draft| chosen(draft, role)) else {
            return Vec::new();
        };
        shared.with(|all| {
            let shared = all.iter().find(|shared| shared.key.name == key);
            let models = shared.into_iter().flat_map(|shared| &shared.key.models);
            models.filter(|model| !model.ends_with('*')).cloned().collect()
        })
    })
}

/// Has a role's model asked with a shared key, or with one of one's own again.
fn choose(draft: &mut Draft, role: Role, shared: Option<&Shared>) {
    let place = Place::Model(role);
    let mut headers = place
        .table(&draft.study)
        .and_then(|table| table.get("headers")?.as_object().cloned())
        .unwrap_or_default();
    headers.shift_remove(PROJECT);
    let base_url = if let Some(shared) = shared {
        // Always named, for the key may be shared with another of one's projects later.
        headers.insert(PROJECT.into(), shared.project.clone().into());
        place.set(&mut draft.study, "api_key_env", None);
        Some(Value::String(address(&shared.key.base_url)))
    } else {
        let usual = fresh(role, &place.text(&draft.study, "provider"));
        usual.get("base_url").cloned()
    };
    place.set(&mut draft.study, "base_url", base_url);
    let headers = (!headers.is_empty()).then_some(json!(headers));
    place.set(&mut draft.study, "headers", headers);
}

/// The choice between a key of one's own and those that projects share, where there is one.
#[component]
pub(super) fn KeyChoice(role: Role) -> impl IntoView {
    let form = expect_context::<Form>();
    let Offered(shared) = expect_context();
    let offered = Memo::new(move |_| {
        let provider = form
            .draft
            .with(|draft| Place::Model(role).text(&draft.study, "provider"));
        let mut all = shared.get();
        all.retain(|shared| shared.key.provider == provider);
        all
    });
    let now = Memo::new(move |_| form.draft.with(|draft| chosen(draft, role)));
    // Where in the list; none of a key that is not offered, or not any more.
    let place = Memo::new(move |_| {
        let (key, project) = now.get()?;
        let is_meant = |shared: &Shared| {
            shared.key.name == key && project.as_ref().is_none_or(|project| *project == shared.project)
        };
        offered.with(|offered| offered.iter().position(is_meant))
    });
    let is_lost = Memo::new(move |_| now.with(Option::is_some) && place.get().is_none());
    let change = move |event| {
        let picked = event_target_value(&event).parse::<usize>().ok();
        let shared = picked.and_then(|place| offered.with_untracked(|offered| offered.get(place).cloned()));
        form.renew(|draft| choose(draft, role, shared.as_ref()));
    };
    let options = move || {
        let option = |(at, shared): (usize, Shared)| {
            let words = format!("Key {} of {}", shared.key.name, shared.title);
            view! {
                <option value=at.to_string() prop:selected=move || place.get() == Some(at)>
                    {words}
                </option>
            }
        };
        offered.get().into_iter().enumerate().map(option).collect_view()
    };
    let lost = move || {
        let (key, _) = now.get().filter(|_| is_lost.get())?;
        Some(
            view! { <option value="lost" selected disabled>{format!("Key {key}, not offered to you")}</option> },
        )
    };
    let label = format!("Whose key for {}", role_name(role).to_lowercase());
    view! {
        <Show when=move || now.with(Option::is_some) || !offered.with(Vec::is_empty)>
            <select aria-label=label.clone() on:change=change>
                <option value="" prop:selected=move || now.with(Option::is_none)>
                    "Key of my own"
                </option>
                {options}
                {lost}
            </select>
        </Show>
        <Show when=move || now.with(Option::is_some)>
            <span class="note">
                {move || {
                    if is_lost.get() {
                        "This server has it asked only while you are signed in and a project of yours shares the key."
                    } else {
                        "This server adds the key; the page never has it."
                    }
                }}
            </span>
        </Show>
    }
}
