//! Threshold-constrained prompt optimisation: the CAPO method and everything it stands on, without
//! sockets, clocks, threads or global state.
//!
//! Four floors, each of which names only itself and what is below it. On the ground stand the door to models ([`llm`]) and
//! what needs nothing else: named random streams ([`random`]), a renderer of tables ([`table`]), addresses, waits, notices,
//! batches that providers work on ([`batches`]).
//!
//! | floor | module | what it holds |
//! |---|---|---|
//! | [`study`] | [`study`], [`budget`] | one problem with its settings, what it may spend |
//! | | [`ids`], [`metric`], [`score`], [`estimate`], [`usage`] | names of prompts, measurements, residuals and the Lagrangian score, standard errors, what was spent |
//! | | [`workload`] | the door to what a prompt is measured on |
//! | [`journal`] | [`journal`], [`run_state`] | the lines that effects leave, where they lie, the fold over them |
//! | [`reading`] | [`summary`], [`statistics`] | a run's result, what can be said about a difference |
//! | [`search`] | [`problem`] | a study joined with its workloads |
//! | | [`arena`], [`control`] | effects paid once, how a person steers them |
//! | | [`dual`] | dual steps |
//! | | [`methods`], [`optimize()`] | the searches, one file each, and a whole run from start to held-out result |
//! | | [`starts`], [`pilot()`] | prompts of earlier runs to start from, the beginning of a run alone |
//! | | [`templates`], [`evidence`] | what critic and rewriter are sent |
//! | | [`evaluate`], [`certify`], [`verify()`] | one prompt measured, or tested; a journal checked against itself |

// A file may name this crate as others do: a method reads the same within it and outside.
extern crate self as capo_core;

pub mod address;
pub mod backoff;
pub mod batches;
pub mod error_chain;
pub mod http_headers;
pub mod journal;
pub mod llm;
pub mod notice;
pub mod random;
pub mod reading;
pub mod search;
pub mod study;
pub mod table;

pub use journal::run_state;
pub use reading::{statistics, summary};
pub use search::{
    Difference, Outcome, Piloted, RunError, Verified, arena, certify, control, dual, evaluate, evidence,
    methods, optimize, pilot, problem, starts, templates, verify,
};
pub use study::{budget, certificate, estimate, ids, metric, score, usage, workload};
