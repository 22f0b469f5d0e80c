//! Secrets that this server hands out: of sessions, tokens, invitations and the first set-up.

use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq as _;

/// Random bytes of a secret: too many to be guessed.
const BYTES: usize = 32;

/// A secret, shown once. Only its hash is kept, so that no copy of the database opens anything.
#[derive(Clone)]
pub struct Secret(String);

impl Secret {
    /// A new one, with a prefix that says what it is for.
    ///
    /// # Panics
    /// When the system has no random numbers, without which nothing here is safe.
    pub fn new(prefix: &str) -> Self {
        Self(format!("{prefix}{}", hex(&random::<BYTES>())))
    }

    /// What somebody presents as one.
    pub fn presented(text: &str) -> Self {
        Self(text.to_owned())
    }

    /// The text, for the person whom it is for.
    pub fn reveal(&self) -> &str {
        &self.0
    }

    /// What is kept of it. A plain hash does: nobody can try all secrets of 256 random bits. Databases and maps look it up
    /// as any other text: how long that takes tells of the hash at most, and nobody finds a secret by parts of its hash.
    pub fn hash(&self) -> String {
        sha256(self.0.as_bytes())
    }
}

impl std::fmt::Debug for Secret {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("Secret(…)")
    }
}

/// Whether two secrets, or their hashes, are the same, in a time that tells nothing of where they differ.
pub fn is_same(one: &[u8], other: &[u8]) -> bool {
    one.ct_eq(other).into()
}

/// SHA-256 in hexadecimal digits.
pub(crate) fn sha256(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}

/// A new identifier: 32 hexadecimal digits, at random.
pub(crate) fn id() -> String {
    hex(&random::<16>())
}

pub(crate) fn random<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).expect("the system has random numbers");
    bytes
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    bytes
        .iter()
        .fold(String::with_capacity(2 * bytes.len()), |mut text, byte| {
            let _ = write!(text, "{byte:02x}");
            text
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_differ_and_are_not_shown() {
        let (one, two) = (Secret::new("capo_"), Secret::new("capo_"));
        assert_ne!(one.reveal(), two.reveal());
        assert_eq!(one.reveal().len(), "capo_".len() + 2 * BYTES);
        assert_eq!(one.hash(), Secret::presented(one.reveal()).hash());
        assert!(!format!("{one:?}").contains(one.reveal()));
    }

    #[test]
    fn what_is_the_same_is_told_from_what_is_not() {
        assert!(is_same(b"capo_12", b"capo_12") && is_same(b"", b""));
        for other in ["capo_13", "Capo_12", "capo_1", "capo_123", ""] {
            assert!(!is_same(b"capo_12", other.as_bytes()), "{other}");
        }
    }
}
