//! The keys this tab holds.

use leptos::prelude::*;

use crate::keys::{Destination, Keys};
use crate::live::sending;

/// Keys by where they go, in the memory of this tab. Nothing here writes them anywhere.
#[derive(Clone, Copy)]
pub struct TabKeys {
    keys: RwSignal<Keys>,
}

/// Whether the dialog that lists the keys is open.
#[derive(Clone, Copy)]
pub struct KeysShown(pub RwSignal<bool>);

impl Default for TabKeys {
    fn default() -> Self {
        Self {
            keys: RwSignal::new(Keys::new()),
        }
    }
}

impl TabKeys {
    /// All of them; a reactive caller is told of changes.
    pub fn get(self) -> Keys {
        self.keys.get()
    }

    /// Reads something off them; a reactive caller is told of changes.
    pub fn with<T>(self, read: impl FnOnce(&Keys) -> T) -> T {
        self.keys.with(read)
    }

    /// All of them, at this moment.
    pub fn now(self) -> Keys {
        self.keys.get_untracked()
    }

    /// Keeps a key, or forgets it when `key` is empty.
    pub fn set(self, to: &Destination, key: &str) {
        self.keys.update(|keys| keys.set(to.clone(), key));
    }

    /// Takes all of `keys` in.
    pub fn extend(self, more: Keys) {
        self.keys.update(|keys| keys.extend(more));
    }

    /// Whose keys these are, such as "OpenAI" or a server's host, never their values.
    pub fn names(self) -> Vec<String> {
        let mut names: Vec<String> = self.keys.with(|keys| keys.destinations().map(owner).collect());
        names.sort();
        names.dedup();
        names
    }
}

/// Who takes a key: a provider by its name, where it is the provider's own; else the server.
pub fn owner(to: &Destination) -> String {
    match sending::home(&to.variable) {
        Some((home, title)) if home == *to => title.to_owned(),
        _ => to.server().to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_named_after_who_takes_them() {
        let to = |origin: &str| Destination {
            variable: "OPENAI_API_KEY".into(),
            origin: origin.into(),
        };
        assert_eq!(owner(&to("https://api.openai.com")), "OpenAI");
        assert_eq!(owner(&to("https://proxy.example")), "proxy.example");
    }
}
