//! The manifest: what a checkpoint says of itself.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use capo_core::ids::hex;
use capo_core::study::differences;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::config::read_json;
use crate::error::FileError;
use crate::weights::{INDEX, SINGLE, shards};

pub(crate) const MANIFEST: &str = "checkpoint.json";
/// Version of a checkpoint's layout written by this build.
const FORMAT: u32 = 1;
/// Differences told at most.
const NAMED: usize = 12;

/// What makes two trainings the same: on what, from where, and how.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Identity {
    /// [`Study::identity`](capo_core::study::Study::identity), and whatever else the data are made
    /// of.
    pub study: Value,
    /// `config.json` of the model that training starts from.
    pub model: Value,
    /// Lower-case hex SHA-256 of that model's weights.
    pub weights: String,
    /// The settings of the training that change its result.
    pub settings: Value,
}

impl Identity {
    /// The identity of a training that starts from a model's folder. All weights are read for their
    /// hash.
    ///
    /// # Errors
    ///
    /// The configuration or the weights do not read.
    pub fn of_model(folder: &Path, study: Value, settings: Value) -> Result<Self, FileError> {
        Ok(Self {
            study,
            model: read_json(&folder.join("config.json"))?,
            weights: weights_hash(folder)?,
            settings,
        })
    }

    /// How this one differs from another, as `field: this → other` lines, at most twelve of them.
    pub fn differences(&self, other: &Self) -> Vec<String> {
        let fields = |identity: &Self| {
            json!({
                "study": identity.study, "model": identity.model,
                "weights": identity.weights, "settings": identity.settings,
            })
        };
        differences(&fields(self), &fields(other), NAMED)
    }
}

/// Lower-case hex SHA-256 of a model's safetensors files, one after the other by name.
fn weights_hash(folder: &Path) -> Result<String, FileError> {
    let index = folder.join(INDEX);
    let files: Vec<PathBuf> = if index.exists() {
        shards(&index)?
            .into_iter()
            .map(|shard| folder.join(shard))
            .collect()
    } else {
        vec![folder.join(SINGLE)]
    };
    let mut hash = Hasher(Sha256::new());
    for path in files {
        File::open(&path)
            .and_then(|mut file| io::copy(&mut file, &mut hash))
            .map_err(FileError::io(&path))?;
    }
    Ok(hex(&hash.0.finalize()))
}

struct Hasher(Sha256);

impl io::Write for Hasher {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.update(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// How far a training got.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Progress {
    /// Steps made.
    pub step: u64,
    /// Where its randomness stands.
    pub random: RandomState,
    /// How good it is, the higher the better: minus the evaluation loss, or the mean reward. None
    /// when it was not measured.
    #[serde(deserialize_with = "Option::deserialize")]
    pub merit: Option<f64>,
    /// What else the training must remember, such as multipliers or the patience of an early stop.
    pub state: Value,
}

/// Named streams of randomness are told by a seed and by how often each was drawn from.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RandomState {
    /// The training's seed.
    pub seed: u64,
    /// The next index of each stream, by its purpose.
    pub counters: BTreeMap<String, u64>,
}

/// `checkpoint.json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Manifest {
    format: u32,
    pub(super) progress: Progress,
    pub(super) identity: Identity,
    /// Bytes by path below the checkpoint, `/` between folders.
    files: BTreeMap<String, u64>,
}

impl Manifest {
    pub(super) fn new(identity: Identity, progress: Progress, files: BTreeMap<String, u64>) -> Self {
        Self {
            format: FORMAT,
            progress,
            identity,
            files,
        }
    }

    /// Reads it and looks at the files, or says what is wrong.
    pub(super) fn read(folder: &Path) -> Result<Self, String> {
        let value = read_json(&folder.join(MANIFEST)).map_err(|why| why.to_string())?;
        let format = value.get("format").and_then(Value::as_u64);
        if format.is_some_and(|format| format > FORMAT.into()) {
            return Err("it was written by a newer Capo: update to read it".into());
        }
        let manifest: Self =
            serde_json::from_value(value).map_err(|why| format!("{MANIFEST} does not read: {why}"))?;
        for (name, size) in &manifest.files {
            let found = folder
                .join(name)
                .metadata()
                .map_err(|why| format!("{name}: {why}"))?;
            if found.len() != *size {
                return Err(format!("{name} has {} bytes instead of {size}", found.len()));
            }
        }
        Ok(manifest)
    }

    /// Whether something was saved under a name.
    pub(super) fn has(&self, name: &str) -> bool {
        let below = |path: &str| path.strip_prefix(name).is_some_and(|rest| rest.starts_with('/'));
        self.files.keys().any(|path| path == name || below(path))
    }
}
