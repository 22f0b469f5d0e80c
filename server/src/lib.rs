//! The parts of the `capo` binary, as a library.

pub mod cli;
pub mod dotenv;
pub mod experiment;
pub mod files;
pub mod interrupt;
mod now;
pub mod progress;
pub mod recorded;
pub mod remote;
mod serve;
pub mod session;
pub mod simulate;
mod stderr;
mod study_reads;
mod terminal;
#[cfg(feature = "train")]
pub mod train;
