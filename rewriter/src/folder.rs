//! Folders of policies: a model, an adapter beside one, a checkpoint or a whole training, by one name.

use std::path::{Path, PathBuf};

use capo_core::ids::sha256_hex;
use serde_json::Value;

use crate::checkpoint::{self, Checkpoint, CheckpointError, Identity};
use crate::config::read_json;
use crate::error::FileError;
use crate::hub::ModelSource;
use crate::peft;

/// What a training's checkpoints are called in its folder.
pub const CHECKPOINTS: &str = "checkpoints";
/// What the policy is called in a checkpoint.
pub const POLICY: &str = "policy";
/// The setting by which [`Identity`] tells trainings apart.
pub const TRAINING: &str = "training";
/// [`TRAINING`] of supervised fine-tuning, of whose checkpoints the best one counts; of others it is the last.
pub const SFT: &str = "sft";

/// [`TRAINING`] of learning from the rounds of a search, whose checkpoints are counted by rounds learned from.
pub const GRPO: &str = "grpo";
/// What the journal of such a search is called in its folder.
pub const JOURNAL: &str = "journal.jsonl";

/// A policy on this machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PolicyFolder {
    /// The decoder's folder in Hugging Face's layout, with its tokenizer.
    pub model: PathBuf,
    /// The folder of the adapter beside it, in PEFT's layout.
    pub adapter: Option<PathBuf>,
}

impl PolicyFolder {
    /// Finds what a name stands for: the folder of a model, of an adapter (which names its model), of a checkpoint
    /// or of a training, or a repository of the hub as `owner/name@revision`, which is downloaded.
    ///
    /// # Errors
    ///
    /// Nothing of that name is there, or it cannot be read or downloaded.
    pub fn find(name: &str) -> Result<Self, CheckpointError> {
        Self::find_from(Path::new(""), name)
    }

    /// Like [`find`](Self::find), of a name whose path starts at a folder.
    ///
    /// # Errors
    ///
    /// As [`find`](Self::find).
    pub fn find_from(start: &Path, name: &str) -> Result<Self, CheckpointError> {
        let folder = &start.join(name);
        if !folder.exists() {
            return match repository(name) {
                Some(source) => Ok(Self::of_model(source.fetch()?)),
                None => Err(FileError::NoModel(name.to_owned()).into()),
            };
        }
        let folder = std::path::absolute(folder).map_err(FileError::io(folder))?;
        if folder.join(checkpoint::MANIFEST).exists() {
            return Self::in_checkpoint(&Checkpoint::open(&folder)?);
        }
        if folder.join(CHECKPOINTS).is_dir() {
            return Self::in_checkpoint(&chosen(&folder.join(CHECKPOINTS))?);
        }
        Self::in_folder(folder)
    }

    /// The identity of a training that starts from this policy. All weights are read for their hash.
    ///
    /// # Errors
    ///
    /// A file does not read.
    pub fn identity(&self, study: Value, settings: Value) -> Result<Identity, FileError> {
        let mut identity = Identity::of_model(&self.model, study, settings)?;
        if let Some(adapter) = &self.adapter {
            let path = adapter.join(peft::WEIGHTS);
            let bytes = std::fs::read(&path).map_err(FileError::io(&path))?;
            identity.weights = format!("{} with {}", identity.weights, sha256_hex(bytes));
        }
        Ok(identity)
    }

    fn of_model(model: PathBuf) -> Self {
        Self { model, adapter: None }
    }

    /// The policy of a checkpoint.
    ///
    /// # Errors
    ///
    /// As [`find`](Self::find).
    pub fn in_checkpoint(checkpoint: &Checkpoint) -> Result<Self, CheckpointError> {
        Self::in_folder(checkpoint.path(POLICY)?)
    }

    /// A model's folder, or an adapter's with the model that it names.
    fn in_folder(folder: PathBuf) -> Result<Self, CheckpointError> {
        let written = folder.join(peft::CONFIG);
        if !written.exists() {
            return Ok(Self::of_model(folder));
        }
        let config = read_json(&written)?;
        let base = config.get(peft::BASE_MODEL).and_then(Value::as_str);
        let base = base.ok_or_else(|| {
            FileError::content(
                &written,
                format!("`{}` does not name its model", peft::BASE_MODEL),
            )
        })?;
        let model = match repository(base) {
            _ if Path::new(base).is_dir() => PathBuf::from(base),
            Some(source) => source.fetch()?,
            None => return Err(FileError::NoModel(base.to_owned()).into()),
        };
        Ok(Self {
            model,
            adapter: Some(folder),
        })
    }
}

/// `owner/name@revision`; the branch `main` where none is named.
fn repository(name: &str) -> Option<ModelSource> {
    let (repository, revision) = name.split_once('@').unwrap_or((name, "main"));
    let (owner, title) = repository.split_once('/')?;
    let is_plain = |part: &str| {
        let of_name = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
        !part.is_empty() && !part.starts_with('.') && part.chars().all(of_name)
    };
    (is_plain(owner) && is_plain(title) && !revision.is_empty()).then(|| ModelSource::Hub {
        repository: repository.to_owned(),
        revision: revision.to_owned(),
    })
}

/// The checkpoint that counts: the best of a fine-tuning, else the last, since rewards of different rounds are under
/// different multipliers.
fn chosen(folder: &Path) -> Result<Checkpoint, CheckpointError> {
    let checkpoints = checkpoint::list(folder)?;
    let is_sft = |one: &Checkpoint| {
        one.identity()
            .settings
            .get(TRAINING)
            .is_some_and(|kind| kind == SFT)
    };
    let best = checkpoint::best(&checkpoints).filter(|best| is_sft(best));
    let chosen = best.or(checkpoints.last()).cloned();
    chosen.ok_or_else(|| CheckpointError::None(folder.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repositories_are_told_from_paths() {
        let hub = |name: &str| match repository(name) {
            Some(ModelSource::Hub { repository, revision }) => Some((repository, revision)),
            _ => None,
        };
        let of = |name: &str, revision: &str| Some((name.to_owned(), revision.to_owned()));
        assert_eq!(hub("Qwen/Qwen3-0.6B"), of("Qwen/Qwen3-0.6B", "main"));
        assert_eq!(hub("Qwen/Qwen3-0.6B@c1899de"), of("Qwen/Qwen3-0.6B", "c1899de"));
        for path in [
            "model", "./model", "../a", "/a/b", "a/b/c", "a/", "a/b@", "~/m", "",
        ] {
            assert_eq!(hub(path), None, "{path}");
        }
    }

    #[test]
    fn what_is_not_there_is_named_with_the_forms_of_names() {
        let message = PolicyFolder::find("nowhere")
            .expect_err("is not there")
            .to_string();
        assert!(
            message.contains("nowhere") && message.contains("owner/name@revision"),
            "{message}"
        );
    }
}
