//! A policy that learns: a whole decoder, or an adapter beside a frozen one.

use std::path::Path;

use burn_autodiff::Autodiff;
use burn_tensor::Tensor;

use crate::backend::PolicyBackend;
use crate::config::ModelConfig;
use crate::decoder::Decoder;
use crate::error::{FileError, RequestError};
use crate::flops::training_flops;
use crate::lora::{Adapter, Mode};
use crate::optimizer::Gradient;
use crate::parameters::{Parameter, Parameters};

/// What learns, with what it runs on.
#[derive(Debug, Clone)]
pub enum Policy<B: PolicyBackend> {
    /// All weights learn.
    Whole(Decoder<B>),
    /// The adapter learns and the base is frozen.
    Adapted {
        /// The frozen decoder.
        base: Decoder<B>,
        /// What learns.
        adapter: Adapter<B>,
    },
}

impl<B: PolicyBackend> Policy<B> {
    /// The decoder that answers, with [`adapter`](Self::adapter) where there is one.
    pub fn decoder(&self) -> &Decoder<B> {
        match self {
            Self::Whole(decoder) => decoder,
            Self::Adapted { base, .. } => base,
        }
    }

    /// The adapter, unless the whole decoder learns.
    pub fn adapter(&self) -> Option<&Adapter<B>> {
        match self {
            Self::Whole(_) => None,
            Self::Adapted { adapter, .. } => Some(adapter),
        }
    }

    /// The same with what learns of a policy of its form, on its own device.
    pub(crate) fn following(&self, leader: &Self) -> Self {
        let device = self.decoder().device();
        let learned = leader.parameters().into_iter();
        self.with(learned.map(|parameter| parameter.moved(&device)))
    }

    /// Sizes of the decoder.
    pub fn config(&self) -> &ModelConfig {
        self.decoder().config()
    }

    /// Operations of learning from one row of `columns` tokens of which `learned` are predicted: see
    /// [`training_flops`].
    pub fn training_flops(&self, columns: usize, learned: usize) -> f64 {
        let is_whole = matches!(self, Self::Whole(_));
        training_flops(self.config(), columns, learned, is_whole)
    }

    /// The value of a loss, `[1]`, and its gradient by what learns. `mode` says whether an adapter drops. With
    /// `activation_checkpointing` each layer is computed again in the backward pass, instead of all that it
    /// computed being kept until then.
    ///
    /// # Errors
    ///
    /// What `loss` gives.
    pub fn differentiate(
        &self,
        mode: Mode,
        activation_checkpointing: bool,
        loss: impl FnOnce(
            &Decoder<Autodiff<B>>,
            Option<&Adapter<Autodiff<B>>>,
        ) -> Result<Tensor<Autodiff<B>, 1>, RequestError>,
    ) -> Result<(Tensor<B, 1>, Gradient<B>), RequestError> {
        let prepared = |decoder: Decoder<Autodiff<B>>| {
            if activation_checkpointing {
                decoder.recomputing()
            } else {
                decoder
            }
        };
        match self {
            Self::Whole(decoder) => {
                let learning = prepared(Decoder::trainable(decoder));
                let loss = loss(&learning, None)?;
                Ok((loss.clone().inner(), learning.gradient(&loss, &learning)))
            }
            Self::Adapted { base, adapter } => {
                let decoder = prepared(Decoder::from_inner(base));
                let learning = Adapter::<Autodiff<B>>::trainable(adapter, mode);
                let loss = loss(&decoder, Some(&learning))?;
                Ok((loss.clone().inner(), decoder.gradient(&loss, &learning)))
            }
        }
    }

    /// Writes what learns into a folder: a whole model, or an adapter in PEFT's layout. `source` is the folder
    /// of the model that it started from.
    ///
    /// # Errors
    ///
    /// [`FileError`] when a file cannot be read or written.
    pub fn save(&self, folder: &Path, source: &Path) -> Result<(), FileError> {
        match self {
            Self::Whole(decoder) => decoder.save(folder, source),
            Self::Adapted { adapter, .. } => adapter.save(folder, &source.display().to_string()),
        }
    }

    /// The same kind of policy with what [`save`](Self::save) wrote.
    ///
    /// # Errors
    ///
    /// The folder does not read, or is of another form.
    pub fn load(&self, folder: &Path) -> Result<Self, FileError> {
        let device = self.decoder().device();
        Ok(match self {
            Self::Whole(decoder) => {
                Self::Whole(Decoder::from_folder(folder, decoder.number_type(), &device)?)
            }
            Self::Adapted { base, .. } => Self::Adapted {
                base: base.clone(),
                adapter: Adapter::from_folder(folder, base.config(), &device)?,
            },
        })
    }
}

impl<B: PolicyBackend> Parameters<B> for Policy<B> {
    fn parameters(&self) -> Vec<Parameter<B>> {
        match self {
            Self::Whole(decoder) => decoder.parameters(),
            Self::Adapted { adapter, .. } => adapter.parameters(),
        }
    }

    fn names(&self) -> Vec<String> {
        match self {
            Self::Whole(decoder) => decoder.names(),
            Self::Adapted { adapter, .. } => adapter.names(),
        }
    }

    fn with(&self, parameters: impl IntoIterator<Item = Parameter<B>>) -> Self {
        match self {
            Self::Whole(decoder) => Self::Whole(decoder.with(parameters)),
            Self::Adapted { base, adapter } => Self::Adapted {
                base: base.clone(),
                adapter: adapter.with(parameters),
            },
        }
    }
}
