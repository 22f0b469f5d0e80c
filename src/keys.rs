//! Keys, each stored for the one server that it was typed for.
//!
//! A variable alone says nothing about where a key belongs: two studies may mean two servers by
//! `OPENAI_API_KEY`. So a key is stored and given out by its variable together with the origin of the
//! server, and there is no way to ask for it without.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::{servers, shared_keys};

/// Where a key goes.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Destination {
    /// The variable that names the key in studies.
    pub variable: String,
    /// Scheme, host and port of the server.
    pub origin: String,
}

impl Destination {
    /// The server, as people read it.
    pub fn server(&self) -> &str {
        servers::shown(&self.origin)
    }
}

/// Keys by where they go; in the memory of the tab only.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Vec<StoredKey>", into = "Vec<StoredKey>")]
pub struct Keys(BTreeMap<Destination, String>);

/// A key as it is written to workers and into the vault.
#[derive(Serialize, Deserialize)]
struct StoredKey {
    #[serde(flatten)]
    to: Destination,
    key: String,
}

impl From<Vec<StoredKey>> for Keys {
    fn from(stored: Vec<StoredKey>) -> Self {
        Self(stored.into_iter().map(|stored| (stored.to, stored.key)).collect())
    }
}

impl From<Keys> for Vec<StoredKey> {
    fn from(keys: Keys) -> Self {
        keys.0
            .into_iter()
            .map(|(to, key)| StoredKey { to, key })
            .collect()
    }
}

impl fmt::Debug for Keys {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_set().entries(self.0.keys()).finish()
    }
}

impl Keys {
    /// No keys.
    pub fn new() -> Self {
        Self::default()
    }

    /// The key for a destination.
    pub fn of(&self, to: &Destination) -> Option<&str> {
        self.0.get(to).map(String::as_str)
    }

    /// Holds a key, or forgets it when it is empty.
    pub fn set(&mut self, to: Destination, key: &str) {
        if key.is_empty() {
            self.0.remove(&to);
        } else {
            self.0.insert(to, key.to_owned());
        }
    }

    /// Takes all of `more` in, in place of those stored for the same destinations.
    pub fn extend(&mut self, more: Self) {
        self.0.extend(more.0);
    }

    /// Those that go to one of `destinations`.
    pub fn only(&self, destinations: &[Destination]) -> Self {
        let mut only = self.clone();
        only.0.retain(|to, _| destinations.contains(to));
        only
    }

    /// Where they go.
    pub fn destinations(&self) -> impl Iterator<Item = &Destination> {
        self.0.keys()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl capo_models::Keys for Keys {
    fn get(&self, variable: &str, origin: &str) -> Option<String> {
        let to = Destination {
            variable: variable.to_owned(),
            origin: origin.to_owned(),
        };
        self.of(&to).map(str::to_owned)
    }

    fn are_added_at(&self, base_url: &str) -> bool {
        shared_keys::name(base_url).is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn to(origin: &str) -> Destination {
        Destination {
            variable: "OPENAI_API_KEY".into(),
            origin: origin.into(),
        }
    }

    #[test]
    fn a_key_is_given_out_for_its_own_server_only() {
        let mut keys = Keys::new();
        keys.set(to("https://proxy.example"), "proxy-1");
        let given = |origin| capo_models::Keys::get(&keys, "OPENAI_API_KEY", origin);
        assert_eq!(given("https://proxy.example").as_deref(), Some("proxy-1"));
        assert_eq!(given("https://api.openai.com"), None);
        assert_eq!(given("http://proxy.example"), None);
    }

    #[test]
    fn keys_are_written_with_where_they_go_and_shown_without_their_values() {
        let mut keys = Keys::new();
        keys.set(to("https://api.openai.com"), "sk-1");
        keys.set(to("https://proxy.example"), "proxy-1");
        let text = serde_json::to_string(&keys).unwrap();
        assert_eq!(serde_json::from_str::<Keys>(&text).unwrap(), keys);
        let shown = format!("{keys:?}");
        assert!(
            shown.contains("proxy.example") && !shown.contains("sk-1"),
            "{shown}"
        );
        keys.set(to("https://proxy.example"), "");
        assert_eq!(keys.destinations().count(), 1);
    }
}
