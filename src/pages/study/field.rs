//! Fields: a label, a place to type, what it means, and what is wrong beside it.

use std::sync::Arc;

use capo_core::study::Study;
use leptos::prelude::*;

use super::draft::{DOLLARS, Draft, Mistyped};
use super::form::Form;
use super::place::{self, Place};
use crate::components::FieldError;
use crate::format::typed;

type Read<T> = Arc<dyn Fn(&Study) -> T + Send + Sync>;
type Write<T> = Arc<dyn Fn(&mut Study, T) + Send + Sync>;

/// A number of a study as a field shows it.
#[derive(Clone)]
pub(super) struct Number {
    /// The key's dotted path.
    key: String,
    /// What it is called.
    label: String,
    /// What stands behind the field.
    unit: String,
    /// What one in the study is on screen, such as 100 for percent.
    scale: f64,
    /// Whether only whole numbers make sense.
    whole: bool,
    /// What an empty field means; a number is needed where it means nothing.
    blank: Option<String>,
    /// The least and the most it may be, as shown.
    range: (f64, f64),
    read: Read<Option<f64>>,
    write: Write<Option<f64>>,
}

impl Number {
    /// A number that must be there.
    pub(super) fn new(
        key: &str,
        label: &str,
        read: impl Fn(&Study) -> Option<f64> + Send + Sync + 'static,
        write: impl Fn(&mut Study, Option<f64>) + Send + Sync + 'static,
    ) -> Self {
        Self {
            key: key.to_owned(),
            label: label.to_owned(),
            unit: String::new(),
            scale: 1.0,
            whole: false,
            blank: None,
            range: (f64::NEG_INFINITY, f64::INFINITY),
            read: Arc::new(read),
            write: Arc::new(write),
        }
    }

    /// A number of a table that a schema describes.
    pub(super) fn of(place: Place, key: &str, whole: bool) -> Self {
        let (read, write) = (key.to_owned(), key.to_owned());
        Self {
            whole,
            ..Self::new(
                &place.path(key),
                &place.label(key),
                move |study| place.table(study)?.get(&read)?.as_f64(),
                move |study, value| {
                    place.set(study, &write, value.map(|value| place::number(value, whole)));
                },
            )
        }
    }

    /// Under another name than its key's.
    pub(super) fn called(mut self, label: &str) -> Self {
        label.clone_into(&mut self.label);
        self
    }

    /// With a unit behind it, and what one in the study is in that unit.
    pub(super) fn in_unit(mut self, unit: &str, scale: f64) -> Self {
        unit.clone_into(&mut self.unit);
        self.scale = scale;
        self
    }

    /// Counted in whole numbers.
    pub(super) fn counted(mut self) -> Self {
        self.whole = true;
        self
    }

    /// At least so much, as shown.
    pub(super) fn at_least(mut self, least: f64) -> Self {
        self.range.0 = least;
        self
    }

    /// At most so much, as shown.
    pub(super) fn at_most(mut self, most: f64) -> Self {
        self.range.1 = most;
        self
    }

    /// May be left out, which means `blank`.
    pub(super) fn optional(mut self, blank: &str) -> Self {
        self.blank = Some(blank.to_owned());
        self
    }

    /// What stands in the field: what was typed and is to be mended, else the study's number.
    fn shown(&self, draft: &Draft) -> String {
        if let Some(mistyped) = draft.wrong.get(&self.key) {
            return mistyped.text.clone();
        }
        let shown = (self.read)(&draft.study).map(|value| value * self.scale);
        typed::text(shown, self.whole && self.scale == 1.0)
    }

    /// What was typed, as the study has it.
    fn parse(&self, text: &str) -> Result<Option<f64>, String> {
        let value = if self.whole {
            typed::whole(text)
        } else {
            typed::number(text)
        }?;
        if value.is_none() && self.blank.is_none() {
            return Err("Write a number.".into());
        }
        let (least, most) = self.range;
        match value {
            Some(value) if value < least => Err(format!("Write a number of {least} or more.")),
            Some(value) if value > most => Err(format!("Write a number of {most} or less.")),
            value => Ok(value.map(|value| value / self.scale)),
        }
    }
}

/// An element's id made of a key.
pub(super) fn id(key: &str) -> String {
    let plain = |letter: char| if letter.is_alphanumeric() { letter } else { '-' };
    format!("f-{}", key.chars().map(plain).collect::<String>())
}

/// What is wrong with a key, beside its field.
#[component]
pub(super) fn Wrong(
    /// The key's dotted path.
    #[prop(into)]
    key: String,
) -> impl IntoView {
    let id = format!("{}-error", id(&key));
    let problem = expect_context::<Form>().problem(key);
    view! { <FieldError id wrong=problem/> }
}

/// A number, with its label unless it stands in a table.
#[component]
pub(super) fn NumberField(
    number: Number,
    /// What it means.
    #[prop(optional, into)]
    explanation: String,
    /// Whether the label is only read out.
    #[prop(optional)]
    in_table: bool,
    /// What stands before the field.
    #[prop(optional)]
    before: &'static str,
    /// Whether nothing can be typed yet.
    #[prop(optional)]
    disabled: bool,
) -> impl IntoView {
    let form = expect_context::<Form>();
    let problem = form.problem(number.key.clone());
    let id = id(&number.key);
    let describe = described(&id, !explanation.is_empty());
    let (unit, label, key) = (number.unit.clone(), number.label.clone(), number.key.clone());
    let blank = number.blank.clone();
    let number = StoredValue::new(number);
    let stands = move || {
        form.draft
            .with_untracked(|draft| number.with_value(|number| number.shown(draft)))
    };
    let text = RwSignal::new(stands());
    Effect::new(move |_| {
        form.renewed.track();
        text.set(stands());
    });
    let input = move |event| {
        let typed = event_target_value(&event);
        text.set(typed.clone());
        let number = number.get_value();
        let parsed = number.parse(&typed);
        form.edit(|draft| {
            draft.has_usual_limit &= number.key != DOLLARS;
            match parsed {
                Ok(value) => {
                    draft.wrong.remove(&number.key);
                    (number.write)(&mut draft.study, value);
                }
                Err(message) => {
                    let text = typed.clone();
                    draft.wrong.insert(number.key.clone(), Mistyped { text, message });
                }
            }
        });
    };
    // Written out once the field is left, unless what was typed is to be mended.
    let change = move |_| {
        let typed = text.get_untracked();
        if number.with_value(|number| number.parse(&typed)).is_ok() {
            text.set(stands());
        }
        form.bound_dollars();
    };
    let when_blank = move || {
        let note = blank.clone().filter(|note| !note.is_empty())?;
        text.with(|text| text.trim().is_empty())
            .then(|| view! { <span class="note">{note}</span> })
    };
    let labelled = (!in_table).then(|| view! { <label for=id.clone()>{label.clone()}</label> });
    let explained = explanation_view(&id, explanation);
    view! {
        <div class="field">
            {labelled} <div class="with-unit">
                {(!before.is_empty()).then(|| view! { <span aria-hidden="true">{before}</span> })}
                <input
                    id=id
                    class="num"
                    class:short=in_table
                    type="text"
                    inputmode="decimal"
                    autocomplete="off"
                    aria-label=in_table.then_some(label)
                    disabled=disabled
                    aria-invalid=move || problem.with(Option::is_some).then_some("true")
                    aria-describedby=move || describe(problem.with(Option::is_some))
                    prop:value=move || text.get()
                    on:input=input
                    on:change=change
                />
                {(!unit.is_empty()).then(|| view! { <span>{unit}</span> })}
            </div> {when_blank} {explained} <Wrong key/>
        </div>
    }
}

/// A text of a study, on one line or several.
#[component]
pub(super) fn TextField(
    /// The key's dotted path.
    #[prop(into)]
    key: String,
    /// What it is called.
    #[prop(into)]
    label: String,
    read: impl Fn(&Study) -> String + Send + Sync + 'static,
    write: impl Fn(&mut Study, String) + 'static,
    /// What it means.
    #[prop(optional, into)]
    explanation: String,
    /// Lines shown; a field of one line otherwise.
    #[prop(optional)]
    lines: Option<u8>,
    /// Whether the text is code.
    #[prop(optional)]
    code: bool,
    /// An example of what to type.
    #[prop(optional)]
    placeholder: &'static str,
) -> impl IntoView {
    let form = expect_context::<Form>();
    let problem = form.problem(key.clone());
    let id = id(&key);
    let describe = described(&id, !explanation.is_empty());
    let value = form.memo(read);
    let input = move |event| form.edit(|draft| write(&mut draft.study, event_target_value(&event)));
    let invalid = move || problem.with(Option::is_some).then_some("true");
    let describedby = move || describe(problem.with(Option::is_some));
    let labelled = view! { <label for=id.clone()>{label}</label> };
    let explained = explanation_view(&id, explanation);
    let field = match lines {
        Some(rows) => view! {
            <textarea
                id=id
                rows=rows.to_string()
                class:code=code
                placeholder=placeholder
                aria-invalid=invalid
                aria-describedby=describedby
                prop:value=move || value.get()
                on:input=input
            ></textarea>
        }
        .into_any(),
        None => view! {
            <input
                id=id
                type="text"
                autocomplete="off"
                class:code=code
                placeholder=placeholder
                aria-invalid=invalid
                aria-describedby=describedby
                prop:value=move || value.get()
                on:input=input
            />
        }
        .into_any(),
    };
    view! { <div class="field">{labelled} {field} {explained} <Wrong key/></div> }
}

fn explanation_view(id: &str, explanation: String) -> Option<impl IntoView + use<>> {
    let id = format!("{id}-note");
    (!explanation.is_empty()).then(|| {
        view! {
            <span class="note" id=id>
                {explanation}
            </span>
        }
    })
}

/// The ids of what describes a field: its explanation, and what is wrong with it.
fn described(id: &str, explained: bool) -> impl Fn(bool) -> Option<String> + Clone + use<> {
    let (note, error) = (format!("{id}-note"), format!("{id}-error"));
    move |wrong| {
        let ids: Vec<&str> = [
            explained.then_some(note.as_str()),
            wrong.then_some(error.as_str()),
        ]
        .into_iter()
        .flatten()
        .collect();
        (!ids.is_empty()).then(|| ids.join(" "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_mistyped_stands_until_it_is_mended() {
        let mut draft = Draft::new().unwrap();
        let number = Number::of(Place::Method, "parents", true);
        assert_eq!(number.shown(&draft), "4");
        let mistyped = Mistyped {
            text: "4x".into(),
            message: number.parse("4x").unwrap_err(),
        };
        draft.wrong.insert(number.key.clone(), mistyped);
        assert_eq!(number.shown(&draft), "4x");
        draft.forget_wrong("method.");
        assert_eq!(number.shown(&draft), "4");
    }
}
