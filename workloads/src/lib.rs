//! Workloads: what a prompt is measured on.
//!
//! A workload is chosen by `kind` in a study's `[workload]` table. [`build`] makes it from the
//! settings; [`schemas`] says which settings each kind takes. `docs/adding-a-workload.md` shows
//! how to add a kind.

#[macro_use]
mod registry;
pub mod data;
pub mod embeddings;
pub mod files;
mod k_means;
mod kind;
pub mod metrics;
mod outside;
mod settings;
#[cfg(test)]
mod shared;
mod template;
mod vectors;

pub use kind::{Change, Changes, Declared, Fact, Kind, Side, TraceView};
pub use outside::is_scorers_failure;
pub use registry::{
    asked_outside, asks_outside, build, check_written, declared, endpoints, missing, of, schemas,
    texts_to_embed,
};
pub use settings::BuildError;

// One folder and one name here for each kind, in the order they are listed to people.
kinds![desk, table, external, tau2];

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
