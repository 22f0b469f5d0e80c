//! The form of a key.

use std::sync::LazyLock;

use capo_api::{KeyChange, KeySettings, KeyShown, NewKey, ProjectName};
use leptos::prelude::*;

use super::super::form::{Field, Form, Line, Pick, TextField, named};
use super::written;
use crate::team::{Asking, Server};

/// The id of the first field that a changed key has.
pub(super) const FIRST: &str = "key-provider";

/// Names of providers that take keys.
static PROVIDERS: LazyLock<Vec<&'static str>> =
    LazyLock::new(|| written::providers().map(|provider| provider.name).collect());

fn title(provider: &'static str) -> &'static str {
    written::title(provider)
}

/// What is written of a key.
#[derive(Clone, Copy)]
struct Fields {
    name: Line,
    provider: RwSignal<&'static str>,
    base_url: Line,
    private_host: RwSignal<bool>,
    projects: Line,
    models: Line,
    secret: Line,
}

impl Fields {
    /// Of a new key, or of one as it is.
    fn of(before: Option<&KeySettings>) -> Self {
        let provider = before.map_or(PROVIDERS.first(), |settings| {
            PROVIDERS.iter().find(|name| **name == settings.provider.as_str())
        });
        let fields = Self {
            name: Line::default(),
            provider: RwSignal::new(provider.copied().unwrap_or_default()),
            base_url: Line::default(),
            private_host: RwSignal::new(before.is_some_and(|settings| settings.private_host)),
            projects: Line::default(),
            models: Line::default(),
            secret: Line::default(),
        };
        if let Some(settings) = before {
            fields
                .base_url
                .text
                .set(settings.base_url.clone().unwrap_or_default());
            fields.projects.text.set(settings.projects.join(", "));
            fields.models.text.set(written::models_text(&settings.models));
        }
        fields
    }

    fn settings(self) -> Option<KeySettings> {
        let provider = self.provider.get_untracked();
        // All are read, so that all say what is wrong with them.
        let base_url = self.base_url.read(|text| written::base_url(provider, text));
        let projects = self.projects.read(written::projects);
        let models = self.models.read(written::models);
        Some(KeySettings {
            provider: provider.to_owned(),
            base_url: base_url?,
            private_host: self.private_host.get_untracked(),
            projects: projects?,
            models: models?,
        })
    }

    /// The key that was typed, which does not stay in its field; empty where none was.
    fn take_secret(self, wanted: Option<&'static str>) -> Option<String> {
        let typed = self.secret.read(|text| written::secret(text, wanted))?;
        self.secret.clear();
        Some(typed)
    }
}

/// Adds a key, or changes one.
#[component]
pub(super) fn KeyForm(
    /// The key as it is, if it is to be changed.
    before: Option<KeyShown>,
    /// It was changed, or stays as it is.
    done: Callback<()>,
) -> impl IntoView {
    let asking = Asking::default();
    let fields = Fields::of(before.as_ref().map(|key| &key.settings));
    match before {
        None => view! {
            <Form asking words=("Add the key", "Adding it…") submit=move || add(asking, fields)>
                <Field id="key-name" label="Name in addresses" line=fields.name note="2 to 64 small letters (a to z), digits or -. It stays."/>
                <SettingFields fields/>
                <SecretField fields note="It is encrypted, and never shown again."/>
            </Form>
        }
        .into_any(),
        Some(key) => view! {
            <Form asking words=("Change the key", "Changing it…") submit=move || change(asking, fields, &key, done)>
                <SettingFields fields/>
                <SecretField fields note="Only if it is replaced, or sent to another place from now on."/>
                <div>
                    <button type="button" class="link" on:click=move |_| done.run(())>
                        "Leave it as it is"
                    </button>
                </div>
            </Form>
        }
        .into_any(),
    }
}

fn add(asking: Asking, fields: Fields) {
    let (name, settings) = (fields.name.read(named::<ProjectName>), fields.settings());
    let (Some(name), Some(settings)) = (name, settings) else {
        return;
    };
    let Some(secret) = fields.take_secret(Some("Type or paste the provider’s key.")) else {
        return;
    };
    let new = NewKey {
        name,
        settings,
        secret,
    };
    let request = async move |server: Server| server.add_key(&new).await;
    asking.send(request, move |()| {
        for line in [fields.name, fields.base_url, fields.projects, fields.models] {
            line.clear();
        }
        fields.private_host.set(false);
    });
}

fn change(asking: Asking, fields: Fields, before: &KeyShown, done: Callback<()>) {
    let Some(settings) = fields.settings() else { return };
    let elsewhere = "It is sent to another place from now on: type the key for that place.";
    let wanted = is_elsewhere(&before.settings, &settings).then_some(elsewhere);
    let Some(secret) = fields.take_secret(wanted) else {
        return;
    };
    let secret = Some(secret).filter(|secret| !secret.is_empty());
    let (name, change) = (before.name.clone(), KeyChange { settings, secret });
    let request = async move |server: Server| server.change_key(&name, &change).await;
    asking.send(request, move |()| done.run(()));
}

/// Whether the key would be sent to another place than it was given for.
fn is_elsewhere(before: &KeySettings, after: &KeySettings) -> bool {
    (&before.provider, &before.base_url) != (&after.provider, &after.base_url)
}

#[component]
fn SettingFields(fields: Fields) -> impl IntoView {
    let pick = move |provider| fields.provider.set(provider);
    let private = move |event| fields.private_host.set(event_target_checked(&event));
    let warning = "The server then connects to hosts in its own network, also without encryption. Tick it only for a \
                   host that you run yourself.";
    let models_note = "One a line: a name, or the beginning of names with * at its end. Behind it, where no table knows \
                       its price, dollars per million tokens read and written, as gpt-5-mini 0.25 2.";
    view! {
        <Pick label="Provider" id=FIRST all=&PROVIDERS means=title picked=fields.provider pick/>
        <Field id="key-base-url" label="Base URL" line=fields.base_url note="Empty: the provider’s own."/>
        <div>
            <label class="choice">
                <input
                    type="checkbox"
                    aria-describedby="key-private-about"
                    prop:checked=move || fields.private_host.get()
                    on:change=private
                />
                <span>"A private host"</span>
            </label>
            <span class="note" id="key-private-about">{warning}</span>
        </div>
        <Field id="key-projects" label="Projects" line=fields.projects note="Their names in addresses, parted by commas."/>
        <TextField id="key-models" label="Models" line=fields.models rows=4 note=models_note/>
    }
}

#[component]
fn SecretField(fields: Fields, note: &'static str) -> impl IntoView {
    // Else browsers fill in what one signs in with.
    let autocomplete = "new-password";
    view! { <Field id="key-secret" label="The provider’s key" line=fields.secret kind="password" autocomplete note/> }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_asked_for_anew_where_it_is_sent_elsewhere() {
        let before = KeySettings {
            provider: "openai".into(),
            base_url: None,
            private_host: false,
            projects: Vec::new(),
            models: Vec::new(),
        };
        let mut after = before.clone();
        after.projects.push("help-desk".into());
        assert!(!is_elsewhere(&before, &after));
        after.base_url = Some("https://elsewhere.example/v1".into());
        assert!(is_elsewhere(&before, &after));
    }
}
