//! Threshold-constrained prompt optimisation.

pub mod llm;
pub mod metric;
pub mod usage;
pub mod workload;
