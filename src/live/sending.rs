//! Which key goes where: a key is only ever sent to its provider's own host, or to one that the
//! person who holds it typed it for.

use std::collections::BTreeSet;

use capo_core::study::Study;
use capo_models::providers::Key;
use capo_models::{HeaderText, ModelSpec};
use serde_json::Value;

use crate::worker::protocol::Keys;

/// A key and the host it is meant for.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Sent {
    /// The variable that names the key.
    pub variable: String,
    /// The host it would go to, with its port if one is stated.
    pub host: String,
}

/// What of a model's table sends a key somewhere, with whether that is the key's own provider.
pub fn sent(table: &Value) -> Vec<(Sent, bool)> {
    let Ok(spec) = ModelSpec::parse(table) else {
        return Vec::new();
    };
    let provider = spec.provider.get();
    if provider.in_process {
        return Vec::new();
    }
    let address = spec.base_url.as_deref().or(provider.base_url);
    let to = host(address.unwrap_or_default());
    let at_home = provider.base_url.is_some_and(|home| host(home) == to);
    let usual = usual_variable(provider.key);
    let own = spec.api_key_env.as_deref().or(usual);
    let key = own.map(|variable| {
        let sent = Sent {
            variable: variable.to_owned(),
            host: to.clone(),
        };
        (sent, at_home && usual == Some(variable))
    });
    let headers = spec.headers.values().filter_map(|header| match header {
        HeaderText::Variable(variable) => Some((
            Sent {
                variable: variable.env.clone(),
                host: to.clone(),
            },
            false,
        )),
        HeaderText::Text(_) => None,
    });
    key.into_iter().chain(headers).collect()
}

/// The variable a provider's keys are in, unless a study says otherwise.
pub fn usual_variable(key: Key) -> Option<&'static str> {
    match key {
        Key::Required(variable) | Key::Optional(variable) => Some(variable),
        Key::None => None,
    }
}

/// Of the keys in this tab those that a study may use: each of its uses is at the key's own provider
/// or was allowed by typing the key there.
pub fn allowed(study: &Study, keys: &Keys, typed_for: &BTreeSet<Sent>) -> Keys {
    let uses: Vec<(Sent, bool)> = study.models.values().flat_map(sent).collect();
    let may = |variable: &str| {
        let mut of_it = uses
            .iter()
            .filter(|(sent, _)| sent.variable == variable)
            .peekable();
        of_it.peek().is_some() && of_it.all(|(sent, own)| *own || typed_for.contains(sent))
    };
    keys.iter()
        .filter(|(variable, _)| may(variable))
        .map(|(variable, key)| (variable.clone(), key.clone()))
        .collect()
}

/// Like [`allowed`], for one model's table.
pub fn allowed_for(table: &Value, keys: &Keys, typed_for: &BTreeSet<Sent>) -> Keys {
    let uses = sent(table);
    let refused = |variable: &str| {
        uses.iter()
            .any(|(sent, own)| sent.variable == variable && !own && !typed_for.contains(sent))
    };
    uses.iter()
        .filter(|(sent, _)| !refused(&sent.variable))
        .filter_map(|(sent, _)| Some((sent.variable.clone(), keys.get(&sent.variable)?.clone())))
        .collect()
}

/// The host of an address, with its port if one is stated.
pub fn host(address: &str) -> String {
    let rest = address.split_once("://").map_or(address, |(_, rest)| rest);
    let authority = rest.split(['/', '?', '#', '\\']).next().unwrap_or_default();
    // What stands before an @ is no part of the host.
    let host = authority.rsplit('@').next().unwrap_or_default();
    host.to_lowercase()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn study(agent: Value) -> Study {
        let mut study = crate::studies::help_desk().unwrap();
        study.models.insert(capo_core::llm::Role::Agent, agent);
        study
    }

    fn keys() -> Keys {
        Keys::from([
            ("OPENAI_API_KEY".to_owned(), "sk-1".to_owned()),
            ("MISTRAL_API_KEY".to_owned(), "m-1".to_owned()),
        ])
    }

    #[test]
    fn a_key_goes_to_its_own_provider_and_no_other_key_goes_along() {
        let study = study(json!({ "provider": "openai", "model": "gpt-5-mini" }));
        let allowed = allowed(&study, &keys(), &BTreeSet::new());
        assert_eq!(allowed.keys().collect::<Vec<_>>(), ["OPENAI_API_KEY"]);
    }

    #[test]
    fn a_study_cannot_send_a_key_elsewhere() {
        for agent in [
            json!({ "provider": "openai", "model": "m", "base_url": "https://elsewhere.example/v1" }),
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
            let study = study(agent.clone());
            assert!(allowed(&study, &keys(), &BTreeSet::new()).is_empty(), "{agent}");
            assert!(
                allowed_for(&agent, &keys(), &BTreeSet::new()).is_empty(),
                "{agent}"
            );
        }
    }

    #[test]
    fn whoever_types_a_key_beside_an_address_allows_it_there() {
        let table = json!({ "provider": "openai", "model": "m", "base_url": "https://proxy.example/v1" });
        let typed = sent(&table).into_iter().map(|(sent, _)| sent).collect();
        assert_eq!(allowed_for(&table, &keys(), &typed).len(), 1);
        assert_eq!(allowed(&study(table), &keys(), &typed).len(), 1);
    }

    #[test]
    fn hosts_are_read_as_they_are() {
        assert_eq!(host("http://localhost:11434/v1"), "localhost:11434");
        assert_eq!(host("https://a@b.example/x"), "b.example");
    }
}
