//! What a prompt is measured on.
//!
//! A workload is chosen by `kind` in a study's `[workload]` table. [`build`] makes it from the
//! settings; [`schemas`] says which settings each kind takes. `docs/adding-a-workload.md` shows
//! how to add a kind.

mod clusters;
pub mod data;
pub mod embeddings;
pub mod external;
pub mod files;
pub mod metrics;
mod registry;
mod settings;
#[cfg(test)]
mod shared;
pub mod table;
pub mod tau2;
mod template;
mod vectors;

pub use registry::{build, check_written, schemas, texts_to_embed};
pub use settings::BuildError;

use capo_core::llm::FailureKind;
use capo_core::workload::RolloutError;

/// A rollout was asked for on an example the workload does not have.
pub(crate) fn unknown_example(workload: &str, example: &str) -> RolloutError {
    RolloutError::failed(
        FailureKind::Tool,
        false,
        format!("workload `{workload}` has no example `{example}`"),
    )
}
