//! The field of a key that a schema describes: a number, a text, a switch or a choice.

use leptos::prelude::*;
use serde_json::Value;

use super::field::{Number, NumberField, TextField, Wrong, id};
use super::form::Form;
use super::place::Place;
use super::settings::{Kind, Setting};

/// The field of a key that a schema describes.
#[component]
pub(super) fn SettingField(
    place: Place,
    setting: Setting,
    /// Whether its meaning stands below.
    #[prop(optional)]
    explained: bool,
) -> impl IntoView {
    let explanation = if explained {
        setting.explanation.clone()
    } else {
        String::new()
    };
    let key = setting.key.clone();
    match setting.kind.clone() {
        Kind::Whole | Kind::Number => {
            let number = number(place, &setting);
            view! { <NumberField number explanation/> }.into_any()
        }
        Kind::Text => {
            let (read, write, needed) = (key.clone(), key.clone(), setting.needed);
            view! {
                <TextField
                    key=place.path(&key)
                    label=place.label(&key)
                    explanation
                    code=true
                    read=move |study| place.text(study, &read)
                    write=move |study, text| {
                        let value = (needed || !text.is_empty()).then(|| Value::String(text));
                        place.set(study, &write, value);
                    }
                />
            }
            .into_any()
        }
        Kind::Flag => view! { <FlagField place setting explanation/> }.into_any(),
        Kind::Choice(words) => view! { <ChoiceField place setting words explanation/> }.into_any(),
    }
}

/// The number of a key that a schema describes.
pub(super) fn number(place: Place, setting: &Setting) -> Number {
    let (least, most) = setting.range;
    let number = Number::of(place, &setting.key, setting.kind == Kind::Whole)
        .at_least(least)
        .at_most(most);
    let number = match setting.unit.as_str() {
        "" => number,
        unit => number.in_unit(unit, 1.0),
    };
    if setting.needed {
        number
    } else {
        number.optional(&when_left_out(setting))
    }
}

#[component]
fn FlagField(place: Place, setting: Setting, explanation: String) -> impl IntoView {
    let form = expect_context::<Form>();
    let default = setting.default.as_ref().and_then(Value::as_bool);
    let key = setting.key.clone();
    let (read, write) = (key.clone(), key.clone());
    let checked = form.memo(move |study| {
        let value = place.table(study).and_then(|table| table.get(&read)?.as_bool());
        value.or(default).unwrap_or_default()
    });
    let change = move |event| {
        let value = Some(event_target_checked(&event).into());
        form.edit(|draft| place.set(&mut draft.study, &write, value));
    };
    let id = id(&place.path(&key));
    let note = format!("{id}-note");
    let labels = id.clone();
    view! {
        <div class="field">
            <label class="choice" for=labels>
                <input
                    id=id
                    type="checkbox"
                    aria-describedby=note.clone()
                    prop:checked=move || checked.get()
                    on:change=change
                />
                <span>{place.label(&key)}</span>
            </label>
            <span class="note" id=note>
                {explanation}
            </span>
        </div>
    }
}

#[component]
fn ChoiceField(
    place: Place,
    setting: Setting,
    words: Vec<(String, String)>,
    explanation: String,
) -> impl IntoView {
    let form = expect_context::<Form>();
    let key = setting.key.clone();
    let id = id(&place.path(&key));
    let default = setting
        .default
        .as_ref()
        .and_then(Value::as_str)
        .map(str::to_owned);
    let (read, write) = (key.clone(), key.clone());
    let otherwise = default.clone().unwrap_or_default();
    let value = form.memo(move |study| match place.text(study, &read) {
        text if text.is_empty() => otherwise.clone(),
        text => text,
    });
    let change = move |event| {
        let word = event_target_value(&event);
        let value = (!word.is_empty()).then(|| Value::String(word));
        form.edit(|draft| place.set(&mut draft.study, &write, value));
    };
    let meanings = words.clone();
    let meaning = move || {
        let word = value.get();
        let found = meanings.iter().find(|(name, _)| *name == word);
        found.map(|(_, meaning)| meaning.clone()).unwrap_or_default()
    };
    // Without a default there is the choice of not saying.
    let unsaid = (default.is_none() && !setting.needed).then(
        || view! { <option value="" prop:selected=move || value.with(String::is_empty)>"as it comes"</option> },
    );
    let options = words
        .into_iter()
        .map(|(word, _)| {
            let own = word.clone();
            let shown = match word.as_str() {
                "llm" => "A language model".to_owned(),
                _ => crate::format::label(&word.replace('-', " ")),
            };
            view! {
                <option value=word prop:selected=move || value.with(|value| *value == own)>
                    {shown}
                </option>
            }
        })
        .collect_view();
    let note = format!("{id}-note");
    view! {
        <div class="field">
            <label for=id.clone()>{place.label(&key)}</label>
            <select id=id aria-describedby=note.clone() on:change=change>
                {unsaid}
                {options}
            </select>
            <span class="note" id=note>
                {explanation} " " {meaning}
            </span>
            <Wrong key=place.path(&key)/>
        </div>
    }
}

/// What an empty field of a setting means.
pub(super) fn when_left_out(setting: &Setting) -> String {
    match &setting.default {
        _ if !setting.left_out.is_empty() => setting.left_out.clone(),
        Some(Value::Number(number)) => format!("{number} unless stated"),
        _ => "not set".into(),
    }
}
