//! Keys that a study sends, and where: a key goes to the server that it was typed for, and to no
//! other.

use capo_core::llm::Role;
use capo_core::study::Study;
use capo_models::providers::{Key, PROVIDERS};
use capo_models::{HeaderText, ModelSpec, ProviderName};
use serde_json::Value;

use crate::keys::{Destination, Keys};
use crate::servers;
use crate::shared_keys;

/// Where a model's table sends keys: its own key, unless it is asked with a shared one, then those of its headers.
pub fn destinations(table: &Value) -> Vec<Destination> {
    let (Ok(spec), Some(origin)) = (ModelSpec::read(table), servers::of_model(table)) else {
        return Vec::new();
    };
    let own = spec.api_key_env.as_deref();
    let own = own.or(usual_variable(spec.provider.get().key));
    let own = own.filter(|_| shared_keys::of_table(table).is_none());
    let of_headers = spec.headers.values().filter_map(|header| match header {
        HeaderText::Variable(variable) => Some(variable.env.as_str()),
        HeaderText::Text(_) => None,
    });
    let sent = own.into_iter().chain(of_headers).map(|variable| Destination {
        variable: variable.to_owned(),
        origin: origin.clone(),
    });
    sent.collect()
}

/// Where a role's key goes, whether or not its table says so; nowhere before its server has an address, or where it is
/// asked with a shared key.
pub fn destination(role: Role, table: &Value) -> Option<Destination> {
    if shared_keys::of_table(table).is_some() {
        return None;
    }
    let provider = ProviderName::find(table["provider"].as_str()?)?.get();
    let named = table["api_key_env"].as_str().or(usual_variable(provider.key));
    Some(Destination {
        // A server of somebody's own has no usual variable: its key belongs to the role.
        variable: named.map_or_else(
            || format!("{}_SERVER_KEY", role.name().to_uppercase()),
            str::to_owned,
        ),
        origin: servers::of_model(table)?,
    })
}

/// Names the variable of a key in the tables that send it there and say nothing of one.
pub fn name_variable(study: &mut Study, to: &Destination) {
    for (role, table) in &mut study.models {
        if destinations(table).is_empty()
            && destination(*role, table).as_ref() == Some(to)
            && let Some(table) = table.as_object_mut()
        {
            table.insert("api_key_env".into(), to.variable.clone().into());
        }
    }
}

/// The variable a provider's keys are in, unless a study says otherwise.
pub fn usual_variable(key: Key) -> Option<&'static str> {
    match key {
        Key::Required(variable) | Key::Optional(variable) => Some(variable),
        Key::None => None,
    }
}

/// Where the keys of a variable go unless a study says otherwise, and the name of the provider there.
pub fn home(variable: &str) -> Option<(Destination, &'static str)> {
    let provider = PROVIDERS
        .iter()
        .find(|provider| usual_variable(provider.key) == Some(variable))?;
    let home = Destination {
        variable: variable.to_owned(),
        origin: servers::origin(provider.base_url?)?,
    };
    Some((home, provider.title))
}

/// Of the keys in this tab those that were typed for where a study sends them.
pub fn allowed(study: &Study, keys: &Keys) -> Keys {
    let sent: Vec<Destination> = study.asked_models().flat_map(destinations).collect();
    keys.only(&sent)
}

/// Like [`allowed`], for one model's table.
pub fn allowed_for(table: &Value, keys: &Keys) -> Keys {
    keys.only(&destinations(table))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn study(agent: Value) -> Study {
        let mut study = crate::studies::help_desk().unwrap();
        study.models.insert(Role::Agent, agent);
        study
    }

    fn openai() -> Value {
        json!({ "provider": "openai", "model": "gpt-5-mini" })
    }

    fn proxy() -> Value {
        json!({ "provider": "openai", "model": "m", "base_url": "https://proxy.example/v1" })
    }

    /// Types a key beside a model's table.
    fn typed(keys: &mut Keys, table: &Value, key: &str) {
        keys.set(destinations(table).swap_remove(0), key);
    }

    fn sent(table: &Value, keys: &Keys) -> Vec<String> {
        let allowed = allowed(&study(table.clone()), keys);
        assert_eq!(allowed, allowed_for(table, keys));
        let sent = allowed.destinations().filter_map(|to| allowed.of(to));
        sent.map(str::to_owned).collect()
    }

    #[test]
    fn a_key_goes_to_its_own_provider_and_no_other_key_goes_along() {
        let mut keys = Keys::new();
        typed(&mut keys, &openai(), "sk-1");
        typed(&mut keys, &json!({ "provider": "mistral", "model": "m" }), "m-1");
        assert_eq!(sent(&openai(), &keys), ["sk-1"]);
    }

    #[test]
    fn a_key_typed_for_a_proxy_does_not_go_to_the_provider() {
        let mut keys = Keys::new();
        typed(&mut keys, &proxy(), "proxy-1");
        assert_eq!(sent(&proxy(), &keys), ["proxy-1"]);
        assert!(sent(&openai(), &keys).is_empty());
    }

    #[test]
    fn a_key_typed_for_the_provider_does_not_go_to_a_proxy_that_had_one_before() {
        let mut keys = Keys::new();
        typed(&mut keys, &proxy(), "proxy-1");
        typed(&mut keys, &openai(), "sk-1");
        assert_eq!(sent(&proxy(), &keys), ["proxy-1"]);
        assert_eq!(sent(&openai(), &keys), ["sk-1"]);
    }

    #[test]
    fn a_key_does_not_go_out_unencrypted_to_the_host_it_was_typed_for() {
        let mut keys = Keys::new();
        typed(&mut keys, &openai(), "sk-1");
        for address in ["http://api.openai.com/v1", "https://api.openai.com:8443/v1"] {
            let table = json!({ "provider": "openai", "model": "m", "base_url": address });
            assert!(sent(&table, &keys).is_empty(), "{address}");
        }
        let spelled =
            json!({ "provider": "openai", "model": "m", "base_url": "https://API.openai.com:443/v2" });
        assert_eq!(sent(&spelled, &keys), ["sk-1"]);
    }

    #[test]
    fn a_study_cannot_send_a_key_elsewhere() {
        let mut keys = Keys::new();
        typed(&mut keys, &openai(), "sk-1");
        for agent in [
            proxy(),
            json!({ "provider": "openai", "model": "m", "base_url": "https://api.openai.com@elsewhere.example" }),
            json!({ "provider": "mistral", "model": "m", "api_key_env": "OPENAI_API_KEY" }),
            json!({
                "provider": "openai-compatible", "model": "m", "base_url": "https://elsewhere.example",
                "api_key_env": "OPENAI_API_KEY",
            }),
            json!({
                "provider": "openai-compatible", "model": "m", "base_url": "https://elsewhere.example",
                "headers": { "X": { "env": "OPENAI_API_KEY" } },
            }),
        ] {
            assert!(sent(&agent, &keys).is_empty(), "{agent}");
        }
    }

    #[test]
    fn the_home_of_a_variable_is_its_provider() {
        let (home, title) = home("OPENAI_API_KEY").unwrap();
        assert_eq!(
            (home.origin.as_str(), title),
            ("https://api.openai.com", "OpenAI")
        );
        assert_eq!(super::home("AGENT_SERVER_KEY"), None);
    }
}
