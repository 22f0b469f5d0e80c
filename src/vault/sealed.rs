//! The sealed vault: a text nobody can read without its passphrase.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};

/// Version of the notation.
const VERSION: u32 = 1;

/// An encrypted text and what is needed, besides the passphrase, to read it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Sealed {
    /// Rounds of PBKDF2 with SHA-256.
    pub(super) iterations: u32,
    /// Drawn for this text; goes into the key.
    pub(super) salt: Vec<u8>,
    /// Drawn for this text; AES-GCM's initialisation vector.
    pub(super) vector: Vec<u8>,
    /// The encrypted text with its tag.
    pub(super) content: Vec<u8>,
}

#[derive(Serialize, Deserialize)]
struct Written {
    version: u32,
    iterations: u32,
    salt: String,
    vector: String,
    content: String,
}

impl Sealed {
    /// As it is kept.
    pub(super) fn to_text(&self) -> String {
        let written = Written {
            version: VERSION,
            iterations: self.iterations,
            salt: STANDARD.encode(&self.salt),
            vector: STANDARD.encode(&self.vector),
            content: STANDARD.encode(&self.content),
        };
        serde_json::json!(written).to_string()
    }

    /// What was kept; none when it is nothing of this version.
    pub(super) fn of_text(text: &str) -> Option<Self> {
        let written: Written = serde_json::from_str(text).ok()?;
        let bytes = |text: &str| STANDARD.decode(text).ok();
        Some(Self {
            iterations: written.iterations,
            salt: bytes(&written.salt)?,
            vector: bytes(&written.vector)?,
            content: bytes(&written.content)?,
        })
        .filter(|_| written.version == VERSION)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_is_read_again() {
        let sealed = Sealed {
            iterations: 600_000,
            salt: vec![1; 16],
            vector: vec![2; 12],
            content: vec![0, 255, 7],
        };
        assert_eq!(Sealed::of_text(&sealed.to_text()), Some(sealed.clone()));
        let newer = sealed.to_text().replace("\"version\":1", "\"version\":2");
        assert_eq!(Sealed::of_text(&newer), None);
        assert_eq!(Sealed::of_text("{}"), None);
    }
}
