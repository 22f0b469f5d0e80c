//! The built page's files, and what is known of each: hash, compressed form.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context, Result};
use sha2::{Digest, Sha256};

/// A file compressed ahead of time lies beside the file itself, with this at the end of its name.
pub(crate) const COMPRESSED: &str = ".br";
/// Brotli's best; the page is compressed once and loaded often.
const QUALITY: i32 = 11;

/// The files below one directory by their path, parts separated by `/`.
pub(crate) struct Shell(pub(crate) BTreeMap<String, Vec<u8>>);

impl Shell {
    /// Reads them all: a few megabytes.
    ///
    /// # Errors
    /// The directory or a file in it cannot be read, or a name is not UTF-8.
    pub(crate) fn read(directory: &Path) -> Result<Self> {
        let mut files = BTreeMap::new();
        read_into(&mut files, directory, "")?;
        Ok(Self(files))
    }
}

fn read_into(files: &mut BTreeMap<String, Vec<u8>>, directory: &Path, prefix: &str) -> Result<()> {
    let unreadable = || format!("cannot read {}", directory.display());
    for entry in std::fs::read_dir(directory).with_context(unreadable)? {
        let entry = entry.with_context(unreadable)?;
        let name = entry.file_name();
        let name = name
            .to_str()
            .with_context(|| format!("{} is not UTF-8", entry.path().display()))?;
        let path = format!("{prefix}{name}");
        if entry.file_type().with_context(unreadable)?.is_dir() {
            read_into(files, &entry.path(), &format!("{path}/"))?;
        } else {
            let bytes = std::fs::read(entry.path())
                .with_context(|| format!("cannot read {}", entry.path().display()))?;
            files.insert(path, bytes);
        }
    }
    Ok(())
}

/// SHA-256 in hexadecimal digits.
pub(crate) fn hash(bytes: &[u8]) -> String {
    use std::fmt::Write;

    let mut digits = String::new();
    for byte in Sha256::digest(bytes) {
        // Writing to a string does not fail.
        let _ = write!(digits, "{byte:02x}");
    }
    digits
}

/// What follows `?v=` in a reference to a file whose content has this [`hash`].
pub(super) fn stamp_of(hash: &str) -> &str {
    &hash[..12]
}

/// What follows the last dot of a name.
pub(super) fn ending(path: &str) -> &str {
    path.rsplit_once('.').map_or("", |(_, ending)| ending)
}

/// Whether the file has something left to gain from compression.
pub(super) fn is_compressible(path: &str) -> bool {
    let text = [
        "html",
        "css",
        "js",
        "wasm",
        "svg",
        "webmanifest",
        "json",
        "txt",
        "md",
    ];
    text.contains(&ending(path))
}

/// The bytes as brotli at its best quality: seconds for a megabyte.
///
/// # Errors
/// None that a buffer in memory has.
pub(super) fn compressed(bytes: &[u8]) -> Result<Vec<u8>> {
    let parameters = brotli::enc::BrotliEncoderParams {
        quality: QUALITY,
        size_hint: bytes.len(),
        ..Default::default()
    };
    let mut compressed = Vec::new();
    brotli::BrotliCompress(&mut &*bytes, &mut compressed, &parameters).context("brotli failed")?;
    Ok(compressed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashes_are_those_of_sha256() {
        let empty = hash(b"");
        assert!(empty.starts_with("e3b0c44298fc1c149afb"));
        assert_eq!((empty.len(), stamp_of(&empty)), (64, "e3b0c44298fc"));
    }

    #[test]
    fn compression_can_be_undone() {
        let text = "a threshold holds, ".repeat(200);
        let small = compressed(text.as_bytes()).unwrap();
        assert!(small.len() < 100, "{}", small.len());
        let mut back = Vec::new();
        brotli::BrotliDecompress(&mut small.as_slice(), &mut back).unwrap();
        assert_eq!(back, text.as_bytes());
    }

    #[test]
    fn what_is_packed_already_is_not_packed_again() {
        assert!(is_compressible("capo-web_bg.wasm"));
        assert!(!is_compressible("icons/capo-192.png"));
        assert!(is_compressible("manifest.webmanifest"));
    }
}
