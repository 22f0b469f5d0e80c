//! Further headers of a model's requests, one a line.

use capo_core::http_headers::is_secret_header;
use capo_core::llm::Role;
use leptos::prelude::*;
use serde_json::{Map, Value, json};

use super::draft::Mistyped;
use super::field::{Wrong, id};
use super::form::Form;
use super::models::role_name;
use super::place::Place;

/// The headers of a role's model.
#[component]
pub(super) fn HeadersField(role: Role) -> impl IntoView {
    let form = expect_context::<Form>();
    let place = Place::Model(role);
    let key = place.path("headers");
    let id = id(&key);
    let problem = form.problem(key.clone());
    let key = StoredValue::new(key);
    let stands = move || {
        form.draft.with_untracked(|draft| {
            let mistyped = key.with_value(|key| draft.wrong.get(key).cloned());
            let headers = place.table(&draft.study).and_then(|table| table.get("headers"));
            mistyped.map_or_else(|| written(headers), |mistyped| mistyped.text)
        })
    };
    let text = RwSignal::new(stands());
    Effect::new(move |_| {
        form.renewed.track();
        text.set(stands());
    });
    let input = move |event| {
        let typed = event_target_value(&event);
        text.set(typed.clone());
        form.edit(|draft| match parse(&typed) {
            Ok(headers) => {
                draft.wrong.remove(&key.get_value());
                let headers = (!headers.is_empty()).then_some(Value::Object(headers));
                place.set(&mut draft.study, "headers", headers);
            }
            Err(message) => {
                let mistyped = Mistyped { text: typed, message };
                draft.wrong.insert(key.get_value(), mistyped);
            }
        });
    };
    let (note, error) = (format!("{id}-note"), format!("{id}-error"));
    let describedby = {
        let note = note.clone();
        move || {
            if problem.with(Option::is_some) {
                format!("{note} {error}")
            } else {
                note.clone()
            }
        }
    };
    view! {
        <div class="field">
            <label for=id.clone()>
                "Headers" <span class="sr">" of " {role_name(role).to_lowercase()}</span>
            </label>
            <textarea
                id=id
                class="code"
                rows="2"
                spellcheck="false"
                aria-invalid=move || problem.with(Option::is_some).then_some("true")
                aria-describedby=describedby
                prop:value=move || text.get()
                on:input=input
            ></textarea>
            <span class="note" id=note>
                "One a line, as X-Team: search. One with a key names a variable, as X-Gate: $GATE_KEY, and its key is \
                 typed beside the model: a study holds none."
            </span>
            <Wrong key=key.get_value()/>
        </div>
    }
}

/// Headers as they stand in the field.
fn written(headers: Option<&Value>) -> String {
    let headers = headers.and_then(Value::as_object).into_iter().flatten();
    let line = |(name, value): (&String, &Value)| match value["env"].as_str() {
        Some(variable) => format!("{name}: ${variable}"),
        None => format!("{name}: {}", value.as_str().unwrap_or_default()),
    };
    headers.map(line).collect::<Vec<_>>().join("\n")
}

/// What was typed, as a study has it. Keys never get that far.
fn parse(text: &str) -> Result<Map<String, Value>, String> {
    let mut headers = Map::new();
    for line in text.lines().filter(|line| !line.trim().is_empty()) {
        let parts = line
            .split_once(':')
            .map(|(name, value)| (name.trim(), value.trim()));
        let Some((name, value)) = parts.filter(|(name, value)| !name.is_empty() && !value.is_empty()) else {
            return Err("Write a name, a colon and a value on each line, as X-Team: search.".into());
        };
        let value = match value.strip_prefix('$') {
            Some(variable) => json!({ "env": variable }),
            None if is_secret_header(name) => {
                return Err(format!(
                    "The header {name} carries a key. Name a variable, as {name}: $MY_KEY, and type the key beside \
                     the model."
                ));
            }
            None => value.into(),
        };
        headers.insert(name.to_owned(), value);
    }
    Ok(headers)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_are_read_as_they_are_written() {
        let text = "X-Team: search\nX-Gate: $GATE_KEY";
        let headers = parse(text).unwrap();
        assert_eq!(
            Value::Object(headers.clone()),
            json!({ "X-Team": "search", "X-Gate": { "env": "GATE_KEY" } })
        );
        assert_eq!(written(Some(&Value::Object(headers))), text);
        assert!(parse("").unwrap().is_empty());
        assert!(parse("X-Team").unwrap_err().contains("colon"));
    }

    #[test]
    fn a_key_does_not_get_into_the_study() {
        let message = parse("Authorization: Bearer sk-secret").unwrap_err();
        assert!(!message.contains("sk-secret"), "{message}");
        assert!(message.contains("Authorization: $MY_KEY"), "{message}");
    }
}
