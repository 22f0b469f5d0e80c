//! Forms: fields, what is wrong beside them, and what the server says.

use capo_api::{NameError, Title};
use leptos::ev::SubmitEvent;
use leptos::html;
use leptos::prelude::*;
use wasm_bindgen::JsCast;
use web_sys::HtmlElement;

use crate::components::{FieldError, Message};
use crate::team::{Asking, sentence};

/// Characters of a password, at least. The server has more to say about it.
const LEAST: usize = 10;

/// What is typed into a field, and why it does not do.
#[derive(Clone, Copy, Default)]
pub(super) struct Line {
    pub(super) text: RwSignal<String>,
    wrong: RwSignal<Option<String>>,
}

impl Line {
    /// What was typed stands for, unless it does not do: then that stands beside the field.
    pub(super) fn read<T>(self, parse: impl FnOnce(&str) -> Result<T, String>) -> Option<T> {
        let parsed = self.text.with_untracked(|text| parse(text));
        self.wrong.set(parsed.as_ref().err().cloned());
        parsed.ok()
    }

    /// Empties the field.
    pub(super) fn clear(self) {
        self.type_in(String::new());
    }

    fn type_in(self, text: String) {
        self.text.set(text);
        self.wrong.set(None);
    }
}

/// A note that may be left out.
pub(super) fn noted(text: &str) -> Result<Option<Title>, String> {
    match text.trim() {
        "" => Ok(None),
        _ => named(text).map(Some),
    }
}

/// A name or title as the server takes it.
pub(super) fn named<T: TryFrom<String, Error = NameError>>(text: &str) -> Result<T, String> {
    T::try_from(text.to_owned()).map_err(|error| sentence(&error))
}

/// A password that one has.
pub(super) fn password(text: &str) -> Result<String, String> {
    if text.is_empty() {
        Err("Type the password.".into())
    } else {
        Ok(text.to_owned())
    }
}

/// A new password, typed twice.
#[derive(Clone, Copy, Default)]
pub(super) struct NewPassword {
    first: Line,
    again: Line,
}

impl NewPassword {
    /// The password, if it does.
    pub(super) fn read(self) -> Option<String> {
        let password = self.first.read(new_password);
        let first = self.first.text.get_untracked();
        let again = self.again.read(|again| the_same(&first, again));
        again.and(password)
    }

    /// Empties both fields.
    pub(super) fn clear(self) {
        self.first.clear();
        self.again.clear();
    }
}

fn new_password(text: &str) -> Result<String, String> {
    if text.chars().count() < LEAST {
        Err(format!(
            "Use at least {LEAST} characters; several words are best."
        ))
    } else {
        Ok(text.to_owned())
    }
}

fn the_same(first: &str, again: &str) -> Result<(), String> {
    if first == again {
        Ok(())
    } else {
        Err("Type the same password twice.".into())
    }
}

/// A field of one line.
#[component]
pub(super) fn Field(
    id: &'static str,
    label: &'static str,
    line: Line,
    #[prop(default = "text")] kind: &'static str,
    /// What the browser may fill in.
    #[prop(default = "off")]
    autocomplete: &'static str,
    /// What does.
    #[prop(optional)]
    note: &'static str,
    /// What may be chosen as well as typed.
    #[prop(optional)]
    choices: Option<Signal<Vec<String>>>,
) -> impl IntoView {
    let about = format!("{id}-about");
    let list = format!("{id}-choices");
    let option = |choice: String| view! { <option value=choice></option> };
    let datalist = choices.map(|choices| {
        let options = move || choices.get().into_iter().map(option).collect_view();
        view! { <datalist id=list.clone()>{options}</datalist> }
    });
    let input = move |event| line.type_in(event_target_value(&event));
    view! {
        <div class="field narrow">
            <label for=id>{label}</label>
            <input
                id=id
                type=kind
                list=choices.is_some().then_some(list)
                autocomplete=autocomplete
                autocapitalize="none"
                spellcheck="false"
                aria-invalid=move || line.wrong.with(Option::is_some).then_some("true")
                aria-describedby=about.clone()
                prop:value=move || line.text.get()
                on:input=input
            />
            {datalist}
            <div id=about>
                <span class="note">{note}</span>
                <FieldError wrong=line.wrong/>
            </div>
        </div>
    }
}

/// A field of many lines.
#[component]
pub(super) fn TextField(
    id: &'static str,
    label: &'static str,
    line: Line,
    /// What does.
    note: &'static str,
    /// Lines that it shows at a time.
    #[prop(default = 8)]
    rows: u8,
) -> impl IntoView {
    let about = format!("{id}-about");
    view! {
        <div class="field">
            <label for=id>{label}</label>
            <textarea
                id=id
                rows=rows
                aria-invalid=move || line.wrong.with(Option::is_some).then_some("true")
                aria-describedby=about.clone()
                prop:value=move || line.text.get()
                on:input=move |event| line.type_in(event_target_value(&event))
            ></textarea>
            <div id=about>
                <span class="note">{note}</span>
                <FieldError wrong=line.wrong/>
            </div>
        </div>
    }
}

/// The fields of a new password.
#[component]
pub(super) fn NewPasswordFields(password: NewPassword) -> impl IntoView {
    let note = "At least 10 characters, and none that others guess; several words are best.";
    let (kind, autocomplete) = ("password", "new-password");
    view! {
        <Field id="new-password" label="New password" line=password.first kind autocomplete note/>
        <Field id="new-password-again" label="The same once more" line=password.again kind autocomplete/>
    }
}

/// One of a few, each in words of its own.
#[component]
pub(super) fn Pick<T: Copy + PartialEq + Send + Sync + 'static>(
    /// Its name, shown only where there is an id to lead to.
    #[prop(into)]
    label: String,
    #[prop(optional)] id: Option<&'static str>,
    all: &'static [T],
    means: fn(T) -> &'static str,
    #[prop(into)] picked: Signal<T>,
    #[prop(into)] pick: Callback<T>,
) -> impl IntoView {
    let change = move |event| {
        let place = event_target_value(&event).parse::<usize>().ok();
        if let Some(chosen) = place.and_then(|place| all.get(place)) {
            pick.run(*chosen);
        }
    };
    let option = move |(place, one): (usize, &'static T)| {
        let is_picked = move || picked.get() == *one;
        view! { <option value=place.to_string() prop:selected=is_picked>{means(*one)}</option> }
    };
    let labelled = id.map(|id| view! { <label for=id>{label.clone()}</label> });
    view! {
        <div class="field narrow">
            {labelled}
            <select id=id aria-label=id.is_none().then_some(label) on:change=change>
                {all.iter().enumerate().map(option).collect_view()}
            </select>
        </div>
    }
}

/// Fields, what the server refused, and the button that sends them; with a way out it answers a question in a dialog.
#[component]
pub(super) fn Form(
    asking: Asking,
    /// What the button says, and what while the server is asked.
    words: (&'static str, &'static str),
    /// Whether it is what the page is for.
    #[prop(optional)]
    primary: bool,
    /// The safe answer.
    #[prop(optional)]
    keep: Option<Callback<()>>,
    /// Reads the fields and asks the server.
    submit: impl Fn() + 'static,
    children: Children,
) -> impl IntoView {
    let form = NodeRef::<html::Form>::new();
    let focus_wrong = move || {
        let form = form.try_get_untracked().flatten();
        let wrong = form.and_then(|form| form.query_selector("[aria-invalid=true]").ok().flatten());
        if let Some(wrong) = wrong.and_then(|wrong| wrong.dyn_into::<HtmlElement>().ok()) {
            // What is in the page takes the focus.
            let _ = wrong.focus();
        }
    };
    let go = move |event: SubmitEvent| {
        event.prevent_default();
        submit();
        // Once the fields say what is wrong.
        request_animation_frame(focus_wrong);
    };
    let button = view! {
        <button
            type="submit"
            class:primary=primary
            class:danger=keep.is_some()
            aria-disabled=move || asking.disabled()
        >
            {move || if asking.disabled().is_some() { words.1 } else { words.0 }}
        </button>
    };
    let buttons = match keep {
        Some(keep) => view! {
            <footer>
                <button type="button" on:click=move |_| keep.run(())>
                    "Keep"
                </button>
                {button}
            </footer>
        }
        .into_any(),
        None => view! { <div class="row">{button}</div> }.into_any(),
    };
    view! {
        <form class="stack close" node_ref=form novalidate on:submit=go>
            {children()}
            <Refused asking/>
            {buttons}
        </form>
    }
}

/// Why the server refused.
#[component]
pub(super) fn Refused(asking: Asking) -> impl IntoView {
    move || asking.refused.get().map(|what| view! { <Message what/> })
}

#[cfg(test)]
mod tests {
    use capo_api::{MemberName, ProjectName};

    use super::*;

    #[test]
    fn what_does_not_do_says_so_in_a_sentence() {
        assert!(named::<MemberName>("Ada").is_ok());
        let wrong = named::<ProjectName>("Help desk").unwrap_err();
        assert!(
            wrong.starts_with("A project's name has 2 to 64 ") && wrong.ends_with('.'),
            "{wrong}"
        );
        assert!(password("").is_err());
    }

    #[test]
    fn a_new_password_is_long_and_typed_twice() {
        assert!(new_password("ninechars").unwrap_err().contains("10 characters"));
        assert!(new_password("zehn Enten").is_ok());
        assert!(the_same("zehn Enten", "zehn Ente").is_err() && the_same("a", "a").is_ok());
    }
}
