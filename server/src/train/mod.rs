//! Training the learned rewriter, and asking one. Needs the feature `train`.

pub mod local;
pub mod log;
pub mod settings;
pub mod tensorboard;

use std::cell::Cell;

use capo_rewriter::checkpoint::CheckpointError;
use capo_rewriter::engine::{DeviceEngine, Engine};
use capo_rewriter::error::{FileError, RequestError};
use capo_rewriter::feedback::LeftOut;
use capo_rewriter::fine_tuning::TrainingError;
use capo_rewriter::local::ToldCuts;
use capo_rewriter::pairs::PairsError;
use capo_rewriter::template::TemplateError;

use self::log::LogError;
use self::settings::SettingsError;
use self::tensorboard::TensorBoardError;
use crate::cli::failure::warn;
use crate::cli::layout::counted;

/// Why a rewriter cannot be trained or asked.
#[derive(Debug, thiserror::Error)]
pub enum TrainError {
    /// The file of settings.
    #[error(transparent)]
    Settings(#[from] SettingsError),
    /// A setting's value.
    #[error(transparent)]
    Request(#[from] RequestError),
    /// The journals give nothing to learn from.
    #[error(transparent)]
    Pairs(#[from] PairsError),
    /// A model's file.
    #[error(transparent)]
    File(#[from] FileError),
    /// A pair in tokens.
    #[error(transparent)]
    Template(#[from] TemplateError),
    /// The checkpoints.
    #[error(transparent)]
    Checkpoint(#[from] CheckpointError),
    /// The training itself.
    #[error(transparent)]
    Training(#[from] TrainingError),
    /// What is told of it cannot be written.
    #[error(transparent)]
    Log(#[from] LogError),
    /// Its curves cannot be written.
    #[error(transparent)]
    TensorBoard(#[from] TensorBoardError),
}

impl TrainError {
    /// Whether the command line or its files must change, not the surroundings.
    pub fn is_bad_usage(&self) -> bool {
        matches!(
            self,
            Self::Settings(_)
                | Self::Request(RequestError::Setting { .. })
                | Self::Training(TrainingError::Request(RequestError::Setting { .. }))
        )
    }
}

/// The engine of the processor.
pub fn engine() -> Box<dyn Engine> {
    Box::new(DeviceEngine::cpu())
}

/// Says on standard error, once, that feedback is cut.
pub fn told_cuts() -> ToldCuts {
    let is_said = Cell::new(false);
    Box::new(move |left_out: LeftOut| {
        if !is_said.replace(true) {
            warn(&format!(
                "the model's context has no room for all feedback: {} of a request were left out, and more may follow",
                counted(left_out.lines as u64, "line")
            ));
        }
    })
}
