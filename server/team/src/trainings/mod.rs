//! Trainings of the learned rewriter: each is a process of its own over a folder of its own, so that it may own a GPU, break
//! down, and go on with the same command.

mod child;
mod folder;
mod input;
mod keeper;
mod log;
mod objects;
mod policies;
mod rewriters;
#[cfg(test)]
pub(crate) mod tests;
pub(crate) mod work;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use capo_api::{CheckpointShown, TrainingKind};
use capo_core::llm::Llm;
use capo_models::ModelSpec;
use capo_models::local_models::LocalError;

use crate::store::Millis;

pub(crate) use folder::{forget, is_below};
pub use policies::Policies;
pub(crate) use rewriters::Rewriters;

/// What a training's process locks in its folder for as long as it lives.
pub const LOCK: &str = "lock";

/// Says whether work in this process is to end before its time; it is asked often, from any thread.
pub type Stopped = Arc<dyn Fn() -> bool + Send + Sync>;

/// Knows how rewriters are trained and asked, of which this crate knows nothing.
pub trait Trainer: Send + Sync {
    /// Refuses a training that could not begin.
    ///
    /// # Errors
    /// What is wrong with its study or settings, both TOML.
    fn check(&self, kind: TrainingKind, study: &str, settings: &str) -> Result<(), String>;

    /// The command that writes the model that a training starts from into a new folder; `None` where that lies there already.
    fn model(&self, begin: &Begin, journals: &[PathBuf], into: &Path) -> Option<Command>;

    /// The command that makes the training, or goes on with it. It locks [`LOCK`] in the folder of the training, and ends in
    /// good order once its standard input is closed.
    fn command(&self, job: &Job) -> Command;

    /// Cuts the log of a training, no process of which lives, to where the next one goes on.
    ///
    /// # Errors
    /// Why its folder does not read.
    fn rewind(&self, folder: &Path) -> Result<(), String>;

    /// The checkpoints of a training, by step.
    ///
    /// # Errors
    /// Why its folder does not read.
    fn checkpoints(&self, folder: &Path) -> Result<Vec<CheckpointShown>, String>;

    /// The folder with the policy of a checkpoint.
    ///
    /// # Errors
    /// Why it does not read, or that there is none of this step.
    fn policy(&self, folder: &Path, step: u64) -> Result<PathBuf, String>;

    /// The rewriter that a training came to, as a table of a study describes it, until it is `stopped`.
    ///
    /// # Errors
    /// Why it cannot be asked here.
    fn rewriter(&self, folder: &Path, spec: &ModelSpec, stopped: Stopped) -> Result<Rc<dyn Llm>, LocalError>;
}

/// The policy that a training starts from, on this machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Begin {
    /// The folder of a model.
    Model(PathBuf),
    /// The folder of a training or a checkpoint, whose policy becomes one whole model.
    Policy(PathBuf),
    /// A new model of this size, where stated.
    Fresh {
        /// Tokens of the vocabulary at most.
        vocabulary: Option<u32>,
        /// Width of the residual stream.
        hidden: Option<u32>,
        /// Number of layers.
        layers: Option<u32>,
        /// Longest sequence in tokens.
        context: Option<u32>,
    },
}

/// A training, as its command needs it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Job {
    /// What it learns from.
    pub kind: TrainingKind,
    /// Its folder.
    pub folder: PathBuf,
    /// The file of its study.
    pub study: PathBuf,
    /// The file of its settings.
    pub settings: PathBuf,
    /// The folder of the model that it starts from.
    pub model: PathBuf,
    /// The journals that it learns from.
    pub journals: Vec<PathBuf>,
    /// Whether all weights learn.
    pub full: bool,
}

/// What the archive of a checkpoint's policy is called, and the folder in it.
pub(crate) fn archive_name(training: &str, step: u64) -> String {
    // Letters of an id alone.
    format!("rewriter-{}-{step}", training.get(..8).unwrap_or_default())
}

/// The rewriters of trainings that a caller may ask among the server's own models: an extension of each request for these.
#[derive(Debug, Clone, Default)]
pub struct Offered(pub Arc<[OfferedRewriter]>);

/// What a training came to that went its whole way.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OfferedRewriter {
    /// The name of the model, `training:ID`.
    pub name: String,
    /// When the training ended: one that is resumed comes to another rewriter.
    pub ended_at: Millis,
}

/// How a process works on trainings.
#[derive(Clone)]
pub struct Trainings {
    /// Who knows how.
    pub trainer: Arc<dyn Trainer>,
    /// Where their folders lie, each under the training's id. A training goes on only where its folder is.
    pub folder: PathBuf,
    /// Where models lie that trainings may start from.
    pub models: Option<PathBuf>,
    /// Trainings at a time.
    pub at_once: usize,
    /// How long one stays with a process that is not heard of.
    pub lease: Duration,
}

impl std::fmt::Debug for Trainings {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("Trainings")
            .field("folder", &self.folder)
            .field("models", &self.models)
            .finish_non_exhaustive()
    }
}

impl Trainings {
    /// The folder of a training.
    pub(crate) fn folder_of(&self, training: &str) -> PathBuf {
        self.folder.join(training)
    }

    /// The checkpoints of a training on this machine, by step.
    ///
    /// # Errors
    /// Why its folder does not read.
    pub(crate) async fn checkpoints(&self, training: &str) -> Result<Vec<CheckpointShown>, String> {
        let (trainer, folder) = (Arc::clone(&self.trainer), self.folder_of(training));
        let read = tokio::task::spawn_blocking(move || trainer.checkpoints(&folder)).await;
        read.map_err(|error| error.to_string())?
    }

    /// The folder with the policy of a checkpoint on this machine.
    ///
    /// # Errors
    /// Why it does not read, or that there is none of this step.
    pub(crate) async fn policy(&self, training: &str, step: u64) -> Result<PathBuf, String> {
        let (trainer, folder) = (Arc::clone(&self.trainer), self.folder_of(training));
        let read = tokio::task::spawn_blocking(move || trainer.policy(&folder, step)).await;
        read.map_err(|error| error.to_string())?
    }

    /// The names of the models that trainings may start from: folders with a `config.json`.
    pub(crate) fn models(&self) -> Vec<String> {
        let entries = self.models.iter().filter_map(|folder| folder.read_dir().ok());
        let models = entries
            .flatten()
            .flatten()
            .filter(|entry| entry.path().join("config.json").is_file())
            .filter_map(|entry| entry.file_name().into_string().ok());
        let mut models: Vec<String> = models.collect();
        models.sort();
        models
    }

    /// The folder of one of these models.
    pub(crate) fn model(&self, name: &str) -> Option<PathBuf> {
        let folder = self.models.as_ref()?;
        self.models()
            .iter()
            .any(|model| model == name)
            .then(|| folder.join(name))
    }
}
