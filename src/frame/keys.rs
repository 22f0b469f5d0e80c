//! The keys this tab holds.

use leptos::prelude::*;

use crate::keys::{Destination, Keys};
use crate::live::sending;

/// Keys by where they go, in the memory of this tab. Nothing here writes them anywhere.
#[derive(Clone, Copy)]
pub struct TabKeys(RwSignal<Keys>);

impl Default for TabKeys {
    fn default() -> Self {
        Self(RwSignal::new(Keys::new()))
    }
}

impl TabKeys {
    /// All of them; a reactive caller is told of changes.
    pub fn get(self) -> Keys {
        self.0.get()
    }

    /// Reads something off them; a reactive caller is told of changes.
    pub fn with<T>(self, read: impl FnOnce(&Keys) -> T) -> T {
        self.0.with(read)
    }

    /// All of them, at this moment.
    pub fn now(self) -> Keys {
        self.0.get_untracked()
    }

    /// Keeps a key, or forgets it when `key` is empty.
    pub fn set(self, to: &Destination, key: &str) {
        self.0.update(|keys| keys.set(to.clone(), key));
    }

    /// Takes all of `keys` in.
    pub fn extend(self, more: Keys) {
        self.0.update(|keys| keys.extend(more));
    }

    /// Whose keys these are, such as "OpenAI" or a server's host, never their values.
    pub fn names(self) -> Vec<String> {
        let mut names: Vec<String> = self.0.with(|keys| keys.destinations().map(owner).collect());
        names.sort();
        names.dedup();
        names
    }
}

/// Who takes a key: a provider by its name, where it is the provider's own; else the server.
fn owner(to: &Destination) -> String {
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
