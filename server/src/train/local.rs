//! The provider `local`: a trained rewriter in this process.

use std::rc::Rc;

use capo_core::llm::{Llm, Role};
use capo_core::study::Study;
use capo_models::local_models::{LocalError, LocalModels};
use capo_models::{ModelSpec, Serves as _};
use capo_rewriter::folder::PolicyFolder;
use capo_rewriter::local::Drawing;
use capo_rewriter::stop::Stop;
use capo_rewriter::token_sampling::Sampling;
use serde_json::Value;

use crate::files::StudyFolder;

use super::{DEVICE, Device, told_cuts};

/// Opens rewriters by the folder or repository that a study names.
#[derive(Debug, Clone)]
pub struct LocalRewriters<'a> {
    /// Where the paths in the study start.
    pub folder: &'a StudyFolder,
    /// Ends their answers under way.
    pub stop: Stop,
}

impl LocalModels for LocalRewriters<'_> {
    fn open(&self, name: &str, spec: &ModelSpec) -> Result<Rc<dyn Llm>, LocalError> {
        let model = spec.model.as_deref().unwrap_or_default();
        let start = self.folder.resolve("");
        let folder = PolicyFolder::find_from(&start, model);
        let folder = folder.map_err(|error| LocalError::Table(error.to_string()))?;
        open(name, &folder, spec, self.stop.clone())
    }
}

/// Opens the rewriter in a folder as a table of a study describes it, on the device that the environment names.
///
/// # Errors
/// When it does not read, or the device does not run it.
pub fn open(
    name: &str,
    folder: &PolicyFolder,
    spec: &ModelSpec,
    stop: Stop,
) -> Result<Rc<dyn Llm>, LocalError> {
    let drawn = StatedDrawing {
        temperature: spec.temperature,
        max_tokens: spec.max_tokens.map(u32::from),
        max_batch: spec.concurrency.map(usize::from),
    };
    let engine = Device::of_environment().and_then(|device| device.open());
    let on_device = |error| LocalError::Device(format!("{error} ({DEVICE} names the device)"));
    let rewriter = engine
        .map_err(on_device)?
        .rewriter(name, folder, drawn.drawing(), told_cuts(), stop)
        .map_err(|error| LocalError::Table(error.to_string()))?;
    Ok(rewriter)
}

/// Puts a rewriter that was trained to be one in the place of the study's, who stays the critic where there is no
/// other.
pub fn take_over(study: &mut Study, rewriter: Value) {
    let former = study.models.insert(Role::Rewriter, rewriter);
    let former = former.filter(|former| !former.only_rewrites());
    if let (Some(former), false) = (former, study.models.contains_key(&Role::Critic)) {
        study.models.insert(Role::Critic, former);
    }
}

/// How rewrites are drawn, where something is said of it.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct StatedDrawing {
    /// Sampling temperature, ≥ 0.
    pub temperature: Option<f64>,
    /// Longest rewrite in tokens, ≥ 1.
    pub max_tokens: Option<u32>,
    /// The most rewrites drawn together, ≥ 1.
    pub max_batch: Option<usize>,
}

impl StatedDrawing {
    /// The same, with what is usual for the rest.
    pub fn drawing(self) -> Drawing {
        let usual = Drawing::default();
        Drawing {
            sampling: Sampling {
                temperature: self
                    .temperature
                    .map_or(usual.sampling.temperature, |temperature| temperature as f32),
                ..usual.sampling
            },
            max_new_tokens: self
                .max_tokens
                .map_or(usual.max_new_tokens, |tokens| tokens as usize),
            max_batch: self.max_batch.unwrap_or(usual.max_batch),
        }
    }
}
