//! Keys, where they come from, and how they are kept out of every message.

use std::borrow::Cow;
use std::collections::BTreeMap;

use capo_core::http_headers::quoted_forms;

/// A key. It has no `Display`, and `Debug` shows that there is one, not which.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Wraps a key.
    pub fn new(value: impl Into<String>) -> Self {
        Self(value.into())
    }

    /// The key itself. Every caller is a place where it could leak.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Secret(…)")
    }
}

/// Where keys come from, by the name of a variable such as `OPENAI_API_KEY`.
pub trait Keys {
    /// The value of `variable` for the server at `origin` (scheme, host and port, such as
    /// `https://api.openai.com`), if there is one.
    fn get(&self, variable: &str, origin: &str) -> Option<String>;

    /// Whether the server at a base URL adds the provider's key itself, and knows by other means than a key who asks.
    fn are_added_at(&self, _base_url: &str) -> bool {
        false
    }
}

/// The process environment: the only source of keys natively.
#[cfg(not(target_arch = "wasm32"))]
#[derive(Debug, Clone, Copy, Default)]
pub struct Environment;

#[cfg(not(target_arch = "wasm32"))]
impl Keys for Environment {
    fn get(&self, variable: &str, _: &str) -> Option<String> {
        std::env::var(variable).ok()
    }
}

/// Keys held in memory, whichever server they go to.
impl Keys for BTreeMap<String, String> {
    fn get(&self, variable: &str, _: &str) -> Option<String> {
        BTreeMap::get(self, variable).cloned()
    }
}

/// What stands in a message where a key stood. Not ASCII, so that no key that can be sent in a
/// header contains it.
const MASK: &str = "•••";

/// The longest message kept, in characters.
const LONGEST: usize = 600;

/// Removes keys from texts before anyone sees them.
#[derive(Clone, Default)]
pub struct Redactor {
    /// Longest first, so that a key which contains another goes as a whole.
    secrets: Vec<String>,
}

impl std::fmt::Debug for Redactor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Redactor")
            .field("secrets", &self.secrets.len())
            .finish()
    }
}

impl Redactor {
    /// A redactor that knows `secrets`, and the last word of each that has several: the token of
    /// `Bearer TOKEN` is quoted alone. Empty ones are ignored.
    pub fn new<'a>(secrets: impl IntoIterator<Item = &'a Secret>) -> Self {
        let mut secrets: Vec<String> = secrets
            .into_iter()
            .flat_map(|secret| {
                let whole = secret.expose().trim();
                [Some(whole), whole.split_whitespace().next_back()]
            })
            .flatten()
            .filter(|secret| !secret.is_empty())
            .flat_map(quoted_forms)
            .collect();
        secrets.sort_by(|a, b| b.len().cmp(&a.len()).then_with(|| a.cmp(b)));
        secrets.dedup();
        Self { secrets }
    }

    /// `text` without any known key.
    pub fn mask<'a>(&self, text: &'a str) -> Cow<'a, str> {
        let mut text = Cow::Borrowed(text);
        for secret in &self.secrets {
            if text.contains(secret.as_str()) {
                text = Cow::Owned(text.replace(secret.as_str(), MASK));
            }
        }
        text
    }

    /// `text` without any known key, without user names, passwords and query strings in
    /// addresses, without control characters, and no longer than 600 characters.
    pub fn clean(&self, text: &str) -> String {
        let text = self.mask(text);
        // Escape sequences would reach the terminal.
        let is_escape = |c: char| c.is_control() && !matches!(c, '\n' | '\t');
        let text = without_queries(&text).replace(is_escape, "\u{fffd}");
        // Cutting comes last: a key cut in half would no longer be found.
        match text.char_indices().nth(LONGEST) {
            Some((end, _)) => format!("{}…", &text[..end]),
            None => text,
        }
    }
}

/// `text` with the credentials and the query string of every address in it masked.
fn without_queries(text: &str) -> String {
    let ends_address =
        |c: char| c.is_whitespace() || matches!(c, '"' | '\'' | '<' | '>' | ')' | ']' | '}' | '`');
    let mut kept = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = rest.find("://") {
        let (before, address) = rest.split_at(start + 3);
        kept.push_str(before);
        let (address, after) = address.split_at(address.find(ends_address).unwrap_or(address.len()));
        let authority = address.find(['/', '?', '#']).unwrap_or(address.len());
        let host = address[..authority].rfind('@').map_or(0, |at| at + 1);
        if host > 0 {
            kept.push_str(MASK);
            kept.push('@');
        }
        match address[host..].find('?') {
            Some(query) => {
                kept.push_str(&address[host..host + query]);
                kept.push('?');
                kept.push_str(MASK);
            }
            None => kept.push_str(&address[host..]),
        }
        rest = after;
    }
    kept.push_str(rest);
    kept
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn debug_shows_no_key() {
        assert_eq!(format!("{:?}", Secret::new("sk-very-secret")), "Secret(…)");
        let redactor = Redactor::new([&Secret::new("sk-very-secret")]);
        assert!(!format!("{redactor:?}").contains("very"));
    }

    #[test]
    fn the_token_of_an_authorization_header_is_a_key_of_its_own() {
        let redactor = Redactor::new([&Secret::new("Bearer abc-123-def\n")]);
        assert_eq!(
            redactor.clean("token abc-123-def expired; send Bearer tokens"),
            "token ••• expired; send Bearer tokens"
        );
    }

    #[test]
    fn addresses_lose_credentials_and_queries() {
        let redactor = Redactor::default();
        assert_eq!(
            redactor.clean("GET https://me:pass@host:1/a/b?key=abc&x=1 failed (see http://x/y)"),
            "GET https://•••@host:1/a/b?••• failed (see http://x/y)"
        );
        assert_eq!(redactor.clean("what? no address"), "what? no address");
    }

    #[test]
    fn a_key_inside_a_longer_key_leaves_no_remainder() {
        let redactor = Redactor::new([&Secret::new("abcd"), &Secret::new("abcd-efgh")]);
        assert_eq!(redactor.clean("(abcd-efgh) (abcd)"), "(•••) (•••)");
    }

    #[test]
    fn a_key_that_json_writes_otherwise_is_masked_there_too() {
        let redactor = Redactor::new([&Secret::new(r#"ab/"c\d"#)]);
        assert_eq!(
            redactor.clean(r#"ab/"c\d {"a": "ab/\"c\\d", "b": "ab\/\"c\\d"}"#),
            r#"••• {"a": "•••", "b": "•••"}"#
        );
    }

    #[test]
    fn nothing_steers_the_terminal() {
        let cleaned = Redactor::default().clean("a\u{1b}[2Jb\u{7}\u{9b}c\r\nd");
        assert_eq!(cleaned, "a\u{fffd}[2Jb\u{fffd}\u{fffd}c\u{fffd}\nd");
    }

    #[test]
    fn long_texts_are_cut_after_keys_are_gone() {
        let redactor = Redactor::new([&Secret::new("0123456789")]);
        let cleaned = redactor.clean(&format!("{}0123456789{}", "x".repeat(595), "y".repeat(50)));
        assert!(!cleaned.contains("0123"), "{cleaned}");
        assert!(cleaned.ends_with('…'));
    }

    proptest! {
        #[test]
        fn no_key_survives(
            keys in prop::collection::vec("[!-~]{1,40}", 1..4),
            pieces in prop::collection::vec("[ -~é]{0,30}", 0..6),
        ) {
            let secrets: Vec<Secret> = keys.iter().map(Secret::new).collect();
            let redactor = Redactor::new(&secrets);
            let mut text = String::new();
            for (index, piece) in pieces.iter().enumerate() {
                text.push_str(piece);
                text.push_str(&keys[index % keys.len()]);
                text.push_str("https://host/path?key=");
                text.push_str(&keys[index % keys.len()]);
            }
            let cleaned = redactor.clean(&text);
            for key in &keys {
                prop_assert!(!cleaned.contains(key.as_str()), "{key:?} in {cleaned:?}");
            }
        }
    }
}
