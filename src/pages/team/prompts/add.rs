//! A version that is typed.

use capo_api::{NewVersion, VersionShown};
use leptos::prelude::*;
use leptos_router::NavigateOptions;
use leptos_router::hooks::use_navigate;

use super::place::Page;
use crate::pages::team::form::{Field, Form, Line, TextField, noted};
use crate::team::{Asking, Server};

/// Adds a text that no run speaks for.
#[component]
pub(super) fn AddVersion(page: Page) -> impl IntoView {
    let asking = Asking::default();
    let navigate = use_navigate();
    let (text, note) = (Line::default(), Line::default());
    let submit = move || {
        let (Some(typed), Some(noted)) = (text.read(filled), note.read(noted)) else {
            return;
        };
        let (place, navigate) = (page.place(), navigate.clone());
        let (project, prompt) = (place.project.clone(), place.prompt.clone());
        let new = NewVersion::Text {
            text: typed,
            note: noted,
        };
        let request = async move |server: Server| server.add_prompt_version(&project, &prompt, &new).await;
        asking.send(request, move |added: VersionShown| {
            text.clear();
            note.clear();
            navigate(&place.version(added.version), NavigateOptions::default());
        });
    };
    view! {
        <section class="plate" aria-labelledby="add-version">
            <header>
                <h2 class="pt" id="add-version">"Type a version"</h2>
            </header>
            <Form asking words=("Add the version", "Adding it…") submit>
                <TextField
                    id="version-text"
                    label="Text"
                    line=text
                    note="No run speaks for what is typed: it stands there without evidence."
                />
                <Field id="version-note" label="Note" line=note note="One line on it, or nothing."/>
            </Form>
        </section>
    }
}

fn filled(text: &str) -> Result<String, String> {
    if text.trim().is_empty() {
        Err("Type the prompt.".into())
    } else {
        Ok(text.to_owned())
    }
}
