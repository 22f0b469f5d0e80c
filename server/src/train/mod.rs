//! Training the learned rewriter, and asking one. Needs the feature `train`.

pub mod local;
pub mod log;
pub(crate) mod served;
pub mod settings;
pub mod tensorboard;
pub mod vllm_sampler;

use std::cell::Cell;

use capo_rewriter::alignment::AlignmentError;
use capo_rewriter::checkpoint::CheckpointError;
use capo_rewriter::device::{self, DeviceBackend, DeviceChoice, DeviceError, NumberType};
use capo_rewriter::engine::Engine;
use capo_rewriter::error::{FileError, RequestError};
use capo_rewriter::feedback::LeftOut;
use capo_rewriter::fine_tuning::TrainingError;
use capo_rewriter::local::ToldCuts;
use capo_rewriter::pairs::PairsError;
use capo_rewriter::template::TemplateError;
use clap::ValueEnum as _;

use self::log::LogError;
use self::settings::SettingsError;
use self::tensorboard::TensorBoardError;
use self::vllm_sampler::SamplerError;
use crate::cli::layout::counted;
use crate::stderr::warn;

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
    /// The device.
    #[error(transparent)]
    Device(#[from] DeviceError),
    /// A pair in tokens.
    #[error(transparent)]
    Template(#[from] TemplateError),
    /// The checkpoints.
    #[error(transparent)]
    Checkpoint(#[from] CheckpointError),
    /// The server that is to draw rewrites.
    #[error(transparent)]
    Sampler(#[from] SamplerError),
    /// The training itself.
    #[error(transparent)]
    Training(#[from] TrainingError),
    /// The alignment of a training.
    #[error(transparent)]
    Alignment(#[from] AlignmentError),
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
                | Self::Sampler(SamplerError::Table(_))
                | Self::Training(TrainingError::Request(
                    RequestError::Setting { .. } | RequestError::WholeElsewhere
                ))
        )
    }
}

/// The backends that this program was built with.
const BACKENDS: &[DeviceBackend] = &[
    device::CPU,
    #[cfg(feature = "wgpu")]
    capo_rewriter_wgpu::DEVICES,
    #[cfg(feature = "cuda")]
    capo_rewriter_cuda::DEVICES,
];

/// Names the device of the rewriters of studies, which have no `--device`.
pub const DEVICE: &str = "CAPO_DEVICE";

/// Where a rewriter runs.
#[derive(Debug, Clone, clap::Args)]
pub struct Device {
    /// Where the model runs: cpu, wgpu, cuda, one of several as in cuda:1, or auto for the best that is there. Several,
    /// as in cuda:0,1, divide the steps of a training.
    #[arg(long, default_value = "auto", value_name = "DEVICE")]
    device: DeviceChoice,
    /// What the model computes in [default: bf16 on cuda, else f32].
    #[arg(long, value_enum, value_name = "TYPE")]
    dtype: Option<Precision>,
}

/// Types of numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Precision {
    F32,
    Bf16,
    F16,
}

impl Device {
    /// What was said of it, as on the command line.
    pub fn named(&self) -> [(&'static str, Option<String>); 2] {
        let device = (self.device != DeviceChoice::Auto).then(|| self.device.to_string());
        let dtype = self
            .dtype
            .and_then(|precision| Some(precision.to_possible_value()?.get_name().to_owned()));
        [("device", device), ("dtype", dtype)]
    }

    /// The device that the environment variable [`DEVICE`] names, else the best that is there.
    ///
    /// # Errors
    /// When the variable names none.
    pub fn of_environment() -> Result<Self, DeviceError> {
        let named = std::env::var(DEVICE).unwrap_or_default();
        let named = Some(named.as_str()).filter(|named| !named.is_empty());
        Ok(Self {
            device: named.unwrap_or("auto").parse()?,
            dtype: None,
        })
    }

    /// Opens it.
    ///
    /// # Errors
    /// When it is not there, this program was built without its backend, or several are named.
    pub fn open(&self) -> Result<Box<dyn Engine>, DeviceError> {
        self.device.open(BACKENDS, self.number_type())
    }

    /// Opens it for a training, whose steps several may divide.
    ///
    /// # Errors
    /// When one is not there, or this program was built without its backend.
    pub fn open_all(&self) -> Result<Box<dyn Engine>, DeviceError> {
        self.device.open_all(BACKENDS, self.number_type())
    }

    fn number_type(&self) -> Option<NumberType> {
        self.dtype.map(|precision| match precision {
            Precision::F32 => NumberType::F32,
            Precision::Bf16 => NumberType::BF16,
            Precision::F16 => NumberType::F16,
        })
    }
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
