//! Options of a server or a worker for training rewriters.

#[cfg(feature = "train")]
use std::io;
use std::path::{Path, PathBuf};

use capo_team::trainings::Trainings;

/// How a process works on trainings.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct Training {
    /// Trainings of rewriters at a time in this process; with 0 the server has none [default: 1, in a `capo` built with the
    /// feature `train`].
    #[arg(long, value_name = "N")]
    trainings: Option<usize>,
    /// Folder with the models, each in a folder of its own, that trainings may start from.
    #[arg(long, value_name = "DIR")]
    models: Option<PathBuf>,
    #[arg(skip)]
    folder: Option<PathBuf>,
}

/// Why a process cannot work on trainings.
#[derive(Debug, thiserror::Error)]
pub(crate) enum TrainingError {
    /// It is asked for what it was built without.
    #[cfg(not(feature = "train"))]
    #[error(
        "--trainings and --models need the learned rewriter, which this `capo` was built without; build it with: cargo \
         build --release -p capo-server --features train"
    )]
    Missing,
    /// There are no such models.
    #[cfg(feature = "train")]
    #[error("--models {}: {source}", path.display())]
    Models { path: PathBuf, source: io::Error },
    #[cfg(feature = "train")]
    #[error("{0}")]
    System(#[from] io::Error),
}

impl Training {
    /// The same in a folder that other processes work in, too.
    pub(crate) fn in_folder(self, folder: Option<PathBuf>) -> Self {
        Self { folder, ..self }
    }

    /// How a worker works on trainings, if it was told where they lie.
    pub(super) fn elsewhere(self) -> Result<Option<Trainings>, TrainingError> {
        match self.folder.clone() {
            Some(folder) => self.at(&folder),
            None => Ok(None),
        }
    }

    /// How a process works on the trainings of a folder, if it does.
    #[cfg(feature = "train")]
    pub(super) fn at(self, folder: &Path) -> Result<Option<Trainings>, TrainingError> {
        use std::sync::Arc;
        use std::time::Duration;

        use super::trainer::OwnCommands;

        /// How long a training stays with a process that is not heard of.
        const LEASE: Duration = Duration::from_secs(30);

        let at_once = self.trainings.unwrap_or(1);
        if at_once == 0 {
            return Ok(None);
        }
        let models = self.models.map(|path| match path.canonicalize() {
            Ok(path) => Ok(path),
            Err(source) => Err(TrainingError::Models { path, source }),
        });
        let models = models.transpose()?;
        super::folder::make(folder)?;
        Ok(Some(Trainings {
            trainer: Arc::new(OwnCommands::new()?),
            // Checkpoints name their models by whole paths.
            folder: folder.canonicalize()?,
            models,
            at_once,
            lease: LEASE,
        }))
    }

    /// How a process works on the trainings of a folder, if it does.
    #[cfg(not(feature = "train"))]
    pub(super) fn at(self, _: &Path) -> Result<Option<Trainings>, TrainingError> {
        if self.trainings.unwrap_or(0) > 0 || self.models.is_some() {
            return Err(TrainingError::Missing);
        }
        Ok(None)
    }
}
