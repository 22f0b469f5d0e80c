//! What trainings came to, as models that runs ask.

use std::rc::Rc;
use std::sync::Arc;

use capo_core::llm::Llm;
use capo_hosted::trained;
use capo_models::ModelSpec;
use capo_models::local_models::{LocalError, LocalModels};
use tokio::runtime::Handle;

use super::{Shelf, Stopped};

/// The rewriters of a project's trainings, as models in this process.
pub(crate) struct Rewriters {
    /// Where trainings lie, if this process trains and asks rewriters.
    pub(crate) shelf: Option<Shelf>,
    /// Where what is not on this machine is brought.
    pub(crate) handle: Handle,
    /// Ids of the trainings of the project.
    pub(crate) of_project: Vec<String>,
    /// Ends their work.
    pub(crate) stopped: Stopped,
}

impl LocalModels for Rewriters {
    fn open(&self, _: &str, spec: &ModelSpec) -> Result<Rc<dyn Llm>, LocalError> {
        let shelf = self.shelf.as_ref().ok_or_else(|| {
            LocalError::Device("the worker that took this run up is none that knows trainings".into())
        })?;
        let id = trained(spec).filter(|id| self.of_project.iter().any(|one| one == id));
        let id = id.ok_or_else(|| LocalError::Table("the project has no such training any more".into()))?;
        let folder = shelf.wait(&self.handle, id).map_err(LocalError::Device)?;
        let trainer = &shelf.trainings.trainer;
        trainer.rewriter(&folder, spec, Arc::clone(&self.stopped))
    }
}
