//! Why a measurement fails.

use capo_rewriter::device::DeviceError;
use capo_rewriter::error::{FileError, RequestError};

/// Why a measurement failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    #[error(transparent)]
    Device(#[from] DeviceError),
    #[error(transparent)]
    File(#[from] FileError),
    #[error(transparent)]
    Request(#[from] RequestError),
    #[error("{what}: {source}")]
    Io { what: String, source: std::io::Error },
    #[error("{0}")]
    Failed(String),
}

impl Error {
    pub(crate) fn io(what: &dyn std::fmt::Display) -> impl FnOnce(std::io::Error) -> Self + use<> {
        let what = what.to_string();
        move |source| Self::Io { what, source }
    }
}
