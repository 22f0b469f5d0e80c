//! The vault's encrypted content: keys with where they go.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::keys::Keys;
use crate::live::sending;

/// Version of the notation.
const VERSION: u32 = 2;

/// What was remembered.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Content {
    /// The keys.
    pub keys: Keys,
    /// The variables of keys that were kept without a server and belong to no provider: nobody knows
    /// where they may go.
    pub homeless: Vec<String>,
}

#[derive(Serialize, Deserialize)]
struct Written {
    version: u32,
    keys: Keys,
}

pub(super) fn write(keys: &Keys) -> String {
    let written = Written {
        version: VERSION,
        keys: keys.clone(),
    };
    serde_json::json!(written).to_string()
}

/// What was written; none when it is nothing of a version known here.
pub(super) fn read(text: &str) -> Option<Content> {
    if let Ok(written) = serde_json::from_str::<Written>(text) {
        return (written.version == VERSION).then(|| Content {
            keys: written.keys,
            ..Content::default()
        });
    }
    // The first version: keys by variable. Each goes to its provider's own server and nowhere else.
    let by_variable: BTreeMap<String, String> = serde_json::from_str(text).ok()?;
    let mut content = Content::default();
    for (variable, key) in by_variable {
        match sending::home(&variable) {
            Some((home, _)) => content.keys.set(home, &key),
            None => content.homeless.push(variable),
        }
    }
    Some(content)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keys::Destination;

    fn to(variable: &str, origin: &str) -> Destination {
        Destination {
            variable: variable.into(),
            origin: origin.into(),
        }
    }

    #[test]
    fn a_recalled_key_goes_where_it_was_typed_for() {
        let proxy = to("OPENAI_API_KEY", "https://proxy.example");
        let mut keys = Keys::new();
        keys.set(proxy.clone(), "proxy-1");
        let content = read(&write(&keys)).unwrap();
        assert_eq!(content.keys, keys);
        let home = to("OPENAI_API_KEY", "https://api.openai.com");
        assert_eq!(content.keys.of(&home), None);
    }

    #[test]
    fn keys_kept_by_variable_alone_go_home_only() {
        let content = read(r#"{"OPENAI_API_KEY":"sk-1","AGENT_SERVER_KEY":"a-1"}"#).unwrap();
        let all: Vec<&Destination> = content.keys.destinations().collect();
        assert_eq!(all, [&to("OPENAI_API_KEY", "https://api.openai.com")]);
        assert_eq!(content.homeless, ["AGENT_SERVER_KEY"]);
    }

    #[test]
    fn what_a_newer_page_wrote_is_not_guessed_at() {
        let newer = write(&Keys::new()).replace("\"version\":2", "\"version\":3");
        assert_eq!(read(&newer), None);
        assert_eq!(read("[]"), None);
    }
}
