//! The reference files and how they are read.

use std::path::{Path, PathBuf};

use burn_tensor::backend::Backend;
use burn_tensor::{FloatDType, Tensor};
use capo_rewriter::backend::PolicyBackend;
use capo_rewriter::config::ModelConfig;
use capo_rewriter::decoder::Decoder;
use capo_rewriter::lora::{Adapter, LoraConfig};
use capo_rewriter::optimizer::{AdamW, Gradient};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// Accepted for logits and log-probabilities.
pub(crate) const LOGITS: f32 = 1e-4;

/// The folder of the reference files, and the device that is held against them.
#[derive(Debug, Clone)]
pub struct Reference<B: Backend> {
    /// With the files of `parity/qwen3`.
    pub folder: PathBuf,
    /// Where the rewriter runs.
    pub device: B::Device,
}

impl<B: PolicyBackend> Reference<B> {
    pub(crate) fn read<T: DeserializeOwned>(&self, file: &str) -> T {
        let file = self.folder.join(file);
        let text = std::fs::read_to_string(&file).unwrap_or_else(|why| panic!("{}: {why}", file.display()));
        serde_json::from_str(&text).unwrap_or_else(|why| panic!("{}: {why}", file.display()))
    }

    pub(crate) fn decoder(&self, model: &str) -> Decoder<B> {
        self.decoder_in(&self.folder.join(model), FloatDType::F32)
    }

    pub(crate) fn decoder_in(&self, folder: &Path, number_type: FloatDType) -> Decoder<B> {
        Decoder::from_folder(folder, number_type, &self.device).expect("the model loads")
    }

    pub(crate) fn adapted(&self, model: &str, adapter: &str) -> Adapted<B> {
        let model = self.decoder(model);
        let adapter = Adapter::from_folder(&self.folder.join(adapter), model.config(), &self.device);
        Adapted {
            folder: self.folder.clone(),
            model,
            adapter: adapter.expect("the adapter loads"),
        }
    }
}

/// A decoder with an adapter, and where the adapter's like are found.
pub(crate) struct Adapted<B: PolicyBackend> {
    pub(crate) folder: PathBuf,
    pub(crate) model: Decoder<B>,
    pub(crate) adapter: Adapter<B>,
}

impl<B: PolicyBackend> Adapted<B> {
    /// Adapter-like matrices, by file name.
    pub(crate) fn matrices(&self, file: &str) -> Adapter<B> {
        let (config, device): (&ModelConfig, _) = (self.model.config(), self.model.device());
        let lora: &LoraConfig = self.adapter.config();
        Adapter::from_file(&self.folder.join(file), lora, config, &device).expect("the matrices load")
    }

    /// Each element within 2e-5.
    pub(crate) fn compare_gradient(&self, found: &Gradient<B>, file: &str) {
        let mut elements = Largest::new(format!("{file}: elements"), 2e-5);
        let expected = self.matrices(file);
        for (found, expected) in found.parts().iter().zip(expected.matrices()) {
            elements.compare_all(&numbers(found.clone()), &numbers(expected.clone()));
        }
    }

    /// 99.9 % of the elements within 1e-5, none off by more than `most`.
    pub(crate) fn compare_parameters(&self, found: &Adapter<B>, file: &str, most: f64) {
        let expected = self.matrices(file);
        let flat = |adapter: &Adapter<B>| -> Vec<f32> {
            adapter
                .matrices()
                .flat_map(|matrix| numbers(matrix.clone()))
                .collect()
        };
        let (found, expected) = (flat(found), flat(&expected));
        let mut elements = Largest::new(format!("{file}: elements"), most as f32);
        elements.compare_all(&found, &expected);
        let far = found
            .iter()
            .zip(&expected)
            .filter(|(found, expected)| (*found - *expected).abs() > 1e-5)
            .count();
        println!("{file}: {far} of {} elements off by more than 1e-5", found.len());
        assert!(
            far as f64 <= 1e-3 * found.len() as f64,
            "{file}: {far} of {}",
            found.len()
        );
    }
}

/// The optimiser's settings in the files.
#[derive(Deserialize, Clone, Copy)]
pub(crate) struct Optim {
    pub(crate) lr: f64,
    betas: [f64; 2],
    eps: f64,
    weight_decay: f64,
    max_grad_norm: f64,
}

impl Optim {
    pub(crate) fn settings(self) -> AdamW {
        AdamW {
            beta_1: self.betas[0],
            beta_2: self.betas[1],
            eps: self.eps,
            weight_decay: self.weight_decay,
            max_grad_norm: Some(self.max_grad_norm),
        }
    }
}

/// Relative error at most 1e-4.
pub(crate) fn assert_norm(found: f32, expected: f64, what: &str) {
    let error = (f64::from(found) / expected - 1.0).abs();
    println!("{what}: relative error {error:.1e}");
    assert!(error < 1e-4, "{what}: {found} instead of {expected}");
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
    relative: f32,
    found: f32,
    compared: usize,
}

impl Largest {
    pub(crate) fn new(what: impl Into<String>, accepted: f32) -> Self {
        Self {
            what: what.into(),
            accepted,
            relative: 0.0,
            found: 0.0,
            compared: 0,
        }
    }

    /// For losses: 2e-5, and 1e-5 of the number.
    pub(crate) fn of_losses(what: impl Into<String>) -> Self {
        let mut largest = Self::new(what, 2e-5);
        largest.relative = 1e-5;
        largest
    }

    pub(crate) fn compare(&mut self, found: f32, expected: f32) {
        let difference = (found - expected).abs();
        assert!(
            difference <= self.accepted + self.relative * expected.abs(),
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

pub(crate) fn numbers<B: Backend, const D: usize>(tensor: Tensor<B, D>) -> Vec<f32> {
    tensor.into_data().into_vec().expect("32-bit numbers")
}

/// The entry of an object whose value is this text.
pub(crate) fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value[key].as_str().unwrap_or_else(|| panic!("a text `{key}`"))
}
