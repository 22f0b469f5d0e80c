//! The domains of the tau2 benchmark, run natively.
//!
//! The worlds behave as the benchmark's own do, to the last byte of their state hashes; its data are read
//! from where a person keeps them and are not part of this project.

pub mod airline;
mod calculate;
pub mod environment;
pub mod folder;
pub mod grade;
mod number;
pub mod prompts;
mod python;
pub mod replay;
pub mod retail;
pub mod settings;
mod table;
pub mod task;
pub mod telecom;
pub mod tool;
pub mod trajectory;
pub mod transfer;

#[cfg(test)]
mod tests;
