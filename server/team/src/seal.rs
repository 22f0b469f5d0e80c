//! Encryption of what is secret and must be had again: providers' keys.

use chacha20poly1305::aead::{Aead, Payload};
use chacha20poly1305::{KeyInit as _, XChaCha20Poly1305, XNonce};

use crate::secret::{self, hex, random};

/// Bytes of a master key.
const BYTES: usize = 32;

/// Bytes of a nonce, drawn at random: of 192 bits no two are alike.
const NONCE: usize = 24;

/// The key with which others are encrypted. It never enters the database.
#[derive(Clone)]
pub struct MasterKey([u8; BYTES]);

/// Why a text is no master key, or something cannot be opened with this one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SealError {
    /// Not what a key looks like.
    #[error("a master key is 64 hexadecimal digits")]
    NoKey,
    /// Another key sealed it, or it was changed.
    #[error("it was sealed with another master key, or was changed since")]
    OtherKey,
}

impl MasterKey {
    /// A new one.
    pub fn new() -> Self {
        Self(random())
    }

    /// Reads what [`MasterKey::reveal`] wrote.
    ///
    /// # Errors
    /// When it is not that.
    pub fn parse(text: &str) -> Result<Self, SealError> {
        let bytes = unhex(text.trim()).ok_or(SealError::NoKey)?;
        bytes.try_into().map(Self).map_err(|_| SealError::NoKey)
    }

    /// As text, for the file in which it is kept.
    pub fn reveal(&self) -> String {
        hex(&self.0)
    }

    /// Whether another one is the same.
    pub fn is_same(&self, other: &Self) -> bool {
        secret::is_same(&self.0, &other.0)
    }

    /// Encrypts a text (XChaCha20-Poly1305). It opens again only under the same name, so that nobody who can write the
    /// database passes one key off as another.
    pub(crate) fn seal(&self, name: &str, text: &str) -> String {
        let nonce: [u8; NONCE] = random();
        let payload = Payload {
            msg: text.as_bytes(),
            aad: name.as_bytes(),
        };
        let sealed = self.cipher().encrypt(&XNonce::from(nonce), payload);
        // It fails for messages of more than 256 GiB.
        let sealed = sealed.expect("a short text is encrypted");
        hex(&nonce) + &hex(&sealed)
    }

    /// The text again.
    ///
    /// # Errors
    /// When another key sealed it, under another name, or it was changed.
    pub(crate) fn open(&self, name: &str, sealed: &str) -> Result<String, SealError> {
        let bytes = unhex(sealed).ok_or(SealError::OtherKey)?;
        let (nonce, content) = bytes.split_first_chunk::<NONCE>().ok_or(SealError::OtherKey)?;
        let payload = Payload {
            msg: content,
            aad: name.as_bytes(),
        };
        let opened = self.cipher().decrypt(&XNonce::from(*nonce), payload);
        let opened = opened.map_err(|_| SealError::OtherKey)?;
        String::from_utf8(opened).map_err(|_| SealError::OtherKey)
    }

    fn cipher(&self) -> XChaCha20Poly1305 {
        XChaCha20Poly1305::new(&self.0.into())
    }
}

impl Default for MasterKey {
    fn default() -> Self {
        Self::new()
    }
}

impl std::fmt::Debug for MasterKey {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("MasterKey(…)")
    }
}

fn unhex(text: &str) -> Option<Vec<u8>> {
    let digits = text.as_bytes();
    let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok();
    let is_plain = digits.len().is_multiple_of(2) && digits.iter().all(u8::is_ascii_hexdigit);
    is_plain.then(|| digits.chunks(2).map(byte).collect())?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_right_key_under_the_right_name_opens() {
        let master = MasterKey::new();
        let sealed = master.seal("openai", "sk-123");
        assert_eq!(master.open("openai", &sealed).unwrap(), "sk-123");
        assert_ne!(master.seal("openai", "sk-123"), sealed, "each time another");
        assert_eq!(master.open("other", &sealed), Err(SealError::OtherKey));
        assert_eq!(MasterKey::new().open("openai", &sealed), Err(SealError::OtherKey));
        let changed = format!(
            "{}{}",
            &sealed[..sealed.len() - 1],
            if sealed.ends_with('0') { '1' } else { '0' }
        );
        for wrong in [changed.as_str(), "", "xx", "00", &sealed[..40]] {
            assert_eq!(master.open("openai", wrong), Err(SealError::OtherKey), "{wrong}");
        }
    }

    #[test]
    fn a_key_is_written_and_read_and_not_shown() {
        let master = MasterKey::new();
        let text = master.reveal() + "\n";
        assert_eq!(MasterKey::parse(&text).unwrap().reveal(), master.reveal());
        for wrong in ["", "00", &"0".repeat(63), &"g".repeat(64), "+f"] {
            assert_eq!(MasterKey::parse(wrong).unwrap_err(), SealError::NoKey);
        }
        assert!(!format!("{master:?}").contains(&master.reveal()));
    }
}
