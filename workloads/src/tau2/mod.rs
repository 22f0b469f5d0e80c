//! The domains of the tau2 benchmark, run natively.
//!
//! The worlds behave as the benchmark's own do, to the last byte of their state hashes; its data are read
//! from where a person keeps them and are not part of this project.

pub mod airline;
mod calculate;
pub mod environment;
mod number;
mod python;
pub mod retail;
mod table;
pub mod telecom;
pub mod tool;
pub mod transfer;

#[cfg(test)]
mod tests;
