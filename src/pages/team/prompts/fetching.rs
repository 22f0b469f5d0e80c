//! Commands by which a program fetches a prompt.

use capo_api::PRODUCTION;
use leptos::prelude::*;
use leptos_router::components::A;

use super::place::{Page, Place};
use crate::components::Copy;

/// The command that fetches the text by a label.
#[component]
pub(super) fn Fetching(page: Page) -> impl IntoView {
    let picked = RwSignal::new(None::<String>);
    let label = Memo::new(move |_| {
        let labels = page.labels();
        let is_there = |label: &String| labels.contains(label);
        let production = Some(PRODUCTION.to_owned()).filter(is_there);
        picked
            .get()
            .filter(is_there)
            .or(production)
            .or_else(|| labels.first().cloned())
    });
    let host = window().location().origin().unwrap_or_default();
    let line = Memo::new(move |_| label.with(|label| command(&host, &page.place(), label.as_deref())));
    let option = move |name: String| {
        let value = name.clone();
        let is_picked = move || label.with(|label| label.as_ref() == Some(&name));
        view! { <option value=value.clone() prop:selected=is_picked>{value.clone()}</option> }
    };
    let choice = move || {
        let labels = page.labels();
        if labels.is_empty() {
            return view! { <span class="note">"the newest version, as no label is there"</span> }.into_any();
        }
        view! {
            <label class="row tight note">
                "by the label "
                <select class="auto" on:change=move |event| picked.set(Some(event_target_value(&event)))>
                    {labels.into_iter().map(option).collect_view()}
                </select>
            </label>
        }
        .into_any()
    };
    view! {
        <section class="plate" aria-labelledby="fetching">
            <header>
                <h2 class="pt" id="fetching">"How a program fetches it"</h2>
                {choice}
            </header>
            <pre class="code" tabindex="0">{move || line.get()}</pre>
            <div class="row">
                <Copy
                    text=Signal::derive(move || Some(line.get()))
                    words="Copy"
                    spoken="The command is on the clipboard."
                    otherwise="Select the command."
                />
                <span class="note">
                    "CAPO_TOKEN holds a token that reads, made under " <A href="/team/account">"Account"</A> "."
                </span>
            </div>
        </section>
    }
}

/// Names need no quoting: they are letters, digits and dashes.
fn command(host: &str, place: &Place, label: Option<&str>) -> String {
    let Place { project, prompt } = place;
    let query = label.map_or_else(String::new, |label| format!("?label={label}"));
    format!(
        "curl -sS -H \"Authorization: Bearer $CAPO_TOKEN\" -H \"Accept: text/plain\" \\\n  \
         \"{host}/api/projects/{project}/prompts/{prompt}{query}\""
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_names_the_variable_of_the_token_and_the_label() {
        let place = Place {
            project: "desk".into(),
            prompt: "greeting".into(),
        };
        let command = command("https://capo.example.org", &place, Some("production"));
        assert!(command.contains("Bearer $CAPO_TOKEN"));
        assert!(
            command.ends_with(
                "\"https://capo.example.org/api/projects/desk/prompts/greeting?label=production\""
            )
        );
    }
}
