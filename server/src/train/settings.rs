//! The settings of trainings, as a TOML file.

use std::path::{Path, PathBuf};

use capo_core::study::read_toml;
use capo_rewriter::checkpoint::Retention;
use capo_rewriter::fine_tuning::SftSettings;
use capo_rewriter::local::Drawing;
use capo_rewriter::lora::LoraConfig;
use capo_rewriter::pairs::PairSettings;
use capo_rewriter::pool_grpo::GrpoSettings;
use serde::{Deserialize, Serialize};

use super::vllm_sampler::SamplerSettings;
use crate::files::{TextError, read_text};

/// Everything about a training that the command line does not say. What a file leaves out has its default.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct TrainingSettings {
    /// Which pairs of the journals are learned.
    pub pairs: PairSettings,
    /// Supervised fine-tuning.
    pub sft: SftSettings,
    /// Learning from the rounds of a search.
    pub grpo: GrpoSettings,
    /// What learns, unless all weights do.
    pub lora: LoraConfig,
    /// How rewrites are drawn, and how long they may get.
    pub drawing: Drawing,
    /// Who draws the rewrites that `grpo` learns from.
    pub sampler: SamplerSettings,
    /// Which checkpoints are kept.
    pub checkpoints: Retention,
}

/// Why settings do not read.
#[derive(Debug, thiserror::Error)]
pub enum SettingsError {
    /// The file cannot be read.
    #[error(transparent)]
    Text(#[from] TextError),
    /// It says something unknown or impossible.
    #[error("{}: {message}", path.display())]
    Content {
        /// Path of the file that the error is about.
        path: PathBuf,
        /// What, and in which line.
        message: String,
    },
}

impl TrainingSettings {
    /// Reads a file; the defaults without one.
    ///
    /// # Errors
    /// When it cannot be read, or names something unknown.
    pub fn read(path: Option<&Path>) -> Result<Self, SettingsError> {
        let Some(path) = path else {
            return Ok(Self::default());
        };
        let text = read_text("settings file", path)?;
        Self::parse(&text).map_err(|message| SettingsError::Content {
            path: path.to_owned(),
            message,
        })
    }

    /// Reads the text of such a file.
    ///
    /// # Errors
    /// What it says that is unknown or impossible, and in which line.
    pub fn parse(text: &str) -> Result<Self, String> {
        read_toml(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_out_has_its_default_and_what_is_unknown_is_named() {
        let settings: TrainingSettings = toml::from_str(
            "[sft]\nepochs = 7\n[grpo]\nnormalisation = { constant = 256 }\n[lora]\nrank = 4\n\
             [drawing]\nmax_new_tokens = 300\n[drawing.sampling]\ntop_p = 0.9",
        )
        .unwrap();
        assert_eq!(settings.sft.epochs, 7);
        assert_eq!(settings.sft.batch, SftSettings::default().batch);
        assert_eq!((settings.lora.rank, settings.lora.targets.len()), (4, 7));
        assert_eq!(settings.drawing.max_new_tokens, 300);
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("train.toml");
        std::fs::write(&path, "[sft]\nepoch = 7\n").unwrap();
        let message = TrainingSettings::read(Some(&path)).unwrap_err().to_string();
        assert!(
            message.contains("train.toml: line 2") && message.contains("epoch"),
            "{message}"
        );
        assert_eq!(message.lines().count(), 1);
        assert!(
            toml::from_str::<TrainingSettings>(
                "[grpo]
seed = 1"
            )
            .is_err(),
            "the study says it"
        );
    }
}
