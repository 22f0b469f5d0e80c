//! Names that must not be confused.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use sha2::{Digest, Sha256};

/// Lower-case hex SHA-256 of some bytes.
pub fn sha256_hex(bytes: impl AsRef<[u8]>) -> String {
    hex(&Sha256::digest(bytes.as_ref()))
}

/// Bytes as lower-case hex digits.
pub fn hex(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let mut text = String::with_capacity(bytes.len() * 2);
    for byte in bytes {
        text.push(char::from(DIGITS[usize::from(byte >> 4)]));
        text.push(char::from(DIGITS[usize::from(byte & 15)]));
    }
    text
}

/// A candidate prompt's identity: the SHA-256 of its text. Identical texts are one candidate.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CandidateId([u8; 32]);

impl CandidateId {
    /// The id of a prompt text.
    ///
    /// ```
    /// use capo_core::ids::CandidateId;
    ///
    /// assert_eq!(CandidateId::of("abc").short(), "ba7816bf");
    /// ```
    pub fn of(prompt: &str) -> Self {
        Self(Sha256::digest(prompt.as_bytes()).into())
    }

    /// The first eight hex digits, for screens.
    pub fn short(&self) -> String {
        hex(&self.0[..4])
    }

    /// The 32 bytes of the hash.
    pub fn bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl fmt::Display for CandidateId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hex(&self.0))
    }
}

impl fmt::Debug for CandidateId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CandidateId({})", self.short())
    }
}

/// A text that is no candidate id.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a candidate id: 64 lower-case hex digits are expected")]
pub struct NotAnId(String);

impl FromStr for CandidateId {
    type Err = NotAnId;

    fn from_str(text: &str) -> Result<Self, NotAnId> {
        let digit = |byte: u8| match byte {
            b'0'..=b'9' => Some(byte - b'0'),
            b'a'..=b'f' => Some(byte - b'a' + 10),
            _ => None,
        };
        let refuse = || NotAnId(text.chars().take(80).collect());
        let bytes = text.as_bytes();
        if bytes.len() != 64 {
            return Err(refuse());
        }
        let mut id = [0; 32];
        for (target, pair) in id.iter_mut().zip(bytes.chunks_exact(2)) {
            let (high, low) = digit(pair[0]).zip(digit(pair[1])).ok_or_else(refuse)?;
            *target = high << 4 | low;
        }
        Ok(Self(id))
    }
}

impl Serialize for CandidateId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for CandidateId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

/// Position of a round in a run, from 0.
pub type Round = u32;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_the_hash_of_the_text_and_reads_back() {
        let id = CandidateId::of("abc");
        assert_eq!(
            id.to_string(),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
        );
        assert_eq!(id.to_string().parse(), Ok(id));
        let json = serde_json::to_string(&id).unwrap();
        assert_eq!(serde_json::from_str::<CandidateId>(&json).unwrap(), id);
        assert!("xyz".parse::<CandidateId>().is_err());
        assert!("BA".repeat(32).parse::<CandidateId>().is_err());
    }
}
