//! Local models, whose weights are on this machine, and who opens them.

use std::rc::Rc;

use capo_core::llm::Llm;

use crate::spec::ModelSpec;

/// Opens models whose weights are on this machine. The library that computes with them is a heavy one, which only
/// some programs have.
pub trait LocalModels {
    /// The model of a table with the provider `local`. `name` is what errors and screens call it.
    ///
    /// # Errors
    ///
    /// [`LocalError::Table`] when there is no such model or it does not read, [`LocalError::Device`] when this machine
    /// does not run it. Both say what to do.
    fn open(&self, name: &str, spec: &ModelSpec) -> Result<Rc<dyn Llm>, LocalError>;
}

/// Why a model is not opened in this process.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LocalError {
    /// The table asks for something that is not there, or not possible.
    #[error("{0}")]
    Table(String),
    /// The device to run it on is not there, or does not work.
    #[error("{0}")]
    Device(String),
}

/// Stands for models that this program cannot open: says so.
pub(crate) struct NoLocalModels;

impl LocalModels for NoLocalModels {
    fn open(&self, _: &str, _: &ModelSpec) -> Result<Rc<dyn Llm>, LocalError> {
        let here = if cfg!(target_arch = "wasm32") {
            "runs in the native `capo`, not in a page"
        } else {
            "needs a `capo` with the feature `train`: cargo build --release -p capo-server --features train"
        };
        Err(LocalError::Table(format!(
            "provider `local` {here}; or serve the model with `capo rewriter serve` and ask it as provider \
             `openai-compatible` with rewrite_form = \"learned\""
        )))
    }
}
