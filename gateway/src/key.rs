//! A provider key that is shared, without the key itself.

use std::net::IpAddr;

use capo_core::address::Address;
use capo_models::ProviderName;
use capo_models::prices::{Price, PriceTable};
use capo_models::providers::Provider;
use serde::{Deserialize, Serialize};

use crate::amount::Rates;
use crate::dialect::Dialect;
use crate::ip::is_public;

/// What an administrator says of a shared key, as it is stored.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KeyRecord {
    /// The id in `/api/proxy/{key}/`.
    pub id: String,
    /// Whose key it is.
    pub provider: ProviderName,
    /// Where the API is, as `base_url` in a study; the provider's own place if absent.
    pub base_url: Option<String>,
    /// Whether the host of the base URL may be in a private network and be called without encryption.
    #[serde(default)]
    pub private_host: bool,
    /// Ids of the projects that may use it.
    pub projects: Vec<String>,
    /// The models that may be asked; any other is refused.
    pub models: Vec<ModelRule>,
}

/// Models that may be asked with a key.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ModelRule {
    /// The name of a model, or with `*` at its end the beginning of names.
    pub name: String,
    /// What tokens cost, in place of the price table and of what the provider reports.
    pub price: Option<Price>,
    /// The most tokens that an answer may have when the request states no maximum and a limit in dollars applies;
    /// [`DEFAULT_MAX_OUTPUT`](crate::DEFAULT_MAX_OUTPUT) if absent.
    pub default_max_output: Option<u64>,
}

/// A [`KeyRecord`] that was checked.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(try_from = "KeyRecord")]
pub struct SharedKey {
    record: KeyRecord,
    dialect: Dialect,
    /// Where the API's paths begin, with a slash at its end.
    root: String,
}

/// Why a record is refused, in a sentence that names its field.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct KeyError(String);

impl TryFrom<KeyRecord> for SharedKey {
    type Error = KeyError;

    fn try_from(record: KeyRecord) -> Result<Self, KeyError> {
        let refuse = |what: String| Err(KeyError(what));
        let provider = record.provider.get();
        let Some(dialect) = Dialect::of(provider) else {
            return refuse(format!("`provider` {} has no keys", provider.name));
        };
        let Some(base_url) = record.base_url.as_deref().or(provider.base_url) else {
            return refuse(format!("`provider` {} needs a `base_url`", provider.name));
        };
        let address = Address::parse(base_url).map_err(|error| KeyError(format!("`base_url` {error}")))?;
        if address.has_credentials() || address.has_query_or_fragment() {
            return refuse("`base_url` may hold no credentials, query or fragment".to_owned());
        }
        let is_private = address.is_here() || literal_ip(&address).is_some_and(|ip| !is_public(ip));
        if (is_private || address.is_unencrypted()) && !record.private_host {
            return refuse(
                "`base_url` names a private host or no encryption: allow it with `private_host`".to_owned(),
            );
        }
        let is_wrong = |rule: &&ModelRule| rule.price.is_some_and(|price| Rates::new(&price).is_none());
        if let Some(rule) = record.models.iter().find(is_wrong) {
            return refuse(format!("`price` of `{}` is out of range", rule.name));
        }
        let root = root_of(provider, address.as_str());
        Ok(Self {
            record,
            dialect,
            root,
        })
    }
}

/// Where the paths of a provider's API begin, with a slash at its end.
fn root_of(provider: &Provider, base_url: &str) -> String {
    provider.root(base_url) + "/"
}

/// The host as an IP address, if it is written as one.
fn literal_ip(address: &Address) -> Option<IpAddr> {
    let host = address.host();
    match host.strip_prefix('[') {
        Some(v6) => v6.split(']').next()?.parse().ok(),
        None => host.split(':').next()?.parse().ok(),
    }
}

impl SharedKey {
    /// What it was made from.
    pub fn record(&self) -> &KeyRecord {
        &self.record
    }

    pub(crate) fn dialect(&self) -> Dialect {
        self.dialect
    }

    pub(crate) fn root(&self) -> &str {
        &self.root
    }

    /// Whether a provider's API at a base URL of a study is the one that this key is for.
    pub fn is_for(&self, provider: &Provider, base_url: &str) -> bool {
        self.record.provider.get().name == provider.name && self.root == root_of(provider, base_url)
    }

    /// Whether a project, by its id, may use this key.
    pub fn is_shared_with(&self, project: &str) -> bool {
        self.record.projects.iter().any(|shared| shared == project)
    }

    /// The rule that allows a model: the one of its name, else the longest beginning.
    pub fn rule(&self, model: &str) -> Option<&ModelRule> {
        let fits = |rule: &&ModelRule| match rule.name.strip_suffix('*') {
            Some(start) => model.starts_with(start),
            None => rule.name == model,
        };
        let rules = self.record.models.iter().filter(fits);
        rules.max_by_key(|rule| (!rule.name.ends_with('*'), rule.name.len()))
    }

    /// What a model's tokens cost, if that is known.
    pub(crate) fn rates(&self, rule: &ModelRule, model: &str, prices: &PriceTable) -> Option<Rates> {
        let listed = || prices.get(self.record.provider.get().name, model);
        Rates::new(&rule.price.or_else(listed)?)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    /// The key of a record, `more` of which is told, or why it is refused.
    fn key(mut more: Value) -> Result<SharedKey, String> {
        let mut record = json!({ "id": "k", "projects": [], "models": [] });
        record
            .as_object_mut()
            .unwrap()
            .append(more.as_object_mut().unwrap());
        serde_json::from_value(record).map_err(|error| error.to_string())
    }

    #[test]
    fn private_hosts_must_be_allowed_in_every_spelling() {
        for base_url in
            "https://localhost https://a.localhost/ https://127.1 https://2130706433 https://0x7f.1
            https://0177.0.0.1:8443/v1 https://169.254.169.254 https://[::1] https://[::ffff:10.0.0.1]:1
            https://[fd00::1] http://api.example"
                .split_whitespace()
        {
            let record =
                |private| json!({ "provider": "openai", "base_url": base_url, "private_host": private });
            assert!(
                key(record(false)).unwrap_err().contains("private host"),
                "{base_url}"
            );
            assert!(key(record(true)).is_ok(), "{base_url}");
        }
        assert!(key(json!({ "provider": "openai", "base_url": "https://8.8.8.8" })).is_ok());
    }

    #[test]
    fn wrong_records_are_refused() {
        let price = json!([{ "name": "m", "price": { "input": -1, "output": 0 } }]);
        for (record, said) in [
            (json!({ "provider": "simulated" }), "has no keys"),
            (json!({ "provider": "openai-compatible" }), "needs a `base_url`"),
            (
                json!({ "provider": "openai", "base_url": "ftp://host" }),
                "must begin with http",
            ),
            (
                json!({ "provider": "openai", "base_url": "https://u:p@host" }),
                "no credentials",
            ),
            (
                json!({ "provider": "openai", "base_url": "https://host?key=x" }),
                "no credentials",
            ),
            (json!({ "provider": "openai", "models": price }), "`price` of `m`"),
        ] {
            let refused = key(record).unwrap_err();
            assert!(refused.contains(said), "{refused}");
        }
    }

    #[test]
    fn the_nearest_rule_decides() {
        let names = json!([{ "name": "gpt-5" }, { "name": "gpt-5*" }, { "name": "gpt-5-mini*" }]);
        let key = key(json!({ "provider": "openai", "models": names })).unwrap();
        let rule = |model| key.rule(model).map_or("", |rule| &rule.name);
        let rules = ["gpt-5", "gpt-5.1", "gpt-5-mini-2025-08-07", "gpt-4o", ""].map(rule);
        assert_eq!(rules, ["gpt-5", "gpt-5*", "gpt-5-mini*", "", ""]);
    }
}
