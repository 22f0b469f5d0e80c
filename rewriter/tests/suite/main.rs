//! The rewriter's tests, in one program: what they share is compiled once.

mod checkpoint;
mod files;
mod number_types;
mod online;
mod pairs;
mod parity;
mod training;
