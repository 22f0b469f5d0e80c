//! Remote generation: rewrites drawn outside this process, by a server that serves the policy's adapter.

use std::fs;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use capo_core::llm::{CallUsage, LlmError};
use futures::future::LocalBoxFuture;
use futures::lock::Mutex;

use crate::error::FileError;
use crate::generate::{Finish, Generation, GenerationRow};

/// Who draws rewrites in the policy's place.
pub trait Sampler {
    /// Draws from the adapter in a folder, in PEFT's layout, from now on, and lets go of the one before. `step`
    /// counts the rounds that it learned from. The folder stays as it is until another adapter is served.
    ///
    /// Never called while a rewrite is drawn. What was served before may be asked for again, after a restart too.
    ///
    /// # Errors
    ///
    /// It cannot be served; nothing may be drawn then.
    fn serve<'a>(&'a self, step: u64, adapter: &'a Path) -> LocalBoxFuture<'a, Result<(), LlmError>>;

    /// Answers a prompt with tokens drawn from what is served, as `settings` say.
    ///
    /// # Errors
    ///
    /// There is no answer, or one whose tokens are not known.
    fn draw<'a>(
        &'a self,
        row: &'a GenerationRow,
        settings: &'a Generation,
    ) -> LocalBoxFuture<'a, Result<Draw, LlmError>>;
}

/// An answer that was drawn elsewhere.
#[derive(Debug, Clone, PartialEq)]
pub struct Draw {
    /// The new tokens, the stop token included.
    pub tokens: Vec<u32>,
    /// Why it ended.
    pub finish: Finish,
    /// What it consumed.
    pub usage: CallUsage,
    /// What failed tries before it consumed.
    pub failed_tries: Option<CallUsage>,
}

/// A sampler with the place where it finds adapters.
pub struct RemoteGeneration {
    sampler: Rc<dyn Sampler>,
    /// Holds one folder for each adapter that is served.
    folder: PathBuf,
    /// The step whose adapter is served.
    served: Mutex<Option<u64>>,
}

impl RemoteGeneration {
    /// A sampler that finds the adapters to serve in a folder of its own.
    pub fn new(sampler: Rc<dyn Sampler>, folder: PathBuf) -> Self {
        Self {
            sampler,
            folder,
            served: Mutex::new(None),
        }
    }

    /// Draws from the adapter of a step, which `save` writes into a folder where it is not served yet.
    pub(crate) async fn draw(
        &self,
        step: u64,
        save: impl FnOnce(&Path) -> Result<(), FileError>,
        row: &GenerationRow,
        settings: &Generation,
    ) -> Result<Draw, DrawError> {
        let mut served = self.served.lock().await;
        if *served != Some(step) {
            let adapter = self.folder.join(format!("step-{step:08}"));
            save(&adapter)?;
            self.sampler.serve(step, &adapter).await?;
            self.remove_all_but(&adapter)?;
            *served = Some(step);
        }
        drop(served);
        Ok(self.sampler.draw(row, settings).await?)
    }

    fn remove_all_but(&self, adapter: &Path) -> Result<(), FileError> {
        for entry in fs::read_dir(&self.folder).map_err(FileError::io(&self.folder))? {
            let former = entry.map_err(FileError::io(&self.folder))?.path();
            if former != adapter {
                fs::remove_dir_all(&former).map_err(FileError::io(&former))?;
            }
        }
        Ok(())
    }
}

/// Why nothing was drawn elsewhere.
#[derive(Debug, thiserror::Error)]
pub(crate) enum DrawError {
    /// The adapter cannot be written.
    #[error(transparent)]
    File(#[from] FileError),
    /// The sampler gave no answer.
    #[error(transparent)]
    Sampler(#[from] LlmError),
}
