//! Threshold-constrained prompt optimisation: the CAPO method and everything it stands on, without
//! sockets, clocks, threads or global state.
//!
//! | module | what it holds |
//! |---|---|
//! | [`study`], [`problem`] | one problem with its settings, and the same joined with its workloads |
//! | [`metric`], [`score`], [`estimate`] | measurements, residuals, the Lagrangian score, standard errors |
//! | [`multipliers`], [`sampling`], [`random`] | dual steps, parents drawn without replacement, named streams |
//! | [`workload`], [`llm`] | the two doors to the world: what a prompt is measured on, who answers |
//! | [`arena`], [`journal`], [`run_state`] | effects paid once, the lines they leave, the fold over them |
//! | [`methods`], [`optimize`] | the searches, one file each, and a whole run from start to held-out result |
//! | [`templates`], [`evidence`] | what critic and rewriter are sent |
//! | [`evaluate`], [`statistics`], [`summary`] | one prompt measured; what can be said about a difference; a run's result |
//! | [`verify()`] | a journal checked against itself |
//! | [`backoff`] | how long to wait before what failed is tried again |
//! | [`budget`], [`usage`], [`control`] | what a run may spend, what it spent, how a person steers it |

pub mod address;
pub mod arena;
pub mod backoff;
pub mod budget;
pub mod causes;
pub mod control;
pub mod estimate;
pub mod evaluate;
pub mod evidence;
pub mod ids;
pub mod journal;
pub mod llm;
pub mod methods;
pub mod metric;
pub mod multipliers;
pub mod notice;
mod optimize;
pub mod problem;
pub mod random;
pub mod run_state;
pub mod sampling;
pub mod score;
pub mod secrets;
pub mod statistics;
pub mod study;
pub mod summary;
pub mod templates;
pub mod usage;
mod verify;
pub mod workload;

pub use optimize::{Outcome, RunError, optimize};
pub use verify::{Difference, Verified, verify};
