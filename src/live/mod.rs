//! Runs as this tab knows them: folded, started, steered.

mod fold;
mod run;
mod runs;
pub mod sending;
mod worker;

pub use fold::Folded;
pub use run::{Pause, Phase, Run};
pub use runs::{NewRun, Runs};
pub use worker::{WorkerHandle, document_meta};
