//! The reference files and how they are read.

use std::env;
use std::path::{Path, PathBuf};

use burn_flex::{Flex, FlexDevice};
use burn_tensor::{FloatDType, Tensor};
use capo_rewriter::decoder::Decoder;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

pub(crate) type Cpu = Flex;

/// Accepted for logits and log-probabilities.
pub(crate) const LOGITS: f32 = 1e-4;

/// The folder of the reference files, or `None` when this machine has none and the test is to be
/// skipped; then it prints why.
///
/// It lies in the folder named by `CAPO_SHARED`, by default `shared` beside the repository.
pub(crate) fn folder() -> Option<PathBuf> {
    let beside = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared");
    let folder = env::var_os("CAPO_SHARED")
        .map_or_else(beside, PathBuf::from)
        .join("parity/qwen3");
    if folder.exists() {
        return Some(folder);
    }
    assert!(
        env::var_os("CI").is_none(),
        "no shared data at {}; set CAPO_SHARED",
        folder.display()
    );
    println!("skipped: no shared data at {}", folder.display());
    None
}

pub(crate) fn read<T: DeserializeOwned>(file: &Path) -> T {
    let text = std::fs::read_to_string(file).expect("a readable file");
    serde_json::from_str(&text).unwrap_or_else(|why| panic!("{}: {why}", file.display()))
}

pub(crate) fn decoder(folder: &Path) -> Decoder<Cpu> {
    Decoder::from_folder(folder, FloatDType::F32, &FlexDevice).expect("the model loads")
}

/// A rectangle of tokens with its mask.
#[derive(Deserialize, Clone)]
pub(crate) struct Input {
    pub(crate) input_ids: Vec<Vec<u32>>,
    pub(crate) attention_mask: Vec<Vec<u8>>,
}

impl Input {
    /// The tokens of each row without padding.
    pub(crate) fn rows(&self) -> Vec<Vec<u32>> {
        unpadded(&self.input_ids, &self.attention_mask)
    }
}

pub(crate) fn unpadded(ids: &[Vec<u32>], mask: &[Vec<u8>]) -> Vec<Vec<u32>> {
    ids.iter()
        .zip(mask)
        .map(|(ids, mask)| {
            ids.iter()
                .zip(mask)
                .filter(|(_, real)| **real == 1)
                .map(|(id, _)| *id)
                .collect()
        })
        .collect()
}

/// The largest difference met, which is printed, and must stay within what is accepted.
pub(crate) struct Largest {
    what: String,
    accepted: f32,
    found: f32,
    compared: usize,
}

impl Largest {
    pub(crate) fn new(what: impl Into<String>, accepted: f32) -> Self {
        Self {
            what: what.into(),
            accepted,
            found: 0.0,
            compared: 0,
        }
    }

    pub(crate) fn compare(&mut self, found: f32, expected: f32) {
        let difference = (found - expected).abs();
        assert!(
            difference <= self.accepted,
            "{}: {found} instead of {expected}",
            self.what
        );
        self.found = self.found.max(difference);
        self.compared += 1;
    }

    pub(crate) fn compare_all(&mut self, found: &[f32], expected: &[f32]) {
        assert_eq!(found.len(), expected.len(), "{}", self.what);
        for (found, expected) in found.iter().zip(expected) {
            self.compare(*found, *expected);
        }
    }
}

impl Drop for Largest {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            assert!(self.compared > 0, "{}: nothing was compared", self.what);
            println!(
                "{}: {:.1e} of {:.0e} over {} numbers",
                self.what, self.found, self.accepted, self.compared
            );
        }
    }
}

pub(crate) fn numbers<const D: usize>(tensor: Tensor<Cpu, D>) -> Vec<f32> {
    tensor.into_data().into_vec().expect("32-bit numbers")
}

/// The entry of an object whose value is this text.
pub(crate) fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value[key].as_str().unwrap_or_else(|| panic!("a text `{key}`"))
}
