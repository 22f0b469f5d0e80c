//! The parts of the `capo` binary, as a library.

pub mod experiment;
pub mod simulate;
