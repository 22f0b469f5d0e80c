//! Learned rewriters, as models that runs ask.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;

use capo_core::llm::Llm;
use capo_hosted::trained;
use capo_models::ModelSpec;
use capo_models::local_models::{LocalError, LocalModels};

use super::{Stopped, Trainings};

/// The rewriters of a project's trainings, as models in this process.
pub(crate) struct Rewriters {
    /// How this process trains and asks rewriters, if it does.
    pub(crate) trainings: Option<Trainings>,
    /// Where those lie that a run of the project asks, by their trainings' ids, or why they are not here.
    pub(crate) found: BTreeMap<String, Result<PathBuf, String>>,
    /// Ends their work.
    pub(crate) stopped: Stopped,
}

impl LocalModels for Rewriters {
    fn open(&self, _: &str, spec: &ModelSpec) -> Result<Rc<dyn Llm>, LocalError> {
        let trainings = self.trainings.as_ref().ok_or_else(|| {
            LocalError::Device("the worker that took this run up is none that knows trainings".into())
        })?;
        let found = trained(spec).and_then(|id| self.found.get(id));
        let found =
            found.ok_or_else(|| LocalError::Table("the project has no such training any more".into()))?;
        let folder = found.clone().map_err(LocalError::Device)?;
        trainings
            .trainer
            .rewriter(&folder, spec, Arc::clone(&self.stopped))
    }
}
