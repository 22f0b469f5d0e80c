//! The keys this tab holds.

use leptos::prelude::*;

use crate::worker::protocol::Keys;

/// Keys by variable, in the memory of this tab. Nothing here writes them anywhere.
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

    /// All of them, at this moment.
    pub fn now(self) -> Keys {
        self.0.get_untracked()
    }

    /// Keeps a key, or forgets it when `key` is empty.
    pub fn set(self, variable: &str, key: &str) {
        self.0.update(|keys| {
            if key.is_empty() {
                keys.remove(variable);
            } else {
                keys.insert(variable.to_owned(), key.to_owned());
            }
        });
    }

    /// Takes all of `keys` in.
    pub fn extend(self, more: Keys) {
        self.0.update(|keys| keys.extend(more));
    }

    /// Whose keys these are, such as "OpenAI", never their values.
    pub fn names(self) -> Vec<String> {
        self.0
            .with(|keys| keys.keys().map(|variable| owner(variable)).collect())
    }
}

/// A name for the owner of a key from its variable: `OPENAI_API_KEY` is OpenAI's.
fn owner(variable: &str) -> String {
    let name = variable.strip_suffix("_API_KEY").unwrap_or(variable);
    match name {
        "OPENAI" => "OpenAI".into(),
        "OPENROUTER" => "OpenRouter".into(),
        name => {
            let lower = name.to_lowercase().replace('_', " ");
            let mut letters = lower.chars();
            letters
                .next()
                .map(|first| first.to_uppercase().chain(letters).collect())
                .unwrap_or_default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::owner;

    #[test]
    fn owners_are_named_as_they_name_themselves() {
        assert_eq!(owner("OPENAI_API_KEY"), "OpenAI");
        assert_eq!(owner("ANTHROPIC_API_KEY"), "Anthropic");
        assert_eq!(owner("MY_SERVER"), "My server");
    }
}
